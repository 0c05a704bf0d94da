/** The state of the page. Most of it is written into the address, so that a view can be shared. */

import { ANALYSIS_TEXT } from "./analysisStrings";
import { explain, explainStreaming, fetchLayers, fetchMeasures, fetchSteps, ServerGoneError, withEffects, type ExplainRequest } from "./api";
import { independentOfSentence, numGiven, parseChanges, type Change, type Edge } from "./changes";
import type { Theme } from "./colour";
import { checkFormat, isSite, SITES, type Cell, type CellSteps, type Explanation, type CheckpointExplanation, type Measures, type LiveModel, type NextTokens, type PageData, type Site, type StoredRun, type StatisticName } from "./format";
import { combinations, selectedHeads, sites, type Choice, type Combination, type Side } from "./maps";
import { isOfWholeModel, MEASURES, type Measure } from "./measures";
import { PICTURE_LANGUAGES } from "./pictureStrings";
import { recall } from "./preferences";
import { localise } from "./problems";
import { LANGUAGES, type Language } from "./strings";
import { normaliseSentence } from "./texts";

export const PANELS = ["attention", "steps", "beam", "compare", "run"] as const;
export type Panel = (typeof PANELS)[number];
/** Names of panels in old addresses. All of these panels are now parts of the panel Attention. */
const OLD_PANELS = ["translate", "map", "heads", "change"];
/** The number below each head. “first” is the first statistic that the explanation has. */
export type StatisticChoice = "first" | StatisticName;

/** The beams that can be chosen: hypotheses per search step. 0 means the beam of the model's recipe. */
export const BEAMS = [0, 1, 4, 8];
/** The indices of the words that are pointed at, in the sentence and in the translation. */
export type PointedWords = Readonly<Record<Side, readonly number[]>>;
const NOTHING_POINTED: PointedWords = { source: [], target: [] };

/** The part of the state that the reader can undo. */
interface UndoableState {
  changes: Change[];
  prefix: number[];
}

/** How many results of `#computeOnce` are cached. */
const CACHE_SIZE = 12;
/** How long the first partial translation stays visible at least. Later ones need less: see `#showPartial`. */
const PARTIAL_MS = 60;

function readData(): PageData {
  return JSON.parse(document.getElementById("jumok-data")?.textContent || "{}") as PageData;
}

/** Whether two cells are at the same place of the same map. Other fields, such as the steps of a cell, are not compared. */
export function sameCell(a: Cell, b: Cell): boolean {
  return (["site", "layer", "head", "query", "key"] as const).every((name) => a[name] === b[name]);
}

class Page {
  panel = $state<Panel>("attention");
  site = $state<Site>("cross");
  combination = $state<Combination>("read-out");
  layer = $state(-1);
  head = $state(0);
  /** Whether the rows and columns of maps are words. If false, they are tokens. */
  words = $state(true);
  /** Whether maps have rows and columns for special tokens. */
  specials = $state(true);
  /** Whether the map is drawn as lines. If false, it is drawn as a heat map. */
  showsLines = $state(false);
  selectedRows = $state<number[]>([]);
  numberBelow = $state<StatisticChoice>("first");
  pointedWords = $state.raw<PointedWords>(NOTHING_POINTED);
  /** The line or cell whose weight can be set. */
  edge = $state.raw<Edge | null>(null);
  /** The part of the attention panel that a narrow screen shows. */
  part = $state<"map" | "heads">("map");
  /** The measure that the cells of a map show. */
  measure = $state<Measure>("weight");
  /** Whether the shares of the weights are subtracted from the measure. */
  subtractsWeight = $state(false);
  /** The row that the head strip shows from the map of each head; −1 if the head strip shows complete maps. */
  stripRow = $state(-1);
  /** The cell whose computation the panel Steps shows. */
  cell = $state<Cell | null>(null);
  /** The selected step of the search; −1 if none is selected. */
  step = $state(-1);
  /** The selected hypothesis of this step; −1 if none is selected. */
  candidate = $state(-1);
  /** The step of the validation that is shown; −1 for the newest. */
  validation = $state(-1);
  language = $state<Language>("en");
  appearance = $state<"system" | Theme>("system");
  systemIsDark = $state(false);
  /** Whether the story (the introduction that the page calls “First steps”) is shown. A live page opens it on the first visit. */
  storyIsOpen = $state(false);
  /** Whether the story was finished or skipped. */
  storySeen = $state(false);
  /** The step of the story that is shown, from 0. */
  storyStep = $state(0);
  /** The head that the story asks to silence. */
  suggestedHead = $state.raw<{ site: Site; layer: number; head: number } | null>(null);
  /** The address of the documentation site; empty if it is unknown. */
  docs = "";
  /** Whether the page is being printed. Then the theme is light, because paper is white. */
  printing = $state(false);

