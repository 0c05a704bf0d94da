/** Changes to attention: their schema, their form in the address, and as text.
 *
 * The fields are those of the Python classes in src/jumok/analysis/changes.py; tests/analysis/test_change_schema.py compares them. */

import { isSite, type Explanation, type Site, type TokenizedSentence } from "./format";
import { joinTokens, tokenLabels, tokensOf } from "./maps";
import type { Strings } from "./strings";

export interface Silence {
  kind: "silence";
  site: Site;
  layer: number | null;
  head: number | null;
}

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

export interface Pin {
  kind: "pin";
  site: Site;
  layer: number | null;
  head: number | null;
  queries: number[];
  keys: number[];
  /** The share of the row that the keys get together; 1 if it is missing, 0 cuts them off. */
  weight?: number;
  /** The names of the row and the column in the translation in which they were chosen; another change may since have made the step write another word. */
  words?: [string, string];
}

export type Change = Silence | Paint | Pin;

const isIndex = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
/** The longest name of a row or a column that a change keeps. */
const MAX_NAME = 200;
const areWords = (value: unknown) => value === undefined || (Array.isArray(value) && value.length === 2 && value.every((word) => typeof word === "string" && word.length <= MAX_NAME));
const areIndices = (value: unknown) => Array.isArray(value) && value.every(isIndex);

function isChange(value: unknown): value is Change {
  if (typeof value !== "object" || value === null) return false;
  const { kind, site, layer, head, query, key, weight, queries, keys, words } = value as Record<string, unknown>;
  if (typeof site !== "string" || !isSite(site) || ![layer, head].every((index) => index === null || index === undefined || isIndex(index)) || !areWords(words)) return false;
  if (kind === "paint") return isIndex(query) && isIndex(key) && typeof weight === "number";
  return kind === "silence" || (kind === "pin" && areIndices(queries) && areIndices(keys) && (weight === undefined || typeof weight === "number"));
}

/** Parse the changes in an address; anything but a list of changes gives none. */
export function parseChanges(text: string): Change[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) && parsed.every(isChange) ? parsed.map((change) => ({ ...change, layer: change.layer ?? null, head: change.head ?? null })) : [];
  } catch {
    return [];
  }
}

/** Changes that mean the same for every sentence. */
export function independentOfSentence(changes: readonly Change[]): Change[] {
  return changes.filter(({ kind }) => kind === "silence");
}

const silencesHead = (change: Change, site: Site, layer: number, head: number) =>
  change.kind === "silence" && change.site === site && (change.layer ?? layer) === layer && (change.head ?? head) === head;

export function isSilenced(changes: readonly Change[], site: Site, layer: number, head: number): boolean {
  return changes.some((change) => silencesHead(change, site, layer, head));
}

/** Silence these heads, [layer, head], as well. None is silenced twice. If these are all heads of the site, one change silences it.
 * `shape` begins with the numbers of layers and heads. */
export function silence(changes: readonly Change[], site: Site, heads: readonly (readonly [number, number])[], shape: readonly number[]): Change[] {
  if (heads.length > 1 && heads.length === shape[0] * shape[1]) {
    return [...changes.filter((change) => change.kind !== "silence" || change.site !== site), { kind: "silence", site, layer: null, head: null }];
  }
  const added = heads.filter(([layer, head]) => !isSilenced(changes, site, layer, head));
  return [...changes, ...added.map(([layer, head]): Silence => ({ kind: "silence", site, layer, head }))];
}

/** Silence a head, or undo that; a change that silences more heads than this one still silences the others.
 * `shape` begins with the numbers of layers and heads. */
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

/** Where attention is changed by hand: some queries, some keys, in one head, in a layer, or everywhere. */
export interface Edge extends Pick<Pin, "site" | "layer" | "head" | "queries" | "keys"> {
  /** The explanation in which the edge was chosen: its words name the change. */
  chosenIn?: Explanation;
}

export function scopedEdge(site: Site, scope: { layer: number | null; head: number | null }, queries: number[], keys: number[], chosenIn?: Explanation): Edge {
  return { site, ...scope, queries, keys, ...(chosenIn && { chosenIn }) };
}

/** The names of the row and the column of an edge in an explanation: a word if the edge has all its tokens (which may be bytes), else the tokens. */
export function edgeWords(explanation: Explanation, { site, queries, keys }: Pick<Edge, "site" | "queries" | "keys">): [string, string] {
  const [rows, columns] = tokenLabels(explanation, site);
  const name = (sentence: TokenizedSentence, labels: string[], indices: readonly number[], first = 0) => {
    const word = sentence.word_of_token[indices[0] - first] ?? -1;
    const isWhole = word >= 0 && tokensOf(sentence, word).map((position) => position + first).join() === indices.join();
    return (isWhole ? sentence.words[word] : joinTokens(labels, indices)).slice(0, MAX_NAME);
  };
  const { source, target } = explanation;
  return [name(site === "encoder" ? source : target, rows, queries), site === "decoder" ? name(target, columns, keys, 1) : name(source, columns, keys)];
}

