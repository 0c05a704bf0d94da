/** The format of an explanation (docs/explanation-format.md), and unpacking of its numbers. */

import type { Change } from "./changes";
import type { MetricsLine } from "./metrics";

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
  /** A second byte per weight, if four decimals are stored. */
  fine?: string;
}

export interface TokenizedSentence {
  text: string;
  ids: number[];
  tokens: string[];
  words: string[];
  word_of_token: number[];
}

/** A picture as the model sees it; its patches are the tokens of the source, row by row. */
export interface PatchedPicture {
  rows: number;
  columns: number;
  /** A PNG in a data: URL. */
  image: string;
}

/** The candidates of one search step, one array per field. */
export interface SearchStep {
  parent: number[];
  id: number[];
  token: string[];
  score: (number | null)[];
  log_prob: (number | null)[];
  kept: boolean[];
  finished: boolean[];
  ranking: (number | null)[];
  attention_row: number[];
}

export interface Search {
  beam: number;
  length_penalty: number;
  best: [number, number] | null;
  steps: SearchStep[];
  attention: Packed | null;
}

/** The change in the translation's log-probability when these heads, [layer, head], are silenced together. */
export interface GroupEffect {
  site: Site;
  heads: [number, number][];
  effect: number | null;
}

export type Table = (number | null)[][];
export type StatisticName = "entropy" | "distance" | "on_special" | "error" | "effect";
/** `token_effect`, (layer, head, step), is the effect on each target token and `</s>`. Older pages lack it. */
export type Statistics = Record<StatisticName, Table | null> & { token_effect?: PackedFloats | null };

export interface PackedFloats {
  shape: number[];
  float32: string;
}

/** The most probable tokens of a step, best first: id, token, probability. */
export type NextTokens = [number, string, number][];

/** Measures, other than the weights, of how much a word matters: src/jumok/analysis/measures.py. */
export interface Measures {
  /** (layer, head, key) */
  value_norms: Partial<Record<Site, Packed>>;
  /** (step, key). Empty in a file with a model: the browser computes no gradients. */
  gradient: Partial<Record<"cross" | "decoder", PackedFloats>>;
  /** (step, source word); null while single cells are changed. */
  erasure: PackedFloats | null;
}

