/** The box with other words at a position of the translation. The server sends each word with a translation of the whole sentence that
 * contains the word. If the user chooses a word, its translation is shown, without another request. */

import { button, byId, indexAfterArrowKey, make } from "./dom";
import { string } from "./settings";
import { percent } from "./text";
import type { Candidate } from "./translation";

const MARGIN = 8;

export class CandidateBox {
  readonly #box = byId("candidates");
  readonly #list = byId("candidate-list");
  readonly #status = byId("candidate-status");
  #anchor: HTMLElement | null = null;
  /** Aborts the request for the candidates of the current word. */
  #request = new AbortController();

  constructor() {
    byId("candidate-close").addEventListener("click", () => this.close());
    addEventListener("pointerdown", (event) => {
      if (this.isOpen && event.target instanceof Node && !this.#box.contains(event.target)) this.close(false);
    });
    this.#box.addEventListener("keydown", (event) => this.#onKey(event));
    addEventListener("resize", () => this.#place());
  }

  get isOpen(): boolean {
    return !this.#box.hidden;
  }

  /** Open the box at a word, before the candidates for this word have arrived. Returns a signal, which is aborted when the box closes or
   * opens for another word. */
  open(anchor: HTMLElement, word: string, probability: number | null): AbortSignal {
    this.#request.abort();
    this.#request = new AbortController();
    this.#anchor?.removeAttribute("aria-expanded");
    this.#anchor = anchor;
    anchor.setAttribute("aria-expanded", "true");
    byId("candidate-word").textContent = word;
    const probabilityText = probability === null ? string("unknown-probability") : string("probability", { percent: percent(probability) });
    byId("candidate-probability").textContent = probabilityText;
    this.#list.replaceChildren();
    this.showMessage(string("working"));
    this.#box.hidden = false;
    this.#place();
    byId("candidate-close").focus();
    return this.#request.signal;
  }

  showMessage(message: string): void {
    this.#status.textContent = message;
    this.#place();
  }

  show(candidates: Candidate[], word: string, onChoose: (candidate: Candidate) => void): void {
    const others = candidates.filter((candidate) => candidate.word !== word);
    this.showMessage(others.length ? string("choose-candidate") : string("no-candidates"));
    this.#list.replaceChildren(
      ...others.map((candidate) => {
        const choice = button("", () => {
          this.close();
          onChoose(candidate);
        });
        choice.append(
          make("b", { dir: "auto" }, candidate.word),
          make("span", { class: "number", title: string("probability", { percent: percent(candidate.probability) }) }, percent(candidate.probability)),
          make("small", { dir: "auto" }, candidate.text),
        );
        return make("li", {}, choice);
      }),
    );
    this.#place();
    this.#list.querySelector("button")?.focus();
  }

  /** Close the box. With `restoresFocus`, the word for which the box was opened gets the focus again. */
  close(restoresFocus = true): void {
    if (!this.isOpen) return;
    this.#request.abort();
    this.#box.hidden = true;
    this.#anchor?.removeAttribute("aria-expanded");
    if (restoresFocus && this.#anchor?.isConnected) this.#anchor.focus();
    this.#anchor = null;
  }

  /** Place the box below the word. If the window has too little room below the word but enough room above it, place the box above the
   * word. The box is moved sideways so that it stays inside the window. */
  #place(): void {
    if (!this.isOpen || !this.#anchor) return;
    const word = this.#anchor.getBoundingClientRect();
    const { width, height } = this.#box.getBoundingClientRect();
    const left = Math.max(MARGIN, Math.min(word.left, document.documentElement.clientWidth - width - MARGIN));
    const isAbove = word.bottom + height + MARGIN > innerHeight && word.top - height - MARGIN > 0;
    this.#box.style.left = `${left + scrollX}px`;
    this.#box.style.top = `${(isAbove ? word.top - height - MARGIN : word.bottom + MARGIN) + scrollY}px`;
  }

  #onKey(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      event.stopPropagation();
      this.close();
    }
    if (!step) return;
    const choices = [...this.#list.querySelectorAll("button")];
    const current = choices.indexOf(document.activeElement as HTMLButtonElement); // −1 if the focus is on the button that closes the box
    choices[indexAfterArrowKey(current, step, choices.length)]?.focus();
    event.preventDefault();
  }
}
