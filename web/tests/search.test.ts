import { describe, expect, it } from "vitest";

import type { SearchSettings } from "../src/engine/model_file";
import { BEGIN, END, type Model, type State } from "../src/engine/model";
import { beamSearch, largest, maxLength, type Hypothesis } from "../src/engine/search";

const SETTINGS: SearchSettings = { beam: 2, patience_factor: 1, length_penalty: 1, coverage_penalty: 0, no_repeat_ngram_size: 0, max_length_ratio: 1, extra_tokens: 3, min_length: 1 };

const VOCAB_SIZE = 6;

/** A model whose probabilities depend only on the last token: `table[last token][next token]`. Tokens 4 and 5 are words. */
function tableModel(table: Record<number, Record<number, number>>): Model {
  let last: readonly number[] = [];
  const output = {
    vocabSize: VOCAB_SIZE,
    logProbs: () => last.map((token) => Float32Array.from({ length: VOCAB_SIZE }, (_, id) => Math.log(table[token][id] ?? 0))),
  };
  return {
    sites: {},
    output: output as unknown as Model["output"],
    begin: () => ({ rows: 1, position: 0, encoded: new Float32Array(0) }),
    step: (_: State, tokens) => ((last = tokens), new Float32Array(0)),
    select: (state) => state,
  };
}

function search(model: Model, settings: SearchSettings, prefix: number[] = []): Hypothesis[] {
  const running = beamSearch(model, settings, { source: [4, 4], prefix, edit: null });
  let step = running.next();
  while (!step.done) step = running.next();
  return step.value;
}

describe("search", () => {
  /** After 4, the most probable token is 4 again. After 5, the translation ends. */
  const model = tableModel({ [BEGIN]: { 4: 0.6, 5: 0.4 }, 4: { 4: 0.4, [END]: 0.25, 5: 0.35 }, 5: { [END]: 1 } });

  it("finds a better translation with a beam of 2 than with greedy search", () => {
    // The greedy search writes token 4 until the maximum length of 1 · 2 + 3 tokens.
    const [greedy] = search(model, { ...SETTINGS, beam: 1 });
    const [best] = search(model, SETTINGS);
    expect([greedy.ids, greedy.ended]).toEqual([[4, 4, 4, 4, 4], false]);
    expect([best.ids, best.ended]).toEqual([[5], true]);
    expect(best.logProb).toBeCloseTo(Math.log(0.4), 6);
  });

  it("begins with a prefix, whose tokens add 0 to the ranking, but their log-probabilities to `logProb`", () => {
    const [best] = search(model, SETTINGS, [4, 5]);
    expect(best.ids).toEqual([4, 5]);
    expect([best.ranking, best.logProb]).toEqual([0, Math.fround(Math.fround(Math.log(0.6)) + Math.fround(Math.log(0.35)))]);
    expect(() => search(model, SETTINGS, [END])).toThrow("no special tokens");
  });

  it("does not repeat n-grams if the settings forbid it, and writes at least `min_length` tokens", () => {
    const [best] = search(model, { ...SETTINGS, beam: 1, no_repeat_ngram_size: 1 });
    expect(best.ids).toEqual([4, 5]);
    // The first token cannot be </s>. So token 4, the only other token, has the probability 1, whose logarithm is 0.
    const [first] = search(tableModel({ [BEGIN]: { [END]: 0.9, 4: 0.1 }, 4: { [END]: 1 } }), SETTINGS);
    expect([first.ids, first.ranking]).toEqual([[4], 0]);
  });

  it("takes the largest values, with the smaller index first if they are equal", () => {
    expect(largest(Float32Array.of(1, 3, 2, 3, -Infinity), 3)).toEqual([1, 3, 2]);
    expect(largest(Float32Array.of(1), 3)).toEqual([0]);
  });

  it("has a maximum length that depends on the source and is above the length of the prefix", () => {
    expect([maxLength(SETTINGS, 5, 0), maxLength(SETTINGS, 5, 20)]).toEqual([8, 21]);
  });
});
