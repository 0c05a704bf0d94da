import type { Explanation } from "./format";

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
