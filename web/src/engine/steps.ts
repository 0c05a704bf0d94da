/** Traces the computation of one attention weight step by step, as in src/jumok/analysis/trace.py. The weight is a cell of an attention
 * map. (In the formulas of recurrent models, "cell" means the recurrent cell.) */

import type { Cell, CellSteps, Step } from "../lib/format";
import { add, concatenate, dot, logSoftmax, rowsOf, softmax, tanh } from "./arrays";
import { BEGIN, END, type Edit, type Model, type Probe } from "./model";
import type { Site } from "./model_file";
import { packFloats } from "./packing";
import { Recurrent } from "./recurrent";
import { Transformer, type Embedding, type Sublayer } from "./transformer";

type Ids = readonly number[];

/** Steps whose values are a vector, one number per key, or a single number. */
const vectorStep = (name: string, formula: string, values: Float32Array): Step => ({ name, formula, over: "width", ...packFloats(values, [values.length]) });
const keysStep = (name: string, formula: string, values: Float32Array): Step => ({ name, formula, over: "keys", ...packFloats(values, [values.length]) });
const numberStep = (name: string, formula: string, value: number): Step => ({ name, formula, over: "number", ...packFloats(Float32Array.of(value), []) });

/** The steps that compute the weight of one cell. `source` and `target` are token ids without special tokens. */
export function traceCell(model: Model, source: Ids, target: Ids, cell: Cell, edit: Edit | null): CellSteps {
  const site = model.sites[cell.site];
  const queries = (cell.site === "encoder" ? source : target).length + 1;
  const keys = (cell.site === "decoder" ? target : source).length + 1;
  const isIndex = (index: number, count: number) => Number.isInteger(index) && index >= 0 && index < count;
  const exists = site && isIndex(cell.layer, site.layers) && isIndex(cell.head, site.heads) && isIndex(cell.query, queries) && isIndex(cell.key, keys);
  if (!exists) throw new Error(`The attention "${cell.site}" of this sentence has no layer ${cell.layer}, head ${cell.head}, query ${cell.query} and key ${cell.key}.`);
  if (model instanceof Transformer) return { ...cell, steps: [...transformerSteps(model, source, target, cell, edit)] };
  if (model instanceof Recurrent) return { ...cell, steps: [...recurrentSteps(model, source, target, cell, edit)] };
  throw new Error("There are no steps of attention to show.");
}

function* embeddingSteps(name: string, embedding: Embedding, id: number, position: number): Generator<Step> {
  const [token, added] = [embedding.token(id), embedding.positions(position)];
  yield vectorStep(`${name} embedding`, "√d · E[token]", token);
  yield vectorStep(`${name} position`, "what the position adds", added);
  yield vectorStep(`${name} input`, "embedding + position", add(token, added));
}

function* transformerSteps(model: Transformer, source: Ids, target: Ids, cell: Cell, edit: Edit | null): Generator<Step> {
  const ids: Record<"source" | "target", Ids> = { source: [...source, END], target: [BEGIN, ...target] };
  const embeddings = { source: model.sourceEmbedding, target: model.targetEmbedding };
  const [querySide, keySide] = [cell.site === "encoder" ? "source" : "target", cell.site === "decoder" ? "target" : "source"] as const;
  yield* embeddingSteps("query", embeddings[querySide], ids[querySide][cell.query], cell.query);
  yield* embeddingSteps("key", embeddings[keySide], ids[keySide][cell.key], cell.key);
  const [states, normed]: [Float32Array[], Float32Array[]] = [[], []];
  let feedForward: Float32Array[] = [];
  const cellSide = cell.site === "encoder" ? "encoder" : "decoder";
  const probe: Probe = {
    edit,
    onInput: (site, layer, position, state, input) => {
      if (site === cell.site && layer === cell.layer) [states[position], normed[position]] = [state, input];
    },
    onFeedForward: (side, layer, position, hidden, networkOutput, layerOutput) => {
      const isOfCell = side === cellSide && layer === cell.layer && position === cell.query;
      if (isOfCell) feedForward = [hidden, networkOutput, layerOutput];
    },
  };
  const state = model.begin(source, probe);
  const width = state.encoded.length / ids.source.length;
  const vectors = cell.site === "encoder" ? [] : ids.target.map((token) => model.step(state, [token], probe));
  const block = cell.site === "encoder" ? model.encoder[cell.layer] : model.decoder[cell.layer];
  const sublayer: Sublayer = cell.site === "cross" ? model.decoder[cell.layer].cross : block.self;
  const keyStates = cell.site === "cross" ? rowsOf(state.encoded, width) : states;
  yield vectorStep("query state", "the layer's input at the query", states[cell.query]);
  yield vectorStep("key state", "the layer's input at the key", keyStates[cell.key]);
  if (sublayer.around.isPre) {
    yield vectorStep("query normed", "norm(x)", normed[cell.query]);
    if (cell.site !== "cross") yield vectorStep("key normed", "norm(x)", normed[cell.key]);
  }
  yield* attentionSteps(sublayer, states, normed, cell.site === "cross" ? keyStates : normed, cell, edit);
  yield vectorStep("feed-forward hidden", `${model.activation}(x W₁ + b₁)`, feedForward[0]);
  yield vectorStep("feed-forward output", "hidden · W₂ + b₂", feedForward[1]);
  yield vectorStep("block output", "the layer's output at the query", feedForward[2]);
  if (cell.site !== "encoder") yield* outputSteps(model, vectors[cell.query], target, cell.query);
}

