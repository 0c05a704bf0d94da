/** The steps that compute one weight: their stages, and their formulas with numbers. */

import { floats, type Cell, type CellSteps, type Explanation, type Site, type Step } from "./format";
import { headWeights, tokenLabels } from "./maps";

export type Stage = "embed" | "state" | "project" | "compare" | "softmax" | "value" | "output" | "residual" | "feedForward" | "predict";

/** The stages from left to right, and the names of their steps. The step "energy" is the vector v of an additive score. */
export const STAGES: Record<Stage, string[]> = {
  embed: ["query embedding", "query position", "query input", "key embedding", "key position", "key input"],
  state: ["query state", "key state", "query normed", "key normed"],
  project: ["query", "key", "value"],
  compare: ["query part", "key part", "hidden", "energy", "projected key", "position weights", "query features", "key features", "products", "product", "scale", "position bias", "score"],
  softmax: ["scores", "allowed", "weights", "edited weights", "weight"],
  value: ["weighted value", "context"],
  output: ["heads", "cell input", "new state", "output"],
  residual: ["added", "normed"],
  feedForward: ["feed-forward hidden", "feed-forward output", "block output"],
  predict: ["final state", "logit", "log sum", "log-probability"],
};

/** The names of stages that differ between models: not every model adds positions, has several heads or computes scores as q · k. */
type SpecialStageName =
  | "embedding"
  | "recurrentState"
  | "recurrentProject"
  | "additive"
  | "dot"
  | "general"
  | "byPosition"
  | "features"
  | "score"
  | "recurrentOutput";

/** The name under which the page shows a stage. */
export type StageName = Stage | SpecialStageName;

export function stageName(stage: Stage, { steps }: Pick<CellSteps, "steps">): StageName {
  const find = (name: string) => steps.find((step) => step.name === name);
  const isRecurrent = !find("heads");
  const addsPosition = () => ["query position", "key position"].some((name) => find(name) && floats(find(name)!).some(Boolean));
  if (stage === "embed") return addsPosition() ? "embed" : "embedding";
  if (stage === "state" && isRecurrent) return "recurrentState";
  if (stage === "project" && isRecurrent) return "recurrentProject";
  if (stage === "output" && isRecurrent) return "recurrentOutput";
  if (stage !== "compare") return stage;
  if (find("hidden")) return "additive";
  if (find("projected key")) return "general";
  if (find("position weights")) return "byPosition";
  if (find("query features")) return "features";
  if (find("product")) return "compare";
  return comparedVectors(steps) ? "dot" : "score";
}

/** If the score is the scalar product of two vectors of the steps, without scaling, return this product and its formula. If not, return null.
 * The vectors are v and tanh(…), s and W h, or s and h. */
function comparedVectors(steps: readonly Step[]): { formula: string; product: number } | null {
  const values = (name: string) => {
    const step = steps.find((entry) => entry.name === name);
    return step && floats(step);
  };
  const score = values("score")?.[0];
  const pairs: [string, string, string][] = [
    ["energy", "hidden", "v · tanh(W_q s + W_k hᵢ) = Σ vⱼ tanhⱼ"],
    ["query", "projected key", "s · W hᵢ"],
    ["query", "key", "s · hᵢ"],
  ];
  for (const [first, second, formula] of pairs) {
    const [a, b] = [values(first), values(second)];
    if (score === undefined || !a || !b || a.length !== b.length) continue;
    const product = a.reduce((sum, value, i) => sum + value * b[i], 0);
    if (Math.abs(product - score) < 1e-3 * Math.max(1, Math.abs(score))) return { formula, product };
  }
  return null;
}

/** The steps of a cell as JSON values. The numbers of a step are one flat list, next to their shape. */
export function stepsData({ steps, ...cell }: CellSteps): Record<string, unknown> {
  return { ...cell, steps: steps.map(({ float32, ...step }) => ({ ...step, values: [...floats({ float32, ...step })] })) };
}

/** `exampleCell` also searches other heads if the weight of the best cell of the preferred head is farther from 0.5 than this. */
const MAX_DISTANCE_FROM_HALF = 0.2;

/** The tokens that the model reads and writes at the position of a query. The decoder reads the token before the token that it writes. */
export function queryTokens(explanation: Explanation, site: Site, query: number): { reads: string; writes: string | null } {
  const [queryLabels] = tokenLabels(explanation, site);
  if (site === "encoder") return { reads: queryLabels[query], writes: null };
  const [, decoderInputs] = tokenLabels(explanation, "decoder");
  return { reads: decoderInputs[query], writes: queryLabels[query] };
}

