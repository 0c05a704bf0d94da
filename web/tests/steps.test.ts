import { describe, expect, it } from "vitest";

import { packFloats, packWeights } from "../src/engine/packing";
import type { CellSteps, Explanation, Step } from "../src/lib/format";
import { computedFormulas, exampleCell, queryTokens, stageName, STAGES, stepsData } from "../src/lib/steps";

const vector = (name: string, ...values: number[]): Step => ({ name, formula: "", over: "width", ...packFloats(Float32Array.from(values), [values.length]) });

const explanation = {
  source: { text: "a b", ids: [4, 5], tokens: ["▁a", "▁b"], words: ["a", "b"], word_of_token: [0, 1] },
  target: { text: "학생은 간다", ids: [6, 7], tokens: ["▁학생은", "▁간다"], words: ["학생은", "간다"], word_of_token: [0, 1] },
  alignments: [{ name: "read-out", heads: [[0, 1]], shift: 0, method: "argmax", links: "" }],
  attention: {
    // Head 1, the alignment head, has only weights near 0 and 1. In head 0, the weight 0.6 at query 1 and key 1 is nearest to 0.5.
    cross: packWeights([0.98, 0.01, 0.01, 0.3, 0.6, 0.1, 0, 0, 1, 0.99, 0.01, 0, 0.02, 0.98, 0, 0, 0, 1], [1, 2, 3, 3]),
    decoder: packWeights([1, 0, 0, 0.5, 0.5, 0, 0.2, 0.4, 0.4], [1, 1, 3, 3]),
  },
} as unknown as Explanation;

describe("the query of a cell", () => {
  it("of the decoder reads one token and writes the next token", () => {
    expect(queryTokens(explanation, "decoder", 0)).toEqual({ reads: "<s>", writes: "·학생은" });
    expect(queryTokens(explanation, "cross", 1)).toEqual({ reads: "·학생은", writes: "·간다" });
    expect(queryTokens(explanation, "decoder", 2)).toEqual({ reads: "·간다", writes: "</s>" });
  });

  it("of the encoder reads its own token and writes no token", () => expect(queryTokens(explanation, "encoder", 1)).toEqual({ reads: "·b", writes: null }));
});

it("the steps of a cell are saved as numbers", () => {
  const cell: CellSteps = { site: "cross", layer: 0, head: 1, query: 2, key: 3, steps: [vector("scores", 0.5, -2)] };
  expect(stepsData(cell)).toEqual({ site: "cross", layer: 0, head: 1, query: 2, key: 3, steps: [{ name: "scores", formula: "", over: "width", shape: [2], values: [0.5, -2] }] });
});

describe("the cell that is shown first", () => {
  it("has a weight near 0.5, in another head if the alignment head has no such weight", () => {
    expect(exampleCell(explanation, "cross")).toEqual({ site: "cross", layer: 0, head: 0, query: 1, key: 1 });
    expect(exampleCell(explanation, "decoder")).toEqual({ site: "decoder", layer: 0, head: 0, query: 1, key: 1 });
    expect(exampleCell(explanation, "encoder")).toBeNull();
  });
});

describe("formulas", () => {
  const cell: CellSteps = {
    site: "cross",
    layer: 0,
    head: 0,
    query: 0,
    key: 1,
    steps: [
      vector("product", 4),
      vector("scale", 2),
      vector("scores", 1, 2, 0),
      vector("score", 2),
      vector("allowed", 1, 1, 0),
      vector("weights", 0.26894, 0.73106, 0),
      vector("weight", 0.73106),
      vector("feed-forward hidden", 0, 1, 2),
      vector("logit", 3),
      vector("log sum", 3.5),
      vector("log-probability", -0.5),
    ],
  };

  it("contain the numbers of the cell", () => {
    expect(computedFormulas(cell)).toEqual({
      product: "q · kᵢ = Σ qⱼ kᵢⱼ = 4.00",
      score: "eᵢ = q · kᵢ / √d = 4.00 / 2.00 = 2.00",
      weight: "αᵢ = exp(eᵢ) / Σ exp(e) = 7.39 / 10.11 = 0.7311",
      "feed-forward hidden": "hⱼ > 0:  2 / 3",
      "log-probability": "log p = 3.00 − 3.50 = −0.50,  p = 0.607",
    });
  });

  it("contain the score of recurrent models if the score is a scalar product", () => {
    const score = (...steps: Step[]) => computedFormulas({ ...cell, steps }).score;
    expect(score(vector("hidden", 0.5, -1), vector("energy", 2, 1), vector("score", 0))).toBe("eᵢ = v · tanh(W_q s + W_k hᵢ) = Σ vⱼ tanhⱼ = 0.00");
    expect(score(vector("query", 1, 2), vector("key", 9, 9, 9), vector("projected key", 3, 1), vector("score", 5))).toBe("eᵢ = s · W hᵢ = 5.00");
    expect(score(vector("query", 1, 2), vector("key", 3, 1), vector("score", 5))).toBe("eᵢ = s · hᵢ = 5.00");
    expect(score(vector("query", 1, 2), vector("key", 3, 1), vector("score", 7))).toBeUndefined();
  });

  it("are left out if the steps lack the numbers for them", () => {
    const edited = { ...cell, steps: [...cell.steps, vector("edited weights", 0, 1, 0)] };
    expect(computedFormulas(edited).weight).toBeUndefined();
    expect(computedFormulas({ ...cell, steps: [] })).toEqual({});
  });
});

describe("stages", () => {
  const stageNames = (...steps: Step[]) => Object.fromEntries((["embed", "state", "project", "compare", "softmax", "output"] as const).map((stage) => [stage, stageName(stage, { steps })]));

  it("of a Transformer have positions, projections, q · k and W_O", () => {
    const steps = [vector("query position", 0, 1), vector("product", 1), vector("heads", 1)];
    expect(stageNames(...steps)).toEqual({ embed: "embed", state: "state", project: "project", compare: "compare", softmax: "softmax", output: "output" });
    expect(stageNames(vector("query position", 0, 0), vector("heads", 1)).embed).toBe("embedding"); // such a model uses positions inside the heads
  });

  it("of a recurrent model have names that depend on its score function", () => {
    expect(stageNames(vector("hidden", 1))).toEqual({ embed: "embedding", state: "recurrentState", project: "recurrentProject", compare: "additive", softmax: "softmax", output: "recurrentOutput" });
    expect([vector("projected key", 1), vector("position weights", 1), vector("query features", 1), vector("product", 1), vector("score", 1)].map((step) => stageName("compare", { steps: [step] }))).toEqual(["general", "byPosition", "features", "compare", "score"]);
    expect(stageName("compare", { steps: [vector("query", 2), vector("key", 3), vector("score", 6)] })).toBe("dot");
  });
});

it("no step belongs to two stages", () => {
  const names = Object.values(STAGES).flat();
  expect(new Set(names).size).toBe(names.length);
});
