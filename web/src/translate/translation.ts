/** The sentences of a translation, their words, and the links between words of both languages. Spans are in UTF-16 units. */

import { unitOffsets } from "./text";

export type Span = [start: number, end: number];

export interface Word {
  span: Span;
  /** The model's raw probability of the word: the product of its tokens' probabilities. */
  probability: number | null;
}

/** A translation of a sentence: the model's own translation, or a translation that the user chose. */
export interface Version {
  text: string;
  score: number | null;
  words: Word[];
  /** The links between words, each as an index of `sourceWords` and an index of `words`. */
  links: [source: number, target: number][];
  /** The source words that have links, as spans of the sentence. */
  sourceWords: Span[];
}

export interface Sentence {
  source: string;
  /** The span of the sentence in the text. */
  span: Span;
  /** The text before the translation of the sentence, for example a space. */
  before: string;
  /** The translation that is shown. */
  shown: Version;
  /** The model's own translation. */
  own: Version;
  notes: string[];
}

/** A translation as the server sends it. */
export interface ScoredText {
  text: string;
  score: number | null;
  words?: { span: Span; probability: number | null }[];
  alignment?: { source: Span; target: Span }[];
}

export interface SentenceEvent extends ScoredText {
  span: Span;
  before: string;
  notes?: string[];
}

/** Another word at one position of a translation, with a translation of the whole sentence that contains the word. */
export interface Candidate extends ScoredText {
  word: string;
  /** The probability of the word after the words before it. */
  probability: number;
}

/** Convert a translation that the server has sent. `source` is the sentence that was translated. */
export function readVersion(scored: ScoredText, source: string): Version {
  const [sourceOffset, targetOffset] = [unitOffsets(source), unitOffsets(scored.text)];
  const words = (scored.words ?? []).map(({ span, probability }): Word => ({ span: [targetOffset(span[0]), targetOffset(span[1])], probability }));
  const targetIndexByStart = new Map(words.map(({ span }, index) => [span[0], index]));
  const sourceIndexByStart = new Map<number, number>();
  const sourceWords: Span[] = [];
  const links: [number, number][] = [];
  for (const link of [...(scored.alignment ?? [])].sort((a, b) => a.source[0] - b.source[0])) {
    const span: Span = [sourceOffset(link.source[0]), sourceOffset(link.source[1])];
    const target = targetIndexByStart.get(targetOffset(link.target[0]));
    if (target === undefined) continue; // the target of the link is not one of the words
    if (!sourceIndexByStart.has(span[0])) sourceIndexByStart.set(span[0], sourceWords.push(span) - 1);
    links.push([sourceIndexByStart.get(span[0])!, target]);
  }
  return { text: scored.text, score: scored.score, words, links, sourceWords };
}

/** Return a function that converts the sentence events of a stream to sentences of `text`. */
export function sentenceReader(text: string): (event: SentenceEvent) => Sentence {
  const offset = unitOffsets(text);
  return (event) => {
    const span: Span = [offset(event.span[0]), offset(event.span[1])];
    const source = text.slice(...span);
    const own = readVersion(event, source);
    return { source, span, before: event.before, shown: own, own, notes: event.notes ?? [] };
  };
}

export function joinSentences(sentences: Sentence[], after: string): string {
  return sentences.map(({ before, shown }) => before + shown.text).join("") + after;
}

/** The index of the last sentence that begins at or before a position of the text; 0 if there is none. */
export function sentenceAt(sentences: Sentence[], position: number): number {
  let last = 0;
  sentences.forEach(({ span }, index) => {
    if (span[0] <= position) last = index;
  });
  return last;
}

/** The translation before the word with this index. It is the prefix with which other candidates for this word are requested. */
export function prefixOf(version: Version, word: number): string {
  return version.text.slice(0, version.words[word].span[0]).trimEnd();
}

/** The indices of the words on the other side that are linked with a word. */
export function linkedWords(version: Version, side: "source" | "target", word: number): number[] {
  const [thisSide, otherSide] = side === "source" ? [0, 1] : [1, 0];
  return version.links.filter((link) => link[thisSide] === word).map((link) => link[otherSide]);
}

/** How strongly a word is tinted: from 0 (its probability is at least 0.75, or unknown) to 3 (its probability is below 0.25). */
export function tint(probability: number | null): number {
  if (probability === null || probability >= 0.75) return 0;
  return probability >= 0.5 ? 1 : probability >= 0.25 ? 2 : 3;
}
