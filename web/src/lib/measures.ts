/** Maps of the measures other than the weight: how much each column matters to each row. Norms are shares of a row. Gradients and
 * erasure are in nats. */

import { floats, weights, type Explanation, type Measures, type Packed, type PackedFloats } from "./format";
import { combineHeads, headWeights, makeMap, tableMap, withoutSpecials, type AttentionMap, type Choice } from "./maps";

export type Measure = "weight" | "norm" | "gradient" | "erasure";
export const MEASURES: Measure[] = ["weight", "norm", "gradient", "erasure"];

/** A number of nats. If the absolute changes of all words of a row sum to at most this, the row has no shares in a difference map. */
const MIN_CHANGE = 0.01;

/** Whether a measure is computed on the whole model, so that it is the same for all heads. */
export function isOfWholeModel(measure: Measure): boolean {
  return measure === "gradient" || measure === "erasure";
}

/** Why a measure has no map for a choice; null if it has a map. */
export type MissingReason = "not computed" | "only target to source" | "not of the encoder" | "needs Python" | "changed cells" | "no roll-out" | null;

export function missingReason(measures: Measures | null | undefined, measure: Measure, { site, combination }: Choice): MissingReason {
  if (measure === "weight") return null;
  if (measure === "norm" && combination === "roll-out") return "no roll-out";
  if (measure === "erasure" && site !== "cross") return "only target to source";
  if (measure === "gradient" && site === "encoder") return "not of the encoder";
  if (!measures) return "not computed";
  if (measure === "norm") return measures.value_norms[site] ? null : "not computed";
  if (measure === "gradient") return measures.gradient[site as "cross" | "decoder"] ? null : "needs Python";
  return measures.erasure ? null : "changed cells";
}

/** The map of a measure: norms as shares of their row, gradients and erasure in nats. Null if the measure is missing.
 *
 * A number of nats is the change in the log-probability of the row's word, which is written, if the column's word is removed. So a negative
 * number means that the column's word supports the row's word. Erasure measures this change. The negative of gradient × input estimates it
 * to first order. */
export function measureMap(explanation: Explanation, choice: Choice, measures: Measures | null | undefined, measure: Measure): AttentionMap | null {
  if (measure === "weight") return makeMap(explanation, choice);
  if (!measures || missingReason(measures, measure, choice)) return null;
  const map = wholeMap(explanation, { ...choice, specials: true }, measures, measure);
  return choice.specials ? map : withoutSpecials(explanation, choice, map);
}

/** The map of a measure with all rows and columns. Shares are computed over the whole row, even if special tokens are hidden later. */
function wholeMap(explanation: Explanation, choice: Choice, measures: Measures, measure: Exclude<Measure, "weight">): AttentionMap {
  if (measure === "norm") return { ...shares(normMap(explanation, choice, measures.value_norms[choice.site]!), 0), quantity: "share" };
  if (measure === "erasure") return erasureMap(explanation, choice, measures.erasure!);
  const table = floats(measures.gradient[choice.site as "cross" | "decoder"]!).map((value) => 0 - value);
  return { ...tableMap(explanation, choice, table, { addQueries: true }), quantity: "nats" };
}

/** The shares of a measure's absolute values minus the shares of the weights over the same columns. So a row that includes the special
 * token sums to 0. A row has no numbers if its changes are too small (`MIN_CHANGE`), or if all its weights are 0. Null if the measure is
 * missing. */
