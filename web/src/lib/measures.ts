/** How much each column matters to each row, by measures other than the weight: norms as shares of a row, gradients and erasure in nats. */

import { floats, weights, type Explanation, type Measures, type Packed, type PackedFloats } from "./format";
import { combineHeads, headWeights, isShifted, makeMap, selectedHeads, shiftRowsUp, tableMap, type AttentionMap, type Choice } from "./maps";

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

/** The map of a measure: norms as shares of their row, gradients and erasure in nats with their signs. Null where it is missing. */
export function measureMap(explanation: Explanation, choice: Choice, measures: Measures | null | undefined, measure: Measure): AttentionMap | null {
  if (measure === "weight") return makeMap(explanation, choice);
  if (!measures || missing(measures, measure, choice)) return null;
  if (measure === "norm") return { ...shares(tableMap(explanation, choice, normTable(explanation, choice, measures.value_norms[choice.site]!)), 0), quantity: "share" };
  if (measure === "gradient") return { ...tableMap(explanation, choice, floats(measures.gradient[choice.site as "cross" | "decoder"]!), { addQueries: true }), quantity: "nats" };
  return erasureMap(explanation, choice, measures.erasure!);
}

/** The shares of a measure, without signs, minus those of the weights; rows in which nothing matters stay 0. */
export function differenceMap(explanation: Explanation, choice: Choice, measured: AttentionMap, measure: Measure): AttentionMap {
  const weight = makeMap(explanation, choice, measure === "erasure" || choice.words)!;
  const own = measured.quantity === "nats" ? shares(measured, MIN_CHANGE) : measured;
  const values = own.values.map((value, i) => {
    const start = Math.floor(i / own.columns) * own.columns;
    const row = own.values.subarray(start, start + own.columns);
    if (own.empty?.[i] || !row.some((share) => share > 0)) return 0;
    const total = weight.values.subarray(start, start + own.columns).reduce((sum, share) => sum + share, 0);
    return value - (total > 0 ? weight.values[i] / total : 0);
  });
  return { ...own, values, quantity: "difference" };
}

/** Weight × ‖value‖ of the chosen heads, averaged, or the maximum of them. */
function normTable(explanation: Explanation, choice: Choice, packed: Packed): Float32Array {
  const attention = explanation.attention[choice.site]!;
  const [, heads, , keys] = attention.shape;
  const norms = weights(packed);
  const table = combineHeads(attention, selectedHeads(explanation, choice), choice.combination === "maximum", (layer, head) => {
    const start = (layer * heads + head) * keys;
    return headWeights(attention, layer, head).map((weight, i) => weight * norms[start + (i % keys)]);
  });
  return isShifted(explanation, choice) ? shiftRowsUp(table, keys) : table;
}

/** Erasure deletes whole words, so the columns are words, also if the rows are tokens. What is never erased has no number. */
function erasureMap(explanation: Explanation, choice: Choice, packed: PackedFloats): AttentionMap {
  const map = tableMap(explanation, choice, erasureTable(explanation, packed), { columnWords: true, addQueries: true });
  const empty = Uint8Array.from(map.values, (_, i) => Number(map.columnAxis!.words[i % map.columns] < 0));
  return { ...map, quantity: "nats", ...(empty.includes(1) && { empty }) };
}

/** The change of a word stands at its first token. */
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

/** Each row divided by the sum of its absolute values, without signs; rows whose sum is below `least` become 0. */
function shares(map: AttentionMap, least: number): AttentionMap {
  const values = new Float32Array(map.values.length);
  for (let start = 0; start < values.length; start += map.columns) {
    const total = map.values.subarray(start, start + map.columns).reduce((sum, value) => sum + Math.abs(value), 0);
    if (total > least) for (let i = start; i < start + map.columns; i++) values[i] = Math.abs(map.values[i]) / total;
  }
  return { ...map, values };
}