  /** The explanations of a static page. */
  explanations = $state.raw<Explanation[]>([]);
  /** The latest explanation of a live page. */
  answer = $state.raw<Explanation>();
  modelIndex = $state(0);
  models = $state.raw<LiveModel[]>([]);
  live = $state(false);
  hasRun = $state(false);

  sentence = $state("");
  /** The index of the part that is explained, if the text is translated in several parts. */
  index = $state(0);
  /** The picture of a live page, as a `data:` URL. It is too long to be part of the address. */
  picture = $state.raw("");
  prefix = $state.raw<number[]>([]);
  /** One of `BEAMS`. */
  beam = $state(0);
  changes = $state.raw<Change[]>([]);
  /** A given translation. If it is empty, the model translates. */
  target = $state("");
  /** Whether each compared model reads its own translation. If false, all models read the translation of the first model. */
  ownTargets = $state(false);
  /** The fields that the last request was made from. The address is made from these, because the reader may already have edited the current
   * fields for the next request. */
  requested = $state.raw<UndoableState & { sentence: string; target: string; index: number }>({ sentence: "", target: "", index: 0, changes: [], prefix: [] });
  /** Whether the reader made the current changes. False if they were restored by Undo, by Redo, from the address or after an error. */
  changedByHand = $state(false);
  /** The states that Undo and Redo restore. Undo takes the last of `past`, Redo takes the first of `future`. */
  past = $state.raw<UndoableState[]>([]);
  future = $state.raw<UndoableState[]>([]);
  /** The partial translation while the model produces it. */
  partial = $state<string | null>(null);
  busy = $state(false);
  problem = $state("");

  /** Explanations of one sentence by several checkpoints. They are stored here instead of in the panel Run, because the panel loses its
   * state when it is closed. The explanations of checkpoints that the run has deleted since then could not be requested again. */
  checkpointExplanations = $state.raw<{ sentence: string; entries: CheckpointExplanation[] }>({ sentence: "", entries: [] });
  /** The run that is stored in a saved page. */
  storedRun: StoredRun | null = null;

  /** The latest answer whose effects of silencing heads could not be measured, for example because it is the class of a picture. */
  #answerWithoutEffects = $state.raw<Explanation>();

  /** The request of each explanation that a live page has received. */
  #requests = new WeakMap<Explanation, ExplainRequest>();

