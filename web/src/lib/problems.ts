/** Refusals of the server and of the engine in the language of the page, and without advice for programmers. */

import { fill } from "./numbers";
import type { Strings } from "./strings";

/** The pattern of an error message, and the name of the text that is shown instead; the text may use the named groups. */
const PATTERNS: [RegExp, keyof Strings["problems"]][] = [
  [/too long to be explained at once: it has (?<has>[\d,]+) tokens, and the model takes (?<most>[\d,]+)/, "tooLong"],
  [/would have (?<has>[\d,]+) attention weights; at most (?<most>[\d,]+)/, "tooManyWeights"],
  [/of this sentence has no (?<axis>layer|head|query|key) (?<index>\d+): there are (?<count>\d+)/, "noSuchPlace"],
  [/is causal: query/, "causal"],
  [/String should have at most (?<most>[\d,]+) characters/, "tooManyCharacters"],
];

export function localise(message: string, text: Strings): string {
  for (const [pattern, name] of PATTERNS) {
    const found = pattern.exec(message);
    if (found) return fill(text.problems[name], { ...found.groups, ...(found.groups?.axis && { axis: text.axisNames[found.groups.axis] ?? found.groups.axis }) });
  }
  return message;
}
