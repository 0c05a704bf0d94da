/** Maps as the page draws them: which heads, words or pieces, with or without marks. */

import { SITES, weights, type Explanation, type Packed, type Side, type Site } from "./format";

/** A table of weights with a label for each row (query) and column (key). */
export interface AttentionMap {
  rows: number;
  columns: number;
  values: Float32Array;
  rowLabels: string[];
  columnLabels: string[];
  /** Whether its weights were kept as single bytes, of which two decimals are right and not four. */
  rounded?: boolean;
}

export type Combination = "read-out" | "head" | "mean" | "maximum" | "roll-out";

/** Which part of a site is shown. `layer` −1 means all layers, where they are combined. */
export interface Choice {
  site: Site;
  combination: Combination;
  layer: number;
  head: number;
  words: boolean;
  marks: boolean;
}

const BEGIN = "<s>";
const END = "</s>";

/** A piece for people: `▁` is a space, which stands before the piece. */
export function shown(piece: string): string {
  return piece.replaceAll("▁", "·");
}

export function sites(explanation: Explanation): Site[] {
  return SITES.filter((site) => explanation.attention[site]);
}

export function combinations(explanation: Explanation, site: Site): Combination[] {
  const found: Combination[] = [];
  const [layers, heads] = explanation.attention[site]?.shape ?? [1, 1];
  if (site === "cross" && explanation.alignments.length > 0) found.push("read-out");
  found.push("head");
  if (layers * heads > 1) found.push("mean", "maximum");
  if (explanation.roll_out[site]) found.push("roll-out");
  return found;
}

/** The labels of a site's pieces with their marks, rows then columns. */
export function pieceLabels(explanation: Explanation, site: Site): [string[], string[]] {
  const source = explanation.source.pieces.map(shown);
  const target = explanation.target.pieces.map(shown);
  const rows = [...(site === "encoder" ? source : target), END];
  const columns = site === "decoder" ? [BEGIN, ...target] : [...source, END];
  return [rows, columns];
}

/** One head of a site, (query, key). */
export function headWeights(packed: Packed, layer: number, head: number): Float32Array {
  const [, heads, queries, keys] = packed.shape;
  const size = queries * keys;
  const start = (layer * heads + head) * size;
  return weights(packed).subarray(start, start + size);
}

function combined(packed: Packed, places: [number, number][], maximum: boolean): Float32Array {
  const size = packed.shape[2] * packed.shape[3];
  const total = new Float32Array(size);
  for (const [layer, head] of places) {
    const own = headWeights(packed, layer, head);
    if (maximum) for (let i = 0; i < size; i++) total[i] = Math.max(total[i], own[i]);
    else for (let i = 0; i < size; i++) total[i] += own[i] / places.length;
  }
  return total;
}

/** The heads that a choice is made of; empty for roll-out. */
export function chosenHeads(explanation: Explanation, choice: Choice): [number, number][] {
  const packed = explanation.attention[choice.site];
  if (!packed || choice.combination === "roll-out") return [];
  const [layers, heads] = packed.shape;
  if (choice.combination === "read-out") return explanation.alignments[0]?.heads ?? [[0, 0]];
  if (choice.combination === "head") return [[Math.min(Math.max(choice.layer, 0), layers - 1), Math.min(choice.head, heads - 1)]];
  const found: [number, number][] = [];
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++) if (choice.layer < 0 || choice.layer === layer) found.push([layer, head]);
  return found;
}

function chosenWeights(explanation: Explanation, choice: Choice): Float32Array {
  const rolled = explanation.roll_out[choice.site];
  if (choice.combination === "roll-out" && rolled) return weights(rolled);
  const packed = explanation.attention[choice.site]!;
  const table = combined(packed, chosenHeads(explanation, choice), choice.combination === "maximum");
  return isShifted(explanation, choice) ? shiftedUp(table, packed.shape[3]) : table;
}

/** Whether alignments are read one row later: where a piece is read, not where it is written. */
export function isShifted(explanation: Explanation, choice: Choice): boolean {
  return choice.combination === "read-out" && explanation.alignments[0]?.shift === 1;
}

function shiftedUp(table: Float32Array, keys: number): Float32Array {
  const moved = table.slice();
  moved.copyWithin(0, keys);
  return moved;
}

interface Grouping {
  labels: string[];
  pieces: number[][];
}

function pieceGroups(labels: string[]): Grouping {
  return { labels, pieces: labels.map((_, place) => [place]) };
}

/** The words of a side in the order of its map, marks as words of their own, pieces without a word last. */
function wordGroups(side: Side, begins: boolean): Grouping {
  const first = begins ? 1 : 0;
  const pieces: number[][] = side.words.map(() => []);
  const homeless: number[] = [];
  side.word_of_piece.forEach((word, place) => (word < 0 ? homeless : pieces[word]).push(place + first));
  const mark = [begins ? 0 : side.pieces.length];
  const labels = begins ? [BEGIN, ...side.words] : [...side.words, END];
  const own = begins ? [mark, ...pieces] : [...pieces, mark];
  return {
    labels: [...labels, ...homeless.map((place) => shown(side.pieces[place - first]))],
    pieces: [...own, ...homeless.map((place) => [place])],
  };
}

