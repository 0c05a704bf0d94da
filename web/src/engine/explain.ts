/** Makes explanations like those of `explain` in src/jumok/analysis/explainer.py. docs/explanation-format.md describes their format. */

import type { Change } from "../lib/changes";
import type { Cell, CellSteps, Explanation, GroupEffect, Measures, NextTokens, PackedFloats, Search, Statistics, Table } from "../lib/format";
import { concatenate } from "./arrays";
import { alignments, defaultReadOut, type ReadOut } from "./alignment";
import { checkChanges, checkRows, editFromChanges, firstStep, silenceHeads } from "./edits";
import { valueNorms } from "./measures";
import { BEGIN, END, forwardPass, logProbOf, PAD, sum, tokenLogProbsOf, type Edit, type Model, type Probe, type SiteWeights } from "./model";
import type { SearchSettings, Site, StoredModel } from "./model_file";
import { splitLine } from "./long_lines";
import { joinLines, strip } from "./normalisation";
import { packFloats, packWeights, rounded } from "./packing";
import { replaceParts, textSpans } from "./sentences";
import { beamSearch, largest, type SearchStep } from "./search";
import { traceCell } from "./steps";
import type { TokenizedSentence, Tokenizer } from "./tokenizer";
import { Transformer } from "./transformer";
import type { Span } from "./words";

/** How many of the most probable tokens of each step an explanation contains. */
const NUM_CANDIDATES = 8;
/** How many of the most probable tokens are listed per layer and step. */
const NUM_LAYER_CANDIDATES = 5;
/** The largest number of attention weights that all maps of one explanation may have together. */
const MAX_WEIGHTS = 4_000_000;
/** In a roll-out, the share of a state that comes through the residual connection. */
const RESIDUAL_SHARE = 0.5;

/** The fields of `ExplainRequest` in lib/api.ts that the engine reads. */
export interface ExplainRequest {
  sentence: string;
  /** If the text is translated in several parts: the index of the part that is explained. */
  index?: number;
  changes?: Change[];
  /** The token ids with which the translation must begin. */
  prefix?: number[];
  /** A translation to explain. If it is missing, the model translates. */
  target?: string | null;
  /** Hypotheses per step; 1 is greedy search. If it is missing, the beam of the model's recipe is used. */
  beam?: number | null;
}

export interface Effects {
  effect: Partial<Record<Site, Table>>;
  token_effect: Partial<Record<Site, PackedFloats>>;
  group_effects: GroupEffect[];
}

interface Translation {
  /** The tokens without `</s>`. */
  ids: number[];
  score: number | null;
  /** Whether the translation ends with `</s>`. */
  ended: boolean;
  search: Search | null;
}

/** An explanation, with the inputs that are needed to compute its effects, measures, layer predictions and steps. */
export interface ComputedExplanation {
  document: Explanation;
  source: TokenizedSentence;
  /** The token ids of the translation, without `</s>`. */
  target: number[];
  ended: boolean;
  edit: Edit | null;
  /** The heads of the read-out, each as [layer, head]. */
  readOutHeads: [number, number][];
}

/** A computation in small steps. The generator yields partial translations, or undefined so that other requests can run in between. */
export type Progress<Result> = Generator<string | undefined, Result>;

export class Explainer {
  #model: Model;
  #stored: StoredModel;
  #source: Tokenizer;
  #target: Tokenizer;

