/** The Transformer (encoder and decoder), as in src/jumok/models/transformer.py. */

import { add, concatenate, erf, rowsOf, sigmoid } from "./arrays";
import type { Site, TransformerArchitecture, Weights } from "./model_file";
import { END, OutputLayer, Projection, type Model, type Probe, type Sites, type State } from "./model";
import { MultiHead, type Memory, type QueryRow } from "./multi_head";
import { addedPositions, headPositions, NO_POSITIONS, type AddedPositions } from "./positions";

const EPSILON = 1e-5;

const ACTIVATIONS: Record<TransformerArchitecture["activation"], (value: number) => number> = {
  relu: (value) => Math.max(0, value),
  swish: (value) => value * sigmoid(value),
  gelu: (value) => 0.5 * value * (1 + erf(value / Math.SQRT2)),
};

type Norm = (states: Float32Array) => Float32Array;

function makeNorm({ norm_kind: kind, width }: TransformerArchitecture, weights: Weights, name: string): Norm {
  const gain = weights.get(`${name}.weight`);
  const bias = weights.optional(`${name}.bias`);
  if (kind === "batch") {
    const [mean, variance] = [weights.get(`${name}.mean`), weights.get(`${name}.variance`)];
    const normalise = (value: number, column: number) =>
      ((value - mean[column]) / Math.sqrt(variance[column] + EPSILON)) * gain[column] + bias![column];
    return (states) => states.map((value, i) => normalise(value, i % width));
  }
  return (states) => {
    const result = new Float32Array(states.length);
    for (let start = 0; start < states.length; start += width) {
      let [sum, squares] = [0, 0];
      if (kind === "layer") for (let i = 0; i < width; i++) sum += states[start + i];
      const mean = sum / width; // 0 for the norm "rms", which subtracts no mean
      for (let i = 0; i < width; i++) squares += (states[start + i] - mean) ** 2;
      const factor = 1 / Math.sqrt(squares / width + EPSILON);
      for (let i = 0; i < width; i++) result[start + i] = (states[start + i] - mean) * factor * gain[i] + (bias ? bias[i] : 0);
    }
    return result;
  };
}

/** The residual connection and the norm around one sublayer. */
export class Residual {
  readonly norm: Norm;
  readonly isPre: boolean;

  constructor(architecture: TransformerArchitecture, weights: Weights, name: string) {
    this.norm = makeNorm(architecture, weights, `${name}.norm`);
    this.isPre = architecture.norm === "pre";
  }

  /** The input of the sublayer. */
  input(states: Float32Array): Float32Array {
    return this.isPre ? this.norm(states) : states;
  }

  /** Add the output of the sublayer to the states before it. With post-norm, the sum is normalised. */
  addTo(states: Float32Array, sublayerOutput: Float32Array): Float32Array {
    const sum = add(states, sublayerOutput);
    return this.isPre ? sum : this.norm(sum);
  }
}

class FeedForward {
  #widen: Projection;
  #narrow: Projection;
  #activation: (value: number) => number;
  #around: Residual;

  constructor(architecture: TransformerArchitecture, weights: Weights, block: string) {
    this.#widen = new Projection(weights, `${block}.feed_forward.widen`);
    this.#narrow = new Projection(weights, `${block}.feed_forward.narrow`);
    this.#activation = ACTIVATIONS[architecture.activation];
    this.#around = new Residual(architecture, weights, `${block}.around_feed_forward`);
  }

  /** Returns the output of the whole layer, after the residual connection. `report` is called with the hidden layer, the output of the
   * network and the output of the layer. Each of these arrays contains all rows of `states`. */
  apply(states: Float32Array, report?: (hidden: Float32Array, networkOutput: Float32Array, layerOutput: Float32Array) => void): Float32Array {
    const hidden = this.#widen.apply(this.#around.input(states));
    for (let i = 0; i < hidden.length; i++) hidden[i] = this.#activation(hidden[i]);
    const networkOutput = this.#narrow.apply(hidden);
    const layerOutput = this.#around.addTo(states, networkOutput);
    report?.(hidden, networkOutput, layerOutput);
    return layerOutput;
  }
}

