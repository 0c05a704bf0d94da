/** Changes to attention: their types, how they are parsed from the address, and how they are described in words.
 *
 * The Python classes in src/jumok/analysis/changes.py have the same fields. tests/analysis/test_change_schema.py checks this. */

import { isSite, type Explanation, type Site, type TokenizedSentence } from "./format";
import { joinTokens, tokenLabels, tokensOf } from "./maps";
import type { Strings } from "./strings";

/** Sets all weights of the chosen heads to 0. In every change, the layer null means all layers, and the head null means all heads. */
export interface Silence {
  kind: "silence";
  site: Site;
  layer: number | null;
  head: number | null;
}

/** Sets one weight, that is, one cell of a map. */
export interface Paint {
  kind: "paint";
  site: Site;
  layer: number | null;
  head: number | null;
  query: number;
  key: number;
  weight: number;
  /** The names of the row and the column in the translation in which they were chosen. */
  words?: [string, string];
}

/** Determines which share of the attention of some queries goes to some keys. */
export interface Pin {
  kind: "pin";
  site: Site;
  layer: number | null;
  head: number | null;
  queries: number[];
  keys: number[];
  /** The share of the row that the keys get together. If it is missing, the share is 1. If it is 0, the queries do not read the keys. */
  weight?: number;
  /** The names of the row and the column in the translation in which they were chosen. Other changes may have altered the translation
   * since then, so that the step now writes another word. */
  words?: [string, string];
}

export type Change = Silence | Paint | Pin;

const isIndex = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
/** The name of a row or a column in a change is cut off after this number of characters. */
const MAX_NAME_LENGTH = 200;
const isName = (value: unknown) => typeof value === "string" && value.length <= MAX_NAME_LENGTH;
const isNamePair = (value: unknown) => Array.isArray(value) && value.length === 2 && value.every(isName);
const areIndices = (value: unknown) => Array.isArray(value) && value.every(isIndex);
const isOptionalIndex = (value: unknown) => value === null || value === undefined || isIndex(value);

function isChange(value: unknown): value is Change {
  if (typeof value !== "object" || value === null) return false;
  const { kind, site, layer, head, query, key, weight, queries, keys, words } = value as Record<string, unknown>;
  if (typeof site !== "string" || !isSite(site) || !isOptionalIndex(layer) || !isOptionalIndex(head)) return false;
  if (words !== undefined && !isNamePair(words)) return false;
  if (kind === "paint") return isIndex(query) && isIndex(key) && typeof weight === "number";
  if (kind === "pin") return areIndices(queries) && areIndices(keys) && (weight === undefined || typeof weight === "number");
  return kind === "silence";
}

/** Parse the changes in an address. The result is empty if the text is not a list of valid changes. */
export function parseChanges(text: string): Change[] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!Array.isArray(parsed) || !parsed.every(isChange)) return [];
    return parsed.map((change) => ({ ...change, layer: change.layer ?? null, head: change.head ?? null }));
  } catch {
    return [];
  }
}

/** The changes that can be applied to any sentence: silenced heads. Painted and pinned cells are indices of one sentence. */
export function independentOfSentence(changes: readonly Change[]): Change[] {
  return changes.filter(({ kind }) => kind === "silence");
}

const silencesHead = (change: Change, site: Site, layer: number, head: number) =>
  change.kind === "silence" && change.site === site && (change.layer ?? layer) === layer && (change.head ?? head) === head;

export function isSilenced(changes: readonly Change[], site: Site, layer: number, head: number): boolean {
  return changes.some((change) => silencesHead(change, site, layer, head));
}

/** Add changes that silence these heads, given as [layer, head]. Heads that are already silenced are left out. If `heads` are all heads
 * of a site with several heads, one change silences the whole site. `shape` begins with the numbers of layers and heads. */
export function silence(changes: readonly Change[], site: Site, heads: readonly (readonly [number, number])[], shape: readonly number[]): Change[] {
  if (heads.length > 1 && heads.length === shape[0] * shape[1]) {
    return [...changes.filter((change) => change.kind !== "silence" || change.site !== site), { kind: "silence", site, layer: null, head: null }];
  }
  const added = heads.filter(([layer, head]) => !isSilenced(changes, site, layer, head));
  return [...changes, ...added.map(([layer, head]): Silence => ({ kind: "silence", site, layer, head }))];
}

/** Silence a head, or restore it if it is silenced. If one change silenced this head together with other heads, the other heads stay
 * silenced. `shape` begins with the numbers of layers and heads. */
