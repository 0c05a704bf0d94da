/** The recurrent encoder and decoder, as in src/jumok/models/recurrent.py. */

import { add, concatenate, dot, linear, rowsOf, sigmoid, softmax, tanh, transpose } from "./arrays";
import type { RecurrentArchitecture, Weights } from "./model_file";
import { END, OutputLayer, Projection, type Model, type Probe, type Sites, type State } from "./model";

/** The state of a recurrent cell, with the axes (row, width). In the decoder, each row belongs to a hypothesis. Only an LSTM has the cell state
 * `cell`. */
interface CellState {
  hidden: Float32Array;
  cell: Float32Array | null;
}

/** The recurrent cell (RNN, LSTM or GRU) of one direction of a layer. */
class RecurrentCell {
  readonly width: number;
  #kind: RecurrentArchitecture["cell"];
  #inputWeight: Float32Array;
  #inputBias: Float32Array;
  #recurrentWeight: Float32Array;
  #recurrentBias: Float32Array;
  #inputWidth: number;

  constructor(kind: RecurrentArchitecture["cell"], weights: Weights, layer: string, suffix = "") {
    this.#kind = kind;
    this.#inputWeight = weights.get(`${layer}.weight_ih_l0${suffix}`);
    this.#inputBias = weights.get(`${layer}.bias_ih_l0${suffix}`);
    this.#recurrentWeight = weights.get(`${layer}.weight_hh_l0${suffix}`);
    this.#recurrentBias = weights.get(`${layer}.bias_hh_l0${suffix}`);
    this.#inputWidth = weights.shape(`${layer}.weight_ih_l0${suffix}`)[1];
    this.width = weights.shape(`${layer}.weight_hh_l0${suffix}`)[1];
  }

  zeroState(): CellState {
    return this.initialState(new Float32Array(this.width));
  }

