/** How much each column matters to each row, by measures other than the weight: norms as shares of a row, gradients and erasure in nats. */

import { floats, weights, type Explanation, type Measures, type Packed, type PackedFloats } from "./format";
import { combineHeads, headWeights, makeMap, tableMap, withoutSpecials, type AttentionMap, type Choice } from "./maps";

export type Measure = "weight" | "norm" | "gradient" | "erasure";
export const MEASURES: Measure[] = ["weight", "norm", "gradient", "erasure"];

/** Rows in which all words together change the log-probability by fewer nats than this have no shares. */
const MIN_CHANGE = 0.01;

/** Whether a measure is one of the whole model, the same for all heads. */
export function isHeadless(measure: Measure): boolean {
  return measure === "gradient" || measure === "erasure";
}

/** Why a measure has no map here; null if it has one. */
export type Missing = "not computed" | "only target to source" | "not of the encoder" | "needs Python" | "changed cells" | "no roll-out" | null;

export function missing(measures: Measures | null | undefined, measure: Measure, { site, combination }: Choice): Missing {
  if (measure === "weight") return null;
  if (measure === "norm" && combination === "roll-out") return "no roll-out";
  if (measure === "erasure" && site !== "cross") return "only target to source";
  if (measure === "gradient" && site === "encoder") return "not of the encoder";
  if (!measures) return "not computed";
  if (measure === "norm") return measures.value_norms[site] ? null : "not computed";
  if (measure === "gradient") return measures.gradient[site as "cross" | "decoder"] ? null : "needs Python";
  return measures.erasure ? null : "changed cells";
}

/** The map of a measure: norms as shares of their row, gradients and erasure in nats. Null where it is missing.
 *
 * Nats are always the change in the log-probability without the word: a word with a negative number supports the written one. Erasure measures
 * that change; the negative of gradient × input is its first-order estimate. */
export function measureMap(explanation: Explanation, choice: Choice, measures: Measures | null | undefined, measure: Measure): AttentionMap | null {
  if (measure === "weight") return makeMap(explanation, choice);
  if (!measures || missing(measures, measure, choice)) return null;
  const map = wholeMap(explanation, { ...choice, specials: true }, measures, measure);
  return choice.specials ? map : withoutSpecials(explanation, choice, map);
}

/** The map of a measure with all rows and columns: shares are those of the whole row, whichever columns are shown. */
function wholeMap(explanation: Explanation, choice: Choice, measures: Measures, measure: Exclude<Measure, "weight">): AttentionMap {
  if (measure === "norm") return { ...shares(normMap(explanation, choice, measures.value_norms[choice.site]!), 0), quantity: "share" };
  if (measure === "erasure") return erasureMap(explanation, choice, measures.erasure!);
  const table = floats(measures.gradient[choice.site as "cross" | "decoder"]!).map((value) => 0 - value);
  return { ...tableMap(explanation, choice, table, { addQueries: true }), quantity: "nats" };
}

/** The shares of a measure, without signs, minus those of the weights over the same columns: a row with all its columns sums to 0.
 * Rows in which all words together change less than `MIN_CHANGE`, or in which all weights are 0, have no numbers. Null where the measure is missing. */
export function differenceMap(explanation: Explanation, choice: Choice, measures: Measures | null | undefined, measure: Measure): AttentionMap | null {
  if (measure === "weight" || !measures || missing(measures, measure, choice)) return null;
  const whole = { ...choice, specials: true };
  const measured = wholeMap(explanation, whole, measures, measure);
  const own = shares(measured, measured.quantity === "nats" ? MIN_CHANGE : 0);
  const weight = shares({ ...makeMap(explanation, whole, measure === "erasure" || choice.words)!, empty: measured.empty }, 0);
  const hasNoShares = (map: AttentionMap, row: number) => !map.values.subarray(row * map.columns, (row + 1) * map.columns).some((share) => share > 0);
  const isRowEmpty = Array.from({ length: own.rows }, (_, row) => hasNoShares(own, row) || hasNoShares(weight, row));
  const empty = Uint8Array.from(own.values, (_, i) => Number(own.empty?.[i] || isRowEmpty[Math.floor(i / own.columns)]));
  const values = own.values.map((value, i) => (empty[i] ? 0 : value - weight.values[i]));
  const { empty: _, ...rest } = own;
  const map: AttentionMap = { ...rest, values, quantity: "difference", ...(empty.includes(1) && { empty }) };
  return choice.specials ? map : withoutSpecials(explanation, choice, map);
}

/** Whether a map has rows of strokes (no cell has a number), and single strokes in other rows. */
export function strokes({ rows, columns, empty }: Pick<AttentionMap, "rows" | "columns" | "empty">): { rows: boolean; cells: boolean } {
  const counts = Array.from({ length: empty ? rows : 0 }, (_, row) => empty!.subarray(row * columns, (row + 1) * columns).reduce((sum, one) => sum + one, 0));
  return { rows: counts.some((count) => count === columns), cells: counts.some((count) => count > 0 && count < columns) };
}

/** Weight × ‖value‖ of the chosen heads, averaged, or the maximum of them. */
function normMap(explanation: Explanation, choice: Choice, packed: Packed): AttentionMap {
  const attention = explanation.attention[choice.site]!;
  const [, heads, , keys] = attention.shape;
  const norms = weights(packed);
  return combineHeads(explanation, choice, (layer, head) => {
    const start = (layer * heads + head) * keys;
    return headWeights(attention, layer, head).map((weight, i) => weight * norms[start + (i % keys)]);
  });
}

/** Erasure deletes whole words, so the columns are words, also if the rows are tokens. Columns that are no words are never erased, and have no numbers. */
function erasureMap(explanation: Explanation, choice: Choice, packed: PackedFloats): AttentionMap {
  const map = tableMap(explanation, choice, erasureTable(explanation, packed), { columnWords: true, addQueries: true });
  const empty = Uint8Array.from(map.values, (_, i) => Number(map.columnAxis!.words[i % map.columns] < 0));
  return { ...map, quantity: "nats", ...(empty.includes(1) && { empty }) };
}

/** Erasure as a table (query, key), in which the number of a source word stands at its first token. */
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

/** Each row divided by the sum of its absolute values, without signs; cells without a number do not count, and rows whose sum is not above `least` become 0. */
function shares(map: AttentionMap, least: number): AttentionMap {
  const sizes = map.values.map((value, i) => (map.empty?.[i] ? 0 : Math.abs(value)));
  const values = new Float32Array(sizes.length);
  for (let start = 0; start < values.length; start += map.columns) {
    const total = sizes.subarray(start, start + map.columns).reduce((sum, size) => sum + size, 0);
    if (total > least) for (let i = start; i < start + map.columns; i++) values[i] = sizes[i] / total;
  }
  return { ...map, values };
}
