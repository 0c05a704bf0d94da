/** The page as a file: frozen, with the explanation that it shows, or live, with a model in it. */

import { fetchLiveFile } from "./api";
import { hasModel } from "./file_model.svelte";
import type { Explanation, PageData, StoredRun } from "./format";

/** Whether this page has a model in it, and so is a live file itself. */
export const hasModelInside = hasModel;

/** The policy of a page that sends no requests; src/jumok/plots/page.py writes the same. */
const FILE_POLICY = "connect-src 'none'";
const ENGINE_PARTS = ["jumok-model", "jumok-weights", "jumok-engine"];

/** This document as it was before the page drew itself. Script and style are as they were, so that their hashes are right. */
function emptyPage(): HTMLElement {
  const copy = document.documentElement.cloneNode(true) as HTMLElement;
  copy.removeAttribute("data-theme");
  const title = copy.querySelector("title");
  if (title) title.textContent = "jumok";
  const root = copy.querySelector("#page");
  if (root) root.textContent = "";
  copy.querySelector("body")?.setAttribute("data-pending", "0");
  return copy;
}

function toHtml(root: HTMLElement): string {
  return `<!doctype html>\n${root.outerHTML}\n`;
}

/** JSON that can stand in a script element. */
function toJson(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

export function frozenPage(explanations: Explanation[], run: StoredRun | null, docs: string): string {
  const root = emptyPage();
  for (const id of ENGINE_PARTS) root.querySelector(`#${id}`)?.remove();
  const policy = root.querySelector("meta[http-equiv]");
  policy?.setAttribute("content", (policy.getAttribute("content") ?? "").replace(/connect-src [^;]*(; worker-src [^;]*)?/, FILE_POLICY));
  const data = root.querySelector("#jumok-data");
  if (data) data.textContent = toJson({ explanations, ...(run && { run }), ...(docs && { docs }) });
  return toHtml(root);
}

/** Parameters of an address that a file does not store: the reader has language and theme of their own, and the file has one model. */
const NOT_OF_THE_VIEW = ["language", "theme", "model"];

/** Store the sentence of a live file, and the view (the hash of an address) in which it opens. */
export function withView(html: string, sentence: string, address: string): string {
  const view = new URLSearchParams(address.replace(/^#/, ""));
  for (const name of NOT_OF_THE_VIEW) view.delete(name);
  return html.replace(/(<script\b[^>]*\bid="jumok-data"[^>]*>)([^]*?)(<\/script>)/, (_, start: string, text: string, end: string) => {
    const data = JSON.parse(text) as PageData;
    return `${start}${toJson({ ...data, live: data.live && { ...data.live, sentence, view: String(view) } })}${end}`;
  });
}

/** A page with the model in it: this one, if it has it, else one that the server writes. It opens in the view of this address. */
export async function livePage(model: number, sentence: string, address: string): Promise<string> {
  return withView(hasModel ? toHtml(emptyPage()) : (await fetchLiveFile(model, sentence)).html, sentence, address);
}
