/** Builds the maps that the page draws: of selected heads, by words or by tokens, with or without special tokens. */

import type { Edge } from "./changes";
import { SITES, weights, type Explanation, type Packed, type Site, type TokenizedSentence } from "./format";
import { signed } from "./numbers";

export type Side = "source" | "target";

/** Describes the rows or the columns of a map. */
export interface Axis {
  side: Side;
  /** For each row or column: the index of its word, or −1 if it has no word (for example, a special token). */
  words: number[];
  /** For each row or column: the positions of its tokens. */
  tokens: number[][];
}

/** The kind of number in the cells of a map: a weight, a share of the row, the difference of two shares, or a signed number of nats. */
export type Quantity = "weight" | "share" | "difference" | "nats";

/** A table of numbers with a label for each row (query) and column (key). */
export interface AttentionMap {
  rows: number;
  columns: number;
  values: Float32Array;
  rowLabels: string[];
  columnLabels: string[];
  /** Missing if the rows are not words or tokens, for example if they are heads. */
  rowAxis?: Axis;
  columnAxis?: Axis;
  /** Whether each weight is stored as one byte. Then two decimals are accurate instead of four. */
  rounded?: boolean;
  /** Default: "weight". */
  quantity?: Quantity;
  /** 1 for each cell without a number, because a mask hides the cell or nothing was measured there. Missing if every cell has a number. */
  empty?: Uint8Array;
}

export type Combination = "read-out" | "head" | "mean" | "maximum" | "roll-out";

/** The layer of a choice that combines all layers. */
export const ALL_LAYERS = -1;

/** The reader's choice of the attention that is shown. */
export interface Choice {
  site: Site;
  combination: Combination;
  /** `ALL_LAYERS` combines all layers. */
  layer: number;
  /** Only for the combination "head". */
  head: number;
  /** Whether rows and columns are words. If false, they are tokens. */
  words: boolean;
  /** Whether special tokens are shown. */
  specials: boolean;
}

const BEGIN = "<s>";
const END = "</s>";

/** A token for display: `▁`, the space before a token, becomes `·`. */
export function displayToken(token: string): string {
  return token.replaceAll("▁", "·");
}

export function sites(explanation: Explanation): Site[] {
  return SITES.filter((site) => explanation.attention[site]);
}

export function combinations(explanation: Explanation, site: Site): Combination[] {
  const available: Combination[] = [];
  const [layers, heads] = explanation.attention[site]?.shape ?? [1, 1];
  if (site === "cross" && explanation.alignments.length > 0) available.push("read-out");
  available.push("head");
  if (layers * heads > 1) available.push("mean", "maximum");
  if (explanation.roll_out[site]) available.push("roll-out");
  return available;
}

/** The tokens of the source, with `</s>` at the end unless the source is a picture. */
function sourceLabels({ source, picture }: Explanation): string[] {
  return picture ? source.tokens : [...source.tokens.map(displayToken), END];
}

/** The labels of a site's map by tokens, with special tokens: [row labels, column labels]. */
export function tokenLabels(explanation: Explanation, site: Site): [string[], string[]] {
  const target = explanation.target.tokens.map(displayToken);
  const rows = site === "encoder" ? sourceLabels(explanation) : [...target, END];
  const columns = site === "decoder" ? [BEGIN, ...target] : sourceLabels(explanation);
  return [rows, columns];
}

/** The tokens at these positions as text, without “·” at the beginning and the end, unless the text is only “·”. */
export function joinTokens(labels: readonly string[], positions: readonly number[]): string {
  const joined = positions.map((position) => labels[position] ?? "?").join("");
  return joined.replace(/^·+(?=.)|(?<=.)·+$/gu, "");
}

/** The weights of one head, with the axes (query, key). */
export function headWeights(packed: Packed, layer: number, head: number): Float32Array {
  const [, heads, queries, keys] = packed.shape;
  const size = queries * keys;
  const start = (layer * heads + head) * size;
  return weights(packed).subarray(start, start + size);
}

/** The heads that a choice combines; empty for roll-out. */
export function selectedHeads(explanation: Explanation, choice: Choice): [number, number][] {
  const packed = explanation.attention[choice.site];
  if (!packed || choice.combination === "roll-out") return [];
  const [layers, heads] = packed.shape;
  if (choice.combination === "read-out") return explanation.alignments[0]?.heads ?? [[0, 0]];
  if (choice.combination === "head") return [[Math.min(Math.max(choice.layer, 0), layers - 1), Math.min(choice.head, heads - 1)]];
  const selected: [number, number][] = [];
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++) if (choice.layer < 0 || choice.layer === layer) selected.push([layer, head]);
  return selected;
}