export function toggleHead(changes: readonly Change[], site: Site, layer: number, head: number, shape: readonly number[]): Change[] {
  if (!isSilenced(changes, site, layer, head)) return silence(changes, site, [[layer, head]], shape);
  const [layers, heads] = shape;
  const others = (count: number, index: number) => Array.from({ length: count }, (_, i) => i).filter((i) => i !== index);
  return changes.flatMap((change): Change[] => {
    if (!silencesHead(change, site, layer, head)) return [change];
    return [
      ...(change.layer === null ? others(layers, layer).map((other): Silence => ({ kind: "silence", site, layer: other, head: change.head })) : []),
      ...(change.head === null ? others(heads, head).map((other): Silence => ({ kind: "silence", site, layer, head: other })) : []),
    ];
  });
}

/** The cells of attention that are changed by hand: some queries and some keys, in one head, in a layer or in all heads. */
export interface Edge extends Pick<Pin, "site" | "layer" | "head" | "queries" | "keys"> {
  /** The explanation in which the edge was chosen. The description of the change uses its words. */
  chosenIn?: Explanation;
}

export function scopedEdge(site: Site, scope: { layer: number | null; head: number | null }, queries: number[], keys: number[], chosenIn?: Explanation): Edge {
  return { site, ...scope, queries, keys, ...(chosenIn && { chosenIn }) };
}

/** The names of the row and the column of an edge in an explanation. If the indices of the edge are all tokens of a word, the name is the word.
 * (The tokens themselves may be single bytes.) If the indices are only some tokens of a word, the name consists of these tokens. */
export function edgeWords(explanation: Explanation, { site, queries, keys }: Pick<Edge, "site" | "queries" | "keys">): [string, string] {
  const [rows, columns] = tokenLabels(explanation, site);
  const name = (sentence: TokenizedSentence, labels: string[], indices: readonly number[], first = 0) => {
    const word = sentence.word_of_token[indices[0] - first] ?? -1;
    const isWhole = word >= 0 && tokensOf(sentence, word).map((position) => position + first).join() === indices.join();
    return (isWhole ? sentence.words[word] : joinTokens(labels, indices)).slice(0, MAX_NAME_LENGTH);
  };
  const { source, target } = explanation;
  return [name(site === "encoder" ? source : target, rows, queries), site === "decoder" ? name(target, columns, keys, 1) : name(source, columns, keys)];
}

const sameIndices = (a: readonly number[], b: readonly number[]) => a.join() === b.join();

function pinsSameQueries(change: Change, { site, layer, head, queries }: Edge): change is Pin {
  return change.kind === "pin" && change.site === site && change.layer === layer && change.head === head && sameIndices(change.queries, queries);
}

/** The weight that a change gives to this edge; null if there is no such change. */
export function weightSetAt(changes: readonly Change[], edge: Edge): number | null {
  const pin = changes.find((change) => pinsSameQueries(change, edge) && sameIndices(change.keys, edge.keys));
  return pin?.kind === "pin" ? (pin.weight ?? 1) : null;
}

/** Give the keys this share of the row. An earlier share of the same keys is replaced. Earlier shares of other keys stay,
 * except if the new share or the earlier share is 1: a share of 1 leaves nothing for other keys. */
export function setWeight(changes: readonly Change[], edge: Edge, weight: number): Change[] {
  const canStay = (pin: Pin) => weight < 1 && (pin.weight ?? 1) < 1 && !sameIndices(pin.keys, edge.keys);
  const rest = changes.filter((change) => !pinsSameQueries(change, edge) || canStay(change));
  const { chosenIn, ...place } = edge;
  return [...rest, { kind: "pin", ...place, weight, ...(chosenIn && { words: edgeWords(chosenIn, edge) }) }];
}

export function releaseWeight(changes: readonly Change[], edge: Edge): Change[] {
  return changes.filter((change) => !pinsSameQueries(change, edge) || !sameIndices(change.keys, edge.keys));
}

/** The first step that the changes affect; Infinity if there are no changes. The tokens of earlier steps stay the same. */
export function firstChangedStep(changes: readonly Change[]): number {
  const firstStep = (change: Change) => {
    if (change.site === "encoder" || change.kind === "silence") return 0;
    return change.kind === "paint" ? change.query : Math.min(...change.queries);
  };
  return Math.min(...changes.map(firstStep));
}

