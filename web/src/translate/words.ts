/** Draws the words of the text and of its translation, and highlights linked words together. The words of the translation are tinted by
 * probability.
 *
 * A text box cannot contain elements. Therefore a copy of its text, the mirror, lies exactly behind the text box, and the words are
 * highlighted in the mirror. */

import { byId, make } from "./dom";
import { string } from "./settings";
import { percent } from "./text";
import { linkedWords, tint, type Sentence } from "./translation";

/** Identifies a word of a sentence in the text or in its translation. */
export interface Place {
  side: "source" | "target";
  sentence: number;
  word: number;
}

/** If a translation has more words than this, it is shown as plain text, because each word would need an element. */
const MAX_WORDS = 6_000;

/** A place as text, for example "target-0-3". `#placeOf` parses it. */
const nameOf = (place: Place) => `${place.side}-${place.sentence}-${place.word}`;

export class Words {
  readonly #text = byId<HTMLTextAreaElement>("text");
  readonly #mirror = byId("mirror");
  readonly #result = byId("result");
  readonly #note = byId("word-note");
  #sentences: Sentence[] = [];
  #elements = new Map<string, HTMLElement>();
  /** The word that is highlighted. */
  #highlighted: Place | null = null;
  /** The index of the selected sentence; −1 if none is selected. */
  #selectedSentence = -1;