  constructor(model: Model, stored: StoredModel, source: Tokenizer, target: Tokenizer) {
    [this.#model, this.#stored, this.#source, this.#target] = [model, stored, source, target];
  }

  /** The best translation of a text, part by part, without an explanation. */
  *translate(text: string, beam: number | null = null): Progress<{ text: string; parts: { source: string; text: string }[] }> {
    const spans = this.#partSpans(text);
    const parts: { source: string; text: string }[] = [];
    for (const [start, end] of spans) {
      const source = this.#tokenizedSource(text.slice(start, end));
      const [best] = yield* beamSearch(this.#model, this.#searchSettings(beam), { source: source.ids, prefix: [], edit: null });
      parts.push({ source: source.text, text: best ? this.#text(best.ids) : "" });
    }
    // Nothing is translated. With "split", the text may have punctuation and symbols, which stay. With "keep", it has no tokens.
    if (!spans.length) return { text: this.#stored.sentences === "split" ? strip(text) : "", parts };
    const translated = parts.map((part) => part.text);
    const isSinglePart = spans.length === 1 && spans[0][1] - spans[0][0] === strip(text).length;
    if (isSinglePart) return { text: translated[0], parts }; // the white space that the model writes at both ends is kept
    return { text: replaceParts(text, spans, translated, this.#stored.facts.target_language ?? ""), parts };
  }

  /** The part of a text with this index, and the number of parts. A text with fewer than two parts is returned whole. */
  partOf(text: string, index: number): { sentence: string; count: number } {
    const spans = this.#partSpans(text);
    if (!(index < Math.max(spans.length, 1))) throw new Error(`The text is translated in ${spans.length} parts, counted from 0. Received: index ${index}.`);
    return { sentence: spans.length < 2 ? text : text.slice(...spans[index]), count: spans.length };
  }

  /** The spans of the parts of a text that are translated separately. A part is a sentence, or a piece of a sentence that is too long for
   * the model. */
  #partSpans(text: string): Span[] {
    const { sentences, max_source_tokens: maxTokens } = this.#stored;
    return textSpans(text, sentences).flatMap(([start, end]): Span[] => {
      const sentence = text.slice(start, end);
      const count = this.#countTokens(sentence);
      if (count <= maxTokens) return count ? [[start, end]] : [];
      let partEnd = start;
      return splitLine(sentence, this.#countTokens, maxTokens).map((part) => {
        const partStart = text.indexOf(part, partEnd);
        partEnd = partStart + part.length;
        return [partStart, partEnd];
      });
    });
  }

  *explain(request: ExplainRequest): Progress<ComputedExplanation> {
    const source = this.#tokenizedSource(request.sentence);
    let prefix = request.prefix ?? [];
    this.#checkPrefix(prefix);
    const changes = request.changes ?? [];
    if (!changes.length) {
      const translation = yield* this.#translation(source, request, prefix, null, true);
      return this.#explanation(source, translation, null, prefix.length, [], null);
    }
    const before = yield* this.#translation(source, request, prefix, null, false);
    checkChanges(changes, forwardPass(this.#model, source.ids, before.ids, null).weights);
    const edit = editFromChanges(changes);
    const first = Math.min(...changes.map(firstStep));
    // The changes cannot affect the tokens before the step `first`, so the search gets these tokens as a prefix.
    if (first > prefix.length) prefix = before.ids.slice(0, first);
    const translation = yield* this.#translation(source, request, prefix, edit, true);
    checkRows(changes, Math.max(before.ids.length, translation.ids.length) + 1);
    return this.#explanation(source, translation, edit, prefix.length, changes, {
      target: this.#tokenizedTarget(before.ids),
      log_prob: rounded(this.#logProb(source, before.ids, before.ended, null)),
      log_prob_changed: rounded(this.#logProb(source, before.ids, before.ended, edit)),
      log_probs: this.#logProbs(source, before.ids, null),
      log_probs_changed: this.#logProbs(source, before.ids, edit),
    });
  }

  /** How the log-probability of the translation changes if heads are silenced: each head alone, and groups of heads together. */
  *effects({ source, target, ended, edit, readOutHeads }: ComputedExplanation): Progress<Effects> {
    const model = this.#model;
    const encoded = model.begin(source.ids, { edit });
    const unchanged = tokenLogProbsOf(model, encoded, target, ended, edit);
    const effect: Effects["effect"] = {};
    const tokenEffect: Effects["token_effect"] = {};
    const groups = new Map<string, GroupEffect>();
    const addGroup = (site: Site, group: [number, number][]) => {
      if (group.length > 1) groups.set(`${site} ${group.join(" ")}`, { site, heads: group, effect: null });
    };
    /** The change in the log-probability of each token if these heads are silenced. */
    const effectOf = (site: Site, group: [number, number][]) => {
      const silenced = silenceHeads(site, group, edit);
      const state = site === "encoder" ? model.begin(source.ids, { edit: silenced }) : encoded;
      return tokenLogProbsOf(model, state, target, ended, silenced).map((logProb, step) => logProb - unchanged[step]);
    };
    for (const [site, { layers, heads: count }] of Object.entries(model.sites) as [Site, { layers: number; heads: number }][]) {
      const table: Table = (effect[site] = []);
      const tokenDifferences: number[] = [];
      const headsOfLayer = (layer: number) => Array.from({ length: count }, (_, head): [number, number] => [layer, head]);
      const headsByLayer = Array.from({ length: layers }, (_, layer) => headsOfLayer(layer));
      for (const headsInLayer of headsByLayer) {
        const row: (number | null)[] = [];
        for (const head of headsInLayer) {
          const differences = effectOf(site, [head]);
          row.push(rounded(sum(differences)));
          tokenDifferences.push(...differences);
          yield;
        }
        table.push(row);
      }
      tokenEffect[site] = packFloats(Float32Array.from(tokenDifferences), [layers, count, unchanged.length]);
      addGroup(site, headsByLayer.flat());
      for (const headsInLayer of headsByLayer) addGroup(site, headsInLayer);
    }
    if (model.sites.cross) addGroup("cross", [...readOutHeads].sort((a, b) => a[0] - b[0] || a[1] - b[1]));
    for (const group of groups.values()) {
      group.effect = rounded(sum(effectOf(group.site, group.heads)));
      yield;
    }
    return { effect, token_effect: tokenEffect, group_effects: [...groups.values()] };
  }

  /** Measures of how much a word matters, in addition to the weights. The gradient is left out, because it can only be computed in Python. */
  *measures({ document, source, target, edit }: ComputedExplanation): Progress<Measures> {
    // Painted and pinned cells are stored as indices. If a source word were deleted, indices of source tokens would refer to other tokens.
    const changesSingleCells = document.changes.some(({ kind }) => kind !== "silence");
    return {
      value_norms: valueNorms(this.#model, source.ids, target, edit),
      gradient: {},
      erasure: changesSingleCells ? null : yield* this.#erasure(source, target, edit),
    };
  }

  /** How the log-probability of each produced token changes if a source word is deleted. Axes: (step, word). */
  *#erasure(source: TokenizedSentence, target: readonly number[], edit: Edit | null): Progress<PackedFloats> {
    const logProbs = (ids: readonly number[]) => tokenLogProbsOf(this.#model, this.#model.begin(ids, { edit }), target, true, edit);
    const unchanged = logProbs(source.ids);
    const values = new Float32Array(unchanged.length * source.words.length);
    for (let word = 0; word < source.words.length; word++) {
      const idsWithoutWord = source.ids.filter((_, position) => source.word_of_token[position] !== word);
      logProbs(idsWithoutWord).forEach((logProb, step) => {
        values[step * source.words.length + word] = logProb - unchanged[step];
      });
      yield;
    }
    return packFloats(values, [unchanged.length, source.words.length]);
  }

  /** The logit lens: the tokens that the input of the decoder and each of its layers would have predicted at each step. Empty for recurrent
   * models. */
  layers({ source, target, edit }: ComputedExplanation): NextTokens[][] {
    const model = this.#model;
    if (!(model instanceof Transformer)) return [];
    const states: Float32Array[][] = [];
    const probe: Probe = { edit, onLayer: (layer, rows) => (states[layer] ??= []).push(rows.slice()) };
    const state = model.begin(source.ids, probe);
    for (const token of [BEGIN, ...target]) model.step(state, [token], probe);
    return states.map((rows) => model.predict(concatenate(rows)).map((values) => this.#nextTokens(values, NUM_LAYER_CANDIDATES)));
  }

  /** The computation of one weight, step by step. */
  steps({ source, target, edit }: ComputedExplanation, cell: Cell): CellSteps {
    return traceCell(this.#model, source.ids, target, cell, edit);
  }

  #logProb(source: TokenizedSentence, target: readonly number[], ended: boolean, edit: Edit | null): number {
    return logProbOf(this.#model, this.#model.begin(source.ids, { edit }), target, ended, edit);
  }

  /** The log-probability of each token of a target, and of `</s>` after it. */
  #logProbs(source: TokenizedSentence, target: readonly number[], edit: Edit | null): (number | null)[] {
    const { vectors } = forwardPass(this.#model, source.ids, target, edit);
    const logProbs = this.#model.output.logProbs(concatenate(vectors));
    return [...target, END].map((id, step) => rounded(logProbs[step][id]));
  }

  #searchSettings(beam: number | null | undefined): SearchSettings {
    if (beam != null && !(Number.isInteger(beam) && beam >= 1 && beam <= 64)) throw new Error(`A beam has 1 to 64 hypotheses. Received: ${beam}.`);
    return { ...this.#stored.search, beam: beam ?? this.#stored.search.beam };
  }

  #tokenizedSource(sentence: string): TokenizedSentence {
    const text = strip(sentence);
    return this.#source.sentence(text, this.#sourceIds(text));
  }

  #sourceIds(text: string): number[] {
    return this.#source.encode(this.#source.normaliseSpaces(text));
  }

  #countTokens = (text: string): number => this.#sourceIds(text).length;

  #tokenizedTarget(ids: readonly number[]): TokenizedSentence {
    return this.#target.sentence(this.#text(ids), ids);
  }

  #text(ids: readonly number[]): string {
    return joinLines(this.#target.decode(ids));
  }

  #checkPrefix(prefix: readonly number[]): void {
    if (prefix.every((id) => Number.isInteger(id) && id >= 0 && id < this.#target.vocabSize)) return;
    throw new Error(`A prefix has tokens from 0 to ${this.#target.vocabSize - 1}. Received: a token outside this range.`);
  }

  #checkLength({ ids }: TokenizedSentence): void {
    const { max_source_tokens: maxTokens } = this.#stored;
    if (ids.length <= maxTokens) return;
    throw new Error(`This sentence is too long to be explained at once: it has ${ids.length} tokens, and the model takes ${maxTokens}. Give a shorter sentence.`);
  }

  /** Throw an error if the maps would have too many weights. Both lengths include one special token. */
  #checkCost(sourceLength: number, targetLength: number): void {
    const cells: Record<Site, number> = { encoder: sourceLength ** 2, decoder: targetLength ** 2, cross: sourceLength * targetLength };
    const count = Object.entries(this.#model.sites).reduce((sum, [site, { layers, heads }]) => sum + layers * heads * cells[site as Site], 0);
    if (count <= MAX_WEIGHTS) return;
    throw new Error(`This explanation would have ${count.toLocaleString("en")} attention weights; at most ${MAX_WEIGHTS.toLocaleString("en")} are allowed. Give a shorter sentence or translation.`);
  }

  /** The translation that the request contains, or the best translation that beam search finds. An empty source has an empty translation.
   * If `yieldsPartials` is false, undefined is yielded instead of partial translations. */
  *#translation(source: TokenizedSentence, request: ExplainRequest, prefix: number[], edit: Edit | null, yieldsPartials: boolean): Progress<Translation> {
    const requestedIds = request.target == null ? null : this.#target.encode(request.target);
    this.#checkCost(source.ids.length + 1, (requestedIds ?? prefix).length + 1);
    if (requestedIds) return { ids: requestedIds, score: null, ended: true, search: null };
    if (!source.ids.length) return { ids: [], score: null, ended: true, search: null };
    this.#checkLength(source);
    const recorder = new SearchRecorder(this.#model, this.#stored, this.#searchSettings(request.beam), source.ids.length + 1, this.#target);
    const { onWeights, onStep } = recorder;
    const search = beamSearch(this.#model, this.#searchSettings(request.beam), { source: source.ids, prefix, edit, onWeights, onStep });
    let step = search.next();
    for (; !step.done; step = search.next()) yield yieldsPartials ? recorder.partial((ids) => this.#target.decode(ids)) : undefined;
    const [best] = step.value;
    const tree = recorder.tree();
    return best ? { ids: best.ids, score: best.ranking, ended: best.ended, search: tree } : { ids: [], score: null, ended: false, search: tree };
  }

  #explanation(source: TokenizedSentence, { ids, score, ended, search }: Translation, edit: Edit | null, forced: number, changes: Change[], before: Explanation["before"]): ComputedExplanation {
    const target = this.#tokenizedTarget(ids);
    this.#checkCost(source.ids.length + 1, ids.length + 1);
    const { vectors, weights } = forwardPass(this.#model, source.ids, ids, edit);
    const logProbs = this.#model.output.logProbs(concatenate(vectors));
    const produced = [...ids, END].map((id, step) => logProbs[step][id]);
    const wordAlignments = weights.cross ? alignments(weights.cross, this.#stored.read_out, source.word_of_token, target.word_of_token) : [];
    const sites = Object.entries(weights) as [Site, SiteWeights][];
    const selfAttention = sites.filter(([site]) => site !== "cross");
    const document: Explanation = {
      format: "jumok-explanation",
      version: 2,
      facts: this.#stored.facts,
      source,
      target,
      score: score === null ? null : rounded(score),
      log_prob: rounded(produced.slice(0, ids.length + (ended ? 1 : 0)).reduce((sum, value) => sum + value, 0)),
      log_probs: produced.map(rounded),
      picture: null,
      ended,
      forced: search ? forced : 0, // a translation without a search was not forced token by token
      candidates: logProbs.map((values) => this.#nextTokens(values)),
      attention: Object.fromEntries(sites.map(([site, { values, shape }]) => [site, packWeights(values, [...shape])])),
      roll_out: Object.fromEntries(selfAttention.map(([site, map]) => [site, packWeights(rollOut(map), map.shape.slice(2))])),
      statistics: Object.fromEntries(sites.map(([site, map]) => [site, statistics(map, site)])),
      group_effects: [],
      alignments: wordAlignments,
      search,
      changes,
      before,
      steps: [],
      measures: null,
      layers: [],
    };
    return { document, source, target: ids, ended, edit, readOutHeads: wordAlignments[0]?.heads ?? [] };
  }

  /** The most probable tokens of a step, without `<pad>` and `<s>`, which are never produced. */
  #nextTokens(logProbs: Float32Array, count = NUM_CANDIDATES): NextTokens {
    const masked = logProbs.slice();
    masked[PAD] = masked[BEGIN] = -Infinity;
    const ids = largest(masked, Math.min(count, masked.length));
    const tokens = this.#target.tokens(ids);
    return ids.map((id, i) => [id, tokens[i], rounded(Math.exp(masked[id])) ?? 0]);
  }
}

/** Records a search as a tree, with the cross-attention of each step as an average over the heads of the read-out. */
class SearchRecorder {
  #steps: Search["steps"] = [];
  #candidates: SearchStep["candidates"][] = [];
  /** The rows of attention that the tree stores. Each row has `#keys` weights. */
  #rows: Float32Array[] = [];
  /** The attention of each hypothesis in the current step. The index is the hypothesis's row in the state of the model (`Candidate.slot`). */
  #rowOfSlot: Float32Array[] = [];
  #keys: number;
  #readOut: ReadOut | null;
  #settings: SearchSettings;
  #tokenizer: Tokenizer;
  /** Whether `partial` still returns partial translations. It stops when the most probable candidate of a step has finished. */
  #hasPartials = true;

  constructor(model: Model, stored: StoredModel, settings: SearchSettings, keys: number, tokenizer: Tokenizer) {
    const { cross } = model.sites;
    this.#readOut = cross ? (stored.read_out ?? defaultReadOut(cross.layers, cross.heads)) : null;
    [this.#settings, this.#keys, this.#tokenizer] = [settings, keys, tokenizer];
  }

  onWeights = (weights: Float32Array, { site, layer, head }: { site: Site; layer: number; head: number }, slot: number): void => {
    const heads = this.#readOut?.heads;
    if (site !== "cross" || !heads?.some(([l, h]) => l === layer && h === head)) return;
    const row = (this.#rowOfSlot[slot] ??= new Float32Array(weights.length));
    weights.forEach((weight, key) => (row[key] += weight / heads.length));
  };

  onStep = ({ candidates }: SearchStep): void => {
    const storedRows = new Map<number, number>();
    /** Store the attention of a slot, if it is not stored yet. Returns the index of the stored row, or −1 if there is no attention. */
    const attentionRow = (slot: number): number => {
      if (!this.#readOut) return -1;
      if (!storedRows.has(slot)) storedRows.set(slot, this.#rows.push(this.#rowOfSlot[slot]) - 1);
      return storedRows.get(slot)!;
    };
    this.#candidates.push(candidates);
    this.#steps.push({
      parent: candidates.map(({ parent }) => parent),
      id: candidates.map(({ token }) => token),
      token: this.#tokenizer.tokens(candidates.map(({ token }) => token)),
      score: candidates.map(({ score }) => rounded(score)),
      log_prob: candidates.map(({ logProb }) => rounded(logProb)),
      kept: candidates.map(({ kept }) => kept),
      finished: candidates.map(({ finished }) => finished),
      ranking: candidates.map(({ finished, ranking }) => (finished ? rounded(ranking) : null)),
      attention_row: candidates.map(({ slot, kept, finished }) => (kept || finished ? attentionRow(slot) : -1)),
    });
    this.#rowOfSlot = [];
  };

  /** The text of the most probable candidate of the last step. Undefined in all steps after a step whose most probable candidate has
   * finished, because the candidates of later steps are less probable. */
  partial(decode: (ids: number[]) => string): string | undefined {
    const [best] = this.#candidates.at(-1) ?? [];
    if (!best || !this.#hasPartials) return undefined;
    this.#hasPartials = !best.finished;
    const ids: number[] = [];
    for (let [step, index] = [this.#candidates.length - 1, 0]; step >= 0; step--) {
      const { token, parent } = this.#candidates[step][index];
      if (token !== END) ids.unshift(token);
      index = parent;
    }
    return decode(ids);
  }

  tree(): Search {
    const values = new Float32Array(this.#rows.length * this.#keys);
    this.#rows.forEach((row, i) => values.set(row, i * this.#keys));
    return {
      beam: this.#settings.beam,
      length_penalty: this.#settings.length_penalty,
      best: this.#best(),
      steps: this.#steps,
      attention: this.#readOut ? packWeights(values, [this.#rows.length, this.#keys]) : null,
    };
  }

  #best(): [number, number] | null {
    /** The best finished candidate so far. `place` is its [step, index]. */
    let best: { place: [number, number]; ranking: number } | null = null;
    this.#candidates.forEach((candidates, step) =>
      candidates.forEach(({ finished, ranking }, index) => {
        if (finished && (!best || ranking > best.ranking)) best = { place: [step, index], ranking };
      }),
    );
    return (best as { place: [number, number] } | null)?.place ?? null;
  }
}

/** The statistics of each layer and head. Each number is a mean over the queries. Statistics that the weights alone do not determine are
 * null. */
function statistics({ shape: [layers, heads, queries, keys], values }: SiteWeights, site: Site): Statistics {
  const specialKey = site === "decoder" ? 0 : keys - 1; // the position of `<s>` in the target, or of `</s>` in the source
  const table = (measure: (weight: number, query: number, key: number) => number): Table =>
    Array.from({ length: layers }, (_, layer) =>
      Array.from({ length: heads }, (_, head) => {
        let sum = 0;
        for (let query = 0; query < queries; query++)
          for (let key = 0; key < keys; key++) sum += measure(values[((layer * heads + head) * queries + query) * keys + key], query, key);
        return rounded(sum / queries);
      }),
    );
  return {
    // `Math.abs` turns −0, the entropy of a row in which one weight is 1, into 0.
    entropy: table((weight) => (weight > 0 ? -weight * Math.log(weight) : 0)).map((row) => row.map((value) => value && Math.abs(value))),
    token_effect: null,
    distance: table((weight, query, key) => weight * Math.abs(query - key)),
    on_special: table((weight, _, key) => (key === specialKey ? weight : 0)),
    error: null,
    effect: null,
  };
}

/** Attention roll-out through all layers (Abnar & Zuidema 2020). Axes of the result: (query, key). */
function rollOut({ shape: [layers, heads, length], values }: SiteWeights): Float64Array {
  let flow = Float64Array.from({ length: length * length }, (_, i) => (i % (length + 1) ? 0 : 1));
  for (let layer = 0; layer < layers; layer++) {
    const mixed = new Float64Array(length * length);
    for (let i = 0; i < mixed.length; i++) {
      for (let head = 0; head < heads; head++) mixed[i] += ((1 - RESIDUAL_SHARE) * values[(layer * heads + head) * length * length + i]) / heads;
      if (i % (length + 1) === 0) mixed[i] += RESIDUAL_SHARE;
    }
    const next = new Float64Array(length * length);
    for (let row = 0; row < length; row++) {
      const total = mixed.subarray(row * length, (row + 1) * length).reduce((sum, weight) => sum + weight, 0);
      for (let middle = 0; middle < length; middle++) {
        const share = mixed[row * length + middle] / total;
        for (let column = 0; column < length; column++) next[row * length + column] += share * flow[middle * length + column];
      }
    }
    flow = next;
  }
  return flow;
}