/** An attention of a block, with the residual connection and the norm around it. */
export interface Sublayer {
  attention: MultiHead;
  around: Residual;
}

interface EncoderBlock {
  self: Sublayer;
  feedForward: FeedForward;
}

interface DecoderBlock extends EncoderBlock {
  cross: Sublayer;
}

/** The embeddings of tokens: √width · E[token], plus the encoding of the position. */
export class Embedding {
  readonly positions: AddedPositions;
  readonly width: number;
  #table: Float32Array;

  constructor(architecture: TransformerArchitecture, weights: Weights, name: string) {
    this.#table = weights.get(`${name}.weight`);
    this.width = architecture.width;
    this.positions = addedPositions(architecture, weights, name);
  }

  /** The embedding √width · E[token], without the position. */
  token(id: number): Float32Array {
    const scale = Math.sqrt(this.width);
    return this.#table.subarray(id * this.width, (id + 1) * this.width).map((value) => value * scale);
  }

  at(id: number, position: number): Float32Array {
    return add(this.token(id), this.positions(position));
  }
}

export interface TransformerState extends State {
  /** For each decoder layer: the keys and values of the source. */
  sources: Memory[];
  /** For each hypothesis and decoder layer: the keys and values of the target so far. */
  caches: Memory[][];
}

export class Transformer implements Model<TransformerState> {
  readonly sites: Sites;
  readonly activation: TransformerArchitecture["activation"];
  readonly output: OutputLayer;
  readonly sourceEmbedding: Embedding;
  readonly targetEmbedding: Embedding;
  readonly encoder: EncoderBlock[];
  readonly decoder: DecoderBlock[];
  #width: number;
  #afterEncoder: Norm;
  #afterDecoder: Norm;

