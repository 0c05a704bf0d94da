/** The state of the page. It is part of the address, so that a view can be shared. */

import { explain, explainStreaming, fetchSteps, ServerGoneError, withEffects, type ExplainRequest } from "./api";
import { parseChanges, type Change } from "./changes";
import type { Theme } from "./colour";
import { checkFormat, isSite, SITES, type Cell, type CellSteps, type Explanation, type ModelCard, type PageData, type Site, type StatisticName } from "./format";
import { combinations, sites, type Choice, type Combination } from "./maps";
import { PICTURE_LANGUAGES } from "./pictureStrings";
import { LANGUAGES, type Language } from "./strings";

export const PANELS = ["translate", "map", "heads", "steps", "beam", "change", "compare", "run"] as const;
export type Panel = (typeof PANELS)[number];
export type Order = "index" | StatisticName;

/** Hypotheses per search step that can be chosen; 0: as the model's recipe says. */
export const BEAMS = [0, 1, 4, 8];
/** How long each partial translation stays visible. */
const PARTIAL_MS = 60;

function readData(): PageData {
  return JSON.parse(document.getElementById("jumok-data")?.textContent || "{}") as PageData;
}

export function sameCell(a: Cell, b: Cell): boolean {
  return (["site", "layer", "head", "query", "key"] as const).every((name) => a[name] === b[name]);
}

class Page {
  panel = $state<Panel>("map");
  site = $state<Site>("cross");
  combination = $state<Combination>("read-out");
  layer = $state(-1);
  head = $state(0);
  words = $state(true);
  specials = $state(true);
  lines = $state(false);
  rows = $state<number[]>([]);
  order = $state<Order>("index");
  word = $state(-1);
  cell = $state<Cell | null>(null);
  step = $state(-1);
  candidate = $state(-1);
  /** The step of the validation that is shown; −1 for the newest. */
  validation = $state(-1);
  language = $state<Language>("en");
  appearance = $state<"system" | Theme>("system");
  systemIsDark = $state(false);

  /** The explanations of a static page. */
  explanations = $state.raw<Explanation[]>([]);
  /** The latest explanation of a live page. */
  answer = $state.raw<Explanation>();
  modelIndex = $state(0);
  models = $state.raw<ModelCard[]>([]);
  live = $state(false);
  hasRun = $state(false);

  sentence = $state("");
  /** Which sentence is explained, if the text has several. */
  index = $state(0);
  /** The picture of a live page, a data: URL. It is too long for the address. */
  picture = $state.raw("");
  prefix = $state.raw<number[]>([]);
  /** One of `BEAMS`. */
  beam = $state(0);
  changes = $state.raw<Change[]>([]);
  /** The partial translation while the model produces it. */
  partial = $state<string | null>(null);
  busy = $state(false);
  problem = $state("");

  /** Explanations of one sentence by several checkpoints. A run deletes old checkpoints, so these outlive the panel. */
  checkpointExplanations = $state.raw<{ sentence: string; entries: { step: number; explanation: Explanation }[] }>({ sentence: "", entries: [] });

  readsPictures = $derived(this.live ? !!this.models[this.modelIndex]?.reads_pictures : !!this.explanations[this.modelIndex]?.picture);
  text = $derived((this.readsPictures ? PICTURE_LANGUAGES : LANGUAGES)[this.language]);
  theme = $derived<Theme>(this.appearance === "system" ? (this.systemIsDark ? "dark" : "light") : this.appearance);
  explanation = $derived<Explanation | undefined>(this.live ? this.answer : this.explanations[this.modelIndex]);
  choice = $derived<Choice>(this.choiceFor(this.explanation));
  /** The sentence with normalised white space: pasted text has tabs and line breaks. */
  normalisedSentence = $derived(this.sentence.trim().replace(/\s+/g, " "));
  panels = $derived(PANELS.filter((panel) => this.isAvailable(panel)));