export function differenceMap(explanation: Explanation, choice: Choice, measures: Measures | null | undefined, measure: Measure): AttentionMap | null {
  if (measure === "weight" || !measures || missingReason(measures, measure, choice)) return null;
  const whole = { ...choice, specials: true };
  const measured = wholeMap(explanation, whole, measures, measure);
  const measureShares = shares(measured, measured.quantity === "nats" ? MIN_CHANGE : 0);
  const weightShares = shares({ ...makeMap(explanation, whole, measure === "erasure" || choice.words)!, empty: measured.empty }, 0);
  const hasNoShares = (map: AttentionMap, row: number) => !map.values.subarray(row * map.columns, (row + 1) * map.columns).some((share) => share > 0);
  const { rows, columns } = measureShares;
  const isRowEmpty = Array.from({ length: rows }, (_, row) => hasNoShares(measureShares, row) || hasNoShares(weightShares, row));
  const empty = Uint8Array.from(measureShares.values, (_, i) => Number(measureShares.empty?.[i] || isRowEmpty[Math.floor(i / columns)]));
  const values = measureShares.values.map((share, i) => (empty[i] ? 0 : share - weightShares.values[i]));
  const { empty: _, ...rest } = measureShares;
  const map: AttentionMap = { ...rest, values, quantity: "difference", ...(empty.includes(1) && { empty }) };
  return choice.specials ? map : withoutSpecials(explanation, choice, map);
}

/** Where a map has cells without numbers, which are drawn as strokes. `rows`: whether all cells of some row have no number. `cells`: whether
 * some row has both cells without a number and cells with a number. */
export function strokes({ rows, columns, empty }: Pick<AttentionMap, "rows" | "columns" | "empty">): { rows: boolean; cells: boolean } {
  const emptyCells = (row: number) => empty!.subarray(row * columns, (row + 1) * columns).reduce((sum, isEmpty) => sum + isEmpty, 0);
  const counts = empty ? Array.from({ length: rows }, (_, row) => emptyCells(row)) : [];
  return { rows: counts.some((count) => count === columns), cells: counts.some((count) => count > 0 && count < columns) };
}

/** Weight × ‖value‖ of the chosen heads: the average or the maximum. */
function normMap(explanation: Explanation, choice: Choice, packed: Packed): AttentionMap {
  const attention = explanation.attention[choice.site]!;
  const [, heads, , keys] = attention.shape;
  const norms = weights(packed);
  return combineHeads(explanation, choice, (layer, head) => {
    const start = (layer * heads + head) * keys;
    return headWeights(attention, layer, head).map((weight, i) => weight * norms[start + (i % keys)]);
  });
}

/** The map of erasure. Erasure deletes whole words, so the columns are words even if the rows are tokens. Special tokens and tokens
 * without a word cannot be erased, so their columns have no numbers. */
function erasureMap(explanation: Explanation, choice: Choice, packed: PackedFloats): AttentionMap {
  const map = tableMap(explanation, choice, erasureTable(explanation, packed), { columnWords: true, addQueries: true });
  const empty = Uint8Array.from(map.values, (_, i) => Number(map.columnAxis!.words[i % map.columns] < 0));
  return { ...map, quantity: "nats", ...(empty.includes(1) && { empty }) };
}

/** Erasure as a table with the axes (query, key). The number of a source word is stored at the word's first token. */
function erasureTable({ source }: Explanation, packed: PackedFloats): Float32Array {
  const [steps, words] = packed.shape;
  const values = floats(packed);
  const keys = source.tokens.length + 1;
  const table = new Float32Array(steps * keys);
  for (let word = 0; word < words; word++) {
    const first = source.word_of_token.indexOf(word);
    if (first >= 0) for (let step = 0; step < steps; step++) table[step * keys + first] = values[step * words + word];
  }
  return table;
}

/** The absolute values of each row, divided by their sum. Cells without a number count as 0. Rows whose sum is at most `minSum`
 * become 0. */
function shares(map: AttentionMap, minSum: number): AttentionMap {
  const sizes = map.values.map((value, i) => (map.empty?.[i] ? 0 : Math.abs(value)));
  const values = new Float32Array(sizes.length);
  for (let start = 0; start < values.length; start += map.columns) {
    const total = sizes.subarray(start, start + map.columns).reduce((sum, size) => sum + size, 0);
    if (total > minSum) for (let i = start; i < start + map.columns; i++) values[i] = sizes[i] / total;
  }
  return { ...map, values };
}