const sameIndices = (a: readonly number[], b: readonly number[]) => a.join() === b.join();

function pinsSameQueries(change: Change, { site, layer, head, queries }: Edge): change is Pin {
  return change.kind === "pin" && change.site === site && change.layer === layer && change.head === head && sameIndices(change.queries, queries);
}

export function weightSetAt(changes: readonly Change[], edge: Edge): number | null {
  const found = changes.find((change) => pinsSameQueries(change, edge) && sameIndices(change.keys, edge.keys));
  return found?.kind === "pin" ? (found.weight ?? 1) : null;
}

/** Give the keys this share of the row. It replaces the share that these keys had. A share of 1 replaces all shares of these queries, and is itself replaced by any other. */
export function setWeight(changes: readonly Change[], edge: Edge, weight: number): Change[] {
  const rest = changes.filter((change) => !pinsSameQueries(change, edge) || (weight < 1 && (change.weight ?? 1) < 1 && !sameIndices(change.keys, edge.keys)));
  const { chosenIn, ...place } = edge;
  return [...rest, { kind: "pin", ...place, weight, ...(chosenIn && { words: edgeWords(chosenIn, edge) }) }];
}

export function releaseWeight(changes: readonly Change[], edge: Edge): Change[] {
  return changes.filter((change) => !pinsSameQueries(change, edge) || !sameIndices(change.keys, edge.keys));
}

/** The first step that the changes affect: the tokens before it are kept. Infinity without changes. */
export function firstChangedStep(changes: readonly Change[]): number {
  return Math.min(...changes.map((change) => (change.site === "encoder" || change.kind === "silence" ? 0 : change.kind === "paint" ? change.query : Math.min(...change.queries))));
}

/** A change as text, with the words that were chosen. Without them, its indices are taken for those of the translation before all changes. */
export function describeChange(change: Change, explanation: Explanation, text: Strings): string {
  const target = explanation.before?.target ?? explanation.target;
  const scope = [text.site[change.site], change.layer === null ? text.allLayers : `${text.layer} ${change.layer}`, change.head === null ? text.allHeads : `${text.head} ${change.head}`].join(", ");
  if (change.kind === "silence") return `${text.silence}: ${scope}`;
  const place = change.kind === "paint" ? { site: change.site, queries: [change.query], keys: [change.key] } : change;
  const ends = (change.words ?? edgeWords({ ...explanation, target }, place)).join(" → ");
  if (change.kind === "paint") return `${text.paint}: ${ends} = ${change.weight.toFixed(2)} (${scope})`;
  const share = change.weight ?? 1;
  return share === 1 ? `${text.pin}: ${ends} (${scope})` : share === 0 ? `${text.cutLine}: ${ends} (${scope})` : `${text.paint}: ${ends} = ${share.toFixed(2)} (${scope})`;
}

/** Whether a pin was set for single tokens of a word in the translation in which it was chosen: the one before all changes or the one that is shown. */
function isForTokens(pin: Pin, explanation: Explanation): boolean {
  const { before, target } = explanation;
  const isNamedIn = (translation: TokenizedSentence) => edgeWords({ ...explanation, target: translation }, pin)[0] === pin.words?.[0];
  const chosenIn = pin.words ? [...(before ? [before.target] : []), target].find(isNamedIn) : before?.target;
  if (!chosenIn) return false;
  const words = pin.queries.map((query) => chosenIn.word_of_token[query] ?? -1).filter((word) => word >= 0);
  return words.some((word) => tokensOf(chosenIn, word).some((token) => !pin.queries.includes(token)));
}

/** Words of the translation of which a pin changes only some tokens: the pin was set for single tokens (`forTokens`), or for those of the old word, and the new word has more. */
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

/** Whether a change has no effect, because the translation ends before its first step. */
export function isWithoutEffect(change: Change, { target, ended }: Pick<Explanation, "target" | "ended">): boolean {
  if (change.kind === "silence" || change.site === "encoder") return false;
  const queries = change.kind === "paint" ? [change.query] : change.queries;
  return Math.min(...queries) >= target.tokens.length + Number(ended);
}

/** How many of the first tokens were given, by the `prefix` of the request if that is known; the `forced` ones after them were written before the changes. */
export function numGiven({ forced, changes, facts }: Pick<Explanation, "forced" | "changes" | "facts">, prefix?: readonly number[]): number {
  if (prefix) return Math.min(prefix.length, forced);
  return facts.given_tokens ?? (firstChangedStep(changes) === forced ? 0 : forced);
}

/** The tokens that the translation was given, and those after them that stay because they were written before the changes, as text. */
export function prefixTexts({ target, forced }: Pick<Explanation, "target" | "forced">, given: number): { given: string; kept: string } {
  const text = (from: number, to: number) => target.tokens.slice(from, to).join("").replaceAll("▁", " ").trim();
  return { given: text(0, given), kept: text(given, forced) };
}