  /** Whether the answer belongs to another sentence or model than the current ones. */
  stale = $derived(this.#isStale());

  #controller = new AbortController();
  #requests = new WeakMap<Explanation, ExplainRequest>();
  /** Whether the next answer keeps the selected rows, step, candidate and cell: they come from the address. */
  #keepSelection = true;
  #defaults: { panel: Panel; sentence: string; language: Language } = { panel: "map", sentence: "", language: "en" };

  constructor() {
    const data = readData();
    this.#defaults.language = navigator.language.startsWith("ko") ? "ko" : "en";
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
      this.#defaults.panel = this.models.length ? "translate" : "run";
    }
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.systemIsDark = dark.matches;
    dark.addEventListener("change", () => (this.systemIsDark = dark.matches));
    this.readAddress();
    addEventListener("hashchange", () => {
      this.readAddress();
      if (this.busy || !this.#isUpToDate()) void this.requestExplanation();
      else this.#keepSelection = false;
    });
  }

  /** The selection, limited to what this model has. */
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

  /** A description of the attention that is shown. */
  describe(explanation: Explanation): string {
    const { site, combination, layer, head } = this.choiceFor(explanation);
    const indices = combination === "head" ? [`${this.text.layer} ${Math.max(layer, 0)}`, `${this.text.head} ${head}`] : [];
    return [this.text.siteLong[site], this.text.combination[combination], ...indices].join(" · ");
  }

  isAvailable(panel: Panel): boolean {
    if (panel === "run") return this.hasRun;
    const facts = this.live ? this.models[this.modelIndex]?.facts : this.explanations[this.modelIndex]?.facts;
    if (facts?.family === "encoder-only" && ["steps", "beam", "change"].includes(panel)) return false; // a classifier writes nothing
    if (panel === "change") return this.live && this.models.length > 0;
    if (panel === "compare") return this.explanations.length > 1 || this.models.length > 1;
    return this.models.length > 0 || this.explanations.length > 0;
  }

  errorMessage(error: unknown): string {
    return error instanceof ServerGoneError ? this.text.serverGone : error instanceof Error ? error.message : String(error);
  }

  /** Open a panel, and clear an error of the previous one. */
  openPanel(panel: Panel): void {
    this.panel = panel;
    if (this.explanation) this.problem = "";
  }

  selectHead(site: Site, layer: number, head: number): void {
    Object.assign(this, { site, combination: "head", layer, head });
  }

  // --- Requests -------------------------------------------------------------------------------------------

  #currentRequest(): ExplainRequest {
    const { modelIndex: model, normalisedSentence: sentence, index, changes, prefix, beam } = this;
    const search = { changes, prefix, ...(beam && { beam }) };
    if (this.readsPictures) return { model, sentence: "", picture: this.picture, ...search };
    return { model, sentence, ...search, ...(index && { index }) };
  }

  #isUpToDate(): boolean {
    const request = this.answer && this.#requests.get(this.answer);
    return !!request && JSON.stringify(request) === JSON.stringify(this.#currentRequest());
  }

