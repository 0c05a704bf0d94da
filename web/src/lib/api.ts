/** Requests of a live page: to the model in its file, or to its server.
 *
 * The server's address contains a secret, so paths are relative to the page. */

import type { Change } from "./changes";
import { askModel, hasModel } from "./file_model.svelte";
import { checkFormat, type Cell, type CellSteps, type Explanation, type GroupEffect, type Measures, type NextTokens, type PackedFloats, type HeadProfile, type RunReport, type SentenceScores, type Site, type Table } from "./format";

export interface ExplainRequest {
  /** The index of the model. */
  model: number;
  /** The text to translate. */
  sentence: string;
  /** If the text is translated in several parts: the index of the part to explain. */
  index?: number;
  /** A `data:` URL, for a model that reads pictures. */
  picture?: string;
  changes: Change[];
  /** The token ids with which the translation must begin. */
  prefix: number[];
  /** A translation to explain. If it is missing, the model translates. */
  target?: string;
  /** Hypotheses per step; 1 is greedy search. If it is missing, the beam of the model's recipe is used. */
  beam?: number;
}

/** The number of open requests. It is also an attribute of the body, because the browser tests wait until it is 0.
 * Long work is not counted: the page is complete without its results. */
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

/** Throw a ServerGoneError for an error of the network, which fetch reports as a TypeError. Throw any other error as it is. */
function throwUnlessGone(error: unknown, signal?: AbortSignal): never {
  throw error instanceof TypeError && !signal?.aborted ? new ServerGoneError(String(error)) : error;
}

async function fetchJson<Answer>(operation: string, request: object, signal?: AbortSignal): Promise<Answer> {
  const response = await send(operation, request, { signal });
  const body = await response.json().catch((error: unknown) => throwUnlessGone(error, signal));
  if (!response.ok) throw new Error(body.error ?? response.statusText);
  return body as Answer;
}

export async function explain(request: ExplainRequest): Promise<Explanation> {
  return checkFormat(await post<Explanation>("explain", request));
}

/** Receives a partial translation and its index: 0 for the first partial translation. */
type OnPartial = (text: string, index: number) => Promise<void>;

/** Explain, and call `onPartial` with each partial translation while the model produces it. */
export function explainStreaming(request: ExplainRequest, onPartial: OnPartial, signal: AbortSignal): Promise<Explanation> {
  const answer = hasModel ? (askModel("explain", request, { onPartial, signal }) as Promise<Explanation>) : streamExplanation(request, onPartial, signal);
  return track(answer.then(checkFormat));
}

function streamExplanation(request: ExplainRequest, onPartial: OnPartial, signal: AbortSignal): Promise<Explanation> {
  let index = 0;
  return stream("explain", request, async ({ partial }) => (partial === undefined ? undefined : onPartial(partial, index++)), signal);
}

/** A line of a streamed answer. The last line has neither of these fields. */
interface PartialAnswer {
  /** The translation so far. */
  partial?: string;
  /** The progress of long work: how many items are done, and how many there are. */
  progress?: [number, number];
}

/** Send a request whose answer is streamed as lines of JSON. The last line is the complete answer, or an error. */
async function stream<Answer>(operation: string, request: object, onLine: (line: PartialAnswer) => Promise<void>, signal: AbortSignal): Promise<Answer> {
  const response = await send(operation, request, { accept: "application/x-ndjson", signal });
  let last: PartialAnswer & { error?: unknown } = {};
  for await (const line of readLines(response, signal)) {
    last = JSON.parse(line);
    await onLine(last);
  }
  // A head profile also has a field `error`: the alignment error, which is a number or null.
  if (typeof last.error === "string") throw new Error(last.error);
  return last as Answer;
}

/** The options of a request that takes the server long: a callback for the progress, and a signal that cancels the request. */
export interface LongWork {
  onProgress: (done: number, total: number) => void;
  signal: AbortSignal;
}

function postLong<Answer>(operation: string, request: object, { onProgress, signal }: LongWork): Promise<Answer> {
  return stream(operation, request, async ({ progress }) => progress && onProgress(...progress), signal);
}

async function* readLines(response: Response, signal: AbortSignal): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const read = () => reader.read().catch((error: unknown) => throwUnlessGone(error, signal));
  let rest = "";
  for (let chunk = await read(); !chunk.done; chunk = await read()) {
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

/** Request the effects of silencing each head and groups of heads. Returns the explanation with these effects. */
export async function withEffects(explanation: Explanation, request: ExplainRequest, signal?: AbortSignal): Promise<Explanation> {
  const { effect: tables, token_effect, group_effects } = await post<Effects>("rank-heads", request, signal);
  const statistics = { ...explanation.statistics };
  for (const [site, effect] of Object.entries(tables) as [Site, Table][]) {
    statistics[site] = { ...statistics[site]!, effect, token_effect: token_effect[site] };
  }
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

/** The HTML of a live file: a page that contains one of the server's models. */
export function fetchLiveFile(model: number, sentence: string): Promise<{ html: string }> {
  return post("file", { model, sentence });
}

/** The profile of one head over the validation set of the run: src/jumok/analysis/head_profile.py. */
export function fetchHeadProfile(request: { model: number; site: Site; layer: number; head: number; sentences: number }, work: LongWork): Promise<HeadProfile> {
  return postLong("head_profile", request, work);
}

/** Sentences of the validation set of the run, translated by its newest model and scored. */
export function fetchSentences(request: { sentences: number }, work: LongWork): Promise<SentenceScores> {
  return postLong("sentences", request, work);
}

/** Explain a sentence with the model of the checkpoint of this step. */
export async function explainWithCheckpoint(step: number, sentence: string): Promise<Explanation> {
  return checkFormat(await post<Explanation>("snapshot", { step, sentence }));
}

export function fetchRun(): Promise<RunReport> {
  return post("run", {});
}
