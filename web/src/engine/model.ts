/** What search and explanations know of a model, whatever its family. */

import { concatenate, linear, logSoftmax, rowsOf } from "./arrays";
import type { Site, StoredModel, Weights } from "./model_file";

export const [PAD, UNKNOWN, BEGIN, END] = [0, 1, 2, 3];

/** Which row of attention weights: the site, layer, head and query that it belongs to. */
export interface WeightRow {
  site: Site;
  layer: number;
  head: number;
  query: number;
}

/** Changes one row of weights in place, between the softmax and the sum of values. */
export type Edit = (weights: Float32Array, row: WeightRow) => void;

/** The hooks of a pass: an edit of the weights, and callbacks that receive intermediate values. */
export interface Probe {
  edit?: Edit | null;
  /** Receives every row of weights after the edit. */
  onWeights?: (weights: Float32Array, row: WeightRow, hypothesis: number) => void;
  /** Receives the input of every attention of a Transformer, before and after its norm. */
  onInput?: (site: Site, layer: number, position: number, state: Float32Array, normed: Float32Array) => void;
  /** Receives, at each position, the hidden layer and the output of a layer's feed-forward network, and the output of the layer itself (after the residual connection). */
  onFeedForward?: (side: "encoder" | "decoder", layer: number, position: number, hidden: Float32Array, networkOutput: Float32Array, layerOutput: Float32Array) => void;
  /** Receives the states (row, width) of a Transformer's decoder after `layersDone` of its layers; 0: the decoder's input. */
  onLayer?: (layersDone: number, states: Float32Array) => void;
}

/** The state of decoding: one row per hypothesis. */
export interface State {
  rows: number;
  /** The position of the token that the next step reads. */
  position: number;
  /** The encoder's states, (source, width). */
  encoded: Float32Array;
}

/** Layers and heads of each site that a model has. */
export type Sites = Partial<Record<Site, { layers: number; heads: number }>>;

export interface Model<AnyState extends State = State> {
  readonly sites: Sites;
  readonly output: OutputLayer;
  /** Read a source, token ids without `</s>`: the state before the first step, with one row. */
  begin(source: readonly number[], probe: Probe): AnyState;
  /** Read the last token of each row; returns the vectors that predict the next, (row, width). Changes the state. */
  step(state: AnyState, tokens: readonly number[], probe: Probe): Float32Array;
  /** The state whose row r continues row `order[r]`. */
  select(state: AnyState, order: readonly number[]): AnyState;
}

/** From vectors to log-probabilities over the vocabulary. */
export class OutputLayer {
  readonly vocabSize: number;
  #weight: Float32Array;
  #bias: Float32Array | null;
  #width: number;

  constructor(weights: Weights) {
    [this.vocabSize, this.#width] = weights.shape("output.weight");
    this.#weight = weights.get("output.weight");
    this.#bias = weights.optional("output.bias");
  }

  /** Vectors (row, width) → one array of log-probabilities per row. */
  logProbs(vectors: Float32Array): Float32Array[] {
    const rows = rowsOf(this.logits(vectors), this.vocabSize);
    rows.forEach(logSoftmax);
    return rows;
  }

  /** Vectors (row, width) → (row, vocabulary), before the softmax. */
  logits(vectors: Float32Array): Float32Array {
    return linear(vectors, this.#weight, this.#bias, this.#width);
  }
}

/** A weight matrix with its bias, if it has one. */
export class Projection {
  readonly inputs: number;
  readonly outputs: number;
  #weight: Float32Array;
  #bias: Float32Array | null;

  constructor(weights: Weights, name: string) {
    [this.outputs, this.inputs] = weights.shape(`${name}.weight`);
    this.#weight = weights.get(`${name}.weight`);
    this.#bias = weights.optional(`${name}.bias`);
  }

  /** (row, inputs) → (row, outputs). */
  apply(states: Float32Array): Float32Array {
    return linear(states, this.#weight, this.#bias, this.inputs);
  }
}

/** The weights of one site in one pass, (layer, head, query, key). */
export interface SiteWeights {
  shape: [number, number, number, number];
  values: Float32Array;
}

/** One teacher-forced pass over a target: the vectors that predict its tokens and `</s>`, and the weights of every site. */
export function pass(model: Model, source: readonly number[], target: readonly number[], edit: Edit | null): { vectors: Float32Array[]; weights: Partial<Record<Site, SiteWeights>> } {
  const weights = emptyWeights(model.sites, source.length + 1, target.length + 1);
  const probe: Probe = {
    edit,
    onWeights: (row, { site, layer, head, query }) => {
      const { shape, values } = weights[site]!;
      values.set(row, ((layer * shape[1] + head) * shape[2] + query) * shape[3]);
    },
  };
  const state = model.begin(source, probe);
  const vectors = [BEGIN, ...target].map((token) => model.step(state, [token], probe));
  return { vectors, weights };
}

function emptyWeights(sites: Sites, source: number, target: number): Partial<Record<Site, SiteWeights>> {
  const result: Partial<Record<Site, SiteWeights>> = {};
  for (const [site, { layers, heads }] of Object.entries(sites) as [Site, { layers: number; heads: number }][]) {
    const shape: SiteWeights["shape"] = [layers, heads, site === "encoder" ? source : target, site === "decoder" ? target : source];
    result[site] = { shape, values: new Float32Array(shape.reduce((product, length) => product * length, 1)) };
  }
  return result;
}

/** The log-probability of a target; that of its `</s>` is included if it ended. `state` is what `begin` returned. */
export function logProbOf(model: Model, state: State, target: readonly number[], ended: boolean, edit: Edit | null): number {
  return sum(tokenLogProbsOf(model, state, target, ended, edit));
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i];
  return total;
}

/** The log-probability of each token of a target, and of its `</s>` if it ended. */
export function tokenLogProbsOf(model: Model, state: State, target: readonly number[], ended: boolean, edit: Edit | null): Float64Array {
  const probe: Probe = { edit };
  const produced = ended ? [...target, END] : target;
  const running = model.select(state, [0]);
  const vectors = produced.map((_, step) => model.step(running, [step ? target[step - 1] : BEGIN], probe));
  const logProbs = model.output.logProbs(concatenate(vectors));
  return Float64Array.from(produced, (token, step) => logProbs[step][token]);
}

export function checkStored(stored: StoredModel): void {
  if (stored.format !== "jumok-live-model" || stored.version !== 1) {
    throw new Error(`This page runs models of version 1. Received: ${String(stored.format)} ${String(stored.version)}.`);
  }
}
