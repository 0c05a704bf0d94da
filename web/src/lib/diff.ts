/** The words of two texts that differ, by their longest common subsequence. */

import type { TokenizedSentence } from "./format";

type Text = Pick<TokenizedSentence, "text" | "words">;

interface DiffWord {
  /** The characters between this word and the one before. */
  gap: string;
  word: string;
  changed: boolean;
}

function splitWords({ text, words }: Text): DiffWord[] {
  let end = 0;
  return words.map((word) => {
    const start = Math.max(end, text.indexOf(word, end));
    const gap = text.slice(end, start);
    end = start + word.length;
    return { gap, word, changed: true };
  });
}

export function diffWords(oldText: Text, newText: Text): [DiffWord[], DiffWord[]] {
  const [before, after] = [oldText.words, newText.words];
  /** lcsLength[i][j]: the length of the longest common subsequence of before[i…] and after[j…]. */
  const lcsLength = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      lcsLength[i][j] = before[i] === after[j] ? lcsLength[i + 1][j + 1] + 1 : Math.max(lcsLength[i + 1][j], lcsLength[i][j + 1]);
  const [oldWords, newWords] = [splitWords(oldText), splitWords(newText)];
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) {
      oldWords[i++].changed = false;
      newWords[j++].changed = false;
    } else if (lcsLength[i + 1][j] >= lcsLength[i][j + 1]) i++;
    else j++;
  }
  return [oldWords, newWords];
}