/** The cell that the panel Steps shows first. Its weight is close to 0.5, and neither row nor column is a special token, if possible.
 * The first alignment head (or else the first head) is searched first, then all heads. */
export function exampleCell(explanation: Explanation, site: Site): Cell | null {
  const packed = explanation.attention[site];
  if (!packed) return null;
  const [layers, heads, queries, keys] = packed.shape;
  const isSpecialQuery = (query: number) => query === queries - 1 && queries > 1 && !(explanation.picture && site === "encoder");
  const isSpecialKey = (key: number) => (site === "decoder" ? key === 0 : !explanation.picture && key === keys - 1);
  const closest = (layer: number, head: number): { cell: Cell; distance: number } => {
    const table = headWeights(packed, layer, head);
    let [best, distance] = [0, Infinity];
    table.forEach((weight, i) => {
      const isSpecial = isSpecialQuery(Math.floor(i / keys)) || isSpecialKey(i % keys);
      const weightDistance = Math.abs(weight - 0.5) + (isSpecial ? 1 : 0);
      if (weightDistance < distance) [best, distance] = [i, weightDistance];
    });
    return { cell: { site, layer, head, query: Math.floor(best / keys), key: best % keys }, distance };
  };
  const [layer, head] = (site === "cross" && explanation.alignments[0]?.heads[0]) || [0, 0];
  const preferred = closest(layer, head);
  if (preferred.distance <= MAX_DISTANCE_FROM_HALF) return preferred.cell;
  let best = preferred;
  for (let l = 0; l < layers; l++)
    for (let h = 0; h < heads; h++) {
      const other = closest(l, h);
      if (other.distance < best.distance) best = other;
    }
  return best.cell;
}

/** A number with a fixed number of decimals. */
const fixed = (value: number, digits = 2) => value.toFixed(digits).replace("-", "−");

/** A number with two decimals, or in exponential notation if two decimals would show 0. */
function short(value: number): string {
  return value !== 0 && Math.abs(value) < 0.01 ? value.toExponential(1).replaceAll("-", "−") : fixed(value);
}

/** The formulas of the steps with the numbers of this cell inserted, by the name of the step. `key` is the index of the cell's key in the steps
 * with one number per key. It differs from the key of the cell in a decoder-only model, whose keys begin with the tokens of the source. */
export function computedFormulas({ steps, key: cellKey }: CellSteps, key = cellKey): Record<string, string> {
  const values = (name: string) => {
    const step = steps.find((entry) => entry.name === name);
    return step && floats(step);
  };
  const number = (name: string) => values(name)?.[0];
  const result: Record<string, string> = {};
  const [product, scale, score, weight, bias] = [number("product"), number("scale"), number("score"), number("weight"), values("position bias")?.[key]];
  if (product !== undefined) result.product = `q · kᵢ = Σ qⱼ kᵢⱼ = ${fixed(product)}`;
  if (score !== undefined && product !== undefined && scale !== undefined) {
    result.score = `eᵢ = q · kᵢ / √d${bias === undefined ? "" : " + b"} = ${fixed(product)} / ${fixed(scale)}${bias === undefined ? "" : ` + ${fixed(bias)}`} = ${fixed(score)}`;
  }
  const compared = product === undefined && !values("position bias") ? comparedVectors(steps) : null;
  if (compared) result.score = `eᵢ = ${compared.formula} = ${fixed(compared.product)}`;
  const [scores, allowed, weights] = [values("scores"), values("allowed"), values("weights")];
  if (score !== undefined && scores && allowed && weights && weight !== undefined && !values("edited weights")) {
    // The score eᵢ is subtracted, so that no exponential overflows.
    const total = scores.reduce((sum, other, i) => sum + (allowed[i] ? Math.exp(other - score) : 0), 0);
    const isSoftmax = Math.abs(1 / total - weight) < 1e-3;
    if (isSoftmax) result.weight = `αᵢ = exp(eᵢ) / Σ exp(e) = ${short(Math.exp(score))} / ${short(Math.exp(score) * total)} = ${fixed(weight, 4)}`;
  }
  const hidden = values("feed-forward hidden");
  if (hidden) result["feed-forward hidden"] = `hⱼ > 0:  ${hidden.filter((value) => value > 0).length} / ${hidden.length}`;
  const [logit, logSum, logProb] = [number("logit"), number("log sum"), number("log-probability")];
  if (logit !== undefined && logSum !== undefined && logProb !== undefined) {
    result["log-probability"] = `log p = ${fixed(logit)} − ${fixed(logSum)} = ${fixed(logProb)},  p = ${fixed(Math.exp(logProb), 3)}`;
  }
  return result;
}