/** A change as text, with the words that were chosen. If the change has no words, its indices are looked up in the translation before
 * all changes. */
export function describeChange(change: Change, explanation: Explanation, text: Strings): string {
  const target = explanation.before?.target ?? explanation.target;
  const layer = change.layer === null ? text.allLayers : `${text.layer} ${change.layer}`;
  const head = change.head === null ? text.allHeads : `${text.head} ${change.head}`;
  const scope = [text.site[change.site], layer, head].join(", ");
  if (change.kind === "silence") return `${text.silence}: ${scope}`;
  const place = change.kind === "paint" ? { site: change.site, queries: [change.query], keys: [change.key] } : change;
  const ends = (change.words ?? edgeWords({ ...explanation, target }, place)).join(" → ");
  if (change.kind === "paint") return `${text.paint}: ${ends} = ${change.weight.toFixed(2)} (${scope})`;
  const share = change.weight ?? 1;
  if (share === 1) return `${text.pin}: ${ends} (${scope})`;
  if (share === 0) return `${text.cutLine}: ${ends} (${scope})`;
  return `${text.paint}: ${ends} = ${share.toFixed(2)} (${scope})`;
}

/** Whether the reader set a pin for only some tokens of a word. The word is looked up in the translation in which the pin was chosen: the
 * translation before all changes or the current translation. If the pin was chosen in another translation, the result is false. */
function isForTokens(pin: Pin, explanation: Explanation): boolean {
  const { before, target } = explanation;
  const isNamedIn = (translation: TokenizedSentence) => edgeWords({ ...explanation, target: translation }, pin)[0] === pin.words?.[0];
  const chosenIn = pin.words ? [...(before ? [before.target] : []), target].find(isNamedIn) : before?.target;
  if (!chosenIn) return false;
  const words = pin.queries.map((query) => chosenIn.word_of_token[query] ?? -1).filter((word) => word >= 0);
  return words.some((word) => tokensOf(chosenIn, word).some((token) => !pin.queries.includes(token)));
}

/** The words of the translation that are only partly pinned: `pinned` of the word's `tokens` tokens are pinned. Either the pin was set for
 * single tokens (`forTokens` is true), or it was set for all tokens of the old word and the new word has more tokens. */
export function partlyPinned(explanation: Explanation): { word: string; pinned: number; tokens: number; forTokens: boolean }[] {
  const { changes, target } = explanation;
  return changes.flatMap((change) => {
    if (change.kind !== "pin" || change.site === "encoder") return [];
    const forTokens = isForTokens(change, explanation);
    const words = [...new Set(change.queries.map((query) => target.word_of_token[query] ?? -1))].filter((word) => word >= 0);
    return words
      .map((word) => ({ word: target.words[word], tokens: tokensOf(target, word) }))
      .map(({ word, tokens }) => ({ word, pinned: tokens.filter((token) => change.queries.includes(token)).length, tokens: tokens.length, forTokens }))
      .filter(({ pinned, tokens }) => pinned < tokens);
  });
}

/** Whether a change has no effect because the translation ends before the first step that it changes. */
export function isWithoutEffect(change: Change, { target, ended }: Pick<Explanation, "target" | "ended">): boolean {
  if (change.kind === "silence" || change.site === "encoder") return false;
  const queries = change.kind === "paint" ? [change.query] : change.queries;
  return Math.min(...queries) >= target.tokens.length + Number(ended);
}

/** How many of the `forced` tokens are a prefix that the reader has given. The other `forced` tokens were written before the first changed
 * step and stay the same. `prefix` is the prefix of the request. A stored explanation has no request. If it has no `given_tokens` either,
 * all `forced` tokens have the same origin: the changes, if these begin right after the `forced` tokens, otherwise the reader. */
export function numGiven({ forced, changes, facts }: Pick<Explanation, "forced" | "changes" | "facts">, prefix?: readonly number[]): number {
  if (prefix) return Math.min(prefix.length, forced);
  return facts.given_tokens ?? (firstChangedStep(changes) === forced ? 0 : forced);
}

/** The `forced` tokens as two texts: the given prefix, which has `given` tokens, and the tokens that are kept because they were written
 * before the changes. */
export function prefixTexts({ target, forced }: Pick<Explanation, "target" | "forced">, given: number): { given: string; kept: string } {
  const text = (from: number, to: number) => target.tokens.slice(from, to).join("").replaceAll("▁", " ").trim();
  return { given: text(0, given), kept: text(given, forced) };
}
