/** Offsets in texts, and texts in addresses. */

/** The server counts offsets in Unicode code points, JavaScript in UTF-16 units. Return the function from the former to the latter. */
export function unitOffsets(text: string): (codePoint: number) => number {
  if (!/[\ud800-\udbff]/.test(text)) return (codePoint) => codePoint;
  const offsets: number[] = [];
  let unit = 0;
  for (const character of text) {
    offsets.push(unit);
    unit += character.length;
  }
  return (codePoint) => offsets[codePoint] ?? unit;
}

/** The number of characters as the server counts them. */
export function countCharacters(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

/** The first characters of a text; no character is cut in two. */
export function firstCharacters(text: string, count: number): string {
  return text.slice(0, unitOffsets(text)(count));
}

export interface TranslationInput {
  source: string;
  target: string;
  text: string;
}

/** Longer texts stay out of the address, which some programs cut. */
export const MAX_ADDRESS_CHARACTERS = 1_500;

/** `#en/ko/I%20go` for a text and its languages. */
export function writeAddress({ source, target, text }: TranslationInput): string {
  return text.trim() && text.length <= MAX_ADDRESS_CHARACTERS ? `#${source}/${target}/${encodeURIComponent(text)}` : "";
}

/** Read an address: `#en/ko/text`, or `#text` alone, as other pages may link. */
export function readAddress(hash: string, isSource: (code: string) => boolean, isTarget: (code: string) => boolean): Partial<TranslationInput> | null {
  const content = hash.replace(/^#/, "");
  if (!content) return null;
  const [source, target, ...rest] = content.split("/");
  if (rest.length && isSource(source) && isTarget(target)) return { source, target, text: decode(rest.join("/")) };
  return { text: decode(content) };
}

/** Decode percent-encoding; a text that is not percent-encoded, such as `100%`, is returned as it is. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** 0.812 → "81%"; what is not 0 is not shown as 0. */
export function percent(probability: number): string {
  const value = 100 * probability;
  if (value > 0 && value < 1) return "< 1%";
  return value < 100 && value > 99 ? "> 99%" : `${Math.round(value)}%`;
}
