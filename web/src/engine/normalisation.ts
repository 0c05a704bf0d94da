/** Normalisation and escaping, as in src/jumok/text/normalisation.py. */

/** Longer runs of combining marks are interrupted by a joiner. */
export const MAX_MARKS = 30;
const JOINER = "\u034f";
/** Shorter runs have at most `MAX_MARKS` marks, as the Python file shows. */
const POSSIBLE_RUN = /[^\p{L}\p{N}_\s]{14,}/gu;
const [BAR, ESCAPE] = ["\ufdd0", "\ufdd1"];
/** The white space of Python's `str.isspace`. */
export const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
/** The characters of `SPACE`, for use inside a class of another pattern. */
export const SPACES = SPACE.source.slice(1, -1);
const LINE_BREAK = /\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/;

/** The text in NFC, with bounded runs of combining marks; a lone surrogate becomes U+FFFD. */
export function normalise(text: string): string {
  return boundMarks(text.replace(/\p{Surrogate}/gu, "\ufffd")).normalize("NFC");
}

export function strip(text: string): string {
  const characters = [...text];
  const inside = (character: string) => !SPACE.test(character);
  const first = characters.findIndex(inside);
  return first < 0 ? "" : characters.slice(first, characters.findLastIndex(inside) + 1).join("");
}

/** One line stays one line, even if the model produces the bytes of a line break. */
export function joinLines(text: string): string {
  const lines = text.split(LINE_BREAK);
  if (lines.at(-1) === "") lines.pop(); // as Python's `splitlines`
  return lines.join(" ");
}

/** Put a joiner after every `MAX_MARKS` combining marks of a run, counted in the canonical decomposition. */
function boundMarks(text: string): string {
  let end = 0;
  const parts: string[] = [];
  for (const { 0: run, index } of text.matchAll(POSSIBLE_RUN)) {
    const before = [...text.slice(end, index)].at(-1) ?? ""; // the decomposition of this character may end with marks
    parts.push(text.slice(end, index - before.length), bounded(before + run));
    end = index + run.length;
  }
  return parts.length ? parts.join("") + text.slice(end) : text;
}

function bounded(text: string): string {
  const result: string[] = [];
  let count = 0;
  for (const character of text) {
    const isMark = [...character.normalize("NFD")].map(combines);
    if (isMark.every(Boolean)) {
      if (count + isMark.length > MAX_MARKS) {
        result.push(JOINER);
        count = 0;
      }
      count += isMark.length;
    } else count = isMark.length - 1 - isMark.lastIndexOf(false);
    result.push(character);
  }
  return result.join("");
}

/** Whether a character has a combining class above 0: then normalisation swaps it with a mark of class 1 or of class 240. */
function combines(character: string): boolean {
  const [low, high] = ["\u0334", "\u0345"];
  return (character + low).normalize("NFD") !== character + low || (high + character).normalize("NFD") !== high + character || character === high;
}

const ESCAPES: Record<string, string> = { "▁": BAR, [BAR]: ESCAPE + BAR, [ESCAPE]: ESCAPE + ESCAPE };
const ORIGINALS = Object.fromEntries(Object.entries(ESCAPES).map(([original, escaped]) => [escaped, original]));
const ESCAPED = /\ufdd0|\ufdd1[\ufdd0\ufdd1]/g;

/** The text without "▁", which SentencePiece cannot tell from a space. */
export function escape(text: string): string {
  return text.replace(/[\u2581\ufdd0\ufdd1]/g, (character) => ESCAPES[character]);
}

export function unescape(text: string): string {
  return text.replace(ESCAPED, (escaped) => ORIGINALS[escaped]);
}

/** For each offset in an escaped text, in characters and including its end, the offset in the unescaped text. */
export function unescapedOffsets(characters: readonly string[]): number[] {
  const offsets: number[] = [];
  let removed = 0;
  for (let i = 0; i <= characters.length; i++) {
    offsets.push(i - removed);
    if (characters[i] === ESCAPE && (characters[i + 1] === BAR || characters[i + 1] === ESCAPE)) {
      removed++;
      offsets.push(++i - removed);
    }
  }
  return offsets;
}
