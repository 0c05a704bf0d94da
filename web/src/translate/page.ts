/** The translation page. It translates the text while the user types, sentence by sentence. */

import { CandidateBox } from "./candidates";
import { byId, copyText, make } from "./dom";
import { Choices, readDraft, tagsOf, writeDraft, type Draft } from "./draft";
import { Files } from "./files";
import { HistoryView } from "./history_view";
import { SentenceView, type SentenceHost } from "./sentence_view";
import { IN_STREAM, post, readEvents, RefusedError, TOO_LARGE } from "./server";
import { formatNumber, languageName, localiseError, onLanguage, settings, string, tagName } from "./settings";
import { session } from "./storage";
import { countCharacters, firstCharacters, readAddress, writeAddress, type TranslationInput } from "./text";
import { joinSentences, prefixOf, readVersion, sentenceAt, sentenceReader, type Candidate, type Sentence, type SentenceEvent, type Version } from "./translation";
import { Words, type Place } from "./words";

/** The source language of a translated text, whether it was detected, and the pivot languages. */
export interface Routing {
  source?: string;
  detectedLanguage?: { language: string; confidence: number };
  pivot?: string[];
}

/** A text that is being translated. It is a copy of the fields, which the user may change in the meantime. */
interface Job {
  input: TranslationInput;
  /** The fields of the request as JSON. */
  request: string;
  signal: AbortSignal;
}

const AUTO = "auto";
/** The shortest time between two drawings of a translation that is still arriving. */
const DRAW_MS = 100;

export class TranslationPage implements SentenceHost {
  readonly #form = byId<HTMLFormElement>("form");
  readonly #text = byId<HTMLTextAreaElement>("text");
  readonly #source = byId<HTMLSelectElement>("source");
  readonly #target = byId<HTMLSelectElement>("target");
  readonly #result = byId("result");
  readonly #words: Words;
  readonly #view: SentenceView;
  readonly #candidates = new CandidateBox();
  readonly #history = new HistoryView((entry) => this.#open(entry));
  sentences: Sentence[] = [];
  /** The language pair of the model that wrote the translation, e.g. “en_ko”; empty after several models. */
  pair = "";
  /** The text after the last sentence of the translation. */
  #after = "";
  #routing: Routing = {};
  /** The request of the translation that is shown. If the current fields differ, the translation is stale. */
  #shownRequest = "";
  /** The input of the translation that is shown. */
  #shownInput: TranslationInput = { source: "", target: "", text: "" };
  /** Whether the translation that is shown is complete. */
  #isComplete = false;
  /** Aborts the translation that is running; null if none is running. */
  #running: AbortController | null = null;
  #timer = 0;
  #isComposing = false;
  #problem: unknown = null;
  /** Whether the server has sent word probabilities since the page was opened. Word probabilities need torch, which a worker
   * of the server loads at the first request for word probabilities. Loading takes time, so the first text is first translated without word
   * probabilities. */
  #hasReceivedWords = false;
  /** Texts of at least this length are translated without word probabilities, because word probabilities of a text of this length
   * were too much work for the server. */
  #minLengthWithoutWords = Infinity;
  /** Whether the translation that is shown has no word probabilities, because its text is too long for them. */
  #lacksWords = false;
  readonly #choices = new Choices(session);

  constructor() {
    this.#words = new Words((place, element) => void this.#openWord(place, element));
    this.#view = new SentenceView(this);
  }

