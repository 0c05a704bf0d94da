/** Divides texts into words, as in src/jumok/text/words.py. Texts are split at spaces, and punctuation at both ends of the resulting units
 * is split off. A unit in angle brackets such as <polite> stays whole. */

import { SPACE } from "./normalisation";

/** The start and the end (exclusive) of a part of a text, as indices into the string or into an array of its characters. */
export type Span = [number, number];

export const NO_WORD = -1;

/** The first and the last code point of each block of scripts that are written without spaces between words. */
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
/** Whether a character continues an emoji: it is a skin tone, or a symbol after a joiner. For example, 👩‍👩‍👧 is one emoji of five
 * characters. */
const continuesEmoji = (before: string, character: string) =>
  /[\u{1f3fb}-\u{1f3ff}]/u.test(character) || (before === "\u200d" && /\p{So}/u.test(character));
/** Whether a character is a regional indicator, e.g. 🇰. A flag such as 🇰🇷 has two of them. */
const isRegional = (character: string) => /[\u{1f1e6}-\u{1f1ff}]/u.test(character);
function isUnspaced(character: string): boolean {
  const codePoint = character.codePointAt(0)!;
  return UNSPACED.some(([first, last]) => first <= codePoint && codePoint <= last);
}

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

/** Split the punctuation off both ends of a unit without spaces. Each of these punctuation characters becomes a word. */
function splitUnit(characters: readonly string[], start: number, end: number): Span[] {
  if (characters[start] === "<" && characters[end - 1] === ">" && end - start > 2) return [[start, end]];
  const clusters = splitClusters(characters, start, end);
  let [left, right] = [0, clusters.length];
  while (left < right && isPunctuation(characters[clusters[left][0]])) left++;
  while (right > left && isPunctuation(characters[clusters[right - 1][0]])) right--;
  return [...clusters.slice(0, left), ...joinSpaced(characters, clusters.slice(left, right)), ...clusters.slice(right)];
}

/** Split into clusters of one character each. A combining character or a joiner stays with the character before it. These emoji are not
 * split: an emoji with a skin tone, symbols that are connected by joiners, and a flag of two regional indicators. */
function splitClusters(characters: readonly string[], start: number, end: number): Span[] {
  const starts = [start];
  for (let i = start + 1; i < end; i++) {
    // A flag is complete with two regional indicators, so the third one begins the next flag.
    const completesFlag = i - starts[starts.length - 1] === 1 && isRegional(characters[i - 1]) && isRegional(characters[i]);
    const continuesCluster = isCombining(characters[i]) || continuesEmoji(characters[i - 1], characters[i]) || completesFlag;
    if (!continuesCluster) starts.push(i);
  }
  return starts.map((clusterStart, i) => [clusterStart, starts[i + 1] ?? end]);
}

/** Join neighbouring clusters into words. Each cluster of a script without spaces becomes a word of its own. */
function joinSpaced(characters: readonly string[], clusters: readonly Span[]): Span[] {
  const spans: Span[] = [];
  let isOpen = false; // whether the next cluster may continue the last word
  for (const [start, end] of clusters) {
    const unspaced = isUnspaced(characters[start]);
    if (isOpen && !unspaced) spans[spans.length - 1] = [spans[spans.length - 1][0], end];
    else spans.push([start, end]);
    isOpen = !unspaced;
  }
  return spans;
}

/** For each token: the index of the word that the token overlaps most. If the token overlaps several words equally, the first of these words
 * is chosen. If the token overlaps no word, the next word is chosen, or the last word if there is no next word. */
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

/** For each offset in the decoded text: the corresponding offset in the other text. The texts are aligned by their longest common
 * substrings. */
export function alignedOffsets(decoded: readonly string[], text: readonly string[]): number[] {
  const offsets = new Array<number>(decoded.length + 1).fill(0);
  /** The ends of the last match in both texts. */
  let [end, textEnd] = [0, 0];
  for (const [start, textStart, length] of [...matchingBlocks(decoded, text), [decoded.length, text.length, 0]]) {
    // Offsets between two matches are spread evenly.
    for (let i = end; i < start; i++) offsets[i] = textEnd + Math.floor(((i - end) * (textStart - textEnd)) / (start - end));
    for (let i = 0; i < length; i++) offsets[start + i] = textStart + i;
    [end, textEnd] = [start + length, textStart + length];
  }
  offsets[decoded.length] = text.length;
  return offsets;
}

/** The common substrings by which two texts are aligned, in order. Each is [start in `a`, start in `b`, length]. The longest common substring
 * is found first, then the search continues to its left and right. */
function matchingBlocks(a: readonly string[], b: readonly string[]): [number, number, number][] {
  const positionsInB = new Map<string, number[]>();
  b.forEach((character, i) => {
    const positions = positionsInB.get(character);
    if (positions) positions.push(i);
    else positionsInB.set(character, [i]);
  });
  const findBlocks = (aStart: number, aEnd: number, bStart: number, bEnd: number): [number, number, number][] => {
    let [bestA, bestB, bestLength] = [aStart, bStart, 0];
    /** For each position in `b`: the length of the common substring that ends there and at the previous position in `a`. */
    let lengths = new Map<number, number>();
    for (let i = aStart; i < aEnd; i++) {
      const nextLengths = new Map<number, number>();
      for (const j of positionsInB.get(a[i]) ?? []) {
        if (j < bStart || j >= bEnd) continue;
        const length = (lengths.get(j - 1) ?? 0) + 1;
        nextLengths.set(j, length);
        if (length > bestLength) [bestA, bestB, bestLength] = [i - length + 1, j - length + 1, length];
      }
      lengths = nextLengths;
    }
    if (!bestLength) return [];
    const before = findBlocks(aStart, bestA, bStart, bestB);
    const after = findBlocks(bestA + bestLength, aEnd, bestB + bestLength, bEnd);
    return [...before, [bestA, bestB, bestLength], ...after];
  };
  return findBlocks(0, a.length, 0, b.length);
}
