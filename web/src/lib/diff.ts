/** Finds which words of two texts differ, with their longest common subsequence. */

import type { TokenizedSentence } from "./format";

type Text = Pick<TokenizedSentence, "text" | "words">;

export interface DiffWord {
  /** The characters between the previous word and this word. */
  gap: string;
  word: string;
  changed: boolean;
}

/** The words of a text, each with the characters before it; all are marked as changed. */
export function withGaps({ text, words }: Text): DiffWord[] {
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
  const [oldWords, newWords] = [withGaps(oldText), withGaps(newText)];
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) {
      oldWords[i++].changed = false;
      newWords[j++].changed = false;
    } else if (lcsLength[i + 1][j] >= lcsLength[i][j + 1]) i++;
    else j++;
  }
  return [oldWords, newWords];
}

/** A word of two merged texts. */
export interface MergedWord {
  gap: string;
  word: string;
  /** Whether both texts have the word ("kept"), only the new text or only the old text. */
  state: "kept" | "new" | "old";
  /** The index of the word in the new text; in the old text if `state` is "old". */
  index: number;
  /** The index in the old text, if `state` is "kept". */
  oldIndex?: number;
}

/** The words of the new text. The words that only the old text has are inserted at their old places. */
export function mergeWords(oldText: Text, newText: Text): MergedWord[] {
  const [before, after] = diffWords(oldText, newText);
  const merged: MergedWord[] = [];
  let i = 0;
  const takeOld = () => {
    for (; i < before.length && before[i].changed; i++) merged.push({ ...before[i], gap: before[i].gap || " ", state: "old", index: i });
  };
  after.forEach((word, index) => {
    takeOld();
    merged.push({ ...word, state: word.changed ? "new" : "kept", index, ...(!word.changed && { oldIndex: i++ }) });
  });
  takeOld();
  return merged;
}
