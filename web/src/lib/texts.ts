/** Normalises the text that is translated, and composes and copies the translation. */

import type { Explanation } from "./format";

/** Normalise white space, because pasted text often has tabs and line breaks. If a text has only invisible characters, the result is
 * empty. */
export function normaliseSentence(sentence: string): string {
  return /[^\s\p{Cf}\p{Default_Ignorable_Code_Point}]/u.test(sentence) ? sentence.trim().replace(/\s+/g, " ") : "";
}

/** The translation of the whole text. If the text has several parts, the translation that is shown replaces that of its part, because it
 * may have been written with changes to attention. */
export function wholeTranslation({ whole_text: whole, target }: Pick<Explanation, "whole_text" | "target">): string {
  if (!whole) return target.text;
  const { text, parts, index } = whole;
  let end = 0;
  for (const [i, part] of parts.entries()) {
    const start = text.indexOf(part.text, end);
    if (start < 0) break;
    end = start + part.text.length;
    if (i === index) return text.slice(0, start) + target.text + text.slice(end);
  }
  return text;
}

/** Copy a text to the clipboard. The promise is rejected if the browser does not allow copying. If another machine has sent the page without
 * TLS, `navigator.clipboard` is missing, and the promise is rejected, too. */
export async function copyText(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
}
