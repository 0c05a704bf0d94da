/** What the panel Compare says of several explanations of one sentence. */

import type { Explanation } from "./format";
import type { AttentionMap } from "./maps";

/** The second map minus the first one; null if one is missing or their labels differ. (The 0 separates row labels from column labels.) */
export function mapDifference(first: AttentionMap | null, second: AttentionMap | null): AttentionMap | null {
  if (!first || !second) return null;
  const labels = ({ rowLabels, columnLabels }: AttentionMap) => [...rowLabels, 0, ...columnLabels].join("\n");
  return labels(first) === labels(second) ? { ...first, values: first.values.map((value, i) => second.values[i] - value), quantity: "difference" } : null;
}

/** Why two maps have no difference: a model has no such attention, the translations differ, or they are divided into other words. */
export type NoDifference = { reason: "noSuchAttention"; model: number } | { reason: "otherTranslation" } | { reason: "otherWords" };

export function whyNoDifference(explanations: readonly Explanation[], maps: readonly (AttentionMap | null)[]): NoDifference {
  const model = maps.slice(0, 2).findIndex((map) => !map);
  if (model >= 0) return { reason: "noSuchAttention", model };
  const [first, second] = explanations;
  return { reason: first.target.text === second.target.text ? "otherWords" : "otherTranslation" };
}

/** The captions of a saved comparison: the sentence with the translation that the models read, once if it is the same for all. */
export function comparisonCaptions(compared: readonly Explanation[]): string[] {
  const line = ({ source, target, picture }: Explanation) => (picture ? target.text : `${source.text} → ${target.text}`);
  const lines = [...new Set(compared.map(line))];
  return lines.length > 1 ? [...new Set(compared.map((explanation) => `${line(explanation)} (${explanation.facts.name ?? ""})`))] : lines;
}

export function comparedNames(compared: readonly Explanation[]): string {
  return compared.map(({ facts }) => facts.name ?? "").filter(Boolean).join(", ");
}
