import { describe, expect, it } from "vitest";

import { packFloats, packWeights } from "../src/engine/packing";
import { contrast, sourceEffects } from "../src/lib/contrast";
import { decisiveHead, headWordEffects, wordLogProbs } from "../src/lib/effects";
import { differenceColour, natsColour } from "../src/lib/colour";
import type { Explanation, Measures, PackedFloats, Search, Statistics } from "../src/lib/format";
import { linesOf } from "../src/lib/lines";
import { formatCell, hypothesisMap, makeMap, MAX_NATS, sumOfRows, type Choice } from "../src/lib/maps";
import { differenceMap, measureMap, missingReason, strokes, type Measure } from "../src/lib/measures";
import { mapData, mapTable } from "../src/lib/tables";

const packed = (values: number[], shape: number[]): PackedFloats => packFloats(Float32Array.from(values), shape);

/** The explanation of "a bc" → "x yz". The second word of each sentence has two tokens. */
function example(overrides: Partial<Explanation> = {}): Explanation {
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
    ...overrides,
  };
}

const choice: Choice = { site: "cross", combination: "head", layer: 0, head: 0, words: true, specials: true };

describe("the maximum over heads", () => {
  /** Head 0 reads only "▁b", and head 1 reads only "c". So each head gives the weight 1 to the word "bc". */
  const twoHeads = example({ attention: { cross: packWeights([...Array<number[]>(4).fill([0, 1, 0, 0]).flat(), ...Array<number[]>(4).fill([0, 0, 1, 0]).flat()], [1, 2, 4, 4]) } });
  const maximum: Choice = { ...choice, combination: "maximum", layer: -1 };

  it("of a word's weight is never above 1", () => {
    expect([...makeMap(twoHeads, maximum)!.values.subarray(0, 3)]).toEqual([0, 1, 0]);
    expect([...makeMap(twoHeads, { ...maximum, words: false })!.values.subarray(0, 4)]).toEqual([0, 1, 1, 0]);
  });

  it("of a word's weight × ‖value‖ is computed for the whole word", () => {
    const measures: Measures = { value_norms: { cross: packWeights([1, 1, 1, 1, 1, 1, 1, 1], [1, 2, 4]) }, gradient: {}, erasure: null };
    const equal = example({ attention: { cross: packWeights([...Array<number[]>(4).fill([0.5, 0.5, 0, 0]).flat(), ...Array<number[]>(4).fill([0.5, 0, 0.5, 0]).flat()], [1, 2, 4, 4]) } });
    measureMap(equal, maximum, measures, "norm")!.values.subarray(0, 3).forEach((share, i) => expect(share).toBeCloseTo([0.5, 0.5, 0][i]));
  });
});

describe("effects of heads on words", () => {
  it("are summed over the tokens of a word, and </s> comes after the words", () => {
    const map = headWordEffects(example(), "cross")!;
    expect(map.rowLabels).toEqual(["0 · 0", "0 · 1"]);
    expect(map.columnLabels).toEqual(["x", "yz", "</s>"]);
    expect([...map.values]).toEqual([-1, -5, -4, 0.5, 0, 0]);
    expect(wordLogProbs(example()).map((value) => value.toFixed(2))).toEqual(["-0.10", "-0.50", "-0.40"]);
  });

  it("have no </s> if the translation did not end", () => {
    expect(headWordEffects(example({ ended: false }), "cross")!.columnLabels).toEqual(["x", "yz"]);
  });

  it("show the head that a word needs most, or null if no head is needed", () => {
    const map = headWordEffects(example(), "cross")!;
    expect(decisiveHead(map, 1)).toEqual([0, -5]);
    expect(decisiveHead({ ...map, values: new Float32Array(6) }, 1)).toBeNull();
  });

  it("are null if an older page lacks them", () => expect(headWordEffects(example({ statistics: {} }), "cross")).toBeNull());
});

