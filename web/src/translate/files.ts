/** Translates files: the user chooses or drops a file, sees the progress, and downloads the translated file. */

import { byId, make } from "./dom";
import { checkAnswer, post, readEvents } from "./server";
import { formatNumber, onLanguage, string } from "./settings";
import type { Routing } from "./page";

/** The methods of the page that `Files` uses. */
export interface FileHost {
  fields(): Record<string, string>;
  explainError(error: unknown): string;
  describe(routing: Routing): string;
}

type TranslatedFile = Routing & {
  translatedFileUrl: string;
  /** Descriptions of texts that were not translated, with the reasons. */
  notes?: string[];
};

/** The name of a translated file, for example report.ko.docx for report.docx. */
export function translatedName(name: string, target: string): string {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? `${name.slice(0, dot)}.${target}${name.slice(dot)}` : `${name}.${target}`;
}

export class Files {
  readonly #drop = byId("drop");
  readonly #input = byId<HTMLInputElement>("file");
  readonly #progress = byId<HTMLProgressElement>("file-progress");
  readonly #status = byId("file-status");
  readonly #download = byId<HTMLAnchorElement>("download");
  readonly #notes = byId("file-notes");
  /** Aborts the translation of the last file; null before the first file. */
  #running: AbortController | null = null;
  /** Returns the message about the state of the translation in the current language. It is called again whenever the language changes. */
  #statusText = () => "";

  constructor(private readonly host: FileHost) {
    this.#drop.hidden = false;
    this.#input.addEventListener("change", () => {
      void this.#translate(this.#input.files?.[0]);
      this.#input.value = ""; // so that the same file can be chosen again
    });
    byId("cancel-file").addEventListener("click", () => this.#running?.abort());
    this.#drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.#drop.classList.add("over");
    });
    this.#drop.addEventListener("dragleave", () => this.#drop.classList.remove("over"));
    this.#drop.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#drop.classList.remove("over");
      void this.#translate(event.dataTransfer?.files[0]);
    });
    onLanguage(() => this.#showStatus(this.#statusText));
  }

  #showStatus(statusText: () => string): void {
    this.#statusText = statusText;
    this.#status.textContent = statusText();
  }

  async #translate(file: File | undefined): Promise<void> {
    if (!file) return;
    this.#running?.abort();
    const running = (this.#running = new AbortController());
    const form = new FormData();
    const fields = this.host.fields();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append("file", file);
    byId("file-name").textContent = file.name;
    byId("file-error").textContent = "";
    this.#notes.replaceChildren();
    this.#download.hidden = true;
    this.#progress.hidden = byId("cancel-file").hidden = false;
    this.#progress.removeAttribute("value");
    this.#showStatus(() => string("file-working"));
    try {
      const response = await post("/v1/translate_file/stream", form, running.signal);
      for await (const { name, data } of readEvents(response.body!)) {
        if (name === "progress") this.#showProgress(data as { done: number; total: number });
        if (name === "file") await this.#offerDownload(translatedName(file.name, fields.target), data as TranslatedFile, running.signal);
      }
    } catch (error) {
      if (this.#running !== running) return; // a newer file is being translated
      this.#showStatus(() => (running.signal.aborted ? string("file-cancelled") : ""));
      if (!running.signal.aborted) byId("file-error").textContent = this.host.explainError(error);
    } finally {
      if (this.#running === running) this.#progress.hidden = byId("cancel-file").hidden = true;
    }
  }

  #showProgress({ done, total }: { done: number; total: number }): void {
    this.#progress.max = Math.max(total, 1);
    this.#progress.value = done;
    this.#showStatus(() => string("file-progress", { done: formatNumber(done), total: formatNumber(total) }));
  }

  /** Fetch the translated file, and offer it as a download with this name. The file is fetched at once, because the server deletes it after
   * a while. A link to the server is not enough, because the server would call every file "translated". */
  async #offerDownload(name: string, answer: TranslatedFile, signal: AbortSignal): Promise<void> {
    const response = await checkAnswer(await fetch(new URL(answer.translatedFileUrl).pathname, { signal }));
    URL.revokeObjectURL(this.#download.href);
    this.#download.href = URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: "application/octet-stream" }));
    this.#download.download = name;
    this.#download.hidden = false;
    this.#notes.replaceChildren(...(answer.notes ?? []).map((note) => make("li", { lang: "en" }, note)));
    this.#showStatus(() => [string("file-done"), this.host.describe(answer)].filter(Boolean).join(" · "));
  }
}
