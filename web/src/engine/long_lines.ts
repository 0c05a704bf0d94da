/** Splits lines that are too long for a model, as in src/jumok/text/long_lines.py. */

import { MAX_MARKS, SPACES, strip } from "./normalisation";
import type { Span } from "./words";

type CountTokens = (text: string) => number;

/** Patterns for the end of a part, tried in this order: ends of sentences, other punctuation, spaces. After full-width punctuation, no
 * space is needed. */
const BOUNDARIES = [
  new RegExp(`[.?!…]+["'”’»)\\]]*[${SPACES}]+|[。！？｡]+[”’」』）]*[${SPACES}]*`, "g"),
  new RegExp(`[,;:–—]+["'”’»)\\]]*[${SPACES}]+|[、，；：]+[${SPACES}]*`, "g"),
  new RegExp(`[${SPACES}]+`, "g"),
];
const SENTENCE_LEVEL = 0;
/** A sentence with fewer tokens than this is joined to the next sentence, because it may be only an abbreviation such as "Dr.". */
const MIN_SENTENCE_TOKENS = 6;

/** The parts of a line. Each part has at most `maxTokens` tokens, except if a single character has more tokens. */
export function splitLine(line: string, countTokens: CountTokens, maxTokens: number): string[] {
  return split(strip(line), countTokens, maxTokens, SENTENCE_LEVEL);
}

function split(text: string, countTokens: CountTokens, maxTokens: number, level: number): string[] {
  const characters = [...text];
  if (countTokens(text) <= maxTokens || characters.length < 2) return [text];
  if (level === BOUNDARIES.length) {
    const middle = middleOf(characters);
    const halves = [characters.slice(0, middle), characters.slice(middle)];
    return halves.flatMap((half) => split(half.join(""), countTokens, maxTokens, level));
  }
  const minTokens = level === SENTENCE_LEVEL ? MIN_SENTENCE_TOKENS : maxTokens;
  const parts = mergeSpans(text, spansBetween(text, BOUNDARIES[level]), countTokens, minTokens, maxTokens);
  return parts.flatMap((part) => split(part, countTokens, maxTokens, level + 1));
}

/** The spans between boundaries. The text of a boundary belongs to the span before it. */
function spansBetween(text: string, boundary: RegExp): Span[] {
  const ends = Array.from(text.matchAll(boundary), ({ 0: match, index }) => index + match.length).filter((end) => end < text.length);
  return [...ends, text.length].map((end, i) => [i ? ends[i - 1] : 0, end]);
}

/** Merge neighbouring spans into parts. A part ends when it has at least `minTokens` tokens, or when the next span would bring it above
 * `maxTokens`. */
function mergeSpans(text: string, spans: readonly Span[], countTokens: CountTokens, minTokens: number, maxTokens: number): string[] {
  const parts: string[] = [];
  let [partStart, partEnd, count] = [0, 0, 0];
  for (const [start, end] of spans) {
    const spanTokens = countTokens(strip(text.slice(start, end)));
    if (count && (count >= minTokens || count + spanTokens > maxTokens)) {
      parts.push(strip(text.slice(partStart, partEnd)));
      [partStart, count] = [start, 0];
    }
    [partEnd, count] = [end, count + spanTokens];
  }
  return [...parts, strip(text.slice(partStart, partEnd))];
}

/** An index near the middle that does not separate a combining character from its letter: the middle, or the place of this letter.
 *
 * If the letter is the first character, or is more than `MAX_MARKS` characters before the middle, the result is the middle itself. */
function middleOf(characters: readonly string[]): number {
  const middle = Math.floor(characters.length / 2);
  for (let index = middle; index > Math.max(middle - MAX_MARKS - 1, 0); index--) if (!/\p{M}/u.test(characters[index])) return index;
  return middle;
}
