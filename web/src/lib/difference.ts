/** Two texts side by side: which words of each are not in the other, in order. */

import type { Side } from "./format";

type Text = Pick<Side, "text" | "words">;

interface MarkedWord {
  /** What stands between this word and the one before. */
  gap: string;
  word: string;
  changed: boolean;
}

function words({ text, words }: Text): MarkedWord[] {
  let read = 0;
  return words.map((word) => {
    const at = Math.max(read, text.indexOf(word, read));
    const gap = text.slice(read, at);
    read = at + word.length;
    return { gap, word, changed: true };
  });
}

export function marked(one: Text, other: Text): [MarkedWord[], MarkedWord[]] {
  const [before, after] = [one.words, other.words];
  const longest = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      longest[i][j] = before[i] === after[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const [old, fresh] = [words(one), words(other)];
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) {
      old[i++].changed = false;
      fresh[j++].changed = false;
    } else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
    else j++;
  }
  return [old, fresh];
}
