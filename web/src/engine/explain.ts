/** Explanations, as `explain` in src/jumok/analysis/explainer.py makes them and docs/explanation-format.md describes them. */

import type { Change } from "../lib/changes";
import type { Cell, CellSteps, Explanation, GroupEffect, Measures, NextTokens, PackedFloats, Search, Statistics, Table } from "../lib/format";
import { concatenate } from "./arrays";
import { alignments, defaultReadOut, type ReadOut } from "./alignment";
import { checkChanges, checkRows, editFromChanges, firstStep, silenceHeads } from "./edits";
import { valueNorms } from "./measures";
import { BEGIN, END, logProbOf, PAD, pass, sum, tokenLogProbsOf, type Edit, type Model, type Probe, type SiteWeights } from "./model";
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

/** The number of tokens that are shown as candidates of a step. */
const CANDIDATES = 8;
/** The number of tokens that are shown as predictions of a layer. */
const LAYER_CANDIDATES = 5;
/** The largest number of attention weights in all maps of one translation. */
const MAX_WEIGHTS = 4_000_000;
/** In a roll-out, the share of a state that the residual connection passes on. */
const RESIDUAL = 0.5;

export interface ExplainRequest {
  sentence: string;
  /** Which part of the text is explained, if it is translated in several. */
  index?: number;
  changes?: Change[];
  prefix?: number[];
  target?: string | null;
  /** Hypotheses per step; null: as the model's recipe says. 1 is greedy search. */
  beam?: number | null;
}

export interface Effects {
  effect: Partial<Record<Site, Table>>;
  token_effect: Partial<Record<Site, PackedFloats>>;
  group_effects: GroupEffect[];
}

interface Translation {
  ids: number[];
  score: number | null;
  ended: boolean;
  search: Search | null;
}

/** An explanation with the inputs from which more of it can be computed. */
export interface Computed {
  document: Explanation;
  source: TokenizedSentence;
  target: number[];
  ended: boolean;
  edit: Edit | null;
  /** The heads of the read-out, [layer, head]. */
  readOutHeads: [number, number][];
}

