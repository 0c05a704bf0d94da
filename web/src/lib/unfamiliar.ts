/** Words of a sentence that the model has hardly learned to read, as their script and tokens tell. */

import type { TokenizedSentence } from "./format";

/** `foreign`: in another script than the model's language. `unknown`: with characters that the vocabulary lacks.
 * `spelled`: in the vocabulary nearly letter by letter only. */
export type Unfamiliar = Record<"foreign" | "unknown" | "spelled", string[]>;

const UNKNOWN = 1;
const BYTE = /^<0x[0-9A-F]{2}>$/;
/** The letters of the scripts, by the names that `Intl.Locale` has for them. */
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
/** In these scripts, a token of one character is nothing unusual. */
const SYLLABLES = /[\p{Script=Hangul}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;

function scriptOf(language: string | undefined): RegExp | undefined {
  try {
    return language ? LETTERS[new Intl.Locale(language).maximize().script ?? ""] : undefined;
  } catch {
    return undefined; // not the name of a language
  }
}

/** Whether at least two letters, and half of the word, are tokens of one letter. */
function isSpelled(word: string, tokens: readonly string[]): boolean {
  const letters = [...word].filter((character) => /\p{L}/u.test(character)).length;
  const single = tokens.filter((token) => /^▁?\p{L}$/u.test(token)).length;
  return single >= 2 && 2 * single >= letters && !SYLLABLES.test(word);
}

export function unfamiliarWords({ words, ids, tokens, word_of_token }: TokenizedSentence, language: string | undefined): Unfamiliar {
  const found: Unfamiliar = { foreign: [], unknown: [], spelled: [] };
  const letters = scriptOf(language);
  words.forEach((word, index) => {
    const positions = word_of_token.flatMap((wordIndex, position) => (wordIndex === index ? [position] : []));
    if (words.indexOf(word) < index) return; // named once
    if (letters && /\p{L}/u.test(word) && !letters.test(word)) found.foreign.push(word);
    else if (positions.some((position) => ids[position] === UNKNOWN || BYTE.test(tokens[position]))) found.unknown.push(word);
    else if (isSpelled(word, positions.map((position) => tokens[position]))) found.spelled.push(word);
  });
  return found;
}
