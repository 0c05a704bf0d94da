/** What the page shows now. It is kept in the address, so that a view can be shared. */

import { readChanges } from "./changes";
import { explain, GoneError, measured, steps, write, type Question } from "./live";
import { checkFormat, isSite, SITES, type Cell, type CellSteps, type Change, type Explanation, type ModelCard, type PageData, type Site, type StatisticName } from "./format";
import { combinations, sites, type Choice, type Combination } from "./maps";
import { LANGUAGES, type Language } from "./words";
import type { Theme } from "./colour";

export const PANELS = ["translate", "map", "heads", "steps", "beam", "change", "compare", "run"] as const;
export type Panel = (typeof PANELS)[number];
export type Order = "place" | StatisticName;

/** Milliseconds. */
const SEEN = 60;

function readData(): PageData {
  return JSON.parse(document.getElementById("jumok-data")?.textContent || "{}") as PageData;
}

export function sameCell(one: Cell, other: Cell): boolean {
  return (["site", "layer", "head", "query", "key"] as const).every((name) => one[name] === other[name]);
}

class Page {
  panel = $state<Panel>("map");
  site = $state<Site>("cross");
  combination = $state<Combination>("read-out");
  layer = $state(-1);
  head = $state(0);
  words = $state(true);
  marks = $state(true);
  lines = $state(false);
  rows = $state<number[]>([]);
  order = $state<Order>("place");
  word = $state(-1);
  cell = $state<Cell | null>(null);
  step = $state(-1);
  candidate = $state(-1);
  /** The step of the validation that is looked at; −1 for the newest. */
  validation = $state(-1);
  language = $state<Language>("en");
  appearance = $state<"system" | Theme>("system");
  darkSystem = $state(false);

  /** The explanations that were saved with the page, or the answer of the model that is asked. */
  explanations = $state.raw<Explanation[]>([]);
  answer = $state.raw<Explanation>();
  shown = $state(0);
  models = $state.raw<ModelCard[]>([]);
  live = $state(false);
  hasRun = $state(false);

  sentence = $state("");
  forced = $state.raw<number[]>([]);
  changes = $state.raw<Change[]>([]);
  /** What the model has written so far of the translation that is asked for. */
  begun = $state<string | null>(null);
  busy = $state(false);
  problem = $state("");

  /** What checkpoints made of a sentence: a run keeps few of them, so what was seen outlives its panel. */
  snapshots = $state.raw<{ sentence: string; found: { step: number; explanation: Explanation }[] }>({ sentence: "", found: [] });

  text = $derived(LANGUAGES[this.language]);
  theme = $derived<Theme>(this.appearance === "system" ? (this.darkSystem ? "dark" : "light") : this.appearance);
  explanation = $derived<Explanation | undefined>(this.live ? this.answer : this.explanations[this.shown]);
  choice = $derived<Choice>(this.choiceFor(this.explanation));
  /** The sentence as models know sentences: tabs, line ends and other spaces come with what is pasted. */
  asked = $derived(this.sentence.trim().replace(/\s+/g, " "));
  panels = $derived(PANELS.filter((panel) => this.offers(panel)));

