/** The text that is translated, and the translation that is copied. */

import type { Explanation } from "./format";

/** A sentence with normalised white space: pasted text has tabs and line breaks. A text of nothing but invisible characters is empty. */
export function normaliseSentence(sentence: string): string {
  return /[^\s\p{Cf}\p{Default_Ignorable_Code_Point}]/u.test(sentence) ? sentence.trim().replace(/\s+/g, " ") : "";
}

/** The translation of the whole text: of a text of several sentences, that of the one that is shown may be changed. */
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