/** The steps from the last state to the log-probability of the token that the step of the query produces. */
function* outputSteps(model: Model, state: Float32Array, target: Ids, query: number): Generator<Step> {
  const logits = model.output.logits(state);
  const logit = logits[[...target, END][query]];
  const logProbs = logits.slice();
  logSoftmax(logProbs);
  const logProb = logProbs[[...target, END][query]];
  yield vectorStep("final state", "what predicts the next token", state);
  yield numberStep("logit", "W[produced token] · state", logit);
  yield numberStep("log sum", "log Σ exp(logits)", logit - logProb);
  yield numberStep("log-probability", "logit − log Σ exp(logits)", logProb);
}

/** The steps from query, key and value to the output of the attention. `states` are the inputs of the layer. `queryStates` and
 * `keyStates` are what the attention reads. */
function* attentionSteps({ attention, around }: Sublayer, states: Float32Array[], queryStates: Float32Array[], keyStates: Float32Array[], cell: Cell, edit: Edit | null): Generator<Step> {
  const { head, query, key } = cell;
  const group = attention.groupOf(head);
  const [queryStart, keyStart, valueStart] = [head * attention.keyWidth, group * attention.keyWidth, group * attention.valueWidth];
  const memory = attention.memory(concatenate(keyStates), [...keyStates.keys()]);
  const queries = attention.queries(concatenate(queryStates), [...queryStates.keys()]);
  const value = memory.values[key].slice(valueStart, valueStart + attention.valueWidth);
  yield vectorStep("query", "q", queries[query].slice(queryStart, queryStart + attention.keyWidth));
  yield vectorStep("key", "kᵢ", memory.keys[key].slice(keyStart, keyStart + attention.keyWidth));
  yield vectorStep("value", "vᵢ", value);
  const products = Float32Array.from(memory.keys, (row) => dot(queries[query], queryStart, row, keyStart, attention.keyWidth));
  yield keysStep("products", "q · k", products);
  yield numberStep("product", "q · kᵢ", products[key]);
  yield numberStep("scale", "√d", Math.sqrt(attention.keyWidth));
  const { bias } = attention.positions;
  if (bias) yield keysStep("position bias", "what the distance adds", products.map((_, i) => bias(head, queries[query], queryStart, i - query)));
  const scores = attention.scores(queries[query], head, query, memory.keys);
  yield keysStep("scores", "e", scores);
  yield numberStep("score", "eᵢ", scores[key]);
  /** 1 if the query of this row may attend to the key of this column, else 0. */
  const allowedAt = (row: number, column: number) => (cell.site === "decoder" && column > row ? 0 : 1);
  yield keysStep("allowed", "1 if the query may attend to the key, else 0", scores.map((_, column) => allowedAt(query, column)));
  if (cell.site === "decoder" && queries.length > 1) {
    const mask = Float32Array.from({ length: queries.length * scores.length }, (_, i) => allowedAt(Math.floor(i / scores.length), i % scores.length));
    yield { name: "mask", formula: "allowed, for every query", over: "cells", ...packFloats(mask, [queries.length, scores.length]) };
  }
  const visible = cell.site === "decoder" ? query + 1 : memory.keys.length;
  yield* weightSteps(scores, visible, memory.values.map((row) => row.subarray(valueStart, valueStart + attention.valueWidth)), cell, edit);
  const visibleMemory = { keys: memory.keys.slice(0, visible), values: memory.values.slice(0, visible) };
  const heads = attention.contexts(queryStates[query], [{ memory: visibleMemory, position: query, hypothesis: 0 }], cell.site, cell.layer, { edit });
  const output = attention.out.apply(heads);
  yield vectorStep("heads", "the contexts of all heads, concatenated", heads);
  yield vectorStep("output", "heads · W_O", output);
  const added = add(states[query], output);
  yield vectorStep("added", "x + output", added);
  if (!around.isPre) yield vectorStep("normed", "norm(x + output)", around.norm(added));
}

