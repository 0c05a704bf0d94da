/** Finds words of a sentence that the model has probably not learned to read, from their script and their tokens. */

import type { TokenizedSentence } from "./format";

/** The unfamiliar words of a sentence, by reason:
 *
 * - `foreign`: the word has letters, but none in the script of the model's source language;
 * - `unknown`: the vocabulary lacks some of its characters;
 * - `spelled`: the vocabulary lacks the word, so that it is tokenized nearly letter by letter. */
export type Unfamiliar = Record<"foreign" | "unknown" | "spelled", string[]>;

const UNKNOWN = 1;
const BYTE = /^<0x[0-9A-F]{2}>$/;
/** A pattern for the letters of each script, by the script's name in `Intl.Locale`. */
const LETTERS: Record<string, RegExp> = {
  Latn: /\p{Script=Latin}/u,
  Cyrl: /\p{Script=Cyrillic}/u,
  Grek: /\p{Script=Greek}/u,
  Arab: /\p{Script=Arabic}/u,
  Hebr: /\p{Script=Hebrew}/u,
  Deva: /\p{Script=Devanagari}/u,
  Thai: /\p{Script=Thai}/u,
  Kore: /[\p{Script=Hangul}\p{Script=Han}]/u,
  Jpan: /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u,
  Hans: /\p{Script=Han}/u,
  Hant: /\p{Script=Han}/u,
};
/** Scripts in which tokens of one character are normal. */
const SYLLABLES = /[\p{Script=Hangul}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;

function scriptOf(language: string | undefined): RegExp | undefined {
  try {
    return language ? LETTERS[new Intl.Locale(language).maximize().script ?? ""] : undefined;
  } catch {
    return undefined; // `language` is not a valid language tag
  }
}

/** Whether a word is read nearly letter by letter: at least two of its letters, and at least half of them, are tokens of their own. */
function isSpelled(word: string, tokens: readonly string[]): boolean {
  const letters = [...word].filter((character) => /\p{L}/u.test(character)).length;
  const single = tokens.filter((token) => /^▁?\p{L}$/u.test(token)).length;
  return single >= 2 && 2 * single >= letters && !SYLLABLES.test(word);
}

export function unfamiliarWords({ words, ids, tokens, word_of_token }: TokenizedSentence, language: string | undefined): Unfamiliar {
  const unfamiliar: Unfamiliar = { foreign: [], unknown: [], spelled: [] };
  const letters = scriptOf(language);
  words.forEach((word, index) => {
    const positions = word_of_token.flatMap((wordIndex, position) => (wordIndex === index ? [position] : []));
    if (words.indexOf(word) < index) return; // a repeated word is listed once
    if (letters && /\p{L}/u.test(word) && !letters.test(word)) unfamiliar.foreign.push(word);
    else if (positions.some((position) => ids[position] === UNKNOWN || BYTE.test(tokens[position]))) unfamiliar.unknown.push(word);
    else if (isSpelled(word, positions.map((position) => tokens[position]))) unfamiliar.spelled.push(word);
  });
  return unfamiliar;
}
