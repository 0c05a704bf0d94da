/** The types of an explanation (docs/explanation-format.md) and of the other data of the page, and functions that unpack their numbers. */

import type { Change } from "./changes";
import type { MetricsLine } from "./metrics";

export type Site = "encoder" | "decoder" | "cross";
export const SITES: Site[] = ["cross", "encoder", "decoder"];

export function isSite(name: string | null | undefined): name is Site {
  return SITES.includes(name as Site);
}

/** Packed weights: src/jumok/analysis/packing.py. */
export interface Packed {
  shape: number[];
  /** "causal" if only the weights of keys that are not after the query are stored. The other weights are 0. */
  layout: "full" | "causal";
  /** The weight that the byte 255 in `codes` stands for. */
  scale: number;
  /** One byte per weight, in base64. */
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

/** The candidates of one search step, with one array per field. `Candidate` in engine/search.ts describes most of the fields. */
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
  /** The candidate whose hypothesis is the translation, as [step, index]. */
  best: [number, number] | null;
  steps: SearchStep[];
  attention: Packed | null;
}

/** The effect of silencing several heads together. */
export interface GroupEffect {
  site: Site;
  /** Each head as [layer, head]. */
  heads: [number, number][];
  /** The change in the translation's log-probability. */
  effect: number | null;
}

export type Table = (number | null)[][];
export type StatisticName = "entropy" | "distance" | "on_special" | "error" | "effect";
/** `token_effect` is the effect of each head on each target token and `</s>`, with the axes (layer, head, step). Older pages lack it. */
export type Statistics = Record<StatisticName, Table | null> & { token_effect?: PackedFloats | null };

export interface PackedFloats {
  shape: number[];
  float32: string;
}

/** The most probable tokens of a step, best first: id, token, probability. */
export type NextTokens = [number, string, number][];

/** Measures of how much a word matters, in addition to the weights: src/jumok/analysis/measures.py. */
export interface Measures {
  /** Axes: (layer, head, key). */
  value_norms: Partial<Record<Site, Packed>>;
  /** Axes: (step, key). Empty in a live file, because the engine in the browser computes no gradients. */
  gradient: Partial<Record<"cross" | "decoder", PackedFloats>>;
  /** Axes: (step, source word). Null while single cells are changed. */
  erasure: PackedFloats | null;
}

export interface Step extends PackedFloats {
  name: string;
  formula: string;
  /** What the values stand for: the elements of a vector, the keys, the cells of a map, or a single number. */
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
  /** Each entry is [step, total]: from this step on, the run was planned to have `total` steps (null: no planned end). Older pages lack it. */
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
  /** The engine with which this model wrote the translation. Present only if torch, which computes the explanation, would have written
   * another text. */
  written_by?: string;
  /** The name of the other model whose translation this model reads. The panel Compare of a live page adds this fact, and pages that are
   * saved from Compare keep it. */
  translation_by?: string;
  /** On a saved page: how many of the `forced` tokens are a given prefix. Present only if there is such a prefix and changes force further
   * tokens. */
  given_tokens?: number;
}

/** A text that is translated in several parts. A part is a sentence, or a piece of a sentence that is too long for the model. */
export interface WholeText {
  /** The translation of the whole text. */
  text: string;
  /** The source and the translation of each part. */
  parts: { source: string; text: string }[];
  /** The index of the part that is explained. */
  index: number;
}

/** The translation before the changes, and its log-probability without and with the changes. */
export interface BeforeChange {
  target: TokenizedSentence;
  log_prob: number | null;
  log_prob_changed: number | null;
  /** The log-probability of each token, without and with the changes. Older pages lack these numbers. */
  log_probs?: (number | null)[];
  log_probs_changed?: (number | null)[];
}

export interface Explanation {
  /** Present if the text has several parts. Only in answers that a live page receives, and in what such a page saves. */
  whole_text?: WholeText;
  format: string;
  version: number;
  facts: Facts;
  source: TokenizedSentence;
  target: TokenizedSentence;
  score: number | null;
  log_prob: number | null;
  log_probs: (number | null)[];
  /** Whether the translation ends with `</s>`. False, for example, if it has reached the maximum length. */
  ended: boolean;
  /** How many of the first tokens of the translation were not chosen by the search. */
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
  /** The logit lens: the tokens that the input and each layer would have predicted at each step. Older pages lack it. */
  layers?: NextTokens[][];
  /** The source, if it is a picture instead of a sentence. Older pages lack it. */
  picture?: PatchedPicture | null;
}

