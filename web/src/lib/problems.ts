/** Translates known error messages of the server and of the engine into the language of the page, without their advice for programmers.
 * Other messages stay as they are. */

import { fill } from "./numbers";
import type { Strings } from "./strings";

/** Patterns of error messages. Each has the name of the text that is shown instead. The text may use the named groups of the pattern. */
const PATTERNS: [RegExp, keyof Strings["problems"]][] = [
  [/too long to be explained at once: it has (?<has>[\d,]+) tokens, and the model takes (?<most>[\d,]+)/, "tooLong"],
  [/would have (?<has>[\d,]+) attention weights; at most (?<most>[\d,]+)/, "tooManyWeights"],
  [/of this sentence has no (?<axis>layer|head|query|key) (?<index>\d+): there are (?<count>\d+)/, "noSuchPlace"],
  [/is causal: query/, "causal"],
  [/(String should have|A sentence has) at most (?<most>[\d,]+) characters/, "tooManyCharacters"],
];

export function localise(message: string, text: Strings): string {
  for (const [pattern, name] of PATTERNS) {
    const match = pattern.exec(message);
    if (!match) continue;
    const axis = match.groups?.axis;
    return fill(text.problems[name], { ...match.groups, ...(axis && { axis: text.axisNames[axis] ?? axis }) });
  }
  return message;
}
