/** The list of earlier translations, if the user has switched it on. */

import { button, byId, make } from "./dom";
import { addEntry, readHistory, writeHistory, type Entry } from "./history";
import { local } from "./storage";

/** A translation enters the history after it was shown for this long: one that is replaced sooner is of an unfinished text. */
const DELAY_MS = 2_000;

export class HistoryView {
  readonly #wanted = byId<HTMLInputElement>("keep-history");
  #timer = 0;

  constructor(private readonly onOpen: (entry: Entry) => void) {
    this.#wanted.addEventListener("change", () => this.#set(this.#wanted.checked ? [] : null));
    byId("clear-history").addEventListener("click", () => this.#set([]));
    this.#show();
  }

  keep(entry: Entry): void {
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
    this.#wanted.checked = entries !== null;
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
