/** Shows the selected sentence with its other translations and its attention. Other translations and attention are requested only while the
 * part of the page that shows them is open. */

import { attentionTable, readExplanation, scrollingFrame } from "./attention";
import { button, byId, make } from "./dom";
import { post } from "./server";
import { currentTheme, onLanguage, preferences, settings, string } from "./settings";
import { readVersion, type ScoredText, type Sentence, type Version } from "./translation";

/** The number of translations that are requested: the best translation and the other translations in the list. */
const N_BEST = 5;

/** The properties and methods of the page that `SentenceView` uses. */
export interface SentenceHost {
  sentences: readonly Sentence[];
  /** The name of the model's language pair, for example `en_ko`; empty for a chain of models. */
  pair: string;
  /** The fields of a request about one sentence. */
  fields(sentence: Sentence): Record<string, unknown>;
  /** The input of the model for a sentence: the tags, and then the sentence. */
  taggedText(sentence: Sentence): string;
  choose(sentence: Sentence, version: Version): void;
  select(index: number): void;
  explainError(error: unknown): string;
}

export class SentenceView {
  readonly #view = byId("sentence-view");
  readonly #alternatives = byId<HTMLDetailsElement>("alternatives");
  readonly #attention = byId<HTMLDetailsElement>("attention");
  /** The index of the sentence that is shown. */
  index = 0;
  /** Aborts the requests for the sentence that is shown. */
  #running = new AbortController();

  constructor(private readonly host: SentenceHost) {
    for (const details of [this.#alternatives, this.#attention]) details.addEventListener("toggle", () => this.#fill(details));
    byId("previous-sentence").addEventListener("click", () => this.host.select(this.index - 1));
    byId("next-sentence").addEventListener("click", () => this.host.select(this.index + 1));
    byId("model-translation").addEventListener("click", () => {
      const sentence = this.#sentence;
      if (sentence) this.host.choose(sentence, sentence.own);
    });
    onLanguage(() => this.#show());
  }

  get #sentence(): Sentence | undefined {
    return this.host.sentences[this.index];
  }

  /** Show a sentence, and request the parts that are open. */
  open(index: number): void {
    this.index = Math.min(Math.max(index, 0), Math.max(this.host.sentences.length - 1, 0));
    this.#show();
  }

  get isHidden(): boolean {
    return this.#view.hidden;
  }

  hide(): void {
    this.#running.abort();
    this.#view.hidden = true;
  }

  #show(): void {
    const sentence = this.#sentence;
    this.#running.abort();
    this.#view.hidden = !sentence;
    if (!sentence) return;
    const count = this.host.sentences.length;
    byId("sentence-number").textContent = count > 1 ? string("sentence-number", { number: this.index + 1, count }) : string("this-sentence");
    byId("sentence-steps").hidden = count < 2;
    byId<HTMLButtonElement>("previous-sentence").disabled = this.index === 0;
    byId<HTMLButtonElement>("next-sentence").disabled = this.index === count - 1;
    byId("sentence-source").textContent = count > 1 ? sentence.source : "";
    byId("chosen").hidden = sentence.shown === sentence.own;
    byId("notes").textContent = sentence.notes.join(" ");
    this.#attention.hidden = !this.host.pair;
    this.#linkAttentionPage(sentence);
    this.#running = new AbortController();
    for (const details of [this.#alternatives, this.#attention]) this.#fill(details);
  }

  /** Set the link to the attention page. The link contains the translation only if the user has chosen a translation that is not the model's
   * own. */
  #linkAttentionPage(sentence: Sentence): void {
    const link = byId<HTMLAnchorElement>("show-attention");
    link.hidden = !this.host.pair || !settings.attentionPages;
    const target: Record<string, string> = sentence.shown === sentence.own ? {} : { target: sentence.shown.text };
    const parameters = new URLSearchParams({ sentence: this.host.taggedText(sentence), ...target, ...preferences() });
    link.href = `/attention/${this.host.pair}/#${parameters}`;
  }

  /** Request the content of a part of the page, if this part is open. */
  #fill(details: HTMLDetailsElement): void {
    const [sentence, content] = [this.#sentence, details.querySelector<HTMLElement>(".content")];
    if (!details.open || details.hidden || !sentence || !content) return;
    const { signal } = this.#running;
    content.classList.add("stale");
    const request = details === this.#attention ? this.#drawAttention(sentence, signal) : this.#listAlternatives(sentence, signal);
    request
      .catch((error: unknown) => [make("p", { class: "problem" }, this.host.explainError(error))])
      .then((nodes) => {
        if (signal.aborted) return;
        content.classList.remove("stale");
        content.replaceChildren(...nodes);
      });
  }

  async #listAlternatives(sentence: Sentence, signal: AbortSignal): Promise<Node[]> {
    const request = { ...this.host.fields(sentence), n_best: N_BEST, alignment: true, words: true };
    const answer = (await (await post("/v1/translate", request, signal)).json()) as { translations: (ScoredText & { alternatives: ScoredText[] })[] };
    const [best] = answer.translations;
    const others = [best, ...best.alternatives].filter(({ text }) => text.trim() && text !== sentence.shown.text);
    if (!others.length) return [make("p", { class: "note" }, string("no-alternatives"))];
    const choose = (scored: ScoredText) => this.host.choose(sentence, readVersion(scored, sentence.source));
    return [make("ol", {}, ...others.map((scored) => make("li", {}, button(scored.text, () => choose(scored), { dir: "auto" }))))];
  }

  async #drawAttention(sentence: Sentence, signal: AbortSignal): Promise<Node[]> {
    const { source, target, api_key } = this.host.fields(sentence);
    const request = { q: this.host.taggedText(sentence), source, target, translation: sentence.shown.text, ...(api_key ? { api_key } : {}) };
    const explanation = readExplanation(await (await post("/v1/explain", request, signal)).json());
    const table = attentionTable(explanation, currentTheme());
    if (!table) return [make("p", { class: "note" }, string("no-attention"))];
    return [make("p", { class: "note" }, `${string("attention-note")} ${string("attention-caption")}`), scrollingFrame(table, string("attention-caption"))];
  }
}
