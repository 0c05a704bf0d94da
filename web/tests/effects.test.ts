import { describe, expect, it } from "vitest";

import { packFloats, packWeights } from "../src/engine/packing";
import { contrast, sourceEffects } from "../src/lib/contrast";
import { decisiveHead, headWordEffects, wordLogProbs } from "../src/lib/effects";
import type { Explanation, Measures, PackedFloats, Statistics } from "../src/lib/format";
import type { Choice } from "../src/lib/maps";
import { differenceMap, measureMap, missing } from "../src/lib/measures";

const packed = (values: number[], shape: number[]): PackedFloats => packFloats(Float32Array.from(values), shape);

/** "a bc" → "x yz": the second word of each has two tokens. */
function example(changes: Partial<Explanation> = {}): Explanation {
  const sentence = (text: string, tokens: string[]) => ({ text, ids: tokens.map((_, i) => i + 4), tokens, words: text.split(" "), word_of_token: [0, 1, 1] });
  const none: Statistics = { entropy: null, distance: null, on_special: null, error: null, effect: null };
  return {
    format: "jumok-explanation",
    version: 2,
    facts: {},
    source: sentence("a bc", ["▁a", "▁b", "c"]),
    target: sentence("x yz", ["▁x", "▁y", "z"]),
    score: null,
    log_prob: -1,
    log_probs: [-0.1, -0.2, -0.3, -0.4],
    ended: true,
    forced: 0,
    candidates: [],
    attention: { cross: packWeights([1, 0, 0, 0, 0, 0.5, 0.5, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 1], [1, 1, 4, 4]) },
    roll_out: {},
    statistics: { cross: { ...none, token_effect: packed([-1, -2, -3, -4, 0.5, 0, 0, 0], [1, 2, 4]) } },
    alignments: [],
    search: null,
    changes: [],
    before: null,
    steps: [],
    ...changes,
  };
}

const choice: Choice = { site: "cross", combination: "head", layer: 0, head: 0, words: true, specials: true };

describe("effects of heads on words", () => {
  it("sum over the tokens of a word, with </s> after the words", () => {
    const map = headWordEffects(example(), "cross")!;
    expect(map.rowLabels).toEqual(["0 · 0", "0 · 1"]);
    expect(map.columnLabels).toEqual(["x", "yz", "</s>"]);
    expect([...map.values]).toEqual([-1, -5, -4, 0.5, 0, 0]);
    expect(wordLogProbs(example()).map((value) => value.toFixed(2))).toEqual(["-0.10", "-0.50", "-0.40"]);
  });

  it("of a translation that was cut have no </s>", () => {
    expect(headWordEffects(example({ ended: false }), "cross")!.columnLabels).toEqual(["x", "yz"]);
  });

  it("name the head that a word needs most, if there is one", () => {
    const map = headWordEffects(example(), "cross")!;
    expect(decisiveHead(map, 1)).toEqual([0, -5]);
    expect(decisiveHead({ ...map, values: new Float32Array(6) }, 1)).toBeNull();
  });

  it("are missing in older pages", () => expect(headWordEffects(example({ statistics: {} }), "cross")).toBeNull());
});

