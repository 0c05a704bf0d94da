/** Recurrent encoder and decoder, as in src/jumok/models/recurrent.py. */

import { add, concatenate, dot, linear, rowsOf, sigmoid, softmax, tanh, transpose } from "./arrays";
import type { RecurrentArchitecture, Weights } from "./model_file";
import { END, OutputLayer, Projection, type Model, type Probe, type Sites, type State } from "./model";

/** The state of one direction of a layer, (row, width). An LSTM also has a cell state. */
interface CellState {
  hidden: Float32Array;
  cell: Float32Array | null;
}

/** One direction of a layer. */
class Cell {
  readonly width: number;
  #kind: RecurrentArchitecture["cell"];
  #inputs: Float32Array;
  #inputBias: Float32Array;
  #recurrent: Float32Array;
  #recurrentBias: Float32Array;
  #inputWidth: number;

  constructor(kind: RecurrentArchitecture["cell"], weights: Weights, layer: string, suffix = "") {
    this.#kind = kind;
    this.#inputs = weights.get(`${layer}.weight_ih_l0${suffix}`);
    this.#inputBias = weights.get(`${layer}.bias_ih_l0${suffix}`);
    this.#recurrent = weights.get(`${layer}.weight_hh_l0${suffix}`);
    this.#recurrentBias = weights.get(`${layer}.bias_hh_l0${suffix}`);
    this.#inputWidth = weights.shape(`${layer}.weight_ih_l0${suffix}`)[1];
    this.width = weights.shape(`${layer}.weight_hh_l0${suffix}`)[1];
  }

  zero(): CellState {
    return this.starting(new Float32Array(this.width));
  }