  /** Whether what is shown answers another sentence than the one that stands there now. */
  stale = $derived(this.#isOfAnotherSentence());

  #asking = new AbortController();
  #questions = new WeakMap<Explanation, Question>();
  /** What an address names belongs to the first answer after it. */
  #addressed = true;
  #first: { panel: Panel; sentence: string; language: Language } = { panel: "map", sentence: "", language: "en" };

  constructor() {
    const data = readData();
    this.#first.language = navigator.language.startsWith("ko") ? "ko" : "en";
    try {
      this.explanations = (data.explanations ?? []).map(checkFormat);
    } catch (error) {
      this.problem = String(error);
    }
    if (data.live) {
      this.live = true;
      this.models = data.live.models;
      this.hasRun = data.live.run;
      this.#first.sentence = data.live.sentence;
      this.#first.panel = this.models.length ? "translate" : "run";
    }
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.darkSystem = dark.matches;
    dark.addEventListener("change", () => (this.darkSystem = dark.matches));
    this.readAddress();
    addEventListener("hashchange", () => {
      this.readAddress();
      if (this.busy || !this.#isAnswered()) void this.ask();
      else this.#addressed = false;
    });
  }

  /** What is asked for, bent to what this model has. */
  choiceFor(explanation: Explanation | undefined): Choice {
    const { combination, layer, head, words, marks } = this;
    if (!explanation) return { site: this.site, combination, layer, head, words, marks };
    const known = sites(explanation);
    const site = known.includes(this.site) ? this.site : (known[0] ?? this.site);
    const possible = combinations(explanation, site);
    const [layers, heads] = explanation.attention[site]?.shape ?? [1, 1];
    return {
      site,
      combination: possible.includes(combination) ? combination : possible.includes("mean") ? "mean" : possible[0],
      layer: Math.min(layer, layers - 1),
      head: Math.min(head, heads - 1),
      words,
      marks,
    };
  }

  /** Which attention of a model is shown, in words. */
  describe(explanation: Explanation): string {
    const { site, combination, layer, head } = this.choiceFor(explanation);
    const place = combination === "head" ? [`${this.text.layer} ${Math.max(layer, 0)}`, `${this.text.head} ${head}`] : [];
    return [this.text.siteLong[site], this.text.combination[combination], ...place].join(" · ");
  }

  offers(panel: Panel): boolean {
    if (panel === "run") return this.hasRun;
    if (panel === "change") return this.live && this.models.length > 0;
    if (panel === "compare") return this.explanations.length > 1 || this.models.length > 1;
    return this.models.length > 0 || this.explanations.length > 0;
  }

  /** Why something did not work. */
  reason(error: unknown): string {
    return error instanceof GoneError ? this.text.gone : error instanceof Error ? error.message : String(error);
  }

  /** To another panel, where what did not work on this one is no news. */
  go(panel: Panel): void {
    this.panel = panel;
    if (this.explanation) this.problem = "";
  }

  lookAtHead(site: Site, layer: number, head: number): void {
    Object.assign(this, { site, combination: "head", layer, head });
  }

  // --- Asking the model ----------------------------------------------------------------------------------

  #question(): Question {
    const { shown: model, asked: sentence, changes, forced: forced_prefix } = this;
    return { model, sentence, changes, forced_prefix };
  }

  #isAnswered(): boolean {
    const question = this.answer && this.#questions.get(this.answer);
    return !!question && JSON.stringify(question) === JSON.stringify(this.#question());
  }

  #isOfAnotherSentence(): boolean {
    const question = this.answer && this.#questions.get(this.answer);
    return !!question && (question.sentence !== this.asked || question.model !== this.shown);
  }

