/** Spaces that are not U+0020, and invisible characters, as in src/jumok/text/plain_spaces.py. */

const SPACES = "\\t\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000";
const INVISIBLE = "\\u00ad\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufeff";
const SPECIAL = new RegExp(`[${SPACES}${INVISIBLE}]`);
const EACH_SPECIAL = new RegExp(SPECIAL, "g");
const RUN = new RegExp(`[ ${SPACES}${INVISIBLE}]+`, "g");
const EACH_INVISIBLE = new RegExp(`[${INVISIBLE}]`, "g");

/** The characters of both kinds that occur in some token. */
export function seenSpaces(tokens: readonly string[]): ReadonlySet<string> {
  return new Set(tokens.flatMap((token) => token.match(EACH_SPECIAL) ?? []));
}

/** The text with ordinary spaces in place of others, and without invisible characters; those in `seen` stay. */
export function plainSpaces(text: string, seen: ReadonlySet<string>): string {
  if (!SPECIAL.test(text)) return text;
  const written = text.replace(RUN, (run) => {
    const visible = run.replace(EACH_INVISIBLE, (one) => (seen.has(one) ? one : ""));
    return [...visible].every((one) => one === " " || seen.has(one)) ? visible : " ";
  });
  return written === text ? text : written.replace(/^ +| +$/g, "");
}
