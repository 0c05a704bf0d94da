/** Differences and captions of several explanations of one sentence, for the panel Compare. */

import type { Explanation } from "./format";
import type { AttentionMap } from "./maps";

/** The second map minus the first map; null if a map is missing or the labels differ. */
export function mapDifference(first: AttentionMap | null, second: AttentionMap | null): AttentionMap | null {
  if (!first || !second) return null;
  const labels = ({ rowLabels, columnLabels }: AttentionMap) => JSON.stringify([rowLabels, columnLabels]);
  if (labels(first) !== labels(second)) return null;
  return { ...first, values: first.values.map((value, i) => second.values[i] - value), quantity: "difference" };
}

/** Why two maps cannot be subtracted: the model with the index `model` does not have this attention, the translations differ, or the models
 * divide the sentence or the same translation into different words. */
export type NoDifference = { reason: "noSuchAttention"; model: number } | { reason: "otherTranslation" } | { reason: "otherWords" };

/** The reason for which `mapDifference` of the first two maps is null. Call this function only if it is null. */
export function whyNoDifference(explanations: readonly Explanation[], maps: readonly (AttentionMap | null)[]): NoDifference {
  const model = maps.slice(0, 2).findIndex((map) => !map);
  if (model >= 0) return { reason: "noSuchAttention", model };
  const [first, second] = explanations;
  return { reason: first.target.text === second.target.text ? "otherWords" : "otherTranslation" };
}

/** The captions of a saved comparison: the sentence (unless the source is a picture) with the translation that each model explains. If all
 * models explain the same translation, there is one caption. If the translations differ, each caption ends with the name of its model. */
export function comparisonCaptions(explanations: readonly Explanation[]): string[] {
  const line = ({ source, target, picture }: Explanation) => (picture ? target.text : `${source.text} → ${target.text}`);
  const lines = [...new Set(explanations.map(line))];
  return lines.length > 1 ? [...new Set(explanations.map((explanation) => `${line(explanation)} (${explanation.facts.name ?? ""})`))] : lines;
}

/** The names of the compared models, without models that have no name. */
export function comparedNames(explanations: readonly Explanation[]): string {
  return explanations.map(({ facts }) => facts.name ?? "").filter(Boolean).join(", ");
}