/** The layer and the head that a change by hand applies to while this choice is shown. Null means all layers or all heads. */
export function scopeOf(explanation: Explanation, choice: Choice): { layer: number | null; head: number | null } {
  if (choice.combination === "head") {
    const [[layer, head]] = selectedHeads(explanation, choice);
    return { layer, head };
  }
  const ofLayer = (choice.combination === "mean" || choice.combination === "maximum") && choice.layer >= 0;
  return { layer: ofLayer ? choice.layer : null, head: null };
}

/** The total weight that a query gives to the keys of an edge, on average over the edge's queries and heads. */
export function edgeWeight(explanation: Explanation, { site, layer, head, queries, keys }: Edge): number {
  const packed = explanation.attention[site];
  if (!packed) return 0;
  const [layers, heads, rows, columns] = packed.shape;
  let [total, count] = [0, 0];
  for (let l = layer ?? 0; l < (layer === null ? layers : layer + 1); l++)
    for (let h = head ?? 0; h < (head === null ? heads : head + 1); h++) {
      const table = headWeights(packed, l, h);
      for (const query of queries.filter((query) => query < rows)) {
        for (const key of keys) total += table[query * columns + key];
        count++;
      }
    }
  return count ? total / count : 0;
}

/** Whether the row of a token shows the step that has the token as its input, instead of the step that writes the token. */
export function isShifted(explanation: Explanation, choice: Choice): boolean {
  return choice.combination === "read-out" && explanation.alignments[0]?.shift === 1;
}

/** Move each row to the place of the row before it. The last row stays, because no row comes after it. */
function shiftRowsUp(table: Float32Array, keys: number): Float32Array {
  const shifted = table.slice();
  shifted.copyWithin(0, keys);
  return shifted;
}

/** The rows or the columns of a map as groups of tokens. Each list has one entry per group. */
interface Grouping {
  labels: string[];
  /** The positions of the tokens of each group. */
  tokens: number[][];
  /** The index of the word of each group, or −1. */
  words: number[];
}

/** One group per token. `words` has the index of each token's word; where it is missing, the group has −1. */
function tokenGroups(labels: string[], words: number[] = []): Grouping {
  return { labels, tokens: labels.map((_, position) => [position]), words: labels.map((_, position) => words[position] ?? -1) };
}

/** The groups of a map by words: one per word and per special token, in the order of the sentence, then one per token without a word. */
function wordGroups(sentence: TokenizedSentence, startsWithBegin: boolean): Grouping {
  const first = startsWithBegin ? 1 : 0;
  const tokens: number[][] = sentence.words.map(() => []);
  const withoutWord: number[] = [];
  sentence.word_of_token.forEach((word, position) => (word < 0 ? withoutWord : tokens[word]).push(position + first));
  const special = [startsWithBegin ? 0 : sentence.tokens.length];
  const labels = startsWithBegin ? [BEGIN, ...sentence.words] : [...sentence.words, END];
  const grouped = startsWithBegin ? [special, ...tokens] : [...tokens, special];
  const indices = sentence.words.map((_, word) => word);
  return {
    words: [...(startsWithBegin ? [-1, ...indices] : [...indices, -1]), ...withoutWord.map(() => -1)],
    labels: [...labels, ...withoutWord.map((position) => displayToken(sentence.tokens[position - first]))],
    tokens: [...grouped, ...withoutWord.map((position) => [position])],
  };
}

export const rowSide = (site: Site): Side => (site === "encoder" ? "source" : "target");
export const columnSide = (site: Site): Side => (site === "decoder" ? "target" : "source");

/** The groups of the rows and of the columns of a map. */
function groups(explanation: Explanation, site: Site, rowsAreWords: boolean, columnsAreWords: boolean): [Grouping, Grouping] {
  const { source, target, picture } = explanation;
  const sourceWords = picture ? tokenGroups(source.words, source.words.map((_, patch) => patch)) : wordGroups(source, false);
  const rowWords = site === "encoder" ? sourceWords : wordGroups(target, false);
  const columnWords = site === "decoder" ? wordGroups(target, true) : sourceWords;
  const [rowLabels, columnLabels] = tokenLabels(explanation, site);
  const wordOfRow = explanation[rowSide(site)].word_of_token;
  const wordOfColumn = explanation[columnSide(site)].word_of_token;
  const rowTokens = tokenGroups(rowLabels, wordOfRow);
  const columnTokens = tokenGroups(columnLabels, site === "decoder" ? [-1, ...wordOfColumn] : wordOfColumn);
  return [rowsAreWords ? rowWords : rowTokens, columnsAreWords ? columnWords : columnTokens];
}