describe("measures", () => {
  const measures: Measures = {
    value_norms: { cross: packWeights([1, 1, 3, 1], [1, 1, 4]) },
    gradient: { cross: packed([3, -0.5, -0.5, 0, 1, 1, -2, 0, 0.001, 0, 0, 0, 0, 0, 0, 2], [4, 4]) },
    erasure: packed([-2, -1, 0, -3, 0, -1, 0, 0], [4, 2]),
  };

  it("the norm multiplies weights by norms, and divides each row by its sum", () => {
    const map = measureMap(example(), { ...choice, words: false }, measures, "norm")!;
    expect([...map.values.subarray(4, 8)].map((share) => share.toFixed(3))).toEqual(["0.000", "0.250", "0.750", "0.000"]);
    const words = measureMap(example(), choice, measures, "norm")!;
    expect([...words.values.subarray(3, 6)]).toEqual([0, 1, 0]);
  });

  it("the norm multiplies by the norms before heads are combined", () => {
    const twoHeads = example({ attention: { cross: packWeights([1, 0, 0, 1, 0.5, 0.5, 0, 1], [1, 2, 2, 2]) }, source: { ...example().source, tokens: ["▁a"] }, target: { ...example().target, tokens: ["▁x"] } });
    const norms: Measures = { ...measures, value_norms: { cross: packWeights([1, 1, 1, 3], [1, 2, 2]) } };
    const firstRow = (combination: Choice["combination"]) => [...measureMap(twoHeads, { ...choice, words: false, combination, layer: 0 }, norms, "norm")!.values.subarray(0, 2)];
    // Weight × norm in the first row: [1, 0] in head 0 and [0.5, 1.5] in head 1. The maximum is [1, 1.5], the mean [0.75, 0.75].
    firstRow("maximum").forEach((share, i) => expect(share).toBeCloseTo([1 / 2.5, 1.5 / 2.5][i]));
    firstRow("mean").forEach((share, i) => expect(share).toBeCloseTo([0.75 / 1.5, 0.75 / 1.5][i]));
  });

  it("the gradient adds the nats of a word's tokens", () => {
    const map = measureMap(example(), choice, measures, "gradient")!;
    expect(map.quantity).toBe("nats");
    expect([...map.values.subarray(0, 3)]).toEqual([-3, 1, 0]);
    map.values.subarray(3, 6).forEach((value, i) => expect(value).toBeCloseTo([-1.001, 1, 0][i]));
  });

  it("gradient and erasure are below 0 for a word that supports the written word", () => {
    // Let log p = 2·a. For a = 1, gradient × input is 2. Without a, log p falls by 2.
    const linear: Measures = { ...measures, gradient: { cross: packed([2, ...Array(15).fill(0)], [4, 4]) }, erasure: packed([-2, ...Array(7).fill(0)], [4, 2]) };
    const [gradient, erasure] = (["gradient", "erasure"] as const).map((measure) => measureMap(example(), choice, linear, measure)!.values[0]);
    expect([gradient, erasure]).toEqual([-2, -2]);
  });

  it("shares are those of the whole row even if </s> is hidden", () => {
    const spread = example({ attention: { cross: packWeights([0.25, 0, 0, 0.75, 0, 0.5, 0.5, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 1], [1, 1, 4, 4]) } });
    for (const measure of ["norm", "gradient"] as const) {
      const [shown, hidden] = [true, false].map((specials) => measureMap(spread, { ...choice, specials }, measures, measure)!);
      expect([hidden.rowLabels, hidden.columnLabels]).toEqual([["x", "yz"], ["a", "bc"]]);
      expect([...hidden.values]).toEqual([0, 1, 3, 4].map((i) => shown.values[i]));
    }
    expect(measureMap(spread, { ...choice, specials: false }, measures, "norm")!.values[0]).toBeCloseTo(0.25);
    const [shown, hidden] = [true, false].map((specials) => differenceMap(spread, { ...choice, specials }, measures, "gradient")!);
    expect([...hidden.values]).toEqual([0, 1, 3, 4].map((i) => shown.values[i]));
  });

  it("the rows of a difference map sum to 0, because both shares are of the same columns", () => {
    const spread = example({ attention: { cross: packWeights([0.25, 0.25, 0, 0.5, 0, 0.5, 0.5, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 1], [1, 1, 4, 4]) } });
    for (const measure of ["norm", "gradient", "erasure"] as Measure[]) {
      const map = differenceMap(spread, choice, measures, measure)!;
      for (let row = 0; row < map.rows; row++) expect(map.values.subarray(3 * row, 3 * row + 3).reduce((sum, value) => sum + value, 0)).toBeCloseTo(0);
    }
    const erasure = differenceMap(spread, choice, measures, "erasure")!; // </s>, which cannot be erased, has half of the weight
    expect(erasure.values[0]).toBeCloseTo(2 / 3 - 1 / 2);
    expect(erasure.empty![2]).toBe(1);
  });

  it("a difference map has no numbers in rows whose words hardly change the log-probability, and in rows whose weights are all 0", () => {
    const map = differenceMap(example(), choice, measures, "erasure")!;
    expect([...map.empty!]).toEqual([0, 0, 1, 0, 0, 1, 1, 1, 1]);
    expect(mapData(map).values).toEqual([[expect.closeTo(2 / 3 - 1), expect.closeTo(1 / 3), null], [0, 0, null], [null, null, null]]);
    expect(strokes(map)).toEqual({ rows: true, cells: true });
    expect(strokes(differenceMap(example(), choice, measures, "norm")!)).toEqual({ rows: false, cells: false });
    const silenced = example({ attention: { cross: packWeights(Array(16).fill(0), [1, 1, 4, 4]) } });
    expect([...differenceMap(silenced, choice, measures, "gradient")!.empty!]).toEqual(Array(9).fill(1));
  });

  it("erasure erases whole words even if the rows are tokens, and never erases </s>", () => {
    const words = measureMap(example(), choice, measures, "erasure")!;
    expect([...words.values]).toEqual([-2, -1, 0, 0, -4, 0, 0, 0, 0]);
    const tokens = measureMap(example(), { ...choice, words: false }, measures, "erasure")!;
    expect([tokens.rowLabels, tokens.columnLabels]).toEqual([["·x", "·y", "z", "</s>"], ["a", "bc", "</s>"]]);
    expect([...tokens.values.subarray(0, 6)]).toEqual([-2, -1, 0, 0, -3, 0]);
    expect([...tokens.empty!.subarray(0, 3)]).toEqual([0, 0, 1]);
    expect(formatCell(tokens, 0)).toBe("−2.000");
    expect(formatCell(tokens, 2)).toBe("–");
  });

  it("a difference map contains the share of the measure minus the share of the weight", () => {
    const difference = differenceMap(example(), choice, measures, "erasure")!;
    expect(difference.quantity).toBe("difference");
    expect(difference.values[0]).toBeCloseTo(2 / 3 - 1);
    expect(difference.values[1]).toBeCloseTo(1 / 3);
    expect([...difference.values.subarray(6, 9)]).toEqual([0, 0, 0]);
    const tokens = { ...choice, words: false };
    expect(differenceMap(example(), tokens, measures, "erasure")!.values[1]).toBeCloseTo(1 / 3);
  });

  it("a measure that was not computed has no map", () => {
    expect(measureMap(example(), choice, { ...measures, gradient: {} }, "gradient")).toBeNull();
    expect(measureMap(example(), { ...choice, combination: "roll-out" }, measures, "norm")).toBeNull();
  });

  it("a map in nats has lines with signs, and is saved under the key `values` instead of `weights`", () => {
    const map = measureMap(example(), choice, measures, "erasure")!;
    expect(linesOf(map, 2, 2)).toMatchObject([
      { row: 0, column: 1, strength: expect.closeTo(0.25), negative: true },
      { row: 0, column: 0, strength: expect.closeTo(0.5), negative: true },
      { row: 1, column: 1, strength: expect.closeTo(1), negative: true },
    ]);
    expect(mapTable(map, "erasure (nats)")[1]).toEqual(["x", -2, -1, ""]);
    expect(mapData(map)).toEqual({ rows: ["x", "yz", "</s>"], columns: ["a", "bc", "</s>"], values: [[-2, -1, null], [0, -4, null], [0, 0, null]] });
    expect(mapData(makeMap(example(), choice)!).weights).toHaveLength(3);
    const sum = sumOfRows(map, [0, 1]);
    expect([[...sum.values], sum.quantity, [...sum.empty!]]).toEqual([[-2, -5, 0], "nats", [0, 0, 1]]);
  });

  it("nats have the same colour scale for every sentence, and 0 has the neutral colour", () => {
    const [small, large, none] = [-0.03, -14.3, 0].map((nats) => natsColour("light", nats, MAX_NATS));
    expect(large).toBe(natsColour("light", -MAX_NATS, MAX_NATS));
    expect(small).not.toBe(large);
    expect(none).toBe(differenceColour("light", 0, 1));
  });

  it("`missingReason` says why a measure has no map", () => {
    expect(missingReason(null, "weight", choice)).toBeNull();
    expect(missingReason(null, "norm", choice)).toBe("not computed");
    expect(missingReason({ ...measures, gradient: {} }, "gradient", choice)).toBe("needs Python");
    expect(missingReason({ ...measures, erasure: null }, "erasure", choice)).toBe("changed cells");
    expect(missingReason(measures, "erasure", { ...choice, site: "decoder" })).toBe("only target to source");
    expect(missingReason(measures, "gradient", { ...choice, site: "encoder" })).toBe("not of the encoder");
    expect(missingReason(measures, "norm", { ...choice, combination: "roll-out" })).toBe("no roll-out");
  });
});

