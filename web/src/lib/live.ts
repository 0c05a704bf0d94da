/** Asking the program behind a live page. Its address holds a secret, so every question goes beside the page. */

import { checkFormat, type Cell, type CellSteps, type Change, type Explanation, type Site, type Table } from "./format";

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
  checkpoints: number[];
  metrics: Record<string, unknown>[];
}

async function post<Answer>(what: string, question: object): Promise<Answer> {
  const answer = await fetch(what, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error ?? answer.statusText);
  return body as Answer;
}

export async function explain(question: Question): Promise<Explanation> {
  return checkFormat(await post<Explanation>("explain", question));
}

export function effects(question: Question): Promise<Partial<Record<Site, Table>>> {
  return post("rank-heads", question);
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