  #isStale(): boolean {
    const request = this.answer && this.#requests.get(this.answer);
    const current = this.#currentRequest();
    return !!request && (request.sentence !== current.sentence || request.picture !== current.picture || request.model !== current.model);
  }

  /** Request an explanation from the selected model. A new request aborts the previous one. */
  async requestExplanation(): Promise<void> {
    if (!this.live || !this.models.length) return;
    this.#controller.abort();
    const { signal } = (this.#controller = new AbortController());
    this.problem = "";
    if (!(this.readsPictures ? this.picture : this.normalisedSentence)) {
      this.answer = undefined;
      [this.busy, this.partial] = [false, null];
      return;
    }
    this.busy = true;
    const request = this.#currentRequest();
    try {
      const answer = await explainStreaming(request, (text, index) => this.#showPartial(text, index, signal), signal);
      if (signal.aborted) return;
      this.#requests.set(answer, request);
      if (!this.#keepSelection) Object.assign(this, { rows: [], step: -1, candidate: -1, cell: null });
      this.#keepSelection = false;
      this.answer = answer;
      void this.#addEffects(signal, answer, request);
    } catch (error) {
      if (signal.aborted) return;
      await this.#revert(request);
      this.problem = this.errorMessage(error);
    } finally {
      if (!signal.aborted) [this.busy, this.partial] = [false, null];
    }
  }

  /** After a refused request, restore the changes and the prefix of the answer that is shown. */
  async #revert({ changes, prefix }: ExplainRequest): Promise<void> {
    const answered = this.stale || !this.answer ? undefined : this.#requests.get(this.answer);
    [this.changes, this.prefix] = [answered?.changes ?? [], answered?.prefix ?? []];
    if (answered) return;
    this.answer = undefined;
    if (changes.length || prefix.length) await this.requestExplanation();
  }

  /** Small models write faster than anyone reads, so each partial translation stays visible for a moment.
   * The longer the text, the shorter the pause: 60 tokens take about a second. */
  async #showPartial(text: string, index: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.partial = text;
    const isVisible = this.panel === "translate" && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isVisible) await new Promise((done) => setTimeout(done, PARTIAL_MS / (1 + index / 8)));
  }

  /** The effects of silencing take longer than the translation, so they are requested after it. */
  async #addEffects(signal: AbortSignal, answer: Explanation, request: ExplainRequest): Promise<void> {
    if (!answer.attention.cross && answer.picture) return; // a classifier
    const measured = await withEffects(answer, request, signal).catch(() => null);
    if (!measured || signal.aborted) return;
    this.#requests.set(measured, request);
    this.answer = measured;
  }

  async stepsOf(cell: Cell): Promise<CellSteps | null> {
    const explanation = this.explanation;
    const stored = explanation?.steps.find((steps) => sameCell(steps, cell));
    const request = explanation && this.#requests.get(explanation);
    return stored || !request ? (stored ?? null) : fetchSteps({ ...request, cell });
  }

  /** Explain the translation before the changes, to which their indices refer; null if there is none.
   * The changes apply to it, unless its text would be tokenized differently; then it is explained without them. */
  async explainBefore(explanation: Explanation): Promise<Explanation | null> {
    const request = this.#requests.get(explanation);
    const target = explanation.before?.target;
    if (!request || !target) return null;
    const withChanges = await explain({ ...request, prefix: [], target: target.text });
    return withChanges.target.ids.join() === target.ids.join() ? withChanges : explain({ ...request, changes: [] });
  }

  /** Explain another sentence of the same text. */
  selectSentence(index: number): void {
    Object.assign(this, { index, changes: [], prefix: [] });
    void this.requestExplanation();
  }

  selectBeam(beam: number): void {
    this.beam = beam;
    void this.requestExplanation();
  }

  selectModel(index: number): void {
    if (index === this.modelIndex) return;
    this.modelIndex = index;
    this.changes = [];
    this.prefix = [];
    if (this.live) void this.requestExplanation();
  }

  // --- The address ----------------------------------------------------------------------------------------

  /** Read the address. Parameters that are missing or invalid get their defaults. */
  readAddress(): void {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const list = (name: string) => parameters.get(name)?.split(",").filter(Boolean) ?? [];
    const indices = (texts: string[]) => (texts.every((digits) => /^\d{1,9}$/.test(digits)) ? texts.map(Number) : []);
    const index = (name: string, fallback: number) => indices([parameters.get(name) ?? ""])[0] ?? fallback;
    const oneOf = <Value extends string>(name: string, values: readonly Value[], fallback: Value) => values.find((value) => value === parameters.get(name)) ?? fallback;
    this.panel = oneOf("panel", PANELS, this.#defaults.panel);
    this.site = oneOf("site", SITES, "cross");
    this.language = oneOf("language", Object.keys(LANGUAGES) as Language[], this.#defaults.language);
    this.combination = oneOf("show", Object.keys(this.text.combination) as Combination[], "read-out");
    this.order = oneOf("order", Object.keys(this.text.orders) as Order[], "index");
    this.appearance = oneOf("theme", ["light", "dark", "system"] as const, "system");
    this.layer = index("layer", -1);
    this.head = index("head", 0);
    const model = index("model", 0);
    this.modelIndex = model < Math.max(this.models.length, this.explanations.length) ? model : 0;
    this.words = !["tokens", "pieces"].includes(parameters.get("units") ?? ""); // old addresses say pieces
    this.specials = parameters.get("marks") !== "hidden";
    this.lines = parameters.get("view") === "lines";
    this.rows = indices(list("rows"));
    this.word = index("word", -1);
    this.step = index("step", -1);
    this.candidate = index("candidate", -1);
    this.validation = index("validation", -1);
    const [site, ...cell] = list("cell");
    const [layer, head, query, key] = indices(cell);
    this.cell = isSite(site) && key !== undefined ? { site, layer, head, query, key } : null;
    this.#keepSelection = true;
    if (!this.live) return;
    this.sentence = parameters.get("sentence") ?? this.#defaults.sentence;
    this.index = index("index", 0);
    this.prefix = indices(list("forced"));
    this.beam = BEAMS.find((beam) => beam === index("beam", 0)) ?? 0;
    this.changes = parseChanges(parameters.get("changes") ?? "[]");
  }

  /** The address of the current view, without defaults. */
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
    if (this.lines) parameters.set("view", "lines");
    if (this.rows.length) parameters.set("rows", this.rows.join(","));
    if (this.order !== "index") parameters.set("order", this.order);
    if (this.word >= 0) parameters.set("word", String(this.word));
    if (this.step >= 0) parameters.set("step", String(this.step));
    if (this.candidate >= 0) parameters.set("candidate", String(this.candidate));
    if (this.validation >= 0) parameters.set("validation", String(this.validation));
    if (this.cell) parameters.set("cell", [this.cell.site, this.cell.layer, this.cell.head, this.cell.query, this.cell.key].join(","));
    parameters.set("language", this.language);
    if (this.appearance !== "system") parameters.set("theme", this.appearance);
    if (this.live && this.sentence) parameters.set("sentence", this.sentence);
    if (this.live && this.index) parameters.set("index", String(this.index));
    if (this.beam) parameters.set("beam", String(this.beam));
    if (this.prefix.length) parameters.set("forced", this.prefix.join(","));
    if (this.changes.length) parameters.set("changes", JSON.stringify(this.changes));
    return `#${parameters}`;
  }
}

export const page = new Page();
