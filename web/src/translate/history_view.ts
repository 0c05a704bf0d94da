/** The list of earlier translations, if the user has switched it on. */

import { button, byId, make } from "./dom";
import { addEntry, readHistory, writeHistory, type Entry } from "./history";
import { local } from "./storage";

/** A translation is added to the history after it has been shown for this time. If it is replaced sooner, its text was unfinished. */
const DELAY_MS = 2_000;

export class HistoryView {
  readonly #checkbox = byId<HTMLInputElement>("keep-history");
  #timer = 0;

  constructor(private readonly onOpen: (entry: Entry) => void) {
    this.#checkbox.addEventListener("change", () => this.#set(this.#checkbox.checked ? [] : null));
    byId("clear-history").addEventListener("click", () => this.#set([]));
    this.#show();
  }

  /** Add a translation to the history after a delay, if the history is switched on and no other translation follows before. */
  addSoon(entry: Entry): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      const entries = readHistory(local);
      if (entries) this.#set(addEntry(entries, entry));
    }, DELAY_MS);
  }

  #set(entries: Entry[] | null): void {
    writeHistory(local, entries);
    this.#show();
  }

  #show(): void {
    const entries = readHistory(local);
    this.#checkbox.checked = entries !== null;
    byId("clear-history").hidden = !entries?.length;
    byId("history-list").replaceChildren(
      ...(entries ?? []).map((entry) => {
        const choice = button("", () => {
          this.onOpen(entry);
          scrollTo({ top: 0 });
        });
        choice.append(make("span", { dir: "auto" }, entry.text), make("span", { class: "note", dir: "auto" }, entry.result));
        return make("li", {}, choice);
      }),
    );
  }
}
