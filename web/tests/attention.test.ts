import { describe, expect, it } from "vitest";

import { alignments, growDiagonalFinal } from "../src/engine/alignment";
import { checkChanges, checkRows, editFromChanges, firstStep, silenceHeads } from "../src/engine/edits";
import type { SearchSettings } from "../src/engine/model_file";
import { BEGIN, END, type Model, type State } from "../src/engine/model";
import { packWeights } from "../src/engine/packing";
import { beamSearch, largest, maxLength, type Hypothesis } from "../src/engine/search";
import { parseChanges, type Change } from "../src/lib/changes";
import type { Explanation } from "../src/lib/format";
import { makeMap, wordProbabilities } from "../src/lib/maps";

const weightRow = { site: "cross" as const, layer: 0, head: 1, query: 2 };

function edited(change: Change, weights: number[]): number[] {
  const row = Float32Array.from(weights);
  editFromChanges([change])!(row, weightRow);
  return [...row];
}

describe("changes", () => {
  const scope = { site: "cross" as const, layer: null, head: null };

  it("of the kind silence set a row to 0", () => {
    expect(edited({ kind: "silence", ...scope }, [0.5, 0.5])).toEqual([0, 0]);
    expect(edited({ kind: "silence", ...scope, head: 0 }, [0.5, 0.5])).toEqual([0.5, 0.5]);
  });

  it("of the kind paint set a weight and rescale the other weights, so that the sum stays the same unless all other weights are 0", () => {
    expect(edited({ kind: "paint", ...scope, query: 2, key: 0, weight: 0.5 }, [0.75, 0.125, 0.125])).toEqual([0.5, 0.25, 0.25]);
    expect(edited({ kind: "paint", ...scope, query: 2, key: 0, weight: 0.5 }, [1, 0])).toEqual([0.5, 0]);
    expect(edited({ kind: "paint", ...scope, query: 1, key: 0, weight: 0.5 }, [1, 0])).toEqual([1, 0]);
    expect(edited({ kind: "paint", ...scope, query: 2, key: 0, weight: 0.5 }, [1, 1e-9])[1]).toBeCloseTo(0.5, 5);
  });

  it("of the kind pin give all weight to the pinned keys, equally if their weights were 0", () => {
    expect(edited({ kind: "pin", ...scope, queries: [2], keys: [0, 1] }, [0.125, 0.375, 0.5])).toEqual([0.25, 0.75, 0]);
    expect(edited({ kind: "pin", ...scope, queries: [2], keys: [0, 1] }, [0, 0, 1])).toEqual([0.5, 0.5, 0]);
    expect(edited({ kind: "pin", ...scope, queries: [2], keys: [1] }, [0, 0, 0])).toEqual([0, 1, 0]);
  });

  it("of the kind pin with a weight give this share to the pinned keys and rescale the other weights", () => {
    expect(edited({ kind: "pin", ...scope, queries: [2], keys: [0, 1], weight: 0.5 }, [0.125, 0.375, 0.5])).toEqual([0.125, 0.375, 0.5]);
    expect(edited({ kind: "pin", ...scope, queries: [2], keys: [0], weight: 0 }, [0.5, 0.25, 0.25])).toEqual([0, 0.5, 0.5]);
    expect(edited({ kind: "pin", ...scope, queries: [2], keys: [2], weight: 0.5 }, [0.75, 0.25, 0])).toEqual([0.375, 0.125, 0.5]);
  });

  it("that silence heads are applied last, in any order of the changes", () => {
    const pin: Change = { kind: "pin", ...scope, queries: [2], keys: [0] };
    for (const changes of [[{ kind: "silence", ...scope, layer: 0, head: 1 } as const, pin], [pin, { kind: "silence", ...scope, layer: 0, head: 1 } as const]]) {
      const row = Float32Array.of(0.25, 0.75);
      editFromChanges(changes)!(row, weightRow);
      expect([...row]).toEqual([0, 0]);
    }
  });

  it("that `silenceHeads` makes set the rows of the given heads to 0", () => {
    const row = Float32Array.of(0.25, 0.75);
    silenceHeads("cross", [[0, 1]], null)(row, weightRow);
    expect([...row]).toEqual([0, 0]);
  });

  it("have a first step that they affect", () => {
    expect(firstStep({ kind: "pin", ...scope, queries: [5, 3], keys: [0] })).toBe(3);
    expect(firstStep({ kind: "paint", ...scope, site: "encoder", query: 4, key: 0, weight: 1 })).toBe(0);
    expect(firstStep({ kind: "silence", ...scope })).toBe(0);
  });

  it("raise an error for cells outside the maps and for keys after the query", () => {
    const maps = { decoder: { shape: [1, 2, 3, 3] as [number, number, number, number], values: new Float32Array(18) } };
    const decoder = { site: "decoder" as const, layer: null, head: null };
    expect(() => checkChanges([{ kind: "silence", ...scope }], maps)).toThrow('no attention "cross"');
    expect(() => checkChanges([{ kind: "silence", ...decoder, head: 2 }], maps)).toThrow("no head 2");
    expect(() => checkChanges([{ kind: "paint", ...decoder, query: 0, key: 1, weight: 1 }], maps)).toThrow("causal");
    expect(() => checkChanges([{ kind: "paint", ...decoder, query: 0, key: 0, weight: 2 }], maps)).toThrow("between 0 and 1");
    expect(() => checkChanges([{ kind: "paint", ...decoder, query: 1, key: 1, weight: 1 }], maps)).not.toThrow();
  });

  it("may concern steps of the longer of the old and the new translation, and any step if they have `words`", () => {
    const maps = { cross: { shape: [1, 2, 8, 5] as [number, number, number, number], values: new Float32Array(80) } };
    const later: Change = { kind: "pin", ...scope, queries: [9], keys: [1] };
    expect(() => checkChanges([later], maps)).not.toThrow();
    expect(() => checkChanges([{ ...later, keys: [5] }], maps)).toThrow("no key 5");
    expect(() => checkRows([later], 10)).not.toThrow();
    expect(() => checkRows([later], 9)).toThrow("no query 9: there are 9");
    expect(() => checkRows([{ ...later, words: ["책을", "book"] }], 9)).not.toThrow();
  });

  it("are read from an address if all of them are valid", () => {
    expect(parseChanges('[{"kind":"silence","site":"cross"}]')).toEqual([{ kind: "silence", site: "cross", layer: null, head: null }]);
    const invalid = [
      ...["", "{}", '[{"kind":"silence","site":"x"}]', '[{"kind":"paint","site":"cross"}]'],
      '[{"kind":"pin","site":"cross","queries":[-1],"keys":[0]}]',
    ];
    for (const text of invalid) expect(parseChanges(text)).toEqual([]);
  });
});

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
  const model = tableModel({ [BEGIN]: { 4: 0.6, 5: 0.4 }, 4: { 4: 0.4, [END]: 0.25, 5: 0.35 }, 5: { [END]: 1 } });

  it("finds a better translation with a beam of 2 than with greedy search", () => {
    const [greedy] = search(model, { ...SETTINGS, beam: 1 });
    const [best] = search(model, SETTINGS);
    expect([greedy.ids, greedy.ended]).toEqual([[4, 4, 4, 4, 4], false]);
    expect([best.ids, best.ended]).toEqual([[5], true]);
    expect(best.logProb).toBeCloseTo(Math.log(0.4), 6);
  });

  it("begins with a prefix, whose tokens add 0 to the score", () => {
    const [best] = search(model, SETTINGS, [4, 5]);
    expect(best.ids).toEqual([4, 5]);
    expect([best.ranking, best.logProb]).toEqual([0, Math.fround(Math.fround(Math.log(0.6)) + Math.fround(Math.log(0.35)))]);
    expect(() => search(model, SETTINGS, [END])).toThrow("no special tokens");
  });

  it("does not repeat n-grams if the settings forbid it, and writes at least `min_length` tokens", () => {
    const [best] = search(model, { ...SETTINGS, beam: 1, no_repeat_ngram_size: 1 });
    expect(best.ids).toEqual([4, 5]);
    const [first] = search(tableModel({ [BEGIN]: { [END]: 0.9, 4: 0.1 }, 4: { [END]: 1 } }), SETTINGS);
    expect([first.ids, first.ranking]).toEqual([[4], 0]);
  });

  it("takes the largest values, with the smaller index first if they are equal, and has a maximum length above that of the prefix", () => {
    expect(largest(Float32Array.of(1, 3, 2, 3, -Infinity), 3)).toEqual([1, 3, 2]);
    expect(largest(Float32Array.of(1), 3)).toEqual([0]);
    expect([maxLength(SETTINGS, 5, 0), maxLength(SETTINGS, 5, 20)]).toEqual([8, 21]);
  });
});