describe("cells that the mask hides", () => {
  const causal = example({ attention: { decoder: packWeights([1, 0, 0, 0, 0.5, 0.5, 0, 0, 0.2, 0.3, 0.5, 0, 0.1, 0.2, 0.3, 0.4], [1, 1, 4, 4]) } });

  it("have no number, because a step cannot read tokens that are written later", () => {
    const tokens = makeMap(causal, { ...choice, site: "decoder", words: false })!;
    expect([...tokens.empty!]).toEqual([0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0]);
    const words = makeMap(causal, { ...choice, site: "decoder" })!;
    expect([words.rowLabels, words.columnLabels]).toEqual([["x", "yz", "</s>"], ["<s>", "x", "yz"]]);
    expect([...words.empty!]).toEqual([0, 1, 1, 0, 0, 0, 0, 0, 0]); // “yz” reads its own first token
    expect(mapTable(tokens, "weight")[1]).toEqual(["·x", 1, "", "", ""]);
  });

  it("do not exist in cross-attention", () => expect(makeMap(example(), choice)!.empty).toBeUndefined());
});

it("the map of a hypothesis has the words of the translation only in rows on the path of the translation", () => {
  const step = (tokens: string[], parent: number[]) => ({
    parent,
    id: tokens.map((_, i) => i + 4),
    token: tokens,
    score: [0, 0],
    log_prob: [0, 0],
    kept: [true, true],
    finished: [false, false],
    ranking: [null, null],
    attention_row: [0, 1],
  });
  const search: Search = {
    beam: 2,
    length_penalty: 0,
    best: [1, 0],
    steps: [step(["▁x", "▁w"], [0, 0]), step(["▁y", "v"], [0, 1])],
    attention: packWeights([1, 0, 0, 0, 0, 1, 0, 0], [2, 4]),
  };
  const own = hypothesisMap(example({ search }), 1, 0)!;
  expect(own.rowAxis!.words).toEqual([0, 1]);
  expect(own.columnAxis!.words).toEqual([0, 1, 1, -1]);
  expect(hypothesisMap(example({ search }), 1, 1)!.rowAxis!.words).toEqual([-1, -1]);
});

