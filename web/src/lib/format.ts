/** The format of an explanation, as docs/explanation-format.md describes it, and how its numbers are unpacked. */

export type Site = "encoder" | "decoder" | "cross";
export const SITES: Site[] = ["cross", "encoder", "decoder"];

export function isSite(name: string | null | undefined): name is Site {
  return SITES.includes(name as Site);
}

export interface Packed {
  shape: number[];
  layout: "full" | "causal";
  scale: number;
  codes: string;
  /** A second byte a weight, where four decimals can be read off. */
  fine?: string;
}

export interface Side {
  text: string;
  ids: number[];
  pieces: string[];
  words: string[];
  word_of_piece: number[];
}

export interface Columns {
  parent: number[];
  id: number[];
  piece: string[];
  score: (number | null)[];
  log_prob: (number | null)[];
  kept: boolean[];
  finished: boolean[];
  ranking: (number | null)[];
  looked: number[];
}

export interface Search {
  beam: number;
  length_penalty: number;
  best: [number, number] | null;
  steps: Columns[];
  looks: Packed | null;
}

/** What happens to the translation's log-probability when these heads, as [layer, head], are silenced together. */
export interface GroupEffect {
  site: Site;
  heads: [number, number][];
  effect: number | null;
}

export type Table = (number | null)[][];
export type StatisticName = "entropy" | "distance" | "on_mark" | "error" | "effect";
export type Statistics = Record<StatisticName, Table | null>;

export interface Step {
  name: string;
  formula: string;
  over: "width" | "keys" | "cells" | "number";
  shape: number[];
  float32: string;
}

export interface Cell {
  site: Site;
  layer: number;
  head: number;
  query: number;
  key: number;
}

export interface CellSteps extends Cell {
  steps: Step[];
}

export type Change = { site: Site; layer: number | null; head: number | null } & (
  | { kind: "silence" }
  | { kind: "paint"; query: number; key: number; weight: number }
  | { kind: "pin"; queries: number[]; keys: number[] }
);

export interface Training {
  schedule: "inverse-sqrt" | "cosine" | "constant";
  learning_rate: number;
  warmup: number;
  steps: number;
  /** How many steps were planned, from which step on. Pages that were saved earlier do not tell. */
  plan?: [number, number | null][];
}

export interface Facts {
  name?: string;
  family?: string;
  parameters?: number;
  mechanisms?: Partial<Record<Site, string>>;
  source_language?: string;
  target_language?: string;
  norm?: string;
  cell?: string;
  training?: Training;
}

export interface Explanation {
  format: string;
  version: number;
  facts: Facts;
  source: Side;
  target: Side;
  score: number | null;
  log_prob: number | null;
  log_probs: (number | null)[];
  ended: boolean;
  forced: number;
  candidates: [number, string, number][][];
  attention: Partial<Record<Site, Packed>>;
  roll_out: Partial<Record<Site, Packed>>;
  statistics: Partial<Record<Site, Statistics>>;
  /** Pages that were saved earlier have none. */
  group_effects?: GroupEffect[];
  alignments: { name: string; heads: [number, number][]; shift: number; method: string; links: string }[];
  search: Search | null;
  changes: Change[];
  before: { target: Side; log_prob: number | null; log_prob_changed: number | null } | null;
  steps: CellSteps[];
}

/** What stands in the page: explanations where it is frozen, the models that can be asked where it is live. */
export interface PageData {
  explanations?: Explanation[];
  live?: { models: ModelCard[]; run: boolean; sentence: string };
}

export interface ModelCard {
  name: string;
  facts: Facts;
}

class FormatError extends Error {}

export function checkFormat(explanation: Explanation): Explanation {
  if (explanation?.format !== "jumok-explanation" || explanation.version !== 1) {
    throw new FormatError(`This page reads explanations of version 1. Received: ${explanation?.format} ${explanation?.version}.`);
  }
  return explanation;
}

function bytes(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

const FINE = 254;
const unpacked = new WeakMap<Packed, Float32Array>();

/** The weights of a packed array, the last axis fastest. Each array is unpacked once. */
export function weights(packed: Packed): Float32Array {
  const known = unpacked.get(packed);
  if (known) return known;
  const codes = bytes(packed.codes);
  const added = packed.fine === undefined ? null : new Int8Array(bytes(packed.fine).buffer);
  const numbers = Float32Array.from(codes, (code, i) => packed.scale * ((code + (added ? added[i] / FINE : 0)) / 255) ** 2);
  const size = packed.shape.reduce((product, length) => product * length, 1);
  const found = new Float32Array(size);
  if (packed.layout === "full") {
    for (let i = 0; i < size; i++) found[i] = numbers[i];
  } else {
    const length = packed.shape[packed.shape.length - 1];
    let from = 0;
    for (let to = 0; to < size; to += length * length)
      for (let row = 0; row < length; row++)
        for (let column = 0; column <= row; column++) found[to + row * length + column] = numbers[from++];
  }
  unpacked.set(packed, found);
  return found;
}

/** The numbers of a step, exactly. */
export function floats(step: Step): Float32Array {
  return new Float32Array(bytes(step.float32).buffer);
}