describe("measures", () => {
  const measures: Measures = {
    value_norms: { cross: packWeights([1, 1, 3, 1], [1, 1, 4]) },
    gradient: { cross: packed([3, -0.5, -0.5, 0, 1, 1, -2, 0, 0.001, 0, 0, 0, 0, 0, 0, 2], [4, 4]) },
    erasure: packed([-2, -1, 0, -3, 0, -1, 0, 0], [4, 2]),
  };

  it("multiply weights with norms, and share a row", () => {
    const map = measureMap(example(), { ...choice, words: false }, measures, "norm")!;
    expect([...map.values.subarray(4, 8)].map((share) => share.toFixed(3))).toEqual(["0.000", "0.250", "0.750", "0.000"]);
    const words = measureMap(example(), choice, measures, "norm")!;
    expect([...words.values.subarray(3, 6)]).toEqual([0, 1, 0]);
  });

  it("add the gradients of a word before they lose their signs, and leave rows empty in which nothing matters", () => {
    const map = measureMap(example(), choice, measures, "gradient")!;
    expect([...map.values.subarray(0, 3)]).toEqual([0.75, 0.25, 0]);
    expect(map.values.subarray(3, 6).map((value) => Math.round(1000 * value))).toEqual(Float32Array.of(500, 500, 0));
    expect([...map.values.subarray(6, 9)]).toEqual([0, 0, 1]);
    const tokens = measureMap(example(), { ...choice, words: false }, measures, "gradient")!;
    expect([...tokens.values.subarray(8, 12)]).toEqual([0, 0, 0, 0]);
  });

  it("place the erasure of a word at its first token", () => {
    const map = measureMap(example(), { ...choice, words: false }, measures, "erasure")!;
    expect([...map.values.subarray(4, 8)]).toEqual([0, 1, 0, 0]);
    expect(measureMap(example(), choice, measures, "erasure")!.values[0]).toBeCloseTo(2 / 3);
  });

  it("differ from the weight by what they add to it", () => {
    const weight = measureMap(example(), choice, measures, "weight")!;
    const difference = differenceMap(weight, measureMap(example(), choice, measures, "erasure")!);
    expect(difference.values[0]).toBeCloseTo(-1 / 3);
    expect(difference.values[1]).toBeCloseTo(1 / 3);
    expect([...difference.values.subarray(6, 9)]).toEqual([0, 0, 0]);
  });

  it("say why they are missing", () => {
    expect(missing(null, "weight", choice)).toBeNull();
    expect(missing(null, "norm", choice)).toBe("not computed");
    expect(missing({ ...measures, gradient: {} }, "gradient", choice)).toBe("needs Python");
    expect(missing({ ...measures, erasure: null }, "erasure", choice)).toBe("changed cells");
    expect(missing(measures, "erasure", { ...choice, site: "decoder" })).toBe("only target to source");
    expect(missing(measures, "gradient", { ...choice, site: "encoder" })).toBe("not of the encoder");
    expect(missing(measures, "norm", { ...choice, combination: "roll-out" })).toBe("no roll-out");
  });
});

describe("an expected translation", () => {
  const own = example();
  const expected = example({ target: { ...own.target, text: "x yw", ids: [4, 5, 9], tokens: ["▁x", "▁y", "w"], words: ["x", "yw"] }, log_probs: [-0.1, -0.2, -3, -0.4], log_prob: -3.7 });

  it("parts at the first other token, in the word that has it", () => {
    const { step, tokens, own: left, expected: right, preference } = contrast(own, expected);
    expect(step).toBe(2);
    expect(tokens).toEqual({ own: "z", expected: "w", ownProbability: Math.exp(-0.3), expectedProbability: Math.exp(-3) });
    expect(left.map(({ word, isFirstDifference }) => [word, isFirstDifference])).toEqual([["x", false], ["yz", true]]);
    expect(right[1].probability).toBeCloseTo(Math.exp(-3.2));
    expect(preference).toBeCloseTo(2.7);
  });

  it("that is shorter parts at </s>", () => {
    const shorter = example({ target: { ...own.target, text: "x", ids: [4], tokens: ["▁x"], words: ["x"], word_of_token: [0] }, log_probs: [-0.1, -5] });
    expect(contrast(own, shorter).tokens).toEqual({ own: "·y", expected: "</s>", ownProbability: Math.exp(-0.2), expectedProbability: Math.exp(-5) });
    expect(contrast(own, shorter).expected.map(({ after }) => after)).toEqual([false]);
  });

  it("that is the same in other tokens does not part", () => {
    expect(contrast(own, example({ target: { ...own.target, ids: [4, 5, 9] } })).step).toBeNull();
  });

  it("is spoken for by the words whose erasure lowers it most", () => {
    const measures = (values: number[]): Measures => ({ value_norms: {}, gradient: {}, erasure: packed(values, [4, 2]) });
    const effects = sourceEffects(measures([0, 0, 0, 0, -2, 0, 0, 0]), measures([0, 0, 0, 0, -0.5, -1, 0, 0]), 2)!;
    expect(effects).toEqual([1.5, -1]);
  });
});