  starting(hidden: Float32Array): CellState {
    return { hidden, cell: this.#kind === "lstm" ? new Float32Array(hidden.length) : null };
  }

  /** One step of all rows: inputs (row, input width). */
  step(inputs: Float32Array, { hidden, cell }: CellState): CellState {
    const { width } = this;
    const fromInput = linear(inputs, this.#inputs, this.#inputBias, this.#inputWidth);
    const fromState = linear(hidden, this.#recurrent, this.#recurrentBias, width);
    const gates = fromInput.length / (hidden.length / width);
    const next = new Float32Array(hidden.length);
    const nextCell = cell && new Float32Array(hidden.length);
    for (let i = 0; i < hidden.length; i++) {
      const at = Math.floor(i / width) * gates + (i % width);
      const gate = (index: number) => fromInput[at + index * width] + fromState[at + index * width];
      if (this.#kind === "gru") {
        const [reset, update] = [sigmoid(gate(0)), sigmoid(gate(1))];
        const proposed = Math.tanh(fromInput[at + 2 * width] + reset * fromState[at + 2 * width]);
        next[i] = (1 - update) * proposed + update * hidden[i];
      } else if (cell && nextCell) {
        nextCell[i] = sigmoid(gate(1)) * cell[i] + sigmoid(gate(0)) * Math.tanh(gate(2));
        next[i] = sigmoid(gate(3)) * Math.tanh(nextCell[i]);
      } else next[i] = Math.tanh(gate(0));
    }
    return { hidden: next, cell: nextCell };
  }
}

/** The score of one head without projections: how a query is compared with the encoder's states. */
export class ScoreFunction {
  readonly kind: RecurrentArchitecture["attention"];
  /** v of the additive score, scaled if it is normed. */
  readonly energy: Float32Array | null = null;
  #query: Float32Array | null = null;
  #key: Float32Array | null = null;
  #bias: Float32Array | null = null;
  #queryWidth: number;
  #keyWidth: number;

  constructor({ attention, width, encoder_width: keyWidth }: RecurrentArchitecture, weights: Weights) {
    const name = "decoder.attention.mechanism";
    this.kind = attention;
    [this.#queryWidth, this.#keyWidth] = [width, keyWidth];
    if (attention === "luong-general") this.#key = weights.get(`${name}.weight`); // (1, query, key)
    if (attention !== "bahdanau" && attention !== "luong-concat") return;
    const units = weights.shape(`${name}.query`)[2];
    this.#query = transpose(weights.get(`${name}.query`), units);
    this.#key = transpose(weights.get(`${name}.key`), units);
    this.#bias = weights.optional(`${name}.bias`);
    const [energy, gain] = [weights.get(`${name}.energy`), weights.optional(`${name}.gain`)];
    const factor = gain ? gain[0] / Math.max(1e-12, Math.hypot(...energy)) : 1;
    this.energy = energy.map((value) => value * factor);
  }

  /** The part of the score that depends on the keys alone, one vector per key. */
  prepare(states: Float32Array): Float32Array[] {
    if (!this.#key) return rowsOf(states, this.#keyWidth);
    const projected = linear(states, this.#key, this.energy ? this.#bias : null, this.#keyWidth);
    return rowsOf(projected, projected.length / (states.length / this.#keyWidth));
  }

  /** W_q s of the additive score; other scores compare the query itself. */
  prepareQuery(query: Float32Array): Float32Array {
    return this.#query ? linear(query, this.#query, null, this.#queryWidth) : query;
  }

  scores(query: Float32Array, keys: readonly Float32Array[]): Float32Array {
    const prepared = this.prepareQuery(query);
    const { energy } = this;
    const scale = this.kind === "scaled-dot" ? 1 / Math.sqrt(query.length) : 1;
    return Float32Array.from(keys, (key) => {
      if (!energy) return scale * dot(prepared, 0, key, 0, prepared.length);
      let sum = 0;
      for (let unit = 0; unit < energy.length; unit++) sum += energy[unit] * Math.tanh(prepared[unit] + key[unit]);
      return sum;
    });
  }
}

export interface RecurrentState extends State {
  layers: CellState[];
  /** h̃ of the last step, (row, embedding); null without input feeding. */
  feed: Float32Array | null;
  /** Prepared keys; empty without attention. */
  keys: Float32Array[];
  /** The contexts of the last step, (row, encoder width). */
  contexts: Float32Array;
  /** The vectors of the last step that predict the next token, (row, embedding). */
  written: Float32Array;
}

export class Recurrent implements Model<RecurrentState> {
  readonly sites: Sites;
  readonly output: OutputLayer;
  readonly architecture: RecurrentArchitecture;
  readonly score: ScoreFunction | null;
  #weights: Weights;
  #encoder: Cell[][];
  #decoder: Cell[];
  /** From the encoder's last state to the first state of each layer of the decoder. */
  #first: Projection[];
  /** W_r or W_c, which combines state and context. Not the read-out of word alignments. */
  #combine: Projection;

  constructor(architecture: RecurrentArchitecture, weights: Weights) {
    const { attention, cell } = architecture;
    this.architecture = architecture;
    this.sites = attention === "none" ? {} : { cross: { layers: 1, heads: 1 } };
    this.output = new OutputLayer(weights);
    this.score = attention === "none" ? null : new ScoreFunction(architecture, weights);
    this.#weights = weights;
    const suffixes = architecture.bidirectional ? ["", "_reverse"] : [""];
    this.#encoder = Array.from({ length: architecture.encoder_layers }, (_, layer) => suffixes.map((suffix) => new Cell(cell, weights, `encoder.layers.${layer}`, suffix)));
    this.#decoder = Array.from({ length: architecture.decoder_layers }, (_, layer) => new Cell(cell, weights, `decoder.layers.${layer}`));
    this.#first = this.#decoder.map((_, layer) => new Projection(weights, `decoder.first.${layer}`));
    const attendsAfter = attention !== "none" && architecture.order === "after";
    this.#combine = new Projection(weights, attendsAfter ? "decoder.combine" : "decoder.read_out");
  }

  /** √width · E[token]. */
  embed(side: "source" | "target", id: number): Float32Array {
    const width = this.architecture.embedding;
    const scale = Math.fround(Math.sqrt(width));
    return this.#weights.get(`${side}_embedding.weight`).subarray(id * width, (id + 1) * width).map((value) => value * scale);
  }

  begin(source: readonly number[], _: Probe): RecurrentState {
    let states = [...source, END].map((id) => this.embed("source", id));
    let last: Float32Array = new Float32Array(0);
    for (const directions of this.#encoder) {
      const runs = directions.map((cell, backward) => {
        const result: Float32Array[] = [];
        let state = cell.zero();
        for (const position of backward ? [...states.keys()].reverse() : states.keys()) {
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
      layers: this.#decoder.map((cell, layer) => cell.starting(tanh(this.#first[layer].apply(last)))),
      feed: this.architecture.input_feeding ? new Float32Array(this.architecture.embedding) : null,
      keys: this.score ? this.score.prepare(encoded) : [],
      contexts: new Float32Array(0),
      written: new Float32Array(0),
    };
  }

  step(state: RecurrentState, tokens: readonly number[], probe: Probe): Float32Array {
    const embedded = tokens.map((id) => this.embed("target", id));
    if (!this.score) state.written = tanh(this.#combine.apply(this.#run(state, embedded)));
    else if (this.architecture.order === "before") {
      const contexts = this.#attend(state, probe);
      const tops = rowsOf(this.#run(state, embedded.map((token, row) => concatenate([token, contexts[row]]))), this.architecture.width);
      state.written = tanh(this.#combine.apply(concatenate(embedded.flatMap((token, row) => [tops[row], contexts[row], token]))));
    } else {
      const { feed } = state;
      const fed = feed ? rowsOf(feed, this.architecture.embedding) : null;
      const tops = rowsOf(this.#run(state, fed ? embedded.map((token, row) => concatenate([token, fed[row]])) : embedded), this.architecture.width);
      const contexts = this.#attend(state, probe);
      state.written = tanh(this.#combine.apply(concatenate(contexts.flatMap((context, row) => [context, tops[row]]))));
      if (feed) state.feed = state.written;
    }
    state.position++;
    return state.written;
  }

  select(state: RecurrentState, order: readonly number[]): RecurrentState {
    const gather = (matrix: Float32Array): Float32Array => {
      const rows = rowsOf(matrix, matrix.length / state.rows);
      return concatenate(order.map((row) => rows[row]));
    };
    const layers = state.layers.map(({ hidden, cell }) => ({ hidden: gather(hidden), cell: cell && gather(cell) }));
    return { ...state, rows: order.length, layers, feed: state.feed && gather(state.feed) };
  }

  /** The state of the top layer, (row, width). */
  query(state: RecurrentState): Float32Array {
    return state.layers[state.layers.length - 1].hidden;
  }

  /** Run the layers over one step; returns the states of the top layer. */
  #run(state: RecurrentState, inputs: Float32Array[]): Float32Array {
    let states = concatenate(inputs);
    state.layers = state.layers.map((before, layer) => {
      const after = this.#decoder[layer].step(states, before);
      states = after.hidden;
      return after;
    });
    return states;
  }

  /** Attend with the state of the top layer; returns one context per row. */
  #attend(state: RecurrentState, probe: Probe): Float32Array[] {
    const values = rowsOf(state.encoded, this.architecture.encoder_width);
    const contexts = rowsOf(this.query(state), this.architecture.width).map((query, row) => {
      const weights = this.score!.scores(query, state.keys);
      softmax(weights);
      const weightRow = { site: "cross" as const, layer: 0, head: 0, query: state.position };
      probe.edit?.(weights, weightRow);
      probe.onWeights?.(weights, weightRow, row);
      return values.reduce((sum, value, key) => add(sum, value.map((number) => number * weights[key])), new Float32Array(this.architecture.encoder_width));
    });
    state.contexts = concatenate(contexts);
    return contexts;
  }
}
