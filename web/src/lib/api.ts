/** Requests of a live page: to the model in its file, or to its server.
 *
 * The server's address contains a secret, so paths are relative to the page. */

import type { Change } from "./changes";
import { askModel, hasModel } from "./file_model";
import { checkFormat, type Cell, type CellSteps, type Explanation, type GroupEffect, type Measures, type NextTokens, type PackedFloats, type Site, type Table } from "./format";
import type { MetricsLine } from "./metrics";

export interface ExplainRequest {
  model: number;
  /** A text; of several sentences, which are translated one by one, the one with this index is explained. */
  sentence: string;
  index?: number;
  /** A data: URL, for a model that reads pictures. */
  picture?: string;
  changes: Change[];
  prefix: number[];
  target?: string;
  /** Hypotheses per step; without it, as the model's recipe says. 1 is greedy search. */
  beam?: number;
}

export interface RunReport {
  name: string;
  finished: boolean;
  source_language: string;
  target_language: string;
  checkpoints: number[];
  metrics: MetricsLine[];
  /** Runs that are drawn in the same picture. */
  others: { name: string; metrics: MetricsLine[] }[];
}

/** The number of open requests is an attribute of the body, for tests that wait until the page is complete. */
let pending = 0;

async function track<Answer>(answer: Promise<Answer>): Promise<Answer> {
  document.body.dataset.pending = String(++pending);
  return answer.finally(() => (document.body.dataset.pending = String(--pending)));
}

/** The server does not respond. */
export class ServerGoneError extends Error {}

function send(operation: string, request: object, options: { accept?: string; signal?: AbortSignal } = {}): Promise<Response> {
  return fetch(operation, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: options.accept ?? "application/json" },
    body: JSON.stringify(request),
    signal: options.signal,
  }).catch((error: unknown) => {
    throw options.signal?.aborted ? error : new ServerGoneError(String(error));
  });
}

function post<Answer>(operation: string, request: object, signal?: AbortSignal): Promise<Answer> {
  return track(hasModel ? (askModel(operation, request, { signal }) as Promise<Answer>) : fetchJson(operation, request, signal));
}

async function fetchJson<Answer>(operation: string, request: object, signal?: AbortSignal): Promise<Answer> {
  const response = await send(operation, request, { signal });
  const body = await response.json();
  if (!response.ok) throw new Error(body.error ?? response.statusText);
  return body as Answer;
}

export async function explain(request: ExplainRequest): Promise<Explanation> {
  return checkFormat(await post<Explanation>("explain", request));
}

type OnPartial = (text: string, index: number) => Promise<void>;

/** Explain, and call `onPartial` with each partial translation while the model produces it. */
export function explainStreaming(request: ExplainRequest, onPartial: OnPartial, signal: AbortSignal): Promise<Explanation> {
  const answer = hasModel ? (askModel("explain", request, { onPartial, signal }) as Promise<Explanation>) : streamExplanation(request, onPartial, signal);
  return track(answer.then(checkFormat));
}

async function streamExplanation(request: ExplainRequest, onPartial: OnPartial, signal: AbortSignal): Promise<Explanation> {
  const response = await send("explain", request, { accept: "application/x-ndjson", signal });
  let last: { partial?: string; error?: string } = {};
  let index = 0;
  for await (const line of readLines(response)) {
    last = JSON.parse(line);
    if (last.partial !== undefined) await onPartial(last.partial, index++);
  }
  if (last.error !== undefined) throw new Error(last.error);
  return last as Explanation;
}

async function* readLines(response: Response): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const lines = (rest + chunk.value).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest) yield rest;
}

interface Effects {
  effect: Partial<Record<Site, Table>>;
  token_effect: Partial<Record<Site, PackedFloats>>;
  group_effects: GroupEffect[];
}

/** The same explanation with the effects of silencing each head and groups of heads. */
export async function withEffects(explanation: Explanation, request: ExplainRequest, signal?: AbortSignal): Promise<Explanation> {
  const { effect: tables, token_effect, group_effects } = await post<Effects>("rank-heads", request, signal);
  const statistics = { ...explanation.statistics };
  for (const [site, effect] of Object.entries(tables) as [Site, Table][]) statistics[site] = { ...statistics[site]!, effect, token_effect: token_effect[site] };
  return { ...explanation, statistics, group_effects };
}

export function fetchSteps(request: ExplainRequest & { cell: Cell }): Promise<CellSteps> {
  return post("steps", request);
}

export function fetchMeasures(request: ExplainRequest): Promise<Measures> {
  return post("measures", request);
}

/** What each layer would have written at each step; empty for a recurrent model. */
export async function fetchLayers(request: ExplainRequest): Promise<NextTokens[][]> {
  return (await post<{ layers: NextTokens[][] }>("layers", request)).layers;
}

/** A page with a model of this server in it. */
export function fetchLiveFile(model: number, sentence: string): Promise<{ html: string }> {
  return post("file", { model, sentence });
}

export interface Portrait {
  site: Site;
  layer: number;
  head: number;
  sentences: number;
  offset: number | null;
  entropy: number | null;
  on_special: number | null;
  error: number | null;
  effect: number;
  bleu: number;
  bleu_without: number;
  changed: number;
  strongest: { source: string; target: string; effect: number; with_head: string; without_head: string }[];
}

/** One head over the validation set of the run. */
export function fetchPortrait(request: { model: number; site: Site; layer: number; head: number; sentences: number }): Promise<Portrait> {
  return post("portrait", request);
}

export interface SentenceScore {
  source: string;
  reference: string;
  hypothesis: string;
  chrf: number;
  loss: number | null;
  uncovered: string[];
  repeats: number;
  /** chrF minus that of the checkpoint before the newest. */
  change: number | null;
}

/** Sentences of the validation set of the run, translated and scored. */
export async function fetchSentences(request: { model: number; sentences: number }): Promise<SentenceScore[]> {
  return (await post<{ sentences: SentenceScore[] }>("sentences", request)).sentences;
}

export async function explainWithCheckpoint(step: number, sentence: string): Promise<Explanation> {
  return checkFormat(await post<Explanation>("snapshot", { step, sentence }));
}

export function fetchRun(): Promise<RunReport> {
  return post("run", {});
}