/** A translation is made step by step: a generator yields its partial texts, or undefined to let others run. */
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
    if (!spans.length) return { text: this.#stored.sentences === "split" ? strip(text) : "", parts };
    const translated = parts.map((part) => part.text);
    const isWhole = spans.length === 1 && spans[0][1] - spans[0][0] === strip(text).length;
    if (isWhole) return { text: translated[0], parts }; // with the white space that the model writes around it
    return { text: replaceParts(text, spans, translated, this.#stored.facts.target_language ?? ""), parts };
  }

  /** The part of a text that is explained: the one with this index, if the text is translated in several. */
  partOf(text: string, index: number): { sentence: string; count: number } {
    const spans = this.#partSpans(text);
    if (!(index < Math.max(spans.length, 1))) throw new Error(`The text is translated in ${spans.length} parts, counted from 0. Received: index ${index}.`);
    return { sentence: spans.length < 2 ? text : text.slice(...spans[index]), count: spans.length };
  }

  /** Start and end of each part of a text that is translated by itself: a sentence, or a part of one that is too long for the model. */
  #partSpans(text: string): Span[] {
    const { sentences, max_source_tokens: maxTokens } = this.#stored;
    return textSpans(text, sentences).flatMap(([start, end]): Span[] => {
      const sentence = text.slice(start, end);
      const count = this.#countTokens(sentence);
      if (count <= maxTokens) return count ? [[start, end]] : [];
      let from = start;
      return splitLine(sentence, this.#countTokens, maxTokens).map((part) => {
        const at = text.indexOf(part, from);
        from = at + part.length;
        return [at, from];
      });
    });
  }

  *explain(request: ExplainRequest): Progress<Computed> {
    const source = this.#tokenizedSource(request.sentence);
    let prefix = request.prefix ?? [];
    this.#checkPrefix(prefix);
    const changes = request.changes ?? [];
    if (!changes.length) {
      const translation = yield* this.#translation(source, request, prefix, null, true);
      return this.#explanation(source, translation, null, prefix.length, [], null);
    }
    const before = yield* this.#translation(source, request, prefix, null, false);
    checkChanges(changes, pass(this.#model, source.ids, before.ids, null).weights);
    const edit = editFromChanges(changes);
    const first = Math.min(...changes.map(firstStep));
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

  /** How the log-probability of the translation changes when heads are silenced: each alone, and groups of them. */
  *effects({ source, target, ended, edit, readOutHeads }: Computed): Progress<Effects> {
    const model = this.#model;
    const encoded = model.begin(source.ids, { edit });
    const unchanged = tokenLogProbsOf(model, encoded, target, ended, edit);
    const effect: Effects["effect"] = {};
    const tokenEffect: Effects["token_effect"] = {};
    const groups = new Map<string, GroupEffect>();
    const addGroup = (site: Site, group: [number, number][]) => group.length > 1 && groups.set(`${site} ${group.join(" ")}`, { site, heads: group, effect: null });
    /** The change in the log-probability of each token. */
    const measure = (site: Site, group: [number, number][]) => {
      const silenced = silenceHeads(site, group, edit);
      const state = site === "encoder" ? model.begin(source.ids, { edit: silenced }) : encoded;
      return tokenLogProbsOf(model, state, target, ended, silenced).map((logProb, step) => logProb - unchanged[step]);
    };
    for (const [site, { layers, heads: count }] of Object.entries(model.sites) as [Site, { layers: number; heads: number }][]) {
      const table: Table = (effect[site] = []);
      const all: number[] = [];
      const rows = Array.from({ length: layers }, (_, layer) => Array.from({ length: count }, (_, head): [number, number] => [layer, head]));
      for (const row of rows) {
        const measured: (number | null)[] = [];
        for (const head of row) {
          const differences = measure(site, [head]);
          measured.push(rounded(sum(differences)));
          all.push(...differences);
          yield;
        }
        table.push(measured);
      }
      tokenEffect[site] = packFloats(Float32Array.from(all), [layers, count, unchanged.length]);
      addGroup(site, rows.flat());
      for (const row of rows) addGroup(site, row);
    }
    if (model.sites.cross) addGroup("cross", [...readOutHeads].sort((a, b) => a[0] - b[0] || a[1] - b[1]));
    for (const group of groups.values()) {
      group.effect = rounded(sum(measure(group.site, group.heads)));
      yield;
    }
    return { effect, token_effect: tokenEffect, group_effects: [...groups.values()] };
  }

  /** Measures, other than the weights, of how much a word matters. Gradients need Python. */
  *measures({ document, source, target, edit }: Computed): Progress<Measures> {
    // Paint and pin name keys by their indices, which deleting a word would shift.
    const changesSingleCells = document.changes.some(({ kind }) => kind !== "silence");
    return {
      value_norms: valueNorms(this.#model, source.ids, target, edit),
      gradient: {},
      erasure: changesSingleCells ? null : yield* this.#erasure(source, target, edit),
    };
  }

  /** How the log-probability of each produced token changes when a source word is deleted, (step, word). */
  *#erasure(source: TokenizedSentence, target: readonly number[], edit: Edit | null): Progress<PackedFloats> {
    const logProbs = (ids: readonly number[]) => tokenLogProbsOf(this.#model, this.#model.begin(ids, { edit }), target, true, edit);
    const unchanged = logProbs(source.ids);
    const values = new Float32Array(unchanged.length * source.words.length);
    for (let word = 0; word < source.words.length; word++) {
      logProbs(source.ids.filter((_, position) => source.word_of_token[position] !== word)).forEach((logProb, step) => {
        values[step * source.words.length + word] = logProb - unchanged[step];
      });
      yield;
    }
    return packFloats(values, [unchanged.length, source.words.length]);
  }

  /** What each layer would have written at each step: the logit lens. A recurrent model has no such layers. */
  layers({ source, target, edit }: Computed): NextTokens[][] {
    const model = this.#model;
    if (!(model instanceof Transformer)) return [];
    const states: Float32Array[][] = [];
    const probe: Probe = { edit, onLayer: (layer, rows) => (states[layer] ??= []).push(rows.slice()) };
    const state = model.begin(source.ids, probe);
    for (const token of [BEGIN, ...target]) model.step(state, [token], probe);
    return states.map((rows) => model.predict(concatenate(rows)).map((values) => this.#nextTokens(values, LAYER_CANDIDATES)));
  }

  /** The computation of one weight, step by step. */
  steps({ source, target, edit }: Computed, cell: Cell): CellSteps {
    return traceCell(this.#model, source.ids, target, cell, edit);
  }

  #logProb(source: TokenizedSentence, target: readonly number[], ended: boolean, edit: Edit | null): number {
    return logProbOf(this.#model, this.#model.begin(source.ids, { edit }), target, ended, edit);
  }

  /** The log-probability of each token, and of `</s>`. */
  #logProbs(source: TokenizedSentence, target: readonly number[], edit: Edit | null): (number | null)[] {
    const { vectors } = pass(this.#model, source.ids, target, edit);
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
    const { max_source_tokens: most } = this.#stored;
    if (ids.length > most) throw new Error(`This sentence is too long to be explained at once: it has ${ids.length} tokens, and the model takes ${most}. Give a shorter sentence.`);
  }

  #checkCost(source: number, target: number): void {
    const cells: Record<Site, number> = { encoder: source * source, decoder: target * target, cross: source * target };
    const count = Object.entries(this.#model.sites).reduce((sum, [site, { layers, heads }]) => sum + layers * heads * cells[site as Site], 0);
    if (count <= MAX_WEIGHTS) return;
    throw new Error(`This explanation would have ${count.toLocaleString("en")} attention weights; at most ${MAX_WEIGHTS.toLocaleString("en")} are allowed. Give a shorter sentence or translation.`);
  }

  /** The given translation, or the best one that beam search finds. `reports`: whether partial texts are yielded. */
  *#translation(source: TokenizedSentence, request: ExplainRequest, prefix: number[], edit: Edit | null, reports: boolean): Progress<Translation> {
    const given = request.target == null ? null : this.#target.encode(request.target);
    this.#checkCost(source.ids.length + 1, (given ?? prefix).length + 1);
    if (given) return { ids: given, score: null, ended: true, search: null };
    if (!source.ids.length) return { ids: [], score: null, ended: true, search: null };
    this.#checkLength(source);
    const recorder = new SearchRecorder(this.#model, this.#stored, this.#searchSettings(request.beam), source.ids.length + 1, this.#target);
    const search = beamSearch(this.#model, this.#searchSettings(request.beam), { source: source.ids, prefix, edit, onWeights: recorder.onWeights, onStep: recorder.onStep });
    let step = search.next();
    for (; !step.done; step = search.next()) yield reports ? recorder.partial((ids) => this.#target.decode(ids)) : undefined;
    const [best] = step.value;
    const tree = recorder.tree();
    return best ? { ids: best.ids, score: best.score, ended: best.ended, search: tree } : { ids: [], score: null, ended: false, search: tree };
  }

  #explanation(source: TokenizedSentence, { ids, score, ended, search }: Translation, edit: Edit | null, forced: number, changes: Change[], before: Explanation["before"]): Computed {
    const target = this.#tokenizedTarget(ids);
    this.#checkCost(source.ids.length + 1, ids.length + 1);
    const { vectors, weights } = pass(this.#model, source.ids, ids, edit);
    const logProbs = this.#model.output.logProbs(concatenate(vectors));
    const produced = [...ids, END].map((id, step) => logProbs[step][id]);
    const read = weights.cross ? alignments(weights.cross, this.#stored.read_out, source.word_of_token, target.word_of_token) : [];
    const sites = Object.entries(weights) as [Site, SiteWeights][];
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
      forced: search ? forced : 0,
      candidates: logProbs.map((values) => this.#nextTokens(values)),
      attention: Object.fromEntries(sites.map(([site, { values, shape }]) => [site, packWeights(values, [...shape])])),
      roll_out: Object.fromEntries(sites.filter(([site]) => site !== "cross").map(([site, map]) => [site, packWeights(rollOut(map), map.shape.slice(2))])),
      statistics: Object.fromEntries(sites.map(([site, map]) => [site, statistics(map, site)])),
      group_effects: [],
      alignments: read,
      search,
      changes,
      before,
      steps: [],
      measures: null,
      layers: [],
    };
    return { document, source, target: ids, ended, edit, readOutHeads: read[0]?.heads ?? [] };
  }

  /** The most probable tokens of a step; `<pad>` and `<s>` are never produced. */
  #nextTokens(logProbs: Float32Array, count = CANDIDATES): NextTokens {
    const masked = logProbs.slice();
    masked[PAD] = masked[BEGIN] = -Infinity;
    const ids = largest(masked, Math.min(count, masked.length));
    const tokens = this.#target.tokens(ids);
    return ids.map((id, i) => [id, tokens[i], rounded(Math.exp(masked[id])) ?? 0]);
  }
}

/** Records a search as a tree, with the cross-attention of its steps averaged over the heads of the read-out. */
class SearchRecorder {
  #steps: Search["steps"] = [];
  #candidates: SearchStep["candidates"][] = [];
  /** The rows of attention that the tree stores, each of `#keys` weights. */
  #rows: Float32Array[] = [];
  /** The attention of each slot in the current step. */
  #attended: Float32Array[] = [];
  #keys: number;
  #readOut: ReadOut | null;
  #settings: SearchSettings;
  #tokenizer: Tokenizer;
  #isReporting = true;

  constructor(model: Model, stored: StoredModel, settings: SearchSettings, keys: number, tokenizer: Tokenizer) {
    const { cross } = model.sites;
    this.#readOut = cross ? (stored.read_out ?? defaultReadOut(cross.layers, cross.heads)) : null;
    [this.#settings, this.#keys, this.#tokenizer] = [settings, keys, tokenizer];
  }

  onWeights = (weights: Float32Array, { site, layer, head }: { site: Site; layer: number; head: number }, slot: number): void => {
    const heads = this.#readOut?.heads;
    if (site !== "cross" || !heads?.some(([l, h]) => l === layer && h === head)) return;
    const sum = (this.#attended[slot] ??= new Float32Array(weights.length));
    weights.forEach((weight, key) => (sum[key] += weight / heads.length));
  };

  onStep = ({ candidates }: SearchStep): void => {
    const rowOfSlot = new Map<number, number>();
    const attentionRow = (slot: number): number => {
      if (!this.#readOut) return -1;
      if (!rowOfSlot.has(slot)) rowOfSlot.set(slot, this.#rows.push(this.#attended[slot]) - 1);
      return rowOfSlot.get(slot)!;
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
    this.#attended = [];
  };

  /** The text of the most probable candidate; undefined in the steps after one that finished, because their candidates are less probable. */
  partial(decode: (ids: number[]) => string): string | undefined {
    const [best] = this.#candidates.at(-1) ?? [];
    if (!best || !this.#isReporting) return undefined;
    this.#isReporting = !best.finished;
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
    let best: { at: [number, number]; ranking: number } | null = null;
    this.#candidates.forEach((candidates, step) =>
      candidates.forEach(({ finished, ranking }, index) => {
        if (finished && (!best || ranking > best.ranking)) best = { at: [step, index], ranking };
      }),
    );
    return (best as { at: [number, number] } | null)?.at ?? null;
  }
}

/** One number per layer and head: means over the queries. */
function statistics({ shape: [layers, heads, queries, keys], values }: SiteWeights, site: Site): Statistics {
  const specialKey = site === "decoder" ? 0 : keys - 1;
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
    entropy: table((weight) => (weight > 0 ? -weight * Math.log(weight) : 0)).map((row) => row.map((value) => value && Math.abs(value))),
    token_effect: null,
    distance: table((weight, query, key) => weight * Math.abs(query - key)),
    on_special: table((weight, _, key) => (key === specialKey ? weight : 0)),
    error: null,
    effect: null,
  };
}

/** Attention roll-out through all layers (Abnar & Zuidema 2020), (query, key). */
function rollOut({ shape: [layers, heads, length], values }: SiteWeights): Float64Array {
  let flow = Float64Array.from({ length: length * length }, (_, i) => (i % (length + 1) ? 0 : 1));
  for (let layer = 0; layer < layers; layer++) {
    const mixed = new Float64Array(length * length);
    for (let i = 0; i < mixed.length; i++) {
      for (let head = 0; head < heads; head++) mixed[i] += ((1 - RESIDUAL) * values[(layer * heads + head) * length * length + i]) / heads;
      if (i % (length + 1) === 0) mixed[i] += RESIDUAL;
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
