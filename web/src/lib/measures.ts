/** How much each column matters to each row, by other measures than the weight, as shares of a row. */

import { floats, weights, type Explanation, type Measures, type Packed, type PackedFloats } from "./format";
import { headWeights, isShifted, makeMap, selectedHeads, shiftRowsUp, tableMap, type AttentionMap, type Choice } from "./maps";

export type Measure = "weight" | "norm" | "gradient" | "erasure";
export const MEASURES: Measure[] = ["weight", "norm", "gradient", "erasure"];

/** Rows in which all words together change the log-probability by less than this stay empty. */
const MIN_CHANGE = 0.01;

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

/** The map of a measure, each row as shares that sum to 1; rows in which nothing matters stay empty. Null where it is missing. */
export function measureMap(explanation: Explanation, choice: Choice, measures: Measures | null | undefined, measure: Measure): AttentionMap | null {
  if (measure === "weight") return makeMap(explanation, choice);
  if (!measures || missing(measures, measure, choice)) return null;
  if (measure === "norm") return shares(tableMap(explanation, choice, normTable(explanation, choice, measures.value_norms[choice.site]!)), 0);
  const table = measure === "gradient" ? floats(measures.gradient[choice.site as "cross" | "decoder"]!) : erasureTable(explanation, measures.erasure!);
  return shares(tableMap(explanation, choice, table), MIN_CHANGE);
}

/** The shares of a measure minus those of the weights; rows that are empty in the measure stay empty. */
export function differenceMap(weight: AttentionMap, measure: AttentionMap): AttentionMap {
  const values = measure.values.map((value, i) => {
    const start = Math.floor(i / measure.columns) * measure.columns;
    const row = measure.values.subarray(start, start + measure.columns);
    if (!row.some((share) => share > 0)) return 0;
    const total = weight.values.subarray(start, start + measure.columns).reduce((sum, share) => sum + share, 0);
    return value - (total > 0 ? weight.values[i] / total : 0);
  });
  return { ...measure, values };
}

/** Weight × ‖value‖ of the chosen heads, averaged. */
function normTable(explanation: Explanation, choice: Choice, packed: Packed): Float32Array {
  const attention = explanation.attention[choice.site]!;
  const [, heads, queries, keys] = attention.shape;
  const norms = weights(packed);
  const table = new Float32Array(queries * keys);
  const selected = selectedHeads(explanation, choice);
  for (const [layer, head] of selected) {
    const ofHead = headWeights(attention, layer, head);
    const start = (layer * heads + head) * keys;
    for (let i = 0; i < table.length; i++) table[i] += (ofHead[i] * norms[start + (i % keys)]) / selected.length;
  }
  return isShifted(explanation, choice) ? shiftRowsUp(table, keys) : table;
}

/** Erasure is measured per word: its value stands at the first token of the word. `</s>` is never erased. */
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