  readsPictures = $derived(this.live ? !!this.models[this.modelIndex]?.reads_pictures : !!this.explanations[this.modelIndex]?.picture);
  text = $derived((this.readsPictures ? PICTURE_LANGUAGES : LANGUAGES)[this.language]);
  theme = $derived<Theme>(this.printing ? "light" : this.appearance === "system" ? (this.systemIsDark ? "dark" : "light") : this.appearance);
  explanation = $derived<Explanation | undefined>(this.live ? this.answer : this.explanations[this.modelIndex]);
  /** The changes to attention. On a live page, the reader makes them. On a stored page, they are the changes of the explanation. */
  shownChanges = $derived<Change[]>(this.live ? this.changes : (this.explanation?.changes ?? []));
  /** How many of the `forced` tokens are the given prefix. The other `forced` tokens stay because the changes affect only later steps. */
  numGiven = $derived(this.explanation ? numGiven(this.explanation, this.#requests.get(this.explanation)?.prefix) : 0);
  choice = $derived<Choice>(this.choiceFor(this.explanation));
  modelName = $derived(this.#modelName());
  normalisedSentence = $derived(normaliseSentence(this.sentence));
  panels = $derived(PANELS.filter((panel) => this.isAvailable(panel)));

  /** Whether the answer belongs to a different sentence, part of the text, picture or model than the current one. */
  stale = $derived(this.#isStale());
  /** Whether the answer belongs to the current text, model, changes and settings. */
  isUpToDate = $derived(this.#isUpToDate());

  /** The measures that were fetched last, or null if they could not be fetched, and the request of the explanation to which they belong. */
  #fetchedMeasures = $state.raw<{ key: string; measures: Measures | null }>({ key: "", measures: null });
  /** The measures of the current explanation. Null while they are computed, or if a stored page lacks them. */
  measures = $derived<Measures | null>(this.#currentMeasures());

  /** Views with different keys are different entries of the browser's history. */
  historyKey = $derived(JSON.stringify([this.panel, this.modelIndex, this.requested.sentence, this.requested.target, this.requested.index]));

  #controller = new AbortController();
  /** The state before the current move of a line or slider; null if nothing is being moved. */
  #gesture = $state.raw<UndoableState | null>(null);
  /** Whether the reader is moving a line or a slider. During the move, the current changes are only a preview. */
  isHeld = $derived(this.#gesture !== null);
  /** Whether `#requestLatest` is waiting for an answer. */
  #isRequesting = false;
  /** Whether the line or slider has moved since the last request. */
  #hasMoved = false;
  /** The cache of `#computeOnce`: results by operation and request. */
  #computed = new Map<string, Promise<unknown>>();
  /** Whether the selected rows, step, candidate and cell stay selected when the next answer arrives, because they were read from the
   * address. */
  #keepSelection = true;
  #defaults: { panel: Panel; sentence: string; language: Language; appearance: "system" | Theme } = { panel: "attention", sentence: "", language: "en", appearance: "system" };

  constructor() {
    const data = readData();
    const remembered = recall();
    this.#defaults.language = remembered.language ?? (navigator.language.startsWith("ko") ? "ko" : "en");
    this.#defaults.appearance = remembered.appearance ?? "system";
    try {
      this.explanations = (data.explanations ?? []).map(checkFormat);
    } catch (error) {
      this.problem = String(error);
    }
    if (data.live) {
      this.live = true;
      this.models = data.live.models;
      this.hasRun = data.live.run;
      this.#defaults.sentence = data.live.sentence;
      this.picture = data.live.picture ?? "";
      this.#defaults.panel = this.hasRun ? "run" : "attention";
    }
    if (data.run) {
      this.storedRun = data.run;
      this.hasRun = true;
    }
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.systemIsDark = dark.matches;
    dark.addEventListener("change", () => (this.systemIsDark = dark.matches));
    this.docs = data.docs ?? "";
    this.storySeen = !!remembered.storySeen;
    const hasAddress = location.hash.length >= 2;
    // The story would replace a view from the address or a saved view.
    const isFirstVisit = !this.storySeen && !hasAddress && !data.live?.view;
    this.storyIsOpen = this.hasStory && data.live?.story !== false && isFirstVisit && !this.hasRun;
    if (data.live?.view && !hasAddress) history.replaceState(null, "", `#${data.live.view}`);
    this.readAddress(true);
    addEventListener("hashchange", () => {
      this.readAddress();
      if (this.busy || !this.#isUpToDate()) void this.requestExplanation();
      else this.#keepSelection = false;
    });
  }

  /** The current choice. Sites, combinations, layers and heads that the explanation does not have are replaced by available ones. */
  choiceFor(explanation: Explanation | undefined, wanted: Site = this.site): Choice {
    const { combination, layer, head, words, specials } = this;
    if (!explanation) return { site: wanted, combination, layer, head, words, specials };
    const available = sites(explanation);
    const site = available.includes(wanted) ? wanted : (available[0] ?? wanted);
    const possible = combinations(explanation, site);
    const preferred: Combination[] = explanation.picture ? [combination, "roll-out", "mean"] : [combination, "mean"];
    const [layers, heads] = explanation.attention[site]?.shape ?? [1, 1];
    return {
      site,
      combination: preferred.find((name) => possible.includes(name)) ?? possible[0],
      layer: Math.min(layer, layers - 1),
      head: Math.min(head, heads - 1),
      words,
      specials,
    };
  }

  /** Whether the story can be shown: it needs a live model that reads sentences and has cross-attention. */
  get hasStory(): boolean {
    return this.live && !!this.models[0]?.facts.mechanisms?.cross && !this.models[0].reads_pictures;
  }

  /** Names the heads of a choice and how they are combined, for example "Average, layer 1". */
  describeHeads(explanation: Explanation, choice = this.choiceFor(explanation)): string {
    const { combination, layer, head } = choice;
    const name = this.text.combination[combination];
    if (combination === "head") return `${name} ${Math.max(layer, 0)}·${head}`;
    if (combination === "read-out") return `${name} ${selectedHeads(explanation, choice).map((layerAndHead) => layerAndHead.join("·")).join(", ")}`;
    return combination === "roll-out" ? name : `${name}, ${layer < 0 ? this.text.allLayers : `${this.text.layer} ${layer}`}`;
  }

  /** Describes the attention that is shown: the site, the heads and the measure. */
  describe(explanation: Explanation, measure: Measure = "weight", difference = false): string {
    const choice = this.choiceFor(explanation);
    const heads = isOfWholeModel(measure) && !difference ? [] : [this.describeHeads(explanation, choice)];
    return [this.text.siteLong[choice.site], ...heads, this.describeMeasure(measure, difference)].join(" · ");
  }

  /** The name of a measure with its unit. */
  describeMeasure(measure: Measure, difference: boolean): string {
    const text = ANALYSIS_TEXT[this.language];
    if (difference && measure !== "weight") return `${text.measures[measure]} − ${text.measures.weight}`;
    return isOfWholeModel(measure) ? `${text.measures[measure]} (${text.nats})` : text.measures[measure];
  }

  isAvailable(panel: Panel): boolean {
    if (panel === "run") return this.hasRun;
    const facts = this.live ? this.models[this.modelIndex]?.facts : this.explanations[this.modelIndex]?.facts;
    if (facts?.family === "encoder-only" && ["steps", "beam"].includes(panel)) return false; // a classifier writes nothing
    if (panel === "compare") return this.explanations.length > 1 || this.models.length > 1;
    return this.models.length > 0 || this.explanations.length > 0;
  }

  #modelName(): string {
    if (this.live) return this.models[this.modelIndex]?.name ?? "";
    const facts = this.explanations[this.modelIndex]?.facts;
    return facts?.name ?? facts?.mechanisms?.cross ?? "";
  }

  errorMessage(error: unknown): string {
    return error instanceof ServerGoneError ? this.text.serverGone : localise(error instanceof Error ? error.message : String(error), this.text);
  }

  /** Open a panel, and clear an error of the previous panel. */
  openPanel(panel: Panel): void {
    this.panel = panel;
    this.pointedWords = NOTHING_POINTED; // the element under the pointer disappears with the previous panel
    if (this.explanation) this.problem = "";
  }

  /** Highlight these words in all parts of the page. Indices below 0, which stand for no word, are ignored. */
  point(source: readonly number[], target: readonly number[] = []): void {
    if (source.join() === this.pointedWords.source.join() && target.join() === this.pointedWords.target.join()) return;
    const isWord = (index: number) => index >= 0;
    this.pointedWords = source.length || target.length ? { source: source.filter(isWord), target: target.filter(isWord) } : NOTHING_POINTED;
  }

  selectHead(site: Site, layer: number, head: number): void {
    Object.assign(this, { site, combination: "head", layer, head });
  }

  // --- Requests -------------------------------------------------------------------------------------------

  #currentRequest(): ExplainRequest {
    const { modelIndex: model, normalisedSentence: sentence, index, changes, prefix, beam } = this;
    const target = this.target.trim();
    const search = { changes, prefix, ...(beam && { beam }), ...(target && { target }) };
    if (this.readsPictures) return { model, sentence: "", picture: this.picture, ...search };
    return { model, sentence, ...search, ...(index && { index }) };
  }

  #isUpToDate(): boolean {
    const request = this.answer && this.#requests.get(this.answer);
    return !!request && JSON.stringify(request) === JSON.stringify(this.#currentRequest());
  }

  #isStale(): boolean {
    const request = this.answer && this.#requests.get(this.answer);
    return !!request && (!this.#isOfCurrentText(request) || request.index !== this.#currentRequest().index);
  }

  /** Whether a request is for the current text or picture and the current model. The part of the text may differ. */
  #isOfCurrentText(request: ExplainRequest): boolean {
    const current = this.#currentRequest();
    return request.sentence === current.sentence && request.picture === current.picture && request.model === current.model;
  }

  #noteRequest(): void {
    const { sentence, target, index, changes, prefix } = this;
    this.requested = { sentence, target, index, changes, prefix };
  }

  /** Request an explanation from the selected model. A new request aborts the previous request.
   * While the reader moves a line or a slider, the effects of heads are not measured, because this takes longer than the translation. */
  async requestExplanation(): Promise<void> {
    if (!this.live || !this.models.length) return;
    this.#controller.abort();
    const { signal } = (this.#controller = new AbortController());
    this.problem = "";
    this.#noteRequest();
    if (!(this.readsPictures ? this.picture : this.normalisedSentence)) {
      [this.answer, this.edge] = [undefined, null];
      [this.busy, this.partial] = [false, null];
      return;
    }
    this.busy = true;
    const request = this.#currentRequest();
    try {
      const isNew = !this.answer || this.#isStale();
      const answer = await explainStreaming(request, async (text, index) => (isNew ? this.#showPartial(text, index, signal) : undefined), signal);
      if (signal.aborted) return;
      this.#requests.set(answer, request);
      if (!this.#keepSelection) Object.assign(this, { step: -1, candidate: -1, ...(isNew && { cell: null, selectedRows: [], edge: null }) });
      this.#keepSelection = false;
      this.answer = answer;
      if (!this.#gesture) void this.#addEffects(signal, answer, request);
    } catch (error) {
      if (signal.aborted) return;
      if (this.#revert(request)) {
        const secondRequest = this.requestExplanation();
        const { signal: secondSignal } = this.#controller;
        await secondRequest;
        if (secondSignal.aborted) return; // a newer request has been sent: this error does not belong to it
      }
      this.problem = this.errorMessage(error);
    } finally {
      if (!signal.aborted) [this.busy, this.partial] = [false, null];
    }
  }

  /** After a failed request, go back to the request of the answer that is shown: its part of the text, its changes and its prefix.
   * If the answer belongs to another text, remove the answer, the changes and the prefix instead.
   * Returns whether the current text should be requested again, without the changes and the prefix of the failed request. */
  #revert({ changes, prefix }: ExplainRequest): boolean {
    const lastRequest = this.answer && this.#requests.get(this.answer);
    const restored = lastRequest && this.#isOfCurrentText(lastRequest) ? lastRequest : undefined;
    [this.changes, this.prefix, this.changedByHand] = [restored?.changes ?? [], restored?.prefix ?? [], false];
    if (restored) this.index = restored.index ?? 0;
    this.#noteRequest();
    this.past = this.past.filter((state) => !this.#isCurrent(state));
    if (restored) return false;
    this.answer = undefined;
    return changes.length > 0 || prefix.length > 0;
  }

  /** Show a partial translation, and wait for a moment, because small models write faster than people read.
   * The pause becomes shorter with each partial translation, so that 60 tokens take about a second. */
  async #showPartial(text: string, index: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.partial = text;
    const isAnimated = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isAnimated) await new Promise((done) => setTimeout(done, PARTIAL_MS / (1 + index / 8)));
  }

  /** Add the effects of silencing heads to the answer. They take longer than the translation, so they are requested separately. */
  async #addEffects(signal: AbortSignal, answer: Explanation, request: ExplainRequest): Promise<void> {
    const isClassifier = !answer.attention.cross && answer.picture;
    const answerWithEffects = isClassifier ? null : await withEffects(answer, request, signal).catch(() => null);
    if (signal.aborted) return;
    if (!answerWithEffects) {
      this.#answerWithoutEffects = answer;
      return;
    }
    this.#requests.set(answerWithEffects, request);
    this.answer = answerWithEffects;
  }

  /** Whether the effects of silencing heads, if the explanation lacks them, are still being measured or will be measured. */
  willHaveEffects(explanation: Explanation): boolean {
    return this.live && explanation !== this.#answerWithoutEffects;
  }

  /** The steps of a cell; null if a stored page lacks them. */
  async stepsOf(cell: Cell): Promise<CellSteps | null> {
    const explanation = this.explanation;
    const stored = explanation?.steps.find((steps) => sameCell(steps, cell));
    const request = explanation && this.#requests.get(explanation);
    return stored || !request ? (stored ?? null) : fetchSteps({ ...request, cell });
  }

  /** Compute a result for a request, or return it from the cache. The cache holds the latest `CACHE_SIZE` results. */
  #computeOnce<Result>(operation: string, request: ExplainRequest, compute: (request: ExplainRequest) => Promise<Result>): Promise<Result> {
    const key = JSON.stringify([operation, request]);
    const cached = this.#computed.get(key) as Promise<Result> | undefined;
    if (cached) return cached;
    const result = compute(request);
    result.catch(() => this.#computed.delete(key));
    this.#computed.set(key, result);
    if (this.#computed.size > CACHE_SIZE) this.#computed.delete(this.#computed.keys().next().value!);
    return result;
  }

  /** The request of an explanation, as text. */
  #requestKey(explanation: Explanation): string {
    return JSON.stringify(this.#requests.get(explanation) ?? null);
  }

  /** Whether two explanations answer the same request. One of them may have effects while the other does not. */
  answersSameRequest(first: Explanation, second: Explanation): boolean {
    return first === second || (this.#requests.has(first) && this.#requestKey(first) === this.#requestKey(second));
  }

  #currentMeasures(): Measures | null {
    const explanation = this.explanation;
    if (!explanation || explanation.measures) return explanation?.measures ?? null;
    return this.#fetchedMeasures.key === this.#requestKey(explanation) ? this.#fetchedMeasures.measures : null;
  }

  /** Whether the measures of the current explanation are missing, but are being fetched or will be fetched. */
  willHaveMeasures(): boolean {
    const explanation = this.explanation;
    return this.live && !!explanation && !explanation.measures && this.#fetchedMeasures.key !== this.#requestKey(explanation);
  }

  /** Fetch the measures of the current explanation if they are needed and missing. Call this method in an effect of Svelte. */
  fetchMeasures(): void {
    const explanation = this.explanation;
    if (!explanation || explanation.measures || this.measure === "weight" || !this.#requests.has(explanation)) return;
    const key = this.#requestKey(explanation);
    this.measuresOf(explanation).then(
      (measures) => (this.#fetchedMeasures = { key, measures }),
      (error: unknown) => {
        if (this.explanation !== explanation) return;
        [this.#fetchedMeasures, this.problem] = [{ key, measures: null }, this.errorMessage(error)];
      },
    );
  }

  /** The measures of an explanation; null if a stored page lacks them. */
  async measuresOf(explanation: Explanation): Promise<Measures | null> {
    const request = this.#requests.get(explanation);
    return explanation.measures || !request ? (explanation.measures ?? null) : this.#computeOnce("measures", request, fetchMeasures);
  }

  /** What each layer would have written at each step. Empty if a stored page lacks these predictions or the model is recurrent. */
  async layersOf(explanation: Explanation): Promise<NextTokens[][]> {
    const request = this.#requests.get(explanation);
    return explanation.layers?.length || !request ? (explanation.layers ?? []) : this.#computeOnce("layers", request, fetchLayers);
  }

  /** Explain a given translation of the same sentence, with the same changes. Null on a stored page, which cannot send requests. */
  async explainTarget(explanation: Explanation, target: string): Promise<Explanation | null> {
    const request = this.#requests.get(explanation);
    if (!request) return null;
    const targetRequest = { ...request, prefix: [], target };
    const targetExplanation = await this.#computeOnce("explain", targetRequest, explain);
    this.#requests.set(targetExplanation, targetRequest);
    return targetExplanation;
  }

  /** Translate another sentence, and open the panel Attention. */
  openSentence(sentence: string): void {
    this.sentence = sentence;
    this.forgetSentence();
    this.openPanel("attention");
    void this.requestExplanation();
  }

  /** Explain the part of the text with this index. */
  selectSentence(index: number): void {
    this.forgetSentence();
    this.index = index;
    void this.requestExplanation();
  }

  /** Remove all state that belongs to the sentence that is being replaced. Silenced heads stay silenced. */
  forgetSentence(): void {
    const remaining = ({ changes }: UndoableState): UndoableState => ({ changes: independentOfSentence(changes), prefix: [] });
    this.#gesture = null;
    Object.assign(this, { index: 0, edge: null, pointedWords: NOTHING_POINTED, ...remaining(this) });
    const differsFromNext = (state: UndoableState, i: number, list: UndoableState[]) => JSON.stringify(state) !== JSON.stringify(list[i + 1] ?? remaining(this));
    this.past = this.past.map(remaining).filter(differsFromNext);
    this.future = [];
  }

  selectBeam(beam: number): void {
    this.beam = beam;
    void this.requestExplanation();
  }

  selectModel(modelIndex: number): void {
    if (modelIndex === this.modelIndex) return;
    // Another model may divide the text into other parts, so its first part is explained.
    Object.assign(this, { modelIndex, index: 0, changes: [], prefix: [], past: [], future: [], edge: null });
    if (this.live) void this.requestExplanation();
  }

  // --- Changes --------------------------------------------------------------------------------------------

  #isCurrent({ changes, prefix }: UndoableState): boolean {
    return JSON.stringify([changes, prefix]) === JSON.stringify([this.changes, this.prefix]);
  }

  /** Set the changes and the prefix, and translate again. This is one step to undo. */
  apply(changes: Change[], prefix = this.prefix): void {
    this.#gesture = null;
    const before = { changes: this.changes, prefix: this.prefix };
    [this.changes, this.prefix] = [changes, prefix];
    if (this.#isCurrent(before)) return;
    [this.past, this.future, this.changedByHand] = [[...this.past, before], [], true];
    void this.requestExplanation();
  }

  /** Preview these changes while the reader moves a line or a slider. */
  move(changes: Change[]): void {
    this.#gesture ??= { changes: this.changes, prefix: this.prefix };
    this.changes = changes;
    void this.#requestLatest();
  }

  /** End the move of a line or slider. If `keep` is true, the changes stay, and are one step to undo. If it is false, restore the
   * state before the move. */
  release(keep: boolean): void {
    const before = this.#gesture;
    if (!before) return;
    const after = keep ? this.changes : before.changes;
    this.#gesture = null;
    this.#hasMoved = false;
    this.changes = before.changes;
    if (this.#isCurrent({ changes: after, prefix: this.prefix })) void this.requestExplanation(); // the last answer has no effects of heads
    else this.apply(after);
  }

  /** Request an explanation of the latest state, one request at a time. A move changes the state faster than a model translates, so states
   * in between are skipped. */
  async #requestLatest(): Promise<void> {
    this.#hasMoved = true;
    if (this.#isRequesting) return;
    this.#isRequesting = true;
    while (this.#hasMoved && this.#gesture) {
      this.#hasMoved = false;
      if (!this.#isUpToDate()) await this.requestExplanation();
    }
    this.#isRequesting = false;
  }

  undo(): void {
    const state = this.past.at(-1);
    if (state) this.#restore(state, this.past.slice(0, -1), [{ changes: this.changes, prefix: this.prefix }, ...this.future]);
  }

  redo(): void {
    const [state, ...rest] = this.future;
    if (state) this.#restore(state, [...this.past, { changes: this.changes, prefix: this.prefix }], rest);
  }

  #restore({ changes, prefix }: UndoableState, past: UndoableState[], future: UndoableState[]): void {
    this.#gesture = null;
    Object.assign(this, { changes, prefix, past, future, changedByHand: false });
    void this.requestExplanation();
  }

  // --- The address ----------------------------------------------------------------------------------------

  /** Set the state from the address. Parameters that are missing or invalid get their defaults. Language and theme are read only when the
   * page opens (`isFirst`), because the Back button should not change them. */
  readAddress(isFirst = false): void {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const list = (name: string) => parameters.get(name)?.split(",").filter(Boolean) ?? [];
    const indices = (texts: string[]) => (texts.every((digits) => /^\d{1,9}$/.test(digits)) ? texts.map(Number) : []);
    const index = (name: string, fallback: number) => indices([parameters.get(name) ?? ""])[0] ?? fallback;
    const oneOf = <Value extends string>(name: string, values: readonly Value[], fallback: Value) => values.find((value) => value === parameters.get(name)) ?? fallback;
    this.panel = OLD_PANELS.includes(parameters.get("panel") ?? "") ? "attention" : oneOf("panel", PANELS, this.#defaults.panel);
    this.part = parameters.get("panel") === "heads" || parameters.get("part") === "heads" ? "heads" : "map";
    this.site = oneOf("site", SITES, "cross");
    if (isFirst) {
      this.language = oneOf("language", Object.keys(LANGUAGES) as Language[], this.#defaults.language);
      this.appearance = oneOf("theme", ["light", "dark", "system"] as const, this.#defaults.appearance);
    }
    this.combination = oneOf("show", Object.keys(this.text.combination) as Combination[], "read-out");
    this.numberBelow = oneOf("order", Object.keys(this.text.headNumbers) as StatisticChoice[], "first");
    this.layer = index("layer", -1);
    this.head = index("head", 0);
    const model = index("model", 0);
    this.modelIndex = model < Math.max(this.models.length, this.explanations.length) ? model : 0;
    this.words = !["tokens", "pieces"].includes(parameters.get("units") ?? ""); // "pieces" is used in old addresses
    this.specials = parameters.get("marks") !== "hidden";
    this.showsLines = parameters.get("view") === "lines";
    this.selectedRows = indices(list("rows"));
    this.measure = oneOf("measure", MEASURES, "weight");
    this.subtractsWeight = parameters.get("minus") === "weight";
    this.stripRow = index("word", -1);
    this.step = index("step", -1);
    this.candidate = index("candidate", -1);
    this.validation = index("validation", -1);
    this.ownTargets = parameters.get("translations") === "own";
    const [site, ...cell] = list("cell");
    const [layer, head, query, key] = indices(cell);
    this.cell = isSite(site) && key !== undefined ? { site, layer, head, query, key } : null;
    this.pointedWords = NOTHING_POINTED; // the element under the pointer may have disappeared
    this.#keepSelection = true;
    if (!this.live) return;
    this.sentence = parameters.get("sentence") ?? this.#defaults.sentence;
    this.target = parameters.get("target") ?? "";
    Object.assign(this, { past: [], future: [], edge: null, changedByHand: false });
    this.index = index("index", 0);
    this.prefix = indices(list("forced"));
    this.beam = BEAMS.find((beam) => beam === index("beam", 0)) ?? 0;
    this.changes = parseChanges(parameters.get("changes") ?? "[]");
    this.#noteRequest();
  }

  /** The address of the current view. Panel and language are always written. Another parameter is left out only if `readAddress` sets the
   * same value without it. For example, the theme "system" is left out only if it is the default theme of this page. */
  address(): string {
    const parameters = new URLSearchParams();
    parameters.set("panel", this.panel);
    if (this.site !== "cross") parameters.set("site", this.site);
    if (this.combination !== "read-out") parameters.set("show", this.combination);
    if (this.layer >= 0) parameters.set("layer", String(this.layer));
    if (this.head) parameters.set("head", String(this.head));
    if (this.modelIndex) parameters.set("model", String(this.modelIndex));
    if (!this.words) parameters.set("units", "tokens");
    if (!this.specials) parameters.set("marks", "hidden");
    if (this.showsLines) parameters.set("view", "lines");
    if (this.selectedRows.length) parameters.set("rows", this.selectedRows.join(","));
    if (this.numberBelow !== "first") parameters.set("order", this.numberBelow);
    if (this.measure !== "weight") parameters.set("measure", this.measure);
    if (this.subtractsWeight) parameters.set("minus", "weight");
    if (this.stripRow >= 0) parameters.set("word", String(this.stripRow));
    if (this.step >= 0) parameters.set("step", String(this.step));
    if (this.candidate >= 0) parameters.set("candidate", String(this.candidate));
    if (this.validation >= 0) parameters.set("validation", String(this.validation));
    if (this.cell) parameters.set("cell", [this.cell.site, this.cell.layer, this.cell.head, this.cell.query, this.cell.key].join(","));
    if (this.ownTargets) parameters.set("translations", "own");
    if (this.part === "heads") parameters.set("part", "heads");
    parameters.set("language", this.language);
    if (this.appearance !== "system" || this.#defaults.appearance !== "system") parameters.set("theme", this.appearance);
    if (this.live && (this.requested.sentence || this.#defaults.sentence)) parameters.set("sentence", this.requested.sentence);
    if (this.live && this.requested.target) parameters.set("target", this.requested.target);
    if (this.live && this.requested.index) parameters.set("index", String(this.requested.index));
    if (this.beam) parameters.set("beam", String(this.beam));
    if (this.requested.prefix.length) parameters.set("forced", this.requested.prefix.join(","));
    if (this.requested.changes.length) parameters.set("changes", JSON.stringify(this.requested.changes));
    return `#${parameters}`;
  }
}

export const page = new Page();