describe("an expected translation", () => {
  const own = example();
  const expected = example({ target: { ...own.target, text: "x yw", ids: [4, 5, 9], tokens: ["▁x", "▁y", "w"], words: ["x", "yw"] }, log_probs: [-0.1, -0.2, -3, -0.4], log_prob: -3.7 });

  it("diverges at the first token that differs, and in the word of this token", () => {
    const { step, tokens, own: ownWords, expected: expectedWords, preference } = contrast(own, expected);
    expect(step).toBe(2);
    expect(tokens).toEqual({ own: "z", expected: "w", ownProbability: Math.exp(-0.3), expectedProbability: Math.exp(-3) });
    expect(ownWords.map(({ word, isFirstDifference }) => [word, isFirstDifference])).toEqual([["x", false], ["yz", true]]);
    expect(expectedWords[1].probability).toBeCloseTo(Math.exp(-3.2));
    expect(preference).toBeCloseTo(2.7);
  });

  it("diverges at its </s> if it is shorter", () => {
    const shorter = example({ target: { ...own.target, text: "x", ids: [4], tokens: ["▁x"], words: ["x"], word_of_token: [0] }, log_probs: [-0.1, -5] });
    expect(contrast(own, shorter).tokens).toEqual({ own: "·y", expected: "</s>", ownProbability: Math.exp(-0.2), expectedProbability: Math.exp(-5) });
    expect(contrast(own, shorter).expected.map(({ hasDiverged }) => hasDiverged)).toEqual([false]);
  });

  it("does not diverge if it is the same text in other tokens", () => {
    expect(contrast(own, example({ target: { ...own.target, ids: [4, 5, 9] } })).step).toBeNull();
  });

  it("has source effects above 0 for words that favour the own translation, and below 0 for words that favour the expected translation", () => {
    const measures = (values: number[]): Measures => ({ value_norms: {}, gradient: {}, erasure: packed(values, [4, 2]) });
    const effects = sourceEffects(measures([0, 0, 0, 0, -2, 0, 0, 0]), measures([0, 0, 0, 0, -0.5, -1, 0, 0]), 2)!;
    expect(effects).toEqual([1.5, -1]);
  });
});
