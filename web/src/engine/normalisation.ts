/** Normalises and escapes texts, as in src/jumok/text/normalisation.py. */

/** The largest number of combining marks without a joiner between them. */
export const MAX_MARKS = 30;
const JOINER = "\u034f";
/** 14 or more characters that are neither letters, digits nor spaces. Fewer characters cannot have more than `MAX_MARKS` marks: see the
 * proof in the Python file. */
const POSSIBLE_RUN = /[^\p{L}\p{N}_\s]{14,}/gu;
const [ESCAPED_BAR, ESCAPE] = ["\ufdd0", "\ufdd1"];
/** A character of white space, as defined by Python's `str.isspace`. */
export const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
/** The characters of `SPACE`, for use inside the square brackets of another pattern. */
export const SPACES = SPACE.source.slice(1, -1);
const LINE_BREAK = /\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/;

/** The text in NFC. Lone surrogates are replaced by U+FFFD, and long runs of combining marks are interrupted by joiners. */
export function normalise(text: string): string {
  return boundMarks(text.replace(/\p{Surrogate}/gu, "\ufffd")).normalize("NFC");
}

export function strip(text: string): string {
  const characters = [...text];
  const isNotSpace = (character: string) => !SPACE.test(character);
  const first = characters.findIndex(isNotSpace);
  return first < 0 ? "" : characters.slice(first, characters.findLastIndex(isNotSpace) + 1).join("");
}

/** Replace line breaks by spaces. A model can write line breaks as bytes, but the translation of one line must be one line. */
export function joinLines(text: string): string {
  const lines = text.split(LINE_BREAK);
  if (lines.at(-1) === "") lines.pop(); // like Python's `splitlines`
  return lines.join(" ");
}

/** Insert joiners into runs of combining marks, so that at most `MAX_MARKS` marks follow each other. Marks are counted in the canonical
 * decomposition. */
function boundMarks(text: string): string {
  let end = 0;
  const parts: string[] = [];
  for (const { 0: run, index } of text.matchAll(POSSIBLE_RUN)) {
    const before = [...text.slice(end, index)].at(-1) ?? ""; // the decomposition of this character may end with marks
    parts.push(text.slice(end, index - before.length), insertJoiners(before + run));
    end = index + run.length;
  }
  return parts.length ? parts.join("") + text.slice(end) : text;
}

function insertJoiners(text: string): string {
  const result: string[] = [];
  /** The number of marks since the last other character or joiner. */
  let count = 0;
  for (const character of text) {
    const areMarks = [...character.normalize("NFD")].map(isCombiningMark);
    if (areMarks.every(Boolean)) {
      if (count + areMarks.length > MAX_MARKS) {
        result.push(JOINER);
        count = 0;
      }
      count += areMarks.length;
    } else count = areMarks.length - 1 - areMarks.lastIndexOf(false); // the marks at the end of the decomposition
    result.push(character);
  }
  return result.join("");
}

/** Whether the combining class of a character is above 0. JavaScript has no function for this, but NFD sorts marks by their class. So
 * a character with a class above 0 is swapped with a mark of class 1 after it or a mark of class 240 before it. */
function isCombiningMark(character: string): boolean {
  const [low, high] = ["\u0334", "\u0345"];
  return (character + low).normalize("NFD") !== character + low || (high + character).normalize("NFD") !== high + character;
}

const ESCAPES: Record<string, string> = { "▁": ESCAPED_BAR, [ESCAPED_BAR]: ESCAPE + ESCAPED_BAR, [ESCAPE]: ESCAPE + ESCAPE };
const ORIGINALS = Object.fromEntries(Object.entries(ESCAPES).map(([original, escaped]) => [escaped, original]));
const ESCAPED = /\ufdd0|\ufdd1[\ufdd0\ufdd1]/g;

/** Replace "▁" in a text, because SentencePiece cannot distinguish it from a space. The two characters that stand for "▁" in the result
 * are escaped too. */
export function escape(text: string): string {
  return text.replace(/[\u2581\ufdd0\ufdd1]/g, (character) => ESCAPES[character]);
}

export function unescape(text: string): string {
  return text.replace(ESCAPED, (escaped) => ORIGINALS[escaped]);
}

/** The offset in the unescaped text of each character of an escaped text, and of its end. */
export function unescapedOffsets(characters: readonly string[]): number[] {
  const offsets: number[] = [];
  let removed = 0;
  for (let i = 0; i <= characters.length; i++) {
    offsets.push(i - removed);
    if (characters[i] === ESCAPE && (characters[i + 1] === ESCAPED_BAR || characters[i + 1] === ESCAPE)) {
      removed++;
      offsets.push(++i - removed);
    }
  }
  return offsets;
}
