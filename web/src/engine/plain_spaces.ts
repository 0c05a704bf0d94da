/** Replaces unusual spaces and removes invisible characters, as in src/jumok/text/plain_spaces.py. */

const UNUSUAL_SPACES = "\\t\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000";
const INVISIBLE = "\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufeff";
const SPECIAL = new RegExp(`[${UNUSUAL_SPACES}${INVISIBLE}]`);
const EACH_SPECIAL = new RegExp(SPECIAL, "g");
const RUN = new RegExp(`[ ${UNUSUAL_SPACES}${INVISIBLE}]+`, "g");
const EACH_INVISIBLE = new RegExp(`[${INVISIBLE}]`, "g");

/** The unusual spaces and invisible characters that occur in tokens of a vocabulary. */
export function spacesInVocabulary(tokens: readonly string[]): ReadonlySet<string> {
  return new Set(tokens.flatMap((token) => token.match(EACH_SPECIAL) ?? []));
}

/** Replace unusual spaces by ordinary spaces, and remove invisible characters. Characters in `known`, which the vocabulary has, stay. But
 * if a run of spaces has an unusual space that is not in `known`, the whole run becomes one ordinary space. */
export function plainSpaces(text: string, known: ReadonlySet<string>): string {
  if (!SPECIAL.test(text)) return text;
  const plain = text.replace(RUN, (run) => {
    const visible = run.replace(EACH_INVISIBLE, (character) => (known.has(character) ? character : ""));
    return [...visible].every((character) => character === " " || known.has(character)) ? visible : " ";
  });
  return plain === text ? text : plain.replace(/^ +| +$/g, "");
}
