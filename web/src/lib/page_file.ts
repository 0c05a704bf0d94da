/** Makes files of the page: a frozen page, which contains the explanations that it shows, or a live file, which contains a model. */

import { fetchLiveFile } from "./api";
import { hasModel } from "./file_model.svelte";
import type { Explanation, PageData, StoredRun } from "./format";

/** Whether this page is a live file, that is, contains a model. */
export const isLiveFile = hasModel;

/** The part of the Content Security Policy that forbids all requests. src/jumok/plots/page.py writes the same policy. */
const FILE_POLICY = "connect-src 'none'";
const ENGINE_PARTS = ["jumok-model", "jumok-weights", "jumok-engine"];

/** A copy of this document without what the page has drawn. Script and style are unchanged, so that the hashes in the Content
 * Security Policy still match. */
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

/** JSON that can be the content of a script element: "<" is escaped. */
function toJson(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

/** The HTML of a page that contains these explanations and the data of the run, but no model. */
export function frozenPage(explanations: Explanation[], run: StoredRun | null, docs: string): string {
  const root = emptyPage();
  for (const id of ENGINE_PARTS) root.querySelector(`#${id}`)?.remove();
  const policy = root.querySelector("meta[http-equiv]");
  policy?.setAttribute("content", (policy.getAttribute("content") ?? "").replace(/connect-src [^;]*(; worker-src [^;]*)?/, FILE_POLICY));
  const data = root.querySelector("#jumok-data");
  if (data) data.textContent = toJson({ explanations, ...(run && { run }), ...(docs && { docs }) });
  return toHtml(root);
}

/** Parameters of the address that a live file does not store. Each reader chooses language and theme, and the file has only one model. */
const NOT_STORED = ["language", "theme", "model"];

/** Store a sentence in the data of a live file, and the view in which the file opens. `fragment` is the part
 * of the page's address from "#" on. */
export function withView(html: string, sentence: string, fragment: string): string {
  const view = new URLSearchParams(fragment.replace(/^#/, ""));
  for (const name of NOT_STORED) view.delete(name);
  return html.replace(/(<script\b[^>]*\bid="jumok-data"[^>]*>)([^]*?)(<\/script>)/, (_, start: string, text: string, end: string) => {
    const data = JSON.parse(text) as PageData;
    return `${start}${toJson({ ...data, live: data.live && { ...data.live, sentence, view: String(view) } })}${end}`;
  });
}

/** The HTML of a live file, which opens in the view of this fragment of an address. If this page is a live file, the page itself is copied.
 * If a server has sent this page, the server writes a new file. */
export async function livePage(model: number, sentence: string, fragment: string): Promise<string> {
  const html = hasModel ? toHtml(emptyPage()) : (await fetchLiveFile(model, sentence)).html;
  return withView(html, sentence, fragment);
}