  constructor(private readonly onOpen: (place: Place, element: HTMLElement) => void) {
    const placeOfEvent = (event: Event) => this.#placeOf(event.target);
    this.#result.addEventListener("pointerover", (event) => this.highlight(placeOfEvent(event)));
    this.#result.addEventListener("pointerleave", () => this.highlight(null));
    this.#result.addEventListener("focusin", (event) => this.highlight(placeOfEvent(event)));
    this.#result.addEventListener("click", (event) => {
      const place = placeOfEvent(event);
      if (place && getSelection()?.isCollapsed !== false) this.#open(place);
    });
    this.#result.addEventListener("keydown", (event) => this.#onKey(event));
    this.#text.addEventListener("pointermove", (event) => this.highlight(this.#placeBehind(event)));
    this.#text.addEventListener("pointerleave", () => this.highlight(null));
  }

  /** Draw a translation. `after` is the text after the last sentence. */
  show(sentences: Sentence[], after: string): void {
    const text = this.#text.value;
    const drawsWords = sentences.reduce((count, { shown }) => count + shown.words.length, 0) <= MAX_WORDS;
    this.#sentences = sentences;
    this.#elements = new Map();
    this.#highlighted = null;
    this.#selectedSentence = -1;
    const mirrorNodes: Node[] = [];
    const resultNodes: Node[] = [];
    const textNode = (content: string) => document.createTextNode(content);
    let end = 0;
    sentences.forEach((sentence, index) => {
      const { shown, span, source, before } = sentence;
      mirrorNodes.push(textNode(text.slice(end, span[0])), drawsWords ? this.#drawSource(sentence, index) : textNode(source));
      resultNodes.push(textNode(before), drawsWords ? this.#drawTarget(sentence, index) : textNode(shown.text));
      end = span[1];
    });
    mirrorNodes.push(textNode(`${text.slice(end)}\n`));
    this.#mirror.replaceChildren(...mirrorNodes);
    this.#result.replaceChildren(...resultNodes, after);
    this.#result.querySelector<HTMLElement>("[role=button]")?.setAttribute("tabindex", "0");
  }

  /** Copy the text into the mirror after it has changed. The words of the changed text are not known yet. */
  mirrorText(): void {
    this.#mirror.textContent = `${this.#text.value}\n`;
    this.#highlighted = null;
    this.#note.textContent = "";
  }

  /** Mark the selected sentence. It is not marked if it is the only sentence. */
  mark(sentence: number): void {
    if (sentence === this.#selectedSentence) return;
    this.#selectedSentence = sentence;
    const isMarked = (element: HTMLElement) => this.#sentences.length > 1 && element.dataset.sentence === String(sentence);
    for (const box of [this.#mirror, this.#result])
      for (const element of box.querySelectorAll<HTMLElement>(".sentence")) element.classList.toggle("current", isMarked(element));
  }

  /** Highlight a word and the words that are linked with it. For a word of the translation, show its probability and its linked words. */
  highlight(place: Place | null): void {
    if ((place && nameOf(place)) === (this.#highlighted && nameOf(this.#highlighted))) return;
    this.#highlighted = place;
    for (const element of this.#elements.values()) element.classList.remove("lit", "partner");
    this.#note.textContent = "";
    if (!place) return;
    const { shown, source } = this.#sentences[place.sentence];
    const linked = linkedWords(shown, place.side, place.word);
    const otherSide = place.side === "source" ? "target" : "source";
    this.#elements.get(nameOf(place))?.classList.add("lit");
    for (const word of linked) this.#elements.get(nameOf({ ...place, side: otherSide, word }))?.classList.add("partner");
    if (place.side === "source") return;
    const { span, probability } = shown.words[place.word];
    const linkedSource = linked.map((word) => source.slice(...shown.sourceWords[word]));
    const facts = [
      probability === null ? string("unknown-probability") : string("probability", { percent: percent(probability) }),
      ...(linkedSource.length ? [string("linked", { words: linkedSource.join(", ") })] : []),
    ];
    this.#note.replaceChildren(make("b", { dir: "auto" }, shown.text.slice(...span)), ` · ${facts.join(" · ")}`);
  }

  elementOf(place: Place): HTMLElement | undefined {
    return this.#elements.get(nameOf(place));
  }

  #drawSource({ source, shown }: Sentence, sentence: number): HTMLElement {
    const container = make("span", { class: "sentence", "data-sentence": String(sentence) });
    let end = 0;
    shown.sourceWords.forEach((span, word) => {
      container.append(source.slice(end, span[0]), this.#element({ side: "source", sentence, word }, source.slice(...span)));
      end = span[1];
    });
    container.append(source.slice(end));
    return container;
  }

  #drawTarget({ shown }: Sentence, sentence: number): HTMLElement {
    const container = make("span", { class: "sentence", "data-sentence": String(sentence) });
    let end = 0;
    shown.words.forEach(({ span, probability }, word) => {
      const element = this.#element({ side: "target", sentence, word }, shown.text.slice(...span));
      element.classList.add(`tint-${tint(probability)}`);
      element.setAttribute("role", "button");
      element.setAttribute("tabindex", "-1");
      element.setAttribute("aria-haspopup", "dialog");
      container.append(shown.text.slice(end, span[0]), element);
      end = span[1];
    });
    container.append(shown.text.slice(end));
    return container;
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

  /** The word of the mirror under the pointer. The text box covers the mirror, so all elements under the pointer are searched. */
  #placeBehind(event: PointerEvent): Place | null {
    const elements = document.elementsFromPoint(event.clientX, event.clientY);
    const element = elements.find((candidate) => this.#mirror.contains(candidate) && candidate !== this.#mirror);
    return element ? this.#placeOf(element) : null;
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

  /** Arrow keys move from word to word. Enter and the space bar open the box with other words. */
  #onKey(event: KeyboardEvent): void {
    const place = this.#placeOf(event.target);
    if (!place || event.ctrlKey || event.metaKey || event.altKey) return;
    const words = [...this.#result.querySelectorAll<HTMLElement>("[role=button]")];
    const current = words.indexOf(event.target as HTMLElement);
    const [following, previous] = [current + 1, current - 1];
    const next = { ArrowRight: following, ArrowDown: following, ArrowLeft: previous, ArrowUp: previous, Home: 0, End: words.length - 1 }[event.key];
    if (next !== undefined) this.#focus(words[Math.min(Math.max(next, 0), words.length - 1)]);
    else if (event.key === "Enter" || event.key === " ") this.#open(place);
    else return;
    event.preventDefault();
  }
}
