/** Applies changes of attention to weights, as in src/jumok/analysis/change_edits.py. */

import type { Change } from "../lib/changes";
import type { Site } from "./model_file";
import type { Edit, SiteWeights, WeightRow } from "./model";

/** The smallest sum of weights by which other weights are divided, because a sum may be 0. */
const MIN_SUM = 1e-12;

/** The edit that applies these changes; null if there are no changes. Changes that silence heads are always applied last: a silenced head
 * stays silenced even if one of its rows is painted or pinned. */
export function editFromChanges(changes: readonly Change[]): Edit | null {
  if (!changes.length) return null;
  const ordered = [...changes].sort((a, b) => Number(a.kind === "silence") - Number(b.kind === "silence"));
  return (weights, row) => {
    for (const change of ordered) if (concerns(change, row)) apply(change, weights, row.query);
  };
}

/** An edit that applies the edit `inner` (if it is not null) and then silences these heads of a site. Each head is [layer, head]. */
export function silenceHeads(site: Site, heads: readonly (readonly [number, number])[], inner: Edit | null): Edit {
  return (weights, row) => {
    inner?.(weights, row);
    if (row.site === site && heads.some(([layer, head]) => layer === row.layer && head === row.head)) weights.fill(0);
  };
}

function concerns({ site, layer, head }: Change, row: WeightRow): boolean {
  return site === row.site && (layer ?? row.layer) === row.layer && (head ?? row.head) === row.head;
}

function apply(change: Change, weights: Float32Array, query: number): void {
  if (change.kind === "silence") weights.fill(0);
  else if (change.kind === "paint" && change.query === query) paint(weights, change.key, change.weight);
  else if (change.kind === "pin" && change.queries.includes(query)) pin(weights, change.keys, change.weight ?? 1);
}

const sumOf = (weights: Float32Array) => weights.reduce((sum, weight) => sum + weight, 0);

/** Set one weight, and rescale the other weights so that the sum of the row stays the same. In two cases the sum becomes the new weight:
 * the other weights are all 0, or the new weight is above the sum (then the other weights become 0). */
function paint(weights: Float32Array, key: number, weight: number): void {
  const total = sumOf(weights);
  weights[key] = 0;
  const factor = Math.max(0, total - weight) / Math.max(MIN_SUM, sumOf(weights));
  for (let i = 0; i < weights.length; i++) weights[i] *= factor;
  weights[key] = weight;
}

/** Give these keys together this share of the row. The share is divided among the keys in proportion to their weights, or equally if their
 * weights are all 0. The other weights are rescaled so that the sum of the row stays the same. If the other weights are all 0, they stay 0,
 * and the sum becomes the share of the old sum. A row of zeros is treated as a row whose sum is 1. */
function pin(weights: Float32Array, namedKeys: readonly number[], share: number): void {
  const keys = [...new Set(namedKeys)];
  const sum = sumOf(weights);
  const total = sum > 0 ? sum : 1;
  const sumOfKeys = keys.reduce((partialSum, key) => partialSum + weights[key], 0);
  const shares = keys.map((key) => (sumOfKeys > MIN_SUM ? weights[key] / sumOfKeys : 1 / keys.length));
  for (const key of keys) weights[key] = 0;
  const factor = (total * (1 - share)) / Math.max(MIN_SUM, sumOf(weights));
  for (let i = 0; i < weights.length; i++) weights[i] *= factor;
  keys.forEach((key, i) => (weights[key] = shares[i] * total * share));
}

/** The first target step that a change affects. The tokens that earlier steps write stay the same. */
export function firstStep(change: Change): number {
  if (change.site === "encoder" || change.kind === "silence") return 0;
  return change.kind === "paint" ? change.query : Math.min(...change.queries);
}

/** Throw an error if a change is impossible: it names a site or an index that the maps do not have, a masked cell, a pin without queries
 * or keys, or a weight outside 0 … 1. Steps of the translation have no upper limit here, because the translation may become longer through
 * the changes. `checkRows` checks the steps afterwards. */
export function checkChanges(changes: readonly Change[], maps: Partial<Record<Site, SiteWeights>>): void {
  for (const change of changes) {
    const map = maps[change.site];
    if (!map) throw new Error(`This model has no attention "${change.site}". It has: ${Object.keys(maps).join(", ") || "none"}.`);
    const queries = change.kind === "paint" ? [change.query] : change.kind === "pin" ? change.queries : [];
    const keys = change.kind === "paint" ? [change.key] : change.kind === "pin" ? change.keys : [];
    if (change.kind === "pin" && (!queries.length || !keys.length)) throw new Error("A pin ties queries to keys and needs at least one of each.");
    if (change.kind !== "silence" && !((change.weight ?? 1) >= 0 && (change.weight ?? 1) <= 1)) throw new Error(`A weight lies between 0 and 1. Received: ${change.weight}.`);
    const indicesByAxis: [string, (number | null)[]][] = [["layer", [change.layer]], ["head", [change.head]], ["query", queries], ["key", keys]];
    indicesByAxis.forEach(([axis, indices], i) => {
      const isOfTranslation = (axis === "query" && change.site !== "encoder") || (axis === "key" && change.site === "decoder");
      const count = isOfTranslation ? Infinity : map.shape[i];
      const isValid = (index: number) => Number.isInteger(index) && index >= 0 && index < count;
      const invalid = indices.find((index) => index !== null && !isValid(index));
      if (invalid === undefined) return;
      throw new Error(`The attention "${change.site}" of this sentence has no ${axis} ${invalid}: there are ${map.shape[i]}, counted from 0.`);
    });
    const earliest = Math.min(...queries);
    if (change.site === "decoder" && queries.length && Math.max(...keys) > earliest) {
      throw new Error(`The attention "decoder" of this model is causal: query ${earliest} attends to the keys from 0 to ${earliest}. Choose an earlier key or a later query.`);
    }
  }
}

/** Throw an error if a change concerns a step that exists neither in the old nor in the new translation. `steps` is the number of steps
 * of the longer translation.
 *
 * Changes with `words` are not checked, because a person may have chosen them in an intermediate translation, which was longer than the
 * old and the new translation. If the step of such a change does not exist any more, the change has no effect. */
export function checkRows(changes: readonly Change[], steps: number): void {
  for (const change of changes) {
    if (change.kind === "silence" || change.site === "encoder" || change.words) continue;
    const queries = change.kind === "paint" ? [change.query] : change.queries;
    const invalid = queries.find((query) => query >= steps);
    if (invalid !== undefined) throw new Error(`The attention "${change.site}" of this sentence has no query ${invalid}: there are ${steps}, counted from 0.`);
  }
}