/** Whether a mask hides from each row the keys that come after it. */
function isCausal({ attention, facts }: Explanation, site: Site): boolean {
  return site === "decoder" || (site === "encoder" && facts.family === "decoder-only" && attention.encoder?.layout === "causal");
}

/** The map of a choice. The weights of a head are summed over the keys of a word, and averaged over the queries of a word. So a row of one
 * head, or of the average of heads, still sums to 1 if the rows of its tokens do. */
export function makeMap(explanation: Explanation, choice: Choice, columnWords = choice.words): AttentionMap | null {
  const packed = explanation.attention[choice.site];
  if (!packed) return null;
  const rollOut = choice.combination === "roll-out" && explanation.roll_out[choice.site];
  const map = rollOut
    ? tableMap(explanation, choice, weights(rollOut), { columnWords })
    : combineHeads(explanation, choice, (layer, head) => headWeights(packed, layer, head), { columnWords });
  return { ...map, rounded: isRounded(packed) };
}

/** The map of the heads of a choice: their average or their maximum. `tableOf` returns the numbers of one head.
 *
 * The maximum for a word is the largest number that a single head has for the whole word. The sum of the maxima of its tokens would be
 * wrong, because these may come from different heads and add up to more than 1. */
export function combineHeads(explanation: Explanation, choice: Choice, tableOf: (layer: number, head: number) => Float32Array, options: TableOptions = {}): AttentionMap {
  const tables = selectedHeads(explanation, choice).map(([layer, head]) => tableOf(layer, head));
  if (choice.combination === "maximum") {
    const maps = tables.map((table) => tableMap(explanation, choice, table, options));
    return { ...maps[0], values: maps[0].values.map((_, i) => Math.max(...maps.map(({ values }) => values[i]))) };
  }
  const [queries, keys] = explanation.attention[choice.site]!.shape.slice(2);
  const mean = new Float32Array(queries * keys);
  for (const table of tables) for (let i = 0; i < mean.length; i++) mean[i] += table[i] / tables.length;
  return tableMap(explanation, choice, isShifted(explanation, choice) ? shiftRowsUp(mean, keys) : mean, options);
}

interface TableOptions {
  /** Whether the columns are words. Default: `words` of the choice. */
  columnWords?: boolean;
  /** Whether the numbers of a word's queries are added instead of averaged. Changes of log-probabilities must be added. */
  addQueries?: boolean;
}

/** Group a table of numbers, with the axes (query, key), as a choice says: by words or tokens, with or without special tokens. */
export function tableMap(explanation: Explanation, choice: Choice, table: Float32Array, { columnWords = choice.words, addQueries = false }: TableOptions = {}): AttentionMap {
  const [keys] = explanation.attention[choice.site]!.shape.slice(3);
  const [rows, columns] = groups(explanation, choice.site, choice.words, columnWords);
  const values = new Float32Array(rows.labels.length * columns.labels.length);
  let cell = 0;
  for (const queryGroup of rows.tokens)
    for (const keyGroup of columns.tokens) {
      let total = 0;
      for (const row of queryGroup) for (const column of keyGroup) total += table[row * keys + column];
      values[cell++] = addQueries ? total : queryGroup.length ? total / queryGroup.length : 0;
    }
  const isHidden = (queryGroup: number[], keyGroup: number[]) =>
    queryGroup.length > 0 && keyGroup.length > 0 && Math.min(...keyGroup) > Math.max(...queryGroup);
  const hiddenCells = () => rows.tokens.flatMap((queryGroup) => columns.tokens.map((keyGroup) => Number(isHidden(queryGroup, keyGroup))));
  const empty = isCausal(explanation, choice.site) ? Uint8Array.from(hiddenCells()) : undefined;
  const map: AttentionMap = {
    ...mapFrom(values, rows.labels, columns.labels),
    ...(empty?.includes(1) && { empty }),
    rowAxis: { side: rowSide(choice.site), words: rows.words, tokens: rows.tokens },
    columnAxis: { side: columnSide(choice.site), words: columns.words, tokens: columns.tokens },
  };
  return choice.specials ? map : withoutSpecials(explanation, choice, map);
}