  constructor(architecture: TransformerArchitecture, weights: Weights) {
    const { heads, encoder_layers: encoderLayers, decoder_layers: decoderLayers } = architecture;
    this.sites = { encoder: { layers: encoderLayers, heads }, decoder: { layers: decoderLayers, heads }, cross: { layers: decoderLayers, heads } };
    this.#width = architecture.width;
    this.activation = architecture.activation;
    this.output = new OutputLayer(weights);
    this.sourceEmbedding = new Embedding(architecture, weights, "source_embedding");
    this.targetEmbedding = new Embedding(architecture, weights, "target_embedding");
    const finalNorm = (name: string): Norm => (architecture.norm === "pre" ? makeNorm(architecture, weights, name) : (states) => states);
    [this.#afterEncoder, this.#afterDecoder] = [finalNorm("after_encoder"), finalNorm("after_decoder")];
    const sublayer = (block: string, attention: string, around: string, causal: boolean | null): Sublayer => {
      const name = `${block}.${attention}`;
      const positions = causal === null ? NO_POSITIONS : headPositions(architecture, weights, name, causal);
      return { attention: new MultiHead(architecture, weights, name, positions), around: new Residual(architecture, weights, `${block}.${around}`) };
    };
    const block = (name: string, causal: boolean): EncoderBlock => ({
      self: sublayer(name, "attention", "around_attention", causal),
      feedForward: new FeedForward(architecture, weights, name),
    });
    this.encoder = Array.from({ length: encoderLayers }, (_, layer) => block(`encoder.${layer}`, false));
    this.decoder = Array.from({ length: decoderLayers }, (_, layer) => ({
      ...block(`decoder.${layer}`, true),
      cross: sublayer(`decoder.${layer}`, "cross_attention", "around_cross", null),
    }));
  }

  begin(source: readonly number[], probe: Probe): TransformerState {
    const ids = [...source, END];
    let states = concatenate(ids.map((id, position) => this.sourceEmbedding.at(id, position)));
    this.encoder.forEach(({ self, feedForward }, layer) => {
      const normed = self.around.input(states);
      this.#reportInput(probe, "encoder", layer, 0, states, normed);
      const memory = self.attention.memory(normed, [...ids.keys()]);
      const rows = ids.map((_, position) => ({ memory, position, hypothesis: 0 }));
      states = self.around.addTo(states, self.attention.attend(normed, rows, "encoder", layer, probe));
      states = feedForward.apply(states, this.#feedForwardReport(probe, "encoder", layer, 0));
    });
    const encoded = this.#afterEncoder(states);
    return {
      rows: 1,
      position: 0,
      encoded,
      sources: this.decoder.map(({ cross }) => cross.attention.memory(encoded, [...ids.keys()])),
      caches: [this.decoder.map(() => ({ keys: [], values: [] }))],
    };
  }

  step(state: TransformerState, tokens: readonly number[], probe: Probe): Float32Array {
    const { position } = state;
    let states = concatenate(tokens.map((id) => this.targetEmbedding.at(id, position)));
    probe.onLayer?.(0, states);
    this.decoder.forEach(({ self, cross, feedForward }, layer) => {
      const normed = self.around.input(states);
      this.#reportInput(probe, "decoder", layer, position, states, normed);
      const newMemory = self.attention.memory(normed, tokens.map(() => position));
      const rows: QueryRow[] = tokens.map((_, hypothesis) => {
        const memory = state.caches[hypothesis][layer];
        memory.keys.push(newMemory.keys[hypothesis]);
        memory.values.push(newMemory.values[hypothesis]);
        return { memory, position, hypothesis };
      });
      states = self.around.addTo(states, self.attention.attend(normed, rows, "decoder", layer, probe));
      const crossInput = cross.around.input(states);
      this.#reportInput(probe, "cross", layer, position, states, crossInput);
      const crossRows = tokens.map((_, hypothesis) => ({ memory: state.sources[layer], position, hypothesis }));
      states = cross.around.addTo(states, cross.attention.attend(crossInput, crossRows, "cross", layer, probe));
      states = feedForward.apply(states, this.#feedForwardReport(probe, "decoder", layer, position));
      probe.onLayer?.(layer + 1, states);
    });
    state.position++;
    return this.#afterDecoder(states);
  }

  /** The log-probabilities that the model would compute if the layer with these states (row, width) were its last layer. Returns one array
   * per row. */
  predict(states: Float32Array): Float32Array[] {
    return this.output.logProbs(this.#afterDecoder(states));
  }

  select(state: TransformerState, order: readonly number[]): TransformerState {
    const copy = ({ keys, values }: Memory): Memory => ({ keys: keys.slice(), values: values.slice() });
    return { ...state, rows: order.length, caches: order.map((hypothesis) => state.caches[hypothesis].map(copy)) };
  }

  /** The function that `FeedForward.apply` calls for this probe; undefined if the probe has no `onFeedForward`. The function receives the
   * states of consecutive positions. The first of these positions is `firstPosition`. In the encoder these are all positions of the
   * source. In the decoder this is one position, because a probe with `onFeedForward` assumes that there is only one hypothesis. */
  #feedForwardReport(probe: Probe, side: "encoder" | "decoder", layer: number, firstPosition: number) {
    const { onFeedForward } = probe;
    if (!onFeedForward) return undefined;
    return (hidden: Float32Array, networkOutput: Float32Array, layerOutput: Float32Array) => {
      const numPositions = layerOutput.length / this.#width;
      const [hiddenRows, networkRows, layerRows] = [hidden, networkOutput, layerOutput].map((values) => rowsOf(values, values.length / numPositions));
      for (let i = 0; i < numPositions; i++) onFeedForward(side, layer, firstPosition + i, hiddenRows[i], networkRows[i], layerRows[i]);
    };
  }

  /** Call `onInput` of the probe, if it has one, for each position of `states`. The first of these positions is `firstPosition`. As in
   * `#feedForwardReport`, a decoder state must have only one hypothesis. */
  #reportInput(probe: Probe, site: Site, layer: number, firstPosition: number, states: Float32Array, normed: Float32Array): void {
    if (!probe.onInput) return;
    const inputs = rowsOf(normed, this.#width);
    rowsOf(states, this.#width).forEach((state, i) => probe.onInput!(site, layer, firstPosition + i, state, inputs[i]));
  }
}
