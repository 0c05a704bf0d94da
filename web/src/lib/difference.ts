/** Two texts side by side: which words of each are not in the other, in order. */

export interface MarkedWord {
  word: string;
  changed: boolean;
}

export function marked(before: string[], after: string[]): [MarkedWord[], MarkedWord[]] {
  const longest = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      longest[i][j] = before[i] === after[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const old = before.map((word) => ({ word, changed: true }));
  const fresh = after.map((word) => ({ word, changed: true }));
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) {
      old[i++].changed = false;
      fresh[j++].changed = false;
    } else if (longest[i + 1][j] >= longest[i][j + 1]) i++;
    else j++;
  }
  return [old, fresh];
}
