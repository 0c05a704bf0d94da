/** Asking the program behind a live page. Its address holds a secret, so every question goes beside the page. */

import { checkFormat, type Cell, type CellSteps, type Change, type Explanation, type GroupEffect, type Site, type Table } from "./format";
import type { Line } from "./run";

export interface Question {
  model: number;
  sentence: string;
  changes: Change[];
  forced_prefix: number[];
  target?: string;
}

export interface RunReport {
  name: string;
  finished: boolean;
  source_language: string;
  target_language: string;
  checkpoints: number[];
  metrics: Line[];
}

/** How many questions are open stands at the page's body, for whoever waits for a page that is complete. */
let open = 0;

async function counted<Answer>(answer: Promise<Answer>): Promise<Answer> {
  document.body.dataset.asking = String(++open);
  return answer.finally(() => (document.body.dataset.asking = String(--open)));
}

/** The program behind the page does not answer. */
export class GoneError extends Error {}

function send(what: string, question: object, options: { accept?: string; signal?: AbortSignal } = {}): Promise<Response> {
  return fetch(what, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: options.accept ?? "application/json" },
    body: JSON.stringify(question),
    signal: options.signal,
  }).catch((error: unknown) => {
    throw options.signal?.aborted ? error : new GoneError(String(error));
  });
}

function post<Answer>(what: string, question: object): Promise<Answer> {
  return counted(answered(what, question));
}

async function answered<Answer>(what: string, question: object): Promise<Answer> {
  const answer = await send(what, question);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error ?? answer.statusText);
  return body as Answer;
}

export async function explain(question: Question): Promise<Explanation> {
  return checkFormat(await post<Explanation>("explain", question));
}

type Begun = (text: string, place: number) => Promise<void>;

/** The same, with `begun` told each beginning of the translation while the model writes it, one after the other. */
export function write(question: Question, begun: Begun, signal: AbortSignal): Promise<Explanation> {
  return counted(written(question, begun, signal));
}

async function written(question: Question, begun: Begun, signal: AbortSignal): Promise<Explanation> {
  const answer = await send("explain", question, { accept: "application/x-ndjson", signal });
  let last: { begun?: string; error?: string } = {};
  let place = 0;
  for await (const line of lines(answer)) {
    last = JSON.parse(line);
    if (last.begun !== undefined) await begun(last.begun, place++);
  }
  if (last.error !== undefined) throw new Error(last.error);
  return checkFormat(last as Explanation);
}

async function* lines(answer: Response): AsyncGenerator<string> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const found = (rest + part.value).split("\n");
    rest = found.pop()!;
    yield* found;
  }
  if (rest) yield rest;
}

/** The explanation that answers a question, with the effect of silencing each head. */
export async function measured(explanation: Explanation, question: Question): Promise<Explanation> {
  const { effect: tables, group_effects } = await post<{ effect: Partial<Record<Site, Table>>; group_effects: GroupEffect[] }>("rank-heads", question);
  const statistics = { ...explanation.statistics };
  for (const [site, effect] of Object.entries(tables) as [Site, Table][]) statistics[site] = { ...statistics[site]!, effect };
  return { ...explanation, statistics, group_effects };
}

export function steps(question: Question & { cell: Cell }): Promise<CellSteps> {
  return post("steps", question);
}

export async function snapshot(step: number, sentence: string): Promise<Explanation> {
  return checkFormat(await post<Explanation>("snapshot", { step, sentence }));
}

export function run(): Promise<RunReport> {
  return post("run", {});
}