describe("alignments", () => {
  it("are combined from the links of both directions by grow-diag-final", () => {
    expect(growDiagonalFinal([[0, 0], [1, 1], [1, 2]], [[0, 0], [1, 1], [2, 2]])).toEqual([[0, 0], [1, 1], [1, 2], [2, 2]]);
  });

  it("are read from the heads of the read-out, with </s> as part of the last word", () => {
    const values = Float32Array.of(0.75, 0.25, 0, 0.25, 0.25, 0.5, 0, 0, 1);
    const [readOut, ...others] = alignments({ shape: [1, 1, 3, 3], values }, null, [0, 1], [0, 1]);
    expect(readOut).toEqual({ name: "read-out", heads: [[0, 0]], shift: 0, method: "argmax", links: "0-0 1-1" });
    expect(others.map(({ name }) => name)).toContain("grow-diagonal-final");
  });
});

describe("the page", () => {
  const sentence = (tokens: string[], words: string[], wordOfToken: number[]) => ({ text: words.join(" "), ids: [], tokens, words, word_of_token: wordOfToken });
  const explanation = {
    source: sentence(["▁a", "b"], ["ab"], [0, 0]),
    target: sentence(["▁x"], ["x"], [0]),
    attention: { cross: packWeights([0.25, 0.25, 0.5, 0, 1, 0], [1, 1, 2, 3]) },
    roll_out: {},
    alignments: [],
    log_probs: [Math.log(0.5), 0],
  } as unknown as Explanation;

  it("adds the weights of a word's keys in a map, and averages over a word's queries", () => {
    const map = makeMap(explanation, { site: "cross", combination: "mean", layer: -1, head: 0, words: true, specials: true })!;
    expect([map.rowLabels, map.columnLabels]).toEqual([["x", "</s>"], ["ab", "</s>"]]);
    map.values.forEach((value, i) => expect(value).toBeCloseTo([0.5, 0.5, 1, 0][i], 4));
  });

  it("computes the probability of each word from the log-probabilities of its tokens", () => {
    expect(wordProbabilities(explanation)[0]).toBeCloseTo(0.5, 9);
  });
});
