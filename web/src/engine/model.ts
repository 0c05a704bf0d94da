/** The interface of a model for search and explanations. `Transformer` and `Recurrent` implement it.
 *
 * The states of a decoder have the axes (row, width). Each row belongs to one hypothesis of the search. A `WeightRow` is something else: the
 * weights that one query gives to all keys. */

import { concatenate, linear, logSoftmax, rowsOf } from "./arrays";
import type { Site, StoredModel, Weights } from "./model_file";

export const [PAD, UNKNOWN, BEGIN, END] = [0, 1, 2, 3];

/** Identifies a row of attention weights: the weights that one query gives to all keys in one head. */
export interface WeightRow {
  site: Site;
  layer: number;
  head: number;
  query: number;
}

/** Changes one row of weights in place. It is called after the softmax and before the weighted sum of the values. */
export type Edit = (weights: Float32Array, row: WeightRow) => void;

/** The hooks of a pass through a model: an edit of the weights, and callbacks that receive intermediate values. */
export interface Probe {
  edit?: Edit | null;
  /** Receives every row of weights after the edit, and the index of the hypothesis to which the row belongs. */
  onWeights?: (weights: Float32Array, row: WeightRow, hypothesis: number) => void;
  /** Receives the input of every attention of a Transformer at each position: `state` before and `normed` after the norm. With post-norm,
   * which has no norm before an attention, both are the same. `onInput` and `onFeedForward` receive no index of a hypothesis, so they may
   * only be used while the state has a single hypothesis. */
  onInput?: (site: Site, layer: number, position: number, state: Float32Array, normed: Float32Array) => void;
  /** Receives intermediate values of each layer at each position: the hidden layer and the output of the feed-forward network, and the
   * output of the whole layer (after the residual connection). */
  onFeedForward?: (side: "encoder" | "decoder", layer: number, position: number, hidden: Float32Array, networkOutput: Float32Array, layerOutput: Float32Array) => void;
  /** Receives the states (row, width) of a Transformer's decoder after its first `layersDone` layers. If `layersDone` is 0, the states are
   * the input of the decoder. */
  onLayer?: (layersDone: number, states: Float32Array) => void;
}

/** The state of decoding: one row per hypothesis. */
export interface State {
  rows: number;
  /** The position of the token that the next step reads. */
  position: number;
  /** The states of the encoder, with the axes (source position, width). */
  encoded: Float32Array;
}

/** The numbers of layers and heads of each site that a model has. */
export type Sites = Partial<Record<Site, { layers: number; heads: number }>>;

export interface Model<AnyState extends State = State> {
  readonly sites: Sites;
  readonly output: OutputLayer;
  /** Encode a source, which is token ids without `</s>`. Returns the state before the first step, with one row. */
  begin(source: readonly number[], probe: Probe): AnyState;
  /** Read the next token of each row, and change the state. Returns the vectors (row, width) that predict the token after it. */
  step(state: AnyState, tokens: readonly number[], probe: Probe): Float32Array;
  /** Returns a new state, in which row r is a copy of row `order[r]`. The old state does not change in later steps of the new state. */
  select(state: AnyState, order: readonly number[]): AnyState;
}

/** Turns vectors into log-probabilities over the vocabulary. */
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

  /** From vectors (row, width) to one array of log-probabilities per row. */
  logProbs(vectors: Float32Array): Float32Array[] {
    const rows = rowsOf(this.logits(vectors), this.vocabSize);
    rows.forEach(logSoftmax);
    return rows;
  }

  /** From vectors (row, width) to logits (row, vocabulary). */
  logits(vectors: Float32Array): Float32Array {
    return linear(vectors, this.#weight, this.#bias, this.#width);
  }
}

/** A weight matrix with an optional bias. */
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

  /** From (row, inputs) to (row, outputs). */
  apply(states: Float32Array): Float32Array {
    return linear(states, this.#weight, this.#bias, this.inputs);
  }
}

/** The weights of one site in one pass, with the axes (layer, head, query, key). */
export interface SiteWeights {
  shape: [number, number, number, number];
  values: Float32Array;
}

/** Run the model once over a source and a given target (teacher forcing). Returns the vectors that predict the tokens of the target and
 * `</s>`, and the weights of every site. */
export function forwardPass(model: Model, source: readonly number[], target: readonly number[], edit: Edit | null): { vectors: Float32Array[]; weights: Partial<Record<Site, SiteWeights>> } {
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

/** The log-probability of a target. If `ended` is true, it includes the log-probability of `</s>`. `state` is the result of `begin`, and is
 * not changed. */
export function logProbOf(model: Model, state: State, target: readonly number[], ended: boolean, edit: Edit | null): number {
  return sum(tokenLogProbsOf(model, state, target, ended, edit));
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i];
  return total;
}

/** The log-probability of each token of a target, and of `</s>` if `ended` is true. `state` is the result of `begin`, and is not changed. */
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