  /** The state before the first step, with this hidden state. */
  initialState(hidden: Float32Array): CellState {
    return { hidden, cell: this.#kind === "lstm" ? new Float32Array(hidden.length) : null };
  }

  /** Compute the next state of all rows from the inputs (row, input width). */
  step(inputs: Float32Array, { hidden, cell }: CellState): CellState {
    const { width } = this;
    const fromInput = linear(inputs, this.#inputWeight, this.#inputBias, this.#inputWidth);
    const fromState = linear(hidden, this.#recurrentWeight, this.#recurrentBias, width);
    // The gates are in PyTorch's order: reset, update and candidate of a GRU; input, forget, candidate and output of an LSTM.
    const gatesWidth = fromInput.length / (hidden.length / width);
    const nextHidden = new Float32Array(hidden.length);
    const nextCell = cell && new Float32Array(hidden.length);
    for (let i = 0; i < hidden.length; i++) {
      const firstGate = Math.floor(i / width) * gatesWidth + (i % width);
      const gate = (index: number) => fromInput[firstGate + index * width] + fromState[firstGate + index * width];
      if (this.#kind === "gru") {
        const [reset, update] = [sigmoid(gate(0)), sigmoid(gate(1))];
        const candidate = Math.tanh(fromInput[firstGate + 2 * width] + reset * fromState[firstGate + 2 * width]);
        nextHidden[i] = (1 - update) * candidate + update * hidden[i];
      } else if (cell && nextCell) {
        nextCell[i] = sigmoid(gate(1)) * cell[i] + sigmoid(gate(0)) * Math.tanh(gate(2));
        nextHidden[i] = sigmoid(gate(3)) * Math.tanh(nextCell[i]);
      } else nextHidden[i] = Math.tanh(gate(0));
    }
    return { hidden: nextHidden, cell: nextCell };
  }
}

/** The score function of the attention: computes how well a state of the decoder (the query) fits each state of the encoder. */
export class ScoreFunction {
  readonly kind: RecurrentArchitecture["attention"];
  /** The vector v of an additive score ("bahdanau" or "luong-concat"). If the score has a gain, v is already normalised and scaled. Null
   * for other scores. */
  readonly scoreVector: Float32Array | null = null;
  #queryWeight: Float32Array | null = null;
  #keyWeight: Float32Array | null = null;
  #bias: Float32Array | null = null;
  #queryWidth: number;
  #keyWidth: number;

  constructor({ attention, width, encoder_width: keyWidth }: RecurrentArchitecture, weights: Weights) {
    const name = "decoder.attention.mechanism";
    this.kind = attention;
    [this.#queryWidth, this.#keyWidth] = [width, keyWidth];
    if (attention === "luong-general") this.#keyWeight = weights.get(`${name}.weight`); // (1, query, key)
    if (attention !== "bahdanau" && attention !== "luong-concat") return;
    const units = weights.shape(`${name}.query`)[2];
    this.#queryWeight = transpose(weights.get(`${name}.query`), units);
    this.#keyWeight = transpose(weights.get(`${name}.key`), units);
    this.#bias = weights.optional(`${name}.bias`);
    const [vector, gain] = [weights.get(`${name}.energy`), weights.optional(`${name}.gain`)];
    const factor = gain ? gain[0] / Math.max(1e-12, Math.hypot(...vector)) : 1;
    this.scoreVector = vector.map((value) => value * factor);
  }

  /** Compute the part of the score that depends only on the keys: one vector per key. Without a weight matrix, it is the key itself. */
  prepareKeys(states: Float32Array): Float32Array[] {
    if (!this.#keyWeight) return rowsOf(states, this.#keyWidth);
    const projected = linear(states, this.#keyWeight, this.#bias, this.#keyWidth);
    return rowsOf(projected, projected.length / (states.length / this.#keyWidth));
  }

  /** For an additive score, W_q s. For other scores, the query itself. */
  prepareQuery(query: Float32Array): Float32Array {
    return this.#queryWeight ? linear(query, this.#queryWeight, null, this.#queryWidth) : query;
  }

  /** The scores of a query with all keys. `keys` is the result of `prepareKeys`. */
  scores(query: Float32Array, keys: readonly Float32Array[]): Float32Array {
    const prepared = this.prepareQuery(query);
    const { scoreVector } = this;
    const scale = this.kind === "scaled-dot" ? 1 / Math.sqrt(query.length) : 1;
    return Float32Array.from(keys, (key) => {
      if (!scoreVector) return scale * dot(prepared, 0, key, 0, prepared.length);
      let sum = 0;
      for (let unit = 0; unit < scoreVector.length; unit++) sum += scoreVector[unit] * Math.tanh(prepared[unit] + key[unit]);
      return sum;
    });
  }
}

export interface RecurrentState extends State {
  layers: CellState[];
  /** The vectors h̃ of the last step, with the axes (row, embedding). Null without input feeding. */
  feed: Float32Array | null;
  /** The keys after `prepareKeys`; empty without attention. */
  keys: Float32Array[];
  /** The contexts of the last step, with the axes (row, encoder width). Empty before the first step and without attention. `select` does
   * not reorder the rows of `contexts` and `outputs`, because the next step does not read them. */
  contexts: Float32Array;
  /** The output vectors of the last step, which predict the next token, with the axes (row, embedding). */
  outputs: Float32Array;
}

export class Recurrent implements Model<RecurrentState> {
  readonly sites: Sites;
  readonly output: OutputLayer;
  readonly architecture: RecurrentArchitecture;
  readonly score: ScoreFunction | null;
  #weights: Weights;
  #encoder: RecurrentCell[][];
  #decoder: RecurrentCell[];
  /** The projections from the last states of the encoder, of both directions, to the initial state of each decoder layer. */
  #initialProjections: Projection[];
  /** W_r or W_c, which combines state and context. Without attention it reads no context. (Its tensor `decoder.read_out` has nothing to do
   * with the read-out of word alignments.) */
  #combine: Projection;

  constructor(architecture: RecurrentArchitecture, weights: Weights) {
    const { attention, cell } = architecture;
    this.architecture = architecture;
    this.sites = attention === "none" ? {} : { cross: { layers: 1, heads: 1 } };
    this.output = new OutputLayer(weights);
    this.score = attention === "none" ? null : new ScoreFunction(architecture, weights);
    this.#weights = weights;
    const suffixes = architecture.bidirectional ? ["", "_reverse"] : [""];
    const encoderLayer = (layer: number) => suffixes.map((suffix) => new RecurrentCell(cell, weights, `encoder.layers.${layer}`, suffix));
    this.#encoder = Array.from({ length: architecture.encoder_layers }, (_, layer) => encoderLayer(layer));
    this.#decoder = Array.from({ length: architecture.decoder_layers }, (_, layer) => new RecurrentCell(cell, weights, `decoder.layers.${layer}`));
    this.#initialProjections = this.#decoder.map((_, layer) => new Projection(weights, `decoder.first.${layer}`));
    const attendsAfter = attention !== "none" && architecture.order === "after";
    this.#combine = new Projection(weights, attendsAfter ? "decoder.combine" : "decoder.read_out");
  }

  /** The scaled embedding √width · E[token]. */
  embed(side: "source" | "target", id: number): Float32Array {
    const width = this.architecture.embedding;
    const scale = Math.fround(Math.sqrt(width));
    return this.#weights.get(`${side}_embedding.weight`).subarray(id * width, (id + 1) * width).map((value) => value * scale);
  }

  begin(source: readonly number[], _: Probe): RecurrentState {
    let states = [...source, END].map((id) => this.embed("source", id));
    let last: Float32Array = new Float32Array(0);
    for (const directions of this.#encoder) {
      const runs = directions.map((cell, direction) => { // one pass over the source in each direction
        const isBackward = direction === 1;
        const result: Float32Array[] = [];
        let state = cell.zeroState();
        for (const position of isBackward ? [...states.keys()].reverse() : states.keys()) {
          state = cell.step(states[position], state);
          result[position] = state.hidden;
        }
        return { result, last: state.hidden };
      });
      last = concatenate(runs.map((run) => run.last));
      states = states.map((_, position) => concatenate(runs.map((run) => run.result[position])));
    }
    const encoded = concatenate(states);
    return {
      rows: 1,
      position: 0,
      encoded,
      layers: this.#decoder.map((cell, layer) => cell.initialState(tanh(this.#initialProjections[layer].apply(last)))),
      feed: this.architecture.input_feeding ? new Float32Array(this.architecture.embedding) : null,
      keys: this.score ? this.score.prepareKeys(encoded) : [],
      contexts: new Float32Array(0),
      outputs: new Float32Array(0),
    };
  }

  step(state: RecurrentState, tokens: readonly number[], probe: Probe): Float32Array {
    const embedded = tokens.map((id) => this.embed("target", id));
    const { width } = this.architecture;
    if (!this.score) state.outputs = tanh(this.#combine.apply(this.#run(state, embedded)));
    else if (this.architecture.order === "before") {
      const contexts = this.#attend(state, probe);
      const inputs = embedded.map((token, row) => concatenate([token, contexts[row]]));
      const topStates = rowsOf(this.#run(state, inputs), width);
      state.outputs = tanh(this.#combine.apply(concatenate(embedded.flatMap((token, row) => [topStates[row], contexts[row], token]))));
    } else {
      const { feed } = state;
      const feedRows = feed ? rowsOf(feed, this.architecture.embedding) : null;
      const inputs = feedRows ? embedded.map((token, row) => concatenate([token, feedRows[row]])) : embedded;
      const topStates = rowsOf(this.#run(state, inputs), width);
      const contexts = this.#attend(state, probe);
      state.outputs = tanh(this.#combine.apply(concatenate(contexts.flatMap((context, row) => [context, topStates[row]]))));
      if (feed) state.feed = state.outputs;
    }
    state.position++;
    return state.outputs;
  }

  select(state: RecurrentState, order: readonly number[]): RecurrentState {
    const gather = (matrix: Float32Array): Float32Array => {
      const rows = rowsOf(matrix, matrix.length / state.rows);
      return concatenate(order.map((row) => rows[row]));
    };
    const layers = state.layers.map(({ hidden, cell }) => ({ hidden: gather(hidden), cell: cell && gather(cell) }));
    return { ...state, rows: order.length, layers, feed: state.feed && gather(state.feed) };
  }

  /** The states of the top layer, which are the queries of the attention, with the axes (row, width). */
  query(state: RecurrentState): Float32Array {
    return state.layers[state.layers.length - 1].hidden;
  }

  /** Run all layers of the decoder for one step. Returns the states of the top layer. */
  #run(state: RecurrentState, inputs: Float32Array[]): Float32Array {
    let states = concatenate(inputs);
    state.layers = state.layers.map((before, layer) => {
      const after = this.#decoder[layer].step(states, before);
      states = after.hidden;
      return after;
    });
    return states;
  }

  /** Attend with the states of the top layer as queries. Returns one context per row. */
  #attend(state: RecurrentState, probe: Probe): Float32Array[] {
    const { encoder_width: valueWidth } = this.architecture;
    const values = rowsOf(state.encoded, valueWidth);
    const contexts = rowsOf(this.query(state), this.architecture.width).map((query, row) => {
      const weights = this.score!.scores(query, state.keys);
      softmax(weights);
      const weightRow = { site: "cross" as const, layer: 0, head: 0, query: state.position };
      probe.edit?.(weights, weightRow);
      probe.onWeights?.(weights, weightRow, row);
      return values.reduce((sum, value, key) => add(sum, value.map((number) => number * weights[key])), new Float32Array(valueWidth));
    });
    state.contexts = concatenate(contexts);
    return contexts;
  }
}
