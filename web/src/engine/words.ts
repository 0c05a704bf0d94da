/** Words, as in src/jumok/text/words.py: units between spaces, with the punctuation at their edges split off. */

import { SPACE } from "./normalisation";

/** Start and end (exclusive) in a text: indices into an array of its characters, or into the string itself. */
export type Span = [number, number];

export const NO_WORD = -1;

/** Scripts that are written without spaces between words: first and last code point. */
const UNSPACED: [number, number][] = [
  [0x0e00, 0x0eff],
  [0x1000, 0x109f],
  [0x1780, 0x17ff],
  [0x3005, 0x3007],
  [0x3040, 0x30ff],
  [0x31f0, 0x31ff],
  [0x3400, 0x9fff],
  [0xf900, 0xfaff],
  [0xff66, 0xff9f],
  [0x20000, 0x3ffff],
];

const isPunctuation = (character: string) => /[\p{P}\p{S}]/u.test(character);
const isCombining = (character: string) => /[\p{M}\u200c\u200d]/u.test(character);
const isUnspaced = (character: string) => UNSPACED.some(([low, high]) => low <= character.codePointAt(0)! && character.codePointAt(0)! <= high);

export function splitWords(text: string): string[] {
  const characters = [...text];
  return wordSpans(characters).map(([start, end]) => characters.slice(start, end).join(""));
}

export function wordSpans(characters: readonly string[]): Span[] {
  const spans: Span[] = [];
  let start = 0;
  for (let end = 0; end <= characters.length; end++) {
    if (end < characters.length && !SPACE.test(characters[end])) continue;
    if (end > start) spans.push(...splitUnit(characters, start, end));
    start = end + 1;
  }
  return spans;
}

/** Split the punctuation off both ends of a unit without spaces, one word per punctuation character. */
function splitUnit(characters: readonly string[], start: number, end: number): Span[] {
  if (characters[start] === "<" && characters[end - 1] === ">" && end - start > 2) return [[start, end]];
  const clusters = splitClusters(characters, start, end);
  let [left, right] = [0, clusters.length];
  while (left < right && isPunctuation(characters[clusters[left][0]])) left++;
  while (right > left && isPunctuation(characters[clusters[right - 1][0]])) right--;
  return [...clusters.slice(0, left), ...joinSpaced(characters, clusters.slice(left, right)), ...clusters.slice(right)];
}

/** Split between all characters, except before a combining character or a joiner. */
function splitClusters(characters: readonly string[], start: number, end: number): Span[] {
  const cuts = [start];
  for (let i = start + 1; i < end; i++) if (!isCombining(characters[i])) cuts.push(i);
  return cuts.map((cut, i) => [cut, cuts[i + 1] ?? end]);
}

/** Join neighbouring clusters into words, except those of scripts without spaces. */
function joinSpaced(characters: readonly string[], clusters: readonly Span[]): Span[] {
  const spans: Span[] = [];
  let isOpen = false;
  for (const [start, end] of clusters) {
    const unspaced = isUnspaced(characters[start]);
    if (isOpen && !unspaced) spans[spans.length - 1] = [spans[spans.length - 1][0], end];
    else spans.push([start, end]);
    isOpen = !unspaced;
  }
  return spans;
}

/** The word that each token overlaps most, the first in a tie; a token between words belongs to the next one. */
export function wordsOfSpans(tokens: readonly Span[], words: readonly Span[]): number[] {
  if (!words.length) return tokens.map(() => NO_WORD);
  let first = 0;
  return tokens.map(([start, end]) => {
    while (first + 1 < words.length && words[first][1] <= start) first++;
    let [best, maxOverlap] = [first, 0];
    for (let word = first; word < words.length && words[word][0] < end; word++) {
      const overlap = Math.min(end, words[word][1]) - Math.max(start, words[word][0]);
      if (overlap > maxOverlap) [best, maxOverlap] = [word, overlap];
    }
    return best;
  });
}

/** For each offset in one text the corresponding offset in another, by their longest common substrings. */
export function alignedOffsets(decoded: readonly string[], text: readonly string[]): number[] {
  const offsets = new Array<number>(decoded.length + 1).fill(0);
  let [at, to] = [0, 0];
  for (const [start, other, length] of [...matchingBlocks(decoded, text), [decoded.length, text.length, 0]]) {
    // Between two matches, offsets are spread evenly.
    for (let i = at; i < start; i++) offsets[i] = to + Math.floor(((i - at) * (other - to)) / (start - at));
    for (let i = 0; i < length; i++) offsets[start + i] = other + i;
    [at, to] = [start + length, other + length];
  }
  offsets[decoded.length] = text.length;
  return offsets;
}

/** The longest common substring, then those to its left and right: [start, start in the other text, length]. */
function matchingBlocks(left: readonly string[], right: readonly string[]): [number, number, number][] {
  const positions = new Map<string, number[]>();
  right.forEach((character, i) => {
    const known = positions.get(character);
    if (known) known.push(i);
    else positions.set(character, [i]);
  });
  const find = (from: number, to: number, otherFrom: number, otherTo: number): [number, number, number][] => {
    let [best, other, size] = [from, otherFrom, 0];
    let lengths = new Map<number, number>();
    for (let i = from; i < to; i++) {
      const next = new Map<number, number>();
      for (const j of positions.get(left[i]) ?? []) {
        if (j < otherFrom || j >= otherTo) continue;
        const length = (lengths.get(j - 1) ?? 0) + 1;
        next.set(j, length);
        if (length > size) [best, other, size] = [i - length + 1, j - length + 1, length];
      }
      lengths = next;
    }
    if (!size) return [];
    return [...find(from, best, otherFrom, other), [best, other, size], ...find(best + size, to, other + size, otherTo)];
  };
  return find(0, left.length, 0, right.length);
}