/** The map without the rows and columns of special tokens. The remaining numbers stay the same. */
export function withoutSpecials(explanation: Explanation, { site }: Pick<Choice, "site">, map: AttentionMap): AttentionMap {
  const [queries, keys] = explanation.attention[site]!.shape.slice(2);
  /** The indices of all rows or columns except the special token, which has the label `special` and this position. */
  const indicesWithout = (special: string, position: number, labels: string[], axis: Axis) =>
    labels.flatMap((label, i) => (label !== special || axis.tokens[i][0] !== position ? [i] : []));
  const [rowAxis, columnAxis] = [map.rowAxis!, map.columnAxis!];
  const rows = indicesWithout(END, queries - 1, map.rowLabels, rowAxis);
  const [special, position] = site === "decoder" ? [BEGIN, 0] : [END, keys - 1];
  const columns = indicesWithout(special, position, map.columnLabels, columnAxis);
  const cells = rows.flatMap((row) => columns.map((column) => row * map.columns + column));
  const pick = <Value>(list: readonly Value[], indices: number[]) => indices.map((i) => list[i]);
  const axis = ({ side, words, tokens }: Axis, indices: number[]): Axis => ({ side, words: pick(words, indices), tokens: pick(tokens, indices) });
  const { empty, ...rest } = map;
  const remaining = empty && Uint8Array.from(cells, (cell) => empty[cell]);
  return {
    ...rest,
    ...mapFrom(Float32Array.from(cells, (cell) => map.values[cell]), pick(map.rowLabels, rows), pick(map.columnLabels, columns), map.rounded),
    ...(remaining?.includes(1) && { empty: remaining }),
    rowAxis: axis(rowAxis, rows),
    columnAxis: axis(columnAxis, columns),
  };
}

export function mapFrom(values: Float32Array, rowLabels: string[], columnLabels: string[], rounded = false): AttentionMap {
  return { rows: rowLabels.length, columns: columnLabels.length, values, rowLabels, columnLabels, rounded };
}

export function isRounded(packed: Packed): boolean {
  return packed.fine === undefined;
}

/** A number of a map as text. Weights have as many decimals as are stored. */
export function formatValue({ rounded, quantity }: Pick<AttentionMap, "rounded" | "quantity">, value: number): string {
  if (quantity === "nats") return signed(value, 3);
  return value.toFixed(!rounded ? 4 : Math.abs(value) < 0.05 ? 3 : 2).replace("-", "−");
}

/** The number of a cell as text; a dash if the cell has no number. */
export function formatCell(map: AttentionMap, index: number): string {
  return map.empty?.[index] ? "–" : formatValue(map, map.values[index]);
}

/** The number of nats at both ends of the colour scale, the same for all sentences and models. A change of −10 nats means that a
 * probability becomes 22,000 times smaller. */
export const MAX_NATS = 10;

/** If all absolute values of a map in nats are smaller than this, no word matters, and the map has no lines: see `fullStrength`. */
const MIN_NATS = 0.01;

/** The number for which a line has the full strength. For nats it is the largest absolute value of the map, because gradients are often far
 * smaller than erasures; but if all numbers are below `MIN_NATS`, it is `MAX_NATS`, so that the map has no lines. For other quantities
 * it is 1. */
export function fullStrength({ quantity, values }: Pick<AttentionMap, "quantity" | "values">): number {
  if (quantity !== "nats") return 1;
  const largest = values.reduce((maximum, value) => Math.max(maximum, Math.abs(value)), 0);
  return largest < MIN_NATS ? MAX_NATS : largest;
}

/** The strength, from 0 to 1, of the line for this number. The line for the number `full` has the strength 1. */
export function strengthOf(value: number, full: number): number {
  return Math.min(1, Math.abs(value) / full);
}

export function isSigned({ quantity }: Pick<AttentionMap, "quantity">): boolean {
  return quantity === "nats" || quantity === "difference";
}

