/** The script of the web worker that runs the engine. It receives the model first, and then requests. Each answer has the id of its
 * request.
 *
 * A request is computed in short slices, and the latest request runs first. So a new translation does not wait until the effects of an
 * older request have been measured. */

import { Engine } from "./engine";
import type { ExplainRequest, Progress } from "./explain";
import type { StoredModel } from "./model_file";
import type { Cell } from "../lib/format";

export type ToWorker =
  | { kind: "model"; model: StoredModel; weights: string }
  | { kind: "request"; id: number; operation: string; request: ExplainRequest & { cell?: Cell } }
  | { kind: "cancel"; id: number };

export type FromWorker = { id: number; partial: string } | { id: number; answer: unknown } | { id: number; error: string };

/** A task runs until this time is over and its current small step has ended. Then new messages can be received. */
const SLICE_MS = 40;

interface Scope {
  postMessage(message: FromWorker): void;
  onmessage: ((event: { data: ToWorker }) => void) | null;
}

const scope = globalThis as unknown as Scope;
let engine: Engine | null = null;
let problem = "";
let tasks: { id: number; progress: Progress<unknown> }[] = [];
let isRunning = false;

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function run(): void {
  const task = tasks.at(-1);
  isRunning = !!task;
  if (!task) return;
  const end = performance.now() + SLICE_MS;
  try {
    for (;;) {
      const { done, value } = task.progress.next();
      if (done) {
        tasks = tasks.filter((other) => other !== task);
        scope.postMessage({ id: task.id, answer: value });
        break;
      }
      if (typeof value === "string") scope.postMessage({ id: task.id, partial: value });
      if (performance.now() > end) break;
    }
  } catch (error) {
    tasks = tasks.filter((other) => other !== task);
    scope.postMessage({ id: task.id, error: messageOf(error) });
  }
  setTimeout(run, 0);
}

scope.onmessage = ({ data }) => {
  if (data.kind === "model") {
    try {
      engine = new Engine(data.model, data.weights);
    } catch (error) {
      problem = messageOf(error);
    }
  } else if (data.kind === "cancel") tasks = tasks.filter(({ id }) => id !== data.id);
  else if (!engine) scope.postMessage({ id: data.id, error: problem || "The model has not been read." });
  else {
    tasks.push({ id: data.id, progress: engine.answer(data.operation, data.request) });
    if (!isRunning) {
      isRunning = true;
      setTimeout(run, 0);
    }
  }
};
