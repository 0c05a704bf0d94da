/** A translation: its sentences, their words, and which words belong together. Spans are in UTF-16 units. */

import { unitOffsets } from "./text";

export type Span = [start: number, end: number];

export interface Word {
  span: Span;
  /** The model's raw probability of the word: the product of its tokens' probabilities. */
  probability: number | null;
}

/** A translation of a sentence: the model's own, or one that the user chose. */
export interface Version {
  text: string;
  score: number | null;
  words: Word[];
  /** Indices of `sourceWords` and `words`. */
  links: [source: number, target: number][];
  /** Source words that are linked, as spans of the sentence. */
  sourceWords: Span[];
}

export interface Sentence {
  source: string;
  /** Where the sentence is in the text. */
  span: Span;
  /** The text before its translation, such as a space. */
  before: string;
  /** The translation that is shown; `own` is that of the model. */
  shown: Version;
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

export interface Candidate extends ScoredText {
  word: string;
  probability: number;
}

export function readVersion(scored: ScoredText, source: string): Version {
  const [inSource, inTarget] = [unitOffsets(source), unitOffsets(scored.text)];
  const words = (scored.words ?? []).map(({ span, probability }): Word => ({ span: [inTarget(span[0]), inTarget(span[1])], probability }));
  const targets = new Map(words.map(({ span }, index) => [span[0], index]));
  const starts = new Map<number, number>();
  const sourceWords: Span[] = [];
  const links: [number, number][] = [];
  for (const link of [...(scored.alignment ?? [])].sort((one, other) => one.source[0] - other.source[0])) {
    const span: Span = [inSource(link.source[0]), inSource(link.source[1])];
    const target = targets.get(inTarget(link.target[0]));
    if (target === undefined) continue;
    if (!starts.has(span[0])) starts.set(span[0], sourceWords.push(span) - 1);
    links.push([starts.get(span[0])!, target]);
  }
  return { text: scored.text, score: scored.score, words, links, sourceWords };
}

/** A function that reads sentences of `text`, as the stream reports them. */
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

/** The index of the sentence at a position of the text: the one that contains it, or the last that begins before it. */
export function sentenceAt(sentences: Sentence[], place: number): number {
  let found = 0;
  sentences.forEach(({ span }, index) => {
    if (span[0] <= place) found = index;
  });
  return found;
}

/** The translation before the word with this index: the prefix of its other candidates. */
export function prefixOf(version: Version, word: number): string {
  return version.text.slice(0, version.words[word].span[0]).trimEnd();
}

/** The words that one word is linked with, on the other side. */
export function partners(version: Version, side: "source" | "target", word: number): number[] {
  const [own, other] = side === "source" ? [0, 1] : [1, 0];
  return version.links.filter((link) => link[own] === word).map((link) => link[other]);
}

/** How strongly a word is tinted: 0 (a probability of 0.75 or more, or an unknown one) to 3 (below 0.25). */
export function tint(probability: number | null): number {
  if (probability === null || probability >= 0.75) return 0;
  return probability >= 0.5 ? 1 : probability >= 0.25 ? 2 : 3;
}
