/** The words of the text and of its translation: drawn, tinted by probability, and highlighted together.
 *
 * A text box cannot contain elements, so a copy of its text lies exactly behind it, and its words are highlighted there. */

import { byId, make } from "./dom";
import { string } from "./settings";
import { percent } from "./text";
import { partners, tint, type Sentence } from "./translation";

/** A word of a sentence: in the text, or in its translation. */
export interface Place {
  side: "source" | "target";
  sentence: number;
  word: number;
}

/** More words than this are shown as plain text, because each word needs an element. */
const MAX_WORDS = 6_000;

const nameOf = (place: Place) => `${place.side}-${place.sentence}-${place.word}`;

export class Words {
  readonly #text = byId<HTMLTextAreaElement>("text");
  readonly #mirror = byId("mirror");
  readonly #result = byId("result");
  readonly #note = byId("word-note");
  #sentences: Sentence[] = [];
  #elements = new Map<string, HTMLElement>();
  #lit: Place | null = null;
  #current = -1;

  constructor(private readonly onOpen: (place: Place, element: HTMLElement) => void) {
    const pointed = (event: Event) => this.#placeOf(event.target);
    this.#result.addEventListener("pointerover", (event) => this.light(pointed(event)));
    this.#result.addEventListener("pointerleave", () => this.light(null));
    this.#result.addEventListener("focusin", (event) => this.light(pointed(event)));
    this.#result.addEventListener("click", (event) => {
      const place = pointed(event);
      if (place && getSelection()?.isCollapsed !== false) this.#open(place);
    });
    this.#result.addEventListener("keydown", (event) => this.#onKey(event));
    this.#text.addEventListener("pointermove", (event) => this.light(this.#placeBehind(event)));
    this.#text.addEventListener("pointerleave", () => this.light(null));
  }

  /** Draw a translation; `after` is the text after its last sentence. */
  show(sentences: Sentence[], after: string): void {
    const text = this.#text.value;
    const drawsWords = sentences.reduce((count, { shown }) => count + shown.words.length, 0) <= MAX_WORDS;
    this.#sentences = sentences;
    this.#elements = new Map();
    this.#lit = null;
    this.#current = -1;
    const mirrored: Node[] = [];
    const translated: Node[] = [];
    let end = 0;
    sentences.forEach((sentence, index) => {
      const { shown, span, source, before } = sentence;
      mirrored.push(document.createTextNode(text.slice(end, span[0])), drawsWords ? this.#drawSource(sentence, index) : document.createTextNode(source));
      translated.push(document.createTextNode(before), drawsWords ? this.#drawTarget(sentence, index) : document.createTextNode(shown.text));
      end = span[1];
    });
    mirrored.push(document.createTextNode(`${text.slice(end)}\n`));
    this.#mirror.replaceChildren(...mirrored);
    this.#result.replaceChildren(...translated, after);
    this.#result.querySelector<HTMLElement>("[role=button]")?.setAttribute("tabindex", "0");
  }

  /** Copy the changed text behind the text box, without words, which are not known yet. */
  mirrorText(): void {
    this.#mirror.textContent = `${this.#text.value}\n`;
    this.#lit = null;
    this.#note.textContent = "";
  }

  /** Mark the selected sentence, if there are several. */
  mark(sentence: number): void {
    if (sentence === this.#current) return;
    this.#current = sentence;
    for (const box of [this.#mirror, this.#result])
      for (const each of box.querySelectorAll<HTMLElement>(".sentence")) each.classList.toggle("current", this.#sentences.length > 1 && each.dataset.sentence === String(sentence));
  }

  /** Highlight a word and the words that it is linked with, and show its probability and links. */
  light(place: Place | null): void {
    if ((place && nameOf(place)) === (this.#lit && nameOf(this.#lit))) return;
    this.#lit = place;
    for (const element of this.#elements.values()) element.classList.remove("lit", "partner");
    this.#note.textContent = "";
    if (!place) return;
    const { shown, source } = this.#sentences[place.sentence];
    const others = partners(shown, place.side, place.word);
    const otherSide = place.side === "source" ? "target" : "source";
    this.#elements.get(nameOf(place))?.classList.add("lit");
    for (const word of others) this.#elements.get(nameOf({ ...place, side: otherSide, word }))?.classList.add("partner");
    if (place.side === "source") return;
    const { span, probability } = shown.words[place.word];
    const read = others.map((word) => source.slice(...shown.sourceWords[word]));
    const facts = [
      probability === null ? string("unknown-probability") : string("probability", { percent: percent(probability) }),
      ...(read.length ? [string("linked", { words: read.join(", ") })] : []),
    ];
    this.#note.replaceChildren(make("b", { dir: "auto" }, shown.text.slice(...span)), ` · ${facts.join(" · ")}`);
  }

  elementOf(place: Place): HTMLElement | undefined {
    return this.#elements.get(nameOf(place));
  }

  #drawSource({ source, shown }: Sentence, sentence: number): HTMLElement {
    const drawn = make("span", { class: "sentence", "data-sentence": String(sentence) });
    let end = 0;
    shown.sourceWords.forEach((span, word) => {
      drawn.append(source.slice(end, span[0]), this.#element({ side: "source", sentence, word }, source.slice(...span)));
      end = span[1];
    });
    drawn.append(source.slice(end));
    return drawn;
  }

  #drawTarget({ shown }: Sentence, sentence: number): HTMLElement {
    const drawn = make("span", { class: "sentence", "data-sentence": String(sentence) });
    let end = 0;
    shown.words.forEach(({ span, probability }, word) => {
      const element = this.#element({ side: "target", sentence, word }, shown.text.slice(...span));
      element.classList.add(`tint-${tint(probability)}`);
      element.setAttribute("role", "button");
      element.setAttribute("tabindex", "-1");
      element.setAttribute("aria-haspopup", "dialog");
      drawn.append(shown.text.slice(end, span[0]), element);
      end = span[1];
    });
    drawn.append(shown.text.slice(end));
    return drawn;
  }

  #element(place: Place, text: string): HTMLElement {
    const element = make("span", { class: "word", "data-place": nameOf(place) }, text);
    this.#elements.set(nameOf(place), element);
    return element;
  }

  #placeOf(target: EventTarget | null): Place | null {
    const name = target instanceof Element ? target.closest<HTMLElement>("[data-place]")?.dataset.place : undefined;
    if (!name) return null;
    const [side, sentence, word] = name.split("-");
    return { side: side === "source" ? "source" : "target", sentence: Number(sentence), word: Number(word) };
  }

  /** The word behind the text box, below the pointer. */
  #placeBehind(event: PointerEvent): Place | null {
    for (const element of document.elementsFromPoint(event.clientX, event.clientY)) if (this.#mirror.contains(element) && element !== this.#mirror) return this.#placeOf(element);
    return null;
  }

  #open(place: Place): void {
    const element = this.elementOf(place);
    if (!element) return;
    this.#focus(element);
    this.onOpen(place, element);
  }

  #focus(element: HTMLElement): void {
    this.#result.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    element.setAttribute("tabindex", "0");
    element.focus();
  }

  /** Arrow keys go from word to word; Enter shows other words. */
  #onKey(event: KeyboardEvent): void {
    const place = this.#placeOf(event.target);
    if (!place || event.ctrlKey || event.metaKey || event.altKey) return;
    const words = [...this.#result.querySelectorAll<HTMLElement>("[role=button]")];
    const at = words.indexOf(event.target as HTMLElement);
    const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: words.length - 1 }[event.key];
    if (next !== undefined) this.#focus(words[Math.min(Math.max(next, 0), words.length - 1)]);
    else if (event.key === "Enter" || event.key === " ") this.#open(place);
    else return;
    event.preventDefault();
  }
}