  /** Ask the model that is shown. A question asked later overtakes an earlier one. */
  async ask(): Promise<void> {
    if (!this.live || !this.models.length) return;
    this.#asking.abort();
    const { signal } = (this.#asking = new AbortController());
    this.problem = "";
    if (!this.asked) {
      this.answer = undefined;
      [this.busy, this.begun] = [false, null];
      return;
    }
    this.busy = true;
    const question = this.#question();
    try {
      const answer = await write(question, (text, place) => this.#show(text, place, signal), signal);
      if (signal.aborted) return;
      this.#questions.set(answer, question);
      if (!this.#addressed) Object.assign(this, { rows: [], step: -1, candidate: -1, cell: null });
      this.#addressed = false;
      this.answer = answer;
      void this.measure(signal, answer, question);
    } catch (error) {
      if (signal.aborted) return;
      await this.#takeBack(question);
      this.problem = this.reason(error);
    } finally {
      if (!signal.aborted) [this.busy, this.begun] = [false, null];
    }
  }

  /** What was refused is taken back, so that what is set is what is shown. */
  async #takeBack({ changes, forced_prefix }: Question): Promise<void> {
    const answered = this.stale || !this.answer ? undefined : this.#questions.get(this.answer);
    [this.changes, this.forced] = [answered?.changes ?? [], answered?.forced_prefix ?? []];
    if (answered) return;
    this.answer = undefined;
    if (changes.length || forced_prefix.length) await this.ask();
  }

  /** Each beginning stays long enough to be seen, where somebody looks: small models write faster than eyes read.
   * The longer the text, the shorter each, so that 60 pieces take no longer than a second. */
  async #show(text: string, place: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.begun = text;
    const looks = this.panel === "translate" && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (looks) await new Promise((done) => setTimeout(done, SEEN / (1 + place / 8)));
  }

  /** The effect of silencing each head comes after the translation, because it takes longer. */
  async measure(signal: AbortSignal, answer: Explanation, question: Question): Promise<void> {
    const found = await measured(answer, question).catch(() => null);
    if (!found || signal.aborted) return;
    this.#questions.set(found, question);
    this.answer = found;
  }

  async stepsOf(cell: Cell): Promise<CellSteps | null> {
    const explanation = this.explanation;
    const kept = explanation?.steps.find((one) => sameCell(one, cell));
    const question = explanation && this.#questions.get(explanation);
    return kept || !question ? (kept ?? null) : steps({ ...question, cell });
  }

  /** The translation that changes are told in, read with them, where they made the model write another.
   * Text that is not cut into the same pieces again is shown without them. */
  async beforeOf(explanation: Explanation): Promise<Explanation | null> {
    const question = this.#questions.get(explanation);
    const target = explanation.before?.target;
    if (!question || !target) return null;
    const found = await explain({ ...question, forced_prefix: [], target: target.text });
    return found.target.ids.join() === target.ids.join() ? found : explain({ ...question, changes: [] });
  }

  choose(model: number): void {
    if (model === this.shown) return;
    this.shown = model;
    this.changes = [];
    this.forced = [];
    if (this.live) void this.ask();
  }

  // --- The address ----------------------------------------------------------------------------------------

  /** All that an address can name; what it leaves out, or names wrongly, is as it is at first. */
  readAddress(): void {
    const words = new URLSearchParams(location.hash.slice(1));
    const list = (name: string) => words.get(name)?.split(",").filter(Boolean) ?? [];
    const places = (named: string[]) => (named.every((one) => /^\d{1,9}$/.test(one)) ? named.map(Number) : []);
    const place = (name: string, otherwise: number) => places([words.get(name) ?? ""])[0] ?? otherwise;
    const oneOf = <Value extends string>(name: string, values: readonly Value[], otherwise: Value) => values.find((one) => one === words.get(name)) ?? otherwise;
    this.panel = oneOf("panel", PANELS, this.#first.panel);
    this.site = oneOf("site", SITES, "cross");
    this.language = oneOf("language", Object.keys(LANGUAGES) as Language[], this.#first.language);
    this.combination = oneOf("show", Object.keys(this.text.combination) as Combination[], "read-out");
    this.order = oneOf("order", Object.keys(this.text.orders) as Order[], "place");
    this.appearance = oneOf("theme", ["light", "dark", "system"] as const, "system");
    this.layer = place("layer", -1);
    this.head = place("head", 0);
    const model = place("model", 0);
    this.shown = model < Math.max(this.models.length, this.explanations.length) ? model : 0;
    this.words = words.get("units") !== "pieces";
    this.marks = words.get("marks") !== "hidden";
    this.lines = words.get("view") === "lines";
    this.rows = places(list("rows"));
    this.word = place("word", -1);
    this.step = place("step", -1);
    this.candidate = place("candidate", -1);
    this.validation = place("validation", -1);
    const [site, ...cell] = list("cell");
    const [layer, head, query, key] = places(cell);
    this.cell = isSite(site) && key !== undefined ? { site, layer, head, query, key } : null;
    this.#addressed = true;
    if (!this.live) return;
    this.sentence = words.get("sentence") ?? this.#first.sentence;
    this.forced = places(list("forced"));
    this.changes = readChanges(words.get("changes") ?? "[]");
  }

  /** The address of what is seen; what is as it is at first is left out. */
  address(): string {
    const words = new URLSearchParams();
    words.set("panel", this.panel);
    if (this.site !== "cross") words.set("site", this.site);
    if (this.combination !== "read-out") words.set("show", this.combination);
    if (this.layer >= 0) words.set("layer", String(this.layer));
    if (this.head) words.set("head", String(this.head));
    if (this.shown) words.set("model", String(this.shown));
    if (!this.words) words.set("units", "pieces");
    if (!this.marks) words.set("marks", "hidden");
    if (this.lines) words.set("view", "lines");
    if (this.rows.length) words.set("rows", this.rows.join(","));
    if (this.order !== "place") words.set("order", this.order);
    if (this.word >= 0) words.set("word", String(this.word));
    if (this.step >= 0) words.set("step", String(this.step));
    if (this.candidate >= 0) words.set("candidate", String(this.candidate));
    if (this.validation >= 0) words.set("validation", String(this.validation));
    if (this.cell) words.set("cell", [this.cell.site, this.cell.layer, this.cell.head, this.cell.query, this.cell.key].join(","));
    words.set("language", this.language);
    if (this.appearance !== "system") words.set("theme", this.appearance);
    if (this.live && this.sentence) words.set("sentence", this.sentence);
    if (this.forced.length) words.set("forced", this.forced.join(","));
    if (this.changes.length) words.set("changes", JSON.stringify(this.changes));
    return `#${words}`;
  }
}

export const page = new Page();
