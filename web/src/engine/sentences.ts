/** Divides a text into sentences, which are translated separately, as in src/jumok/text/sentences.py. */

import { SPACE, SPACES, strip } from "./normalisation";
import type { Span } from "./words";

/** Whether lines are split into sentences ("split") or stay whole ("keep"). */
export type Sentences = "split" | "keep";

const LINE = /[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+/g;
// A lower-case letter or an entity (&quot;) after the punctuation continues the sentence.
const SENTENCE_END = new RegExp(`(?<![.?!…])[.?!…]+["'”’»)\\]]*[${SPACES}]+(?=[^\\p{Lowercase}&${SPACES}])|[。！？｡]+[”’」』）]*[${SPACES}]*`, "gu");
const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;
// In "Dr. Kim", "J. Kim" and "e.g. Kim", the full stop does not end a sentence.
const ABBREVIATION =
  /^(?:mrs?|ms|dr|prof|st|mt|vs|fig|vol|gen|col|capt|lt|sgt|rev|hon|sen|gov|messrs|mme|mlle|hr|fr|nr|bzw|ca|sra?|dra|e\.g|i\.e|z\.b|d\.h|u\.a|u\.s|u\.k)$/i;
/** A single capital letter except "I", which is usually a word ("So do I."), or several with full stops ("U.N"). */
const INITIAL = /^(?:[A-HJ-ZÀ-Þ]|(?:[A-Z]\.)+[A-Z])$/;
/** How many characters before a full stop may belong to an abbreviation or to the number of a list item. */
const MAX_ABBREVIATION = 12;
/** Languages without spaces between sentences. (Thai, for example, has no spaces between words, but has spaces between sentences.) */
const WITHOUT_SPACE_BETWEEN_SENTENCES = ["zh", "zho", "cmn", "ja", "jpn", "yue", "wuu", "lzh"];

/** The spans of the sentences or lines of a text, without white space at both ends. Sentences without a letter or digit, and empty lines,
 * are left out. Unlike the Python function, this function does not split sentences of more than 1,000
 * characters, because a text of the page has at most 1,000 characters. */
export function textSpans(text: string, sentences: Sentences): Span[] {
  const lines = Array.from(text.matchAll(LINE), ({ 0: line, index }): Span => [index, index + line.length]);
  const spans = sentences === "keep" ? lines : lines.flatMap(([start, end]) => sentencesOfLine(text, start, end));
  const isTranslatable = ([start, end]: Span) => (sentences === "keep" ? start < end : LETTER_OR_DIGIT.test(text.slice(start, end)));
  return spans.map((span) => trim(text, span)).filter(isTranslatable);
}

function sentencesOfLine(text: string, start: number, end: number): Span[] {
  const spans: Span[] = [];
  let sentenceStart = start;
  for (const { 0: mark, index } of text.slice(start, end).matchAll(SENTENCE_END)) {
    if (strip(mark) === "." && isAbbreviation(text, sentenceStart, start + index)) continue;
    const next = start + index + mark.length;
    spans.push([sentenceStart, next]);
    sentenceStart = next;
  }
  return [...spans, [sentenceStart, end]];
}

/** Whether the full stop at the index `stop` belongs to an abbreviation, an initial or the number of a list item. */
function isAbbreviation(text: string, sentenceStart: number, stop: number): boolean {
  const before = strip(text.slice(Math.max(sentenceStart, stop - MAX_ABBREVIATION), stop));
  if (!before) return true; // the full stop is the first character: there is no sentence to end
  const word = before.split(SPACE).at(-1)!.replace(/^[(["'“‘«]+/, "");
  const isItem = /^\p{Nd}+$/u.test(before) && stop - sentenceStart < MAX_ABBREVIATION;
  return isItem || ABBREVIATION.test(word) || INITIAL.test(word);
}

function trim(text: string, [start, end]: Span): Span {
  while (start < end && SPACE.test(text[start])) start++;
  while (end > start && SPACE.test(text[end - 1])) end--;
  return [start, end];
}

/** Replace the parts of a text by their translations. If only spaces or nothing is between two parts, the separator of the target language
 * takes this place, unless the translation of the second part is empty. Anything else between two parts, such as a line break, stays the
 * same. */
export function replaceParts(text: string, spans: readonly Span[], translated: readonly string[], language: string): string {
  const separator = WITHOUT_SPACE_BETWEEN_SENTENCES.includes(language.toLowerCase().split(/[-_]/)[0]) ? "" : " ";
  let [result, previous] = ["", 0];
  spans.forEach(([start, end], i) => {
    const between = text.slice(previous, start);
    const isOnlySpaces = previous > 0 && /^[ \u00a0\u3000]*$/.test(between);
    const separatorBefore = translated[i] ? separator : "";
    result += (isOnlySpaces ? separatorBefore : between) + translated[i];
    previous = end;
  });
  return strip(result + text.slice(previous));
}