/** One query's weights in every head of a site, one row per head. */
export function queryOverHeads(explanation: Explanation, choice: Choice, row: number): AttentionMap | null {
  const packed = explanation.attention[choice.site];
  if (!packed) return null;
  const [layers, heads] = packed.shape;
  const maps: AttentionMap[] = [];
  const labels: string[] = [];
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++) {
      maps.push(makeMap(explanation, { ...choice, combination: "head", layer, head })!);
      labels.push(`${layer} · ${head}`);
    }
  const { columns, columnLabels, columnAxis } = maps[0];
  const values = new Float32Array(maps.length * columns);
  const empty = maps[0].empty && new Uint8Array(values.length);
  maps.forEach((map, i) => {
    values.set(map.values.subarray(row * columns, (row + 1) * columns), i * columns);
    empty?.set(map.empty!.subarray(row * columns, (row + 1) * columns), i * columns);
  });
  return { ...mapFrom(values, labels, columnLabels, isRounded(packed)), columnAxis, empty };
}

/** The indices of the models in the order in which they are compared: the chosen model comes first. */
export function comparisonOrder(count: number, chosen: number): number[] {
  const all = Array.from({ length: count }, (_, i) => i);
  return [...all.filter((i) => i === chosen), ...all.filter((i) => i !== chosen)];
}

/** The sum of several rows, as a map of one row. A column has no number if none of these rows has a number in it. */
export function sumOfRows(map: AttentionMap, rows: number[]): AttentionMap {
  const total = new Float32Array(map.columns);
  for (const row of rows) for (let i = 0; i < map.columns; i++) total[i] += map.values[row * map.columns + i];
  const name = rows.map((row) => map.rowLabels[row]).join(" + ");
  const empty = map.empty && Uint8Array.from(total, (_, i) => Number(rows.every((row) => map.empty![row * map.columns + i])));
  return { ...mapFrom(total, [name], map.columnLabels, map.rounded), columnAxis: map.columnAxis, quantity: map.quantity, empty };
}

/** The cross-attention of a hypothesis of the search. Rows: steps. Columns: source tokens and `</s>`, or the patches of a picture. */
export function hypothesisMap(explanation: Explanation, step: number, index: number): AttentionMap | null {
  const search = explanation.search;
  if (!search?.attention) return null;
  const all = weights(search.attention);
  const columns = search.attention.shape[1];
  const columnLabels = sourceLabels(explanation);
  const path = pathTo(explanation, step, index);
  const rows = path.filter(([at, candidate]) => search.steps[at].attention_row[candidate] >= 0);
  const values = new Float32Array(rows.length * columns);
  rows.forEach(([at, candidate], i) => {
    const row = search.steps[at].attention_row[candidate];
    values.set(all.subarray(row * columns, (row + 1) * columns), i * columns);
  });
  const rowLabels = rows.map(([at, candidate]) => displayToken(search.steps[at].token[candidate]));
  const best = new Set(search.best ? pathTo(explanation, ...search.best).map(String) : []);
  const { source, target, picture } = explanation;
  const sourceWords = picture ? source.words.map((_, patch) => patch) : source.word_of_token;
  return {
    ...mapFrom(values, rowLabels, columnLabels, isRounded(search.attention)),
    rowAxis: {
      side: "target",
      // Only rows on the path of the translation have a word: other hypotheses write other words.
      words: rows.map((candidate) => (best.has(String(candidate)) ? (target.word_of_token[candidate[0]] ?? -1) : -1)),
      tokens: rows.map(([at]) => [at]),
    },
    columnAxis: {
      side: "source",
      words: columnLabels.map((_, position) => sourceWords[position] ?? -1),
      tokens: columnLabels.map((_, position) => [position]),
    },
  };
}

/** The candidates on the path from the first step to this candidate, each as [step, index]. */
export function pathTo(explanation: Explanation, step: number, index: number): [number, number][] {
  const path: [number, number][] = [];
  for (let at = step, node = index; at >= 0 && node >= 0; at--) {
    path.unshift([at, node]);
    node = explanation.search!.steps[at].parent[node];
  }
  return path;
}

/** The probability of each word: the product of its tokens' probabilities. */
export function wordProbabilities({ target, log_probs }: { target: TokenizedSentence; log_probs: (number | null)[] }): number[] {
  const logs = target.words.map(() => 0);
  target.word_of_token.forEach((word, position) => {
    if (word >= 0) logs[word] += log_probs[position] ?? 0;
  });
  return logs.map(Math.exp);
}

/** The positions of the tokens of a word. */
export function tokensOf({ word_of_token }: TokenizedSentence, word: number): number[] {
  return word_of_token.flatMap((index, position) => (index === word ? [position] : []));
}
