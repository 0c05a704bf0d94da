import { describe, expect, it } from "vitest";

import { packWeights } from "../src/engine/packing";
import type { Explanation } from "../src/lib/format";
import { makeMap, wordProbabilities } from "../src/lib/maps";

describe("a map by words", () => {
  const sentence = (tokens: string[], words: string[], wordOfToken: number[]) => ({ text: words.join(" "), ids: [], tokens, words, word_of_token: wordOfToken });
  const explanation = {
    source: sentence(["▁a", "b"], ["ab"], [0, 0]),
    target: sentence(["▁x"], ["x"], [0]),
    attention: { cross: packWeights([0.25, 0.25, 0.5, 0, 1, 0], [1, 1, 2, 3]) },
    roll_out: {},
    alignments: [],
    log_probs: [Math.log(0.5), 0],
  } as unknown as Explanation;

  it("adds the weights of a word's keys, and averages over a word's queries", () => {
    const map = makeMap(explanation, { site: "cross", combination: "mean", layer: -1, head: 0, words: true, specials: true })!;
    expect([map.rowLabels, map.columnLabels]).toEqual([["x", "</s>"], ["ab", "</s>"]]);
    map.values.forEach((value, i) => expect(value).toBeCloseTo([0.5, 0.5, 1, 0][i], 4));
  });

  it("is shown with the probability of each word, which is computed from the log-probabilities of its tokens", () => {
    expect(wordProbabilities(explanation)[0]).toBeCloseTo(0.5, 9);
  });
});
