/** Compares the translation that a person expected with the model's own translation, as in src/jumok/analysis/expected_translation.py. */

import { floats, type Explanation, type Measures } from "./format";
import { displayToken, wordProbabilities } from "./maps";

const END = "</s>";

export interface ContrastWord {
  word: string;
  probability: number;
  /** Whether the word is the first word that differs, or a later word. */
  hasDiverged: boolean;
  /** Whether the word is the first word that differs. */
  isFirstDifference: boolean;
}

export interface Contrast {
  own: ContrastWord[];
  expected: ContrastWord[];
  /** The first step at which the tokens differ; null if the translations are the same. */
  step: number | null;
  /** The tokens of both translations at that step, with their probabilities. */
  tokens: { own: string; expected: string; ownProbability: number; expectedProbability: number } | null;
  /** log p(own translation) − log p(expected translation). */
  preference: number;
}

/** The first step at which the tokens differ; null if the texts are equal, even if their tokens differ. */
export function firstDifferentStep(own: Explanation, expected: Explanation): number | null {
  if (own.target.text === expected.target.text) return null;
  // −1 stands for the end of a translation. So a translation also differs from a longer translation that begins with the same tokens.
  const [ownIds, expectedIds] = [own, expected].map(({ target }) => [...target.ids, -1]);
  const step = ownIds.findIndex((id, i) => id !== expectedIds[i]);
  return step < 0 ? null : step;
}

export function contrast(own: Explanation, expected: Explanation): Contrast {
  const step = firstDifferentStep(own, expected);
  const preference = (own.log_prob ?? 0) - (expected.log_prob ?? 0);
  const words = (explanation: Explanation): ContrastWord[] => {
    const probabilities = wordProbabilities(explanation);
    const firstDifference = step === null ? Infinity : wordAt(explanation, step);
    return explanation.target.words.map((word, i) => ({
      word,
      probability: probabilities[i],
      hasDiverged: i >= firstDifference,
      isFirstDifference: i === firstDifference,
    }));
  };
  if (step === null) return { own: words(own), expected: words(expected), step, tokens: null, preference };
  const token = ({ target }: Explanation) => displayToken(target.tokens[step] ?? END);
  const probability = ({ log_probs }: Explanation) => Math.exp(log_probs[step] ?? -Infinity);
  return {
    own: words(own),
    expected: words(expected),
    step,
    tokens: { own: token(own), expected: token(expected), ownProbability: probability(own), expectedProbability: probability(expected) },
    preference,
  };
}

/** The index of the word that a step writes. If the step comes after the last word, the result is the number of words. */
function wordAt({ target }: Explanation, step: number): number {
  const word = target.word_of_token.slice(step).find((index) => index >= 0);
  return word ?? target.words.length;
}

/** For each source word: by how much it raises log p(own token) − log p(expected token) at `step`, the first step where the tokens differ.
 * Null if erasure was not measured. */
export function sourceEffects(own: Measures, expected: Measures, step: number): number[] | null {
  if (!own.erasure || !expected.erasure) return null;
  const words = own.erasure.shape[1];
  /** The changes of log-probabilities if a word is deleted. A word that raises log p has a negative change. */
  const [ownChanges, expectedChanges] = [floats(own.erasure), floats(expected.erasure)];
  return Array.from({ length: words }, (_, word) => expectedChanges[step * words + word] - ownChanges[step * words + word]);
}
