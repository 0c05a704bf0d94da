/** Converts offsets in texts, and writes texts into addresses. */

/** Return a function that converts offsets in Unicode code points, which the server uses, to offsets in UTF-16 units, which JavaScript
 * uses. */
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

/** The number of Unicode code points, which the server counts as characters. */
export function countCharacters(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

/** The first `count` characters of a text. Surrogate pairs are not separated. */
export function firstCharacters(text: string, count: number): string {
  return text.slice(0, unitOffsets(text)(count));
}

export interface TranslationInput {
  source: string;
  target: string;
  text: string;
}

/** Texts with more characters are not written into the address, because some programs cut off long addresses. */
export const MAX_ADDRESS_CHARACTERS = 1_500;

/** The fragment of the address for a text and its languages, for example `#en/ko/I%20go`. Empty if the text is empty or too long. */
export function writeAddress({ source, target, text }: TranslationInput): string {
  return text.trim() && text.length <= MAX_ADDRESS_CHARACTERS ? `#${source}/${target}/${encodeURIComponent(text)}` : "";
}

/** Parse the fragment of an address: `#en/ko/text`, or only `#text`, which other pages may use in links. */
export function readAddress(fragment: string, isSource: (code: string) => boolean, isTarget: (code: string) => boolean): Partial<TranslationInput> | null {
  const content = fragment.replace(/^#/, "");
  if (!content) return null;
  const [source, target, ...rest] = content.split("/");
  if (rest.length && isSource(source) && isTarget(target)) return { source, target, text: decode(rest.join("/")) };
  return { text: decode(content) };
}

/** Decode percent-encoding. A text that is not percent-encoded, such as `100%`, is returned unchanged. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A probability in per cent, for example "81%" for 0.812. Small probabilities above 0 are shown as "< 1%", and large probabilities below
 * 1 as "> 99%". */
export function percent(probability: number): string {
  const value = 100 * probability;
  if (value > 0 && value < 1) return "< 1%";
  return value < 100 && value > 99 ? "> 99%" : `${Math.round(value)}%`;
}