/** The steps from the scores to the context of one head. The keys after the first `visible` keys are masked. */
function* weightSteps(scores: Float32Array, visible: number, values: readonly Float32Array[], cell: Cell, edit: Edit | null): Generator<Step> {
  const visibleWeights = scores.slice(0, visible);
  softmax(visibleWeights);
  const weights = new Float32Array(scores.length);
  weights.set(visibleWeights);
  yield keysStep("weights", "α", weights.slice());
  if (edit) {
    edit(visibleWeights, cell as { site: Site; layer: number; head: number; query: number });
    const isEdited = visibleWeights.some((weight, i) => weight !== weights[i]); // false if the edit concerns only other heads or queries
    weights.set(visibleWeights);
    if (isEdited) yield keysStep("edited weights", "α after the edit", weights.slice());
  }
  yield numberStep("weight", "αᵢ", weights[cell.key]);
  yield vectorStep("weighted value", "αᵢ vᵢ", values[cell.key].map((value) => weights[cell.key] * value));
  const context = values.reduce((sum, value, i) => add(sum, value.map((x) => x * weights[i])), new Float32Array(values[0].length));
  yield vectorStep("context", "Σᵢ αᵢ vᵢ", context);
}

function* recurrentSteps(model: Recurrent, source: Ids, target: Ids, cell: Cell, edit: Edit | null): Generator<Step> {
  const score = model.score!;
  const attendsBefore = model.architecture.order === "before";
  const state = model.begin(source, {});
  const inputTokens = [BEGIN, ...target];
  for (const token of inputTokens.slice(0, cell.query)) model.step(state, [token], { edit });
  const stateBefore = model.query(state);
  model.step(state, [inputTokens[cell.query]], { edit });
  const stateAfter = model.query(state);
  const query = attendsBefore ? stateBefore : stateAfter;
  const values = rowsOf(state.encoded, model.architecture.encoder_width);
  const previousEmbedding = model.embed("target", inputTokens[cell.query]);
  yield vectorStep("key embedding", "√d · E[source token]", model.embed("source", [...source, END][cell.key]));
  yield vectorStep("key state", "hᵢ", values[cell.key]);
  yield vectorStep("query embedding", "yₜ₋₁ = √d · E[previous token]", previousEmbedding);
  yield vectorStep("query state", attendsBefore ? "sₜ₋₁" : "sₜ", query);
  yield vectorStep("query", "q", query);
  yield vectorStep("key", "kᵢ", values[cell.key]);
  yield vectorStep("value", "vᵢ", values[cell.key]);
  const [prepared, key] = [score.prepareQuery(query), state.keys[cell.key]];
  if (score.kind === "scaled-dot") {
    const products = Float32Array.from(values, (row) => dot(query, 0, row, 0, query.length));
    yield keysStep("products", "q · k", products);
    yield numberStep("product", "q · kᵢ", products[cell.key]);
    yield numberStep("scale", "√d", Math.sqrt(query.length));
  }
  if (score.kind === "luong-general") yield vectorStep("projected key", "W hᵢ", key);
  if (score.scoreVector) {
    yield vectorStep("query part", "W_q s", prepared);
    yield vectorStep("key part", "W_k hᵢ", key);
    yield vectorStep("hidden", "tanh(W_q s + W_k hᵢ)", tanh(add(prepared, key)));
    yield vectorStep("energy", "v", score.scoreVector); // stored files have this name for v
  }
  const scores = score.scores(query, state.keys);
  yield keysStep("scores", "e", scores);
  yield numberStep("score", "eᵢ", scores[cell.key]);
  yield keysStep("allowed", "1 if the query may attend to the key, else 0", scores.map(() => 1));
  yield* weightSteps(scores, scores.length, values, cell, edit);
  if (attendsBefore) {
    yield vectorStep("cell input", "[yₜ₋₁ ; cₜ]", concatenate([previousEmbedding, state.contexts]));
    yield vectorStep("new state", "sₜ = cell([yₜ₋₁ ; cₜ], sₜ₋₁)", stateAfter);
    yield vectorStep("output", "rₜ = tanh(W_r [sₜ ; cₜ ; yₜ₋₁])", state.outputs);
  } else yield vectorStep("output", "h̃ₜ = tanh(W_c [cₜ ; sₜ])", state.outputs);
  yield* outputSteps(model, state.outputs, target, cell.query);
}