function groups(explanation: Explanation, site: Site, words: boolean): [Grouping, Grouping] {
  if (!words) {
    const [rows, columns] = pieceLabels(explanation, site);
    return [pieceGroups(rows), pieceGroups(columns)];
  }
  const { source, target } = explanation;
  return [
    wordGroups(site === "encoder" ? source : target, false),
    wordGroups(site === "decoder" ? target : source, site === "decoder"),
  ];
}

function without(grouping: Grouping, mark: string, place: number): Grouping {
  const { labels, pieces } = grouping;
  const isKept = (_: unknown, i: number) => labels[i] !== mark || pieces[i][0] !== place;
  return { labels: labels.filter(isKept), pieces: pieces.filter(isKept) };
}

/** The keys of a word are added and its queries averaged, so that rows keep their sums. */
export function makeMap(explanation: Explanation, choice: Choice): AttentionMap | null {
  const packed = explanation.attention[choice.site];
  if (!packed) return null;
  const table = chosenWeights(explanation, choice);
  const [queries, keys] = packed.shape.slice(2);
  let [rows, columns] = groups(explanation, choice.site, choice.words);
  if (!choice.marks) {
    rows = without(rows, END, queries - 1);
    columns = choice.site === "decoder" ? without(columns, BEGIN, 0) : without(columns, END, keys - 1);
  }
  const present = rows.pieces.map((pieces) => pieces.filter((place) => place < queries));
  const values = new Float32Array(rows.labels.length * columns.labels.length);
  let at = 0;
  for (const own of present)
    for (const pieces of columns.pieces) {
      let total = 0;
      for (const row of own) for (const column of pieces) total += table[row * keys + column];
      values[at++] = own.length ? total / own.length : 0;
    }
  return tableOf(values, rows.labels, columns.labels, isRounded(packed));
}

export function tableOf(values: Float32Array, rowLabels: string[], columnLabels: string[], rounded = false): AttentionMap {
  return { rows: rowLabels.length, columns: columnLabels.length, values, rowLabels, columnLabels, rounded };
}

export function isRounded(packed: Packed): boolean {
  return packed.fine === undefined;
}

/** A weight of a map for people, with as many decimals as are known. */
export function exact({ rounded }: AttentionMap, value: number): string {
  return value.toFixed(!rounded ? 4 : Math.abs(value) < 0.05 ? 3 : 2);
}

/** One query's weights in every head of a site: a row a head. */
export function wordOverHeads(explanation: Explanation, choice: Choice, row: number): AttentionMap | null {
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
  const { columns, columnLabels } = maps[0];
  const values = new Float32Array(maps.length * columns);
  maps.forEach((map, i) => values.set(map.values.subarray(row * columns, (row + 1) * columns), i * columns));
  return tableOf(values, labels, columnLabels, isRounded(packed));
}

/** The sum of several rows, one weight a column. */
export function sumOfRows(map: AttentionMap, rows: number[]): Float32Array {
  const total = new Float32Array(map.columns);
  for (const row of rows) for (let i = 0; i < map.columns; i++) total[i] += map.values[row * map.columns + i];
  return total;
}

/** Where a hypothesis of the search looked: a row a step, over source pieces and `</s>`. */
export function beamMap(explanation: Explanation, step: number, index: number): AttentionMap | null {
  const search = explanation.search;
  if (!search?.looks) return null;
  const all = weights(search.looks);
  const columns = search.looks.shape[1];
  const columnLabels = [...explanation.source.pieces.map(shown), END];
  const path = pathTo(explanation, step, index);
  const rows = path.filter(([at, place]) => search.steps[at].looked[place] >= 0);
  const values = new Float32Array(rows.length * columns);
  rows.forEach(([at, place], i) => {
    const row = search.steps[at].looked[place];
    values.set(all.subarray(row * columns, (row + 1) * columns), i * columns);
  });
  const rowLabels = rows.map(([at, place]) => shown(search.steps[at].piece[place]));
  return tableOf(values, rowLabels, columnLabels, isRounded(search.looks));
}

/** The candidates, as [step, index], from the first step to this one. */
export function pathTo(explanation: Explanation, step: number, index: number): [number, number][] {
  const path: [number, number][] = [];
  for (let at = step, place = index; at >= 0 && place >= 0; at--) {
    path.unshift([at, place]);
    place = explanation.search!.steps[at].parent[place];
  }
  return path;
}

/** The probability of each word: the product of its pieces' probabilities. */
export function wordProbabilities(explanation: Explanation): number[] {
  const logs = explanation.target.words.map(() => 0);
  explanation.target.word_of_piece.forEach((word, place) => {
    if (word >= 0) logs[word] += explanation.log_probs[place] ?? 0;
  });
  return logs.map(Math.exp);
}