export interface RunReport {
  name: string;
  finished: boolean;
  source_language: string;
  target_language: string;
  /** The steps of the checkpoints. */
  checkpoints: number[];
  metrics: MetricsLine[];
  /** Other runs that are drawn in the same charts for comparison. */
  others: { name: string; metrics: MetricsLine[] }[];
}

/** Statistics of one head of a model over some sentences of a run's validation set. src/jumok/analysis/head_profile.py describes the
 * fields. */
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
  /** How many translations change without the head. */
  changed: number;
  /** The sentences whose reference translations (`target`) lose most log-probability without the head. `with_head` and `without_head` are
   * translations of the model. */
  strongest: { source: string; target: string; effect: number; with_head: string; without_head: string }[];
}

/** The scores of a sentence of a run's validation set. src/jumok/analysis/sentence_scores.py describes the fields. */
export interface SentenceScore {
  source: string;
  reference: string;
  hypothesis: string;
  chrf: number;
  loss: number | null;
  uncovered: string[];
  repeats: number;
  /** `chrf` minus the chrF of the checkpoint `previous_step`; null if there is no such checkpoint. */
  change: number | null;
}

/** Some sentences of a run's validation set, translated by its newest model and scored. */
export interface SentenceScores {
  sentences: SentenceScore[];
  /** How many sentences the validation set has. */
  available: number;
  /** The step of the checkpoint that translated the sentences; null for the finished model. */
  step: number | null;
  /** The step of the checkpoint that `change` compares with; null if there is no such checkpoint. */
  previous_step: number | null;
}

/** The explanation of one sentence by the model of a checkpoint. */
export interface CheckpointExplanation {
  step: number;
  explanation: Explanation;
}

/** The data of a run in a saved page: everything that the panel Run showed. */
export interface StoredRun {
  report: RunReport;
  checkpoints: CheckpointExplanation[];
  sentences: SentenceScores | null;
  headProfiles: HeadProfile[];
}

/** The data embedded in the page: explanations if the page is static, models if it is live. */
export interface PageData {
  explanations?: Explanation[];
  /** Only in a page that was saved from a live page. */
  run?: StoredRun;
  live?: {
    models: LiveModel[];
    /** Whether the page shows a run. */
    run: boolean;
    sentence: string;
    picture?: string;
    /** The view with which a live file was saved: the fragment of the page's address, without "#". */
    view?: string;
    /** Whether the story opens on the first visit. Default: true. */
    story?: boolean;
  };
  /** The address of the documentation site, to which panels and terms link. Without it, the page shows the names of the files in docs/. */
  docs?: string;
}

/** A model that can be chosen on a live page. */
export interface LiveModel {
  name: string;
  facts: Facts;
  reads_pictures?: boolean;
  /** Whether the server can write a page that contains this model. */
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

/** How many steps of the byte in `fine` make one step of the byte in `codes`, as in src/jumok/analysis/packing.py and engine/packing.ts. */
const FINE_STEPS = 254;
const unpacked = new WeakMap<Packed, Float32Array>();

/** The weights of a packed array in row-major order (the last axis varies fastest). The result is cached. */
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
    let next = 0;
    for (let start = 0; start < size; start += length * length)
      for (let row = 0; row < length; row++)
        for (let column = 0; column <= row; column++) result[start + row * length + column] = numbers[next++];
  }
  unpacked.set(packed, result);
  return result;
}

const unpackedFloats = new WeakMap<PackedFloats, Float32Array>();

/** The values of packed floats. Unlike packed weights, they have the full precision of float32. The result is cached. */
export function floats(packed: PackedFloats): Float32Array {
  let values = unpackedFloats.get(packed);
  if (!values) unpackedFloats.set(packed, (values = new Float32Array(bytes(packed.float32).buffer)));
  return values;
}