  start(): void {
    for (const id of ["swap", "clear", "copy", "history", "tinted"]) byId(id).hidden = false;
    document.documentElement.classList.add("scripted");
    this.#addListeners();
    new Files({
      fields: () => this.#languageFields(),
      explainError: (error) => this.explainError(error),
      describe: (routing) => this.#describe(routing),
    });
    onLanguage(() => this.#localise());
    this.#restore();
  }

  /** Draw the sentence view again after a change of the theme. The colours of its attention table depend on the theme. */
  redraw(): void {
    if (this.sentences.length && !this.#view.isHidden) this.#view.open(this.#view.index);
  }

  // --- The request ----------------------------------------------------------------------------------------

  /** The fields that all requests have: the languages, and the API key if there is one. */
  #languageFields(): Record<string, string> {
    const key = byId<HTMLInputElement>("key").value;
    return { source: this.#source.value, target: this.#target.value, ...(key ? { api_key: key } : {}) };
  }

  get #tags(): string[] {
    return [...document.querySelectorAll<HTMLInputElement>("#tags input:checked")].map(({ value }) => value);
  }

  /** The tags of the model for these languages. If the source language is to be detected: the tags of all models into the target language. */
  #availableTags(): string[] {
    const [source, target] = [this.#source.value, this.#target.value];
    const matches = (pair: string) => (source === AUTO ? pair.endsWith(`_${target}`) : pair === `${source}_${target}`);
    const pairs = Object.keys(settings.tagsByPair).filter(matches);
    return [...new Set(pairs.flatMap((pair) => settings.tagsByPair[pair]))];
  }

  #input(): TranslationInput {
    return { source: this.#source.value, target: this.#target.value, text: this.#text.value };
  }

  #request(): string {
    return JSON.stringify({ q: this.#text.value, ...this.#languageFields(), tags: this.#tags });
  }

  fields(sentence: Sentence): Record<string, unknown> {
    return { ...this.#languageFields(), source: this.#routing.source ?? this.#source.value, q: sentence.source, tags: this.#tags };
  }

  taggedText(sentence: Sentence): string {
    return [...this.#tags, sentence.source].join(" ");
  }

  // --- Translating ----------------------------------------------------------------------------------------

  #translateSoon(): void {
    clearTimeout(this.#timer);
    this.#onFieldsChanged();
    // Nothing is translated while the user composes a character, for example a Hangul syllable.
    if (!this.#isComposing) this.#timer = window.setTimeout(() => void this.translate(), settings.typingPause);
  }

  /** Update the page after the fields have changed. The translation that is shown is then stale. */
  #onFieldsChanged(): void {
    this.#words.mirrorText();
    this.#showCount();
    this.#save();
    this.#showState();
  }

  get #isTooLong(): boolean {
    return countCharacters(this.#text.value) > settings.limit;
  }

  async translate(): Promise<void> {
    clearTimeout(this.#timer);
    this.#running?.abort();
    this.#running = null;
    this.#candidates.close(false);
    if (this.#isComposing) return this.#showState();
    this.#saveAddress();
    if (!this.#text.value.trim()) return this.#reset();
    if (this.#isTooLong) return this.#showState();
    const running = (this.#running = new AbortController());
    const job: Job = { input: this.#input(), request: this.#request(), signal: running.signal };
    this.#showState();
    try {
      await this.#run(job);
      this.#problem = null;
      this.#history.addSoon({ ...job.input, result: this.result });
    } catch (error) {
      if (running.signal.aborted) return;
      this.#problem = error;
      const retrySeconds = error instanceof RefusedError ? error.retrySeconds : 0;
      if (retrySeconds) this.#timer = window.setTimeout(() => void this.translate(), 1000 * retrySeconds);
    }
    this.#running = null;
    this.#showState();
  }

  /** Translate with word probabilities. If the text is too long for them, translate without them. Before the server has sent word
   * probabilities for the first time, translate first without them, and then with them. */
  async #run(job: Job): Promise<void> {
    const { length } = job.input.text;
    const isTooLong = length >= this.#minLengthWithoutWords;
    const startsWithoutWords = isTooLong || !this.#hasReceivedWords;
    if (startsWithoutWords) await this.#stream(job, { words: false, showsPartials: true });
    this.#lacksWords = isTooLong;
    if (isTooLong) return;
    try {
      await this.#stream(job, { words: true, showsPartials: !startsWithoutWords });
      this.#hasReceivedWords = true;
    } catch (error) {
      if (!(error instanceof RefusedError && [TOO_LARGE, IN_STREAM].includes(error.status))) throw error;
      if (!startsWithoutWords) await this.#stream(job, { words: false, showsPartials: true });
      if (error.status !== TOO_LARGE) return; // the server was busy, so the next text is tried with word probabilities
      this.#minLengthWithoutWords = length;
      this.#lacksWords = true;
    }
  }

  /** Translate. `words`: whether word probabilities and alignments are requested. `showsPartials`: whether sentences are shown as soon as
   * they arrive; otherwise the translation is shown when it is complete. */
  async #stream(job: Job, { words, showsPartials }: { words: boolean; showsPartials: boolean }): Promise<void> {
    const { input, request, signal } = job;
    const { text } = input;
    const response = await post("/v1/translate/stream", { ...(JSON.parse(request) as object), alignment: words, words }, signal);
    const sentences: Sentence[] = [];
    const readSentence = sentenceReader(text);
    let nextDraw = 0; // a text may have thousands of sentences, so the page is not drawn again after each of them
    const drawPartial = (after: string) => {
      if (!showsPartials || performance.now() < nextDraw) return;
      this.#draw(job, sentences, after, false);
      nextDraw = performance.now() + DRAW_MS;
    };
    for await (const { name, data } of readEvents(response.body!)) {
      if (name === "partial") drawPartial((sentences.length ? " " : "") + (data as { text: string }).text);
      if (name === "sentence") {
        const sentence = readSentence(data as SentenceEvent);
        sentence.shown = this.#choices.get(this.#choiceKey(sentence)) ?? sentence.own;
        sentences.push(sentence);
        drawPartial("");
      }
      if (name === "text") {
        this.#routing = data as Routing;
        const path = [this.#routing.source, ...(this.#routing.pivot ?? []), input.target].join("_");
        this.pair = path in settings.tagsByPair ? path : "";
        const end = sentences.at(-1)?.span[1] ?? 0;
        this.#draw(job, sentences, sentences.length ? text.slice(end) : (data as { text: string }).text, true);
      }
    }
  }

  /** Show sentences and the text after them, which is an unfinished sentence or white space. */
  #draw({ input, request }: Job, sentences: Sentence[], after: string, isComplete: boolean): void {
    this.#shownRequest = request;
    this.#shownInput = input;
    this.#isComplete = isComplete;
    this.sentences = [...sentences];
    this.#after = after;
    this.#words.show(this.sentences, after);
    this.#showState();
  }

  #reset(): void {
    this.#shownRequest = "";
    this.#routing = {};
    this.#problem = null;
    this.sentences = [];
    this.#after = "";
    this.#words.show([], "");
    this.#view.hide();
    this.#showState();
  }

  /** Show whether the translation is stale, complete or failed, and enable or disable the buttons. */
  #showState(): void {
    const isEmpty = !this.#text.value.trim();
    const isStale = !isEmpty && this.#shownRequest !== this.#request();
    const isFinished = !this.#running && !isStale && !isEmpty && !this.#problem;
    const hasTint = byId<HTMLInputElement>("tint").checked && this.sentences.some(({ shown }) => shown.words.length);
    this.#result.classList.toggle("stale", isStale || (this.#problem !== null && !this.#isComplete));
    this.#result.setAttribute("aria-busy", String(this.#running !== null));
    byId("busy").hidden = this.#running === null;
    byId("message").textContent = isEmpty ? "" : this.#message(isStale);
    byId("notice").textContent = this.#notice(isFinished, isStale);
    byId<HTMLButtonElement>("copy").disabled = !this.sentences.length && !this.#after;
    byId("tint-legend").hidden = !isFinished || !hasTint;
    if (isFinished && this.sentences.length && !this.#isUntranslated(this.#routing)) this.#select(this.#caretSentence());
    else this.#view.hide();
    byId("spoken").textContent = isFinished ? this.result : "";
  }

  /** The error message, with a note if an older translation is still shown. */
  #message(isStale: boolean): string {
    if (this.#problem === null) return "";
    const note = isStale && this.sentences.length ? string("stale") : "";
    return [this.explainError(this.#problem), note].filter(Boolean).join(" ");
  }

  /** The notice below the translation: its languages, or that a character is being composed. */
  #notice(isFinished: boolean, isStale: boolean): string {
    if (isFinished) return [this.#describe(this.#routing), this.#lacksWords ? string("no-words") : ""].filter(Boolean).join(" · ");
    return this.#isComposing && isStale ? string("composing") : "";
  }

  get result(): string {
    return joinSentences(this.sentences, this.#after);
  }

  /** Whether the text was not translated because it is already in the target language. */
  #isUntranslated({ detectedLanguage }: Routing): boolean {
    return detectedLanguage?.language === this.#target.value;
  }

  #describe({ detectedLanguage, pivot }: Routing): string {
    return [
      ...(detectedLanguage ? [string("detected") + languageName(detectedLanguage.language)] : []),
      ...(this.#isUntranslated({ detectedLanguage }) ? [string("untranslated")] : []),
      ...(pivot?.length ? [string("through") + pivot.map(languageName).join(", ")] : []),
    ].join(" · ");
  }

  explainError(error: unknown): string {
    if (error instanceof RefusedError) return localiseError(error.message, error.status, error.retrySeconds);
    return error instanceof TypeError ? string("lost") : String(error);
  }

  // --- Sentences and words --------------------------------------------------------------------------------

  #caretSentence(): number {
    return sentenceAt(this.sentences, this.#text.selectionStart);
  }

  #select(index: number): void {
    this.#words.mark(index);
    this.#view.open(index);
  }

  /** Select a sentence, and move the caret to it. */
  select(index: number): void {
    const start = this.sentences[index].span[0];
    this.#text.setSelectionRange(start, start);
    this.#select(index);
  }

  #choiceKey(sentence: Sentence): string {
    return JSON.stringify([this.#source.value, this.#target.value, this.#tags, sentence.source]);
  }

  choose(sentence: Sentence, version: Version): void {
    sentence.shown = version;
    this.#choices.set(this.#choiceKey(sentence), version === sentence.own ? null : version);
    this.#words.show(this.sentences, this.#after);
    this.#select(this.sentences.indexOf(sentence));
    byId("spoken").textContent = this.result;
    this.#history.addSoon({ ...this.#shownInput, result: this.result });
  }

  async #openWord(place: Place, element: HTMLElement): Promise<void> {
    const sentence = this.sentences[place.sentence];
    const { span, probability } = sentence.shown.words[place.word];
    const word = sentence.shown.text.slice(...span);
    const signal = this.#candidates.open(element, word, probability);
    if (!this.pair) return this.#candidates.showMessage(string("no-candidates-through"));
    try {
      const response = await post("/v1/candidates", { ...this.fields(sentence), prefix: prefixOf(sentence.shown, place.word) }, signal);
      const { candidates } = (await response.json()) as { candidates: Candidate[] };
      if (signal.aborted || this.sentences[place.sentence] !== sentence) return;
      this.#candidates.show(candidates, word, (candidate) => {
        this.choose(sentence, readVersion(candidate, sentence.source));
        this.#words.elementOf(place)?.focus();
      });
    } catch (error) {
      if (!signal.aborted) this.#candidates.showMessage(this.explainError(error));
    }
  }

  // --- Fields ---------------------------------------------------------------------------------------------

  #showCount(): void {
    const count = countCharacters(this.#text.value);
    byId("count").textContent = `${formatNumber(count)} / ${formatNumber(settings.limit)}`;
    byId("too-long").hidden = !this.#isTooLong;
    byId("too-long-text").textContent = string("too-long", { count: count - settings.limit });
    byId("cut").textContent = string("cut", { count: settings.limit });
    byId<HTMLButtonElement>("clear").disabled = !this.#text.value;
  }

  /** The target language after a swap of the languages; undefined if they cannot be swapped. */
  #swapTarget(): string | undefined {
    const [source, target] = [this.#source.value, this.#target.value];
    const possible = (settings.targets[target] ?? []).filter((code) => code !== target);
    const preferred = source === AUTO ? this.#routing.source : source;
    return possible.find((code) => code === preferred) ?? (source === AUTO ? possible[0] : undefined);
  }

  #offerSwap(): void {
    const swap = byId<HTMLButtonElement>("swap");
    swap.disabled = !this.#swapTarget();
    swap.title = swap.disabled ? string("no-swap") : string("swap");
  }

  #swap(): void {
    const target = this.#swapTarget();
    if (!target) return;
    const text = this.result;
    this.#source.value = this.#target.value;
    this.#target.value = target;
    if (text) this.#text.value = text;
    this.#onLanguagesChanged();
  }

  #onLanguagesChanged(tags = this.#tags): void {
    this.#minLengthWithoutWords = Infinity;
    this.#offerSwap();
    this.#offerTags(tags);
    this.#onFieldsChanged();
    void this.translate();
  }

  #offerTags(chosen = this.#tags): void {
    const available = this.#availableTags();
    byId("tags").hidden = !available.length;
    byId("tag-switches").replaceChildren(
      ...available.map((tag) => {
        const box = make("input", { type: "checkbox", name: "tags", value: tag });
        box.checked = chosen.includes(tag);
        return make("label", { class: "switch", title: tag }, box, tagName(tag));
      }),
    );
  }

  #localise(): void {
    for (const option of document.querySelectorAll<HTMLOptionElement>("#source option, #target option")) {
      option.textContent = option.value === AUTO ? string("auto") : languageName(option.value);
    }
    this.#showCount();
    this.#offerSwap();
    this.#offerTags();
    this.#showState();
  }

  #addListeners(): void {
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.translate();
    });
    this.#text.addEventListener("compositionstart", () => {
      this.#isComposing = true;
      clearTimeout(this.#timer);
    });
    this.#text.addEventListener("compositionend", () => {
      this.#isComposing = false;
      this.#translateSoon();
    });
    this.#text.addEventListener("input", () => this.#translateSoon());
    document.addEventListener("selectionchange", () => {
      if (document.activeElement !== this.#text || this.#view.isHidden) return;
      const sentence = this.#caretSentence();
      if (sentence !== this.#view.index) this.#select(sentence);
    });
    this.#result.addEventListener("click", (event) => {
      const sentence = event.target instanceof Element ? event.target.closest<HTMLElement>(".sentence")?.dataset.sentence : undefined;
      if (sentence !== undefined && !this.#view.isHidden) this.select(Number(sentence));
    });
    for (const select of [this.#source, this.#target]) select.addEventListener("change", () => this.#onLanguagesChanged());
    byId("tags").addEventListener("change", () => {
      this.#onFieldsChanged();
      void this.translate();
    });
    byId("swap").addEventListener("click", () => this.#swap());
    byId("clear").addEventListener("click", () => this.#clear());
    byId("cut").addEventListener("click", () => {
      this.#text.value = firstCharacters(this.#text.value, settings.limit);
      this.#translateSoon();
    });
    byId("tint").addEventListener("change", () => this.#showTint());
    byId("copy").addEventListener("click", () => void this.#copy());
    addEventListener("keydown", (event) => this.#onKey(event));
    document.querySelector(".skip")?.addEventListener("click", (event) => {
      event.preventDefault(); // the link would change the fragment of the address, which would then be translated as a text
      this.#text.focus();
    });
    addEventListener("hashchange", () => {
      if (location.hash !== writeAddress(this.#input())) this.#openAddress();
    });
    this.#showTint();
  }

  /** Ctrl-Enter translates at once. Esc closes the box of candidates, or stops the translation if the box is not open. */
  #onKey(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.translate();
    } else if (event.key === "Escape") {
      if (this.#candidates.isOpen) return this.#candidates.close();
      clearTimeout(this.#timer);
      this.#running?.abort();
      this.#running = null;
      this.#showState();
    }
  }

  #clear(): void {
    this.#text.value = "";
    this.#onFieldsChanged();
    void this.translate();
    this.#text.focus();
  }

  async #copy(): Promise<void> {
    await copyText(this.result);
    byId("copy").textContent = string("copied");
    setTimeout(() => (byId("copy").textContent = string("copy")), 1500);
  }

  #showTint(): void {
    this.#result.classList.toggle("tinted", byId<HTMLInputElement>("tint").checked);
    this.#showState();
  }

  // --- Saving and restoring -------------------------------------------------------------------------------

  /** Store the text and its tags for a reload of the page. The browser deletes them when the tab is closed. */
  #save(): void {
    writeDraft(session, { ...this.#input(), tags: this.#tags });
  }

  /** Write the text into the address. This must not be called at each key stroke, because browsers limit how often an address may change. */
  #saveAddress(): void {
    const address = writeAddress(this.#input());
    if (address !== location.hash) history.replaceState(null, "", address || location.pathname);
  }

  #restore(): void {
    if (location.hash) return this.#openAddress();
    const draft = this.#text.value ? null : readDraft(session);
    if (draft) this.#open(draft);
    else if (this.#text.value) this.#onLanguagesChanged();
    else this.#onFieldsChanged();
  }

  #openAddress(): void {
    const isOptionOf = (select: HTMLSelectElement) => (code: string) => [...select.options].some(({ value }) => value === code);
    const input = readAddress(location.hash, isOptionOf(this.#source), isOptionOf(this.#target)) ?? { text: "" };
    this.#open({ ...input, tags: tagsOf(input, readDraft(session)) });
  }

  #open(input: Partial<Draft>): void {
    if (input.source) this.#source.value = input.source;
    if (input.target) this.#target.value = input.target;
    this.#text.value = input.text ?? "";
    this.#onLanguagesChanged(input.tags);
  }
}
