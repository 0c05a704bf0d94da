/** Reads the model in a live file: a description and the weights as bytes. src/jumok/analysis/live_file.py writes them. */

import type { Facts, Site } from "../lib/format";

export type { Site };

/** The place of a tensor in the bytes. */
export interface StoredTensor {
  shape: number[];
  kind: "float32" | "float16" | "int8";
  /** The offset of the first element. */
  offset: number;
  /** Only for int8: the offset of the first scale. The elements that differ only in their last index share one scale, a float32. */
  scales?: number;
}

export interface TransformerArchitecture {
  family: "transformer";
  width: number;
  heads: number;
  /** The number of groups of heads: see `MultiHead.groupOf`. */
  groups: number;
  key_width: number;
  value_width: number;
  norm: "pre" | "post";
  norm_kind: "layer" | "rms" | "batch";
  activation: "relu" | "swish" | "gelu";
  positions: "sinusoidal" | "marian" | "learned" | "none" | "rotary" | "alibi" | "relative-keys" | "relative-bias";
  encoder_layers: number;
  decoder_layers: number;
}

export type Score = "scaled-dot" | "bahdanau" | "luong-dot" | "luong-general" | "luong-concat";

export interface RecurrentArchitecture {
  family: "recurrent";
  cell: "rnn" | "lstm" | "gru";
  /** The width of the states of the decoder. */
  width: number;
  /** The width of the states of the encoder, with both directions. */
  encoder_width: number;
  /** The width of an embedding. */
  embedding: number;
  encoder_layers: number;
  decoder_layers: number;
  bidirectional: boolean;
  attention: Score | "none";
  /** Whether the decoder attends before or after its cells compute the new state. */
  order: "before" | "after";
  input_feeding: boolean;
}

export interface StoredTokenizer {
  kind: "unigram" | "bpe";
  byte_fallback: boolean;
  tokens: string[];
  scores: number[];
  /** One letter per token: n (normal), u (unknown), c (control), d (defined by the user), b (byte) or x (unused). */
  types: string;
}

export interface SearchSettings {
  beam: number;
  patience_factor: number;
  length_penalty: number;
  coverage_penalty: number;
  no_repeat_ngram_size: number;
  max_length_ratio: number;
  extra_tokens: number;
  min_length: number;
}

export interface StoredModel {
  format: "jumok-live-model";
  version: 1;
  architecture: TransformerArchitecture | RecurrentArchitecture;
  tensors: Record<string, StoredTensor>;
  source: StoredTokenizer;
  /** Null if source and target share one tokenizer. */
  target: StoredTokenizer | null;
  search: SearchSettings;
  read_out: { heads: [number, number][]; shift: number; min_source_weight: number | null } | null;
  max_source_tokens: number;
  sentences: "split" | "keep";
  facts: Facts;
}

/** The weights of a model by name, in single precision. */
export class Weights {
  #tensors: Record<string, StoredTensor>;
  #bytes: Uint8Array;
  #decoded = new Map<string, Float32Array>();

  constructor(tensors: Record<string, StoredTensor>, bytes: Uint8Array) {
    this.#tensors = tensors;
    this.#bytes = bytes;
  }

  has(name: string): boolean {
    return name in this.#tensors;
  }

  shape(name: string): number[] {
    return this.#stored(name).shape;
  }

  get(name: string): Float32Array {
    const stored = this.#stored(name);
    const key = `${stored.kind}:${stored.offset}`; // tied tensors have the same offset, and are decoded only once
    const decoded = this.#decoded.get(key);
    if (decoded) return decoded;
    const values = this.#decode(stored);
    this.#decoded.set(key, values);
    return values;
  }

  optional(name: string): Float32Array | null {
    return this.has(name) ? this.get(name) : null;
  }

  #stored(name: string): StoredTensor {
    const stored = this.#tensors[name];
    if (!stored) throw new Error(`The model in this file is damaged: it has no tensor ${name}.`);
    return stored;
  }

  #decode({ shape, kind, offset, scales }: StoredTensor): Float32Array {
    const size = shape.reduce((product, length) => product * length, 1);
    const view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
    const result = new Float32Array(size);
    if (kind === "float32") for (let i = 0; i < size; i++) result[i] = view.getFloat32(offset + 4 * i, true);
    else if (kind === "float16") for (let i = 0; i < size; i++) result[i] = fromHalf(view.getUint16(offset + 2 * i, true));
    else {
      const columns = shape[shape.length - 1];
      for (let i = 0; i < size; i++) result[i] = view.getInt8(offset + i) * view.getFloat32(scales! + 4 * Math.floor(i / columns), true);
    }
    return result;
  }
}

/** Convert the bits of a 16-bit float (IEEE 754 binary16) to a number. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export function bytesFromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The number of bytes that are passed to `String.fromCharCode` at once. With more arguments, some browsers exceed their stack size. */
const CHUNK_SIZE = 0x8000;

export function base64FromBytes(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let start = 0; start < bytes.length; start += CHUNK_SIZE) parts.push(String.fromCharCode(...bytes.subarray(start, start + CHUNK_SIZE)));
  return btoa(parts.join(""));
}