export interface Step extends PackedFloats {
  name: string;
  formula: string;
  over: "width" | "keys" | "cells" | "number";
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

export interface Training {
  schedule: "inverse-sqrt" | "cosine" | "constant";
  learning_rate: number;
  warmup: number;
  steps: number;
  /** [step, total]: from that step on, the run planned this total number of steps. Older pages lack it. */
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
  /** The engine that wrote the translation, if torch, which explains it, would have written another text. */
  written_by?: string;
  /** On a page that was saved from Compare: the model that wrote this translation, if another one did. */
  translation_by?: string;
  /** On a page that was saved: how many of the `forced` tokens were given, if changes force more of them. */
  given_tokens?: number;
}

/** A text that is translated in several parts: its translation, those of its parts, and which part is explained. A part is a sentence, or a part of one that is too long for the model. */
export interface WholeText {
  text: string;
  parts: { source: string; text: string }[];
  index: number;
}

/** The translation before the changes, and its log-probability without and with them. */
export interface BeforeChange {
  target: TokenizedSentence;
  log_prob: number | null;
  log_prob_changed: number | null;
  /** Per token, without the changes and with them. Older pages lack them. */
  log_probs?: (number | null)[];
  log_probs_changed?: (number | null)[];
}

export interface Explanation {
  /** Only in answers of a live page. */
  whole_text?: WholeText;
  format: string;
  version: number;
  facts: Facts;
  source: TokenizedSentence;
  target: TokenizedSentence;
  score: number | null;
  log_prob: number | null;
  log_probs: (number | null)[];
  ended: boolean;
  forced: number;
  candidates: NextTokens[];
  attention: Partial<Record<Site, Packed>>;
  roll_out: Partial<Record<Site, Packed>>;
  statistics: Partial<Record<Site, Statistics>>;
  /** Older pages lack it. */
  group_effects?: GroupEffect[];
  alignments: { name: string; heads: [number, number][]; shift: number; method: string; links: string }[];
  search: Search | null;
  changes: Change[];
  before: BeforeChange | null;
  steps: CellSteps[];
  /** Older pages lack it. */
  measures?: Measures | null;
  /** What the input and each layer would have written at each step. Older pages lack it. */
  layers?: NextTokens[][];
  /** The source, if it is not a sentence. Older pages lack it. */
  picture?: PatchedPicture | null;
}

export interface RunReport {
  name: string;
  finished: boolean;
  source_language: string;
  target_language: string;
  checkpoints: number[];
  metrics: MetricsLine[];
  /** Other runs, which are drawn in the same charts. */
  others: { name: string; metrics: MetricsLine[] }[];
}

/** One head of a model over some sentences of a run's validation set; the fields are those of src/jumok/analysis/head_profile.py. */
export interface HeadProfile {
  model: string;
  site: Site;
  layer: number;
  head: number;
  sentences: number;
  /** How many sentences the validation set has. */
  available: number;
  offset: number | null;
  entropy: number | null;
  on_special: number | null;
  error: number | null;
  effect: number;
  bleu: number;
  bleu_without: number;
  changed: number;
  strongest: { source: string; target: string; effect: number; with_head: string; without_head: string }[];
}

export interface SentenceScore {
  source: string;
  reference: string;
  hypothesis: string;
  chrf: number;
  loss: number | null;
  uncovered: string[];
  repeats: number;
  /** chrF minus that of the checkpoint before the newest. */
  change: number | null;
}

/** Some sentences of a run's validation set, translated by its newest model and scored. */
export interface SentenceScores {
  sentences: SentenceScore[];
  /** How many sentences the validation set has. */
  available: number;
  /** The checkpoint that translated; null for the finished model. */
  step: number | null;
  /** The checkpoint that `change` compares with; null if there is none. */
  previous_step: number | null;
}

/** The explanation of one sentence by the model of a checkpoint. */
export interface CheckpointExplanation {
  step: number;
  explanation: Explanation;
}

/** What a saved page keeps of a run: all that its panel showed. */
export interface StoredRun {
  report: RunReport;
  checkpoints: CheckpointExplanation[];
  sentences: SentenceScores | null;
  headProfiles: HeadProfile[];
}

/** The data embedded in the page: explanations if it is static, models if it is live. */
export interface PageData {
  explanations?: Explanation[];
  /** Of a page that was saved from a live one. */
  run?: StoredRun;
  live?: {
    models: ModelCard[];
    run: boolean;
    sentence: string;
    picture?: string;
    /** The view that a live file was saved with, as in an address. */
    view?: string;
  };
  /** The address of the documentation site, which panels and terms link to; without it, the names of its files are shown. */
  docs?: string;
}

export interface ModelCard {
  name: string;
  facts: Facts;
  reads_pictures?: boolean;
  /** Whether the server writes a page with this model in it. */
  can_be_saved?: boolean;
}

const VERSION = 2;

class FormatError extends Error {}

export function checkFormat(explanation: Explanation): Explanation {
  if (explanation?.format !== "jumok-explanation" || explanation.version !== VERSION) {
    throw new FormatError(`This page reads explanations of version ${VERSION}. Received: ${explanation?.format} ${explanation?.version}.`);
  }
  return explanation;
}

function bytes(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

const FINE_STEPS = 254;
const unpacked = new WeakMap<Packed, Float32Array>();

/** The weights of a packed array, the last axis fastest. The result is cached. */
export function weights(packed: Packed): Float32Array {
  const cached = unpacked.get(packed);
  if (cached) return cached;
  const codes = bytes(packed.codes);
  const fine = packed.fine === undefined ? null : new Int8Array(bytes(packed.fine).buffer);
  const numbers = Float32Array.from(codes, (code, i) => packed.scale * ((code + (fine ? fine[i] / FINE_STEPS : 0)) / 255) ** 2);
  const size = packed.shape.reduce((product, length) => product * length, 1);
  const result = new Float32Array(size);
  if (packed.layout === "full") {
    for (let i = 0; i < size; i++) result[i] = numbers[i];
  } else {
    const length = packed.shape[packed.shape.length - 1];
    let from = 0;
    for (let to = 0; to < size; to += length * length)
      for (let row = 0; row < length; row++)
        for (let column = 0; column <= row; column++) result[to + row * length + column] = numbers[from++];
  }
  unpacked.set(packed, result);
  return result;
}

const unpackedFloats = new WeakMap<PackedFloats, Float32Array>();

/** Packed floats, exactly. The result is cached. */
export function floats(packed: PackedFloats): Float32Array {
  let values = unpackedFloats.get(packed);
  if (!values) unpackedFloats.set(packed, (values = new Float32Array(bytes(packed.float32).buffer)));
  return values;
}
