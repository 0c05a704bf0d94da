/** The model in a live file. Its engine runs in a web worker, so the page stays responsive while the engine computes. */

import type { FromWorker, ToWorker } from "../engine/worker";

const textOfElement = (id: string) => document.getElementById(id)?.textContent ?? "";

/** Whether this page contains a model. */
export const hasModel = document.getElementById("jumok-engine") !== null;

export interface AskOptions {
  onPartial?: (text: string, index: number) => Promise<void>;
  signal?: AbortSignal;
}

interface PendingRequest extends AskOptions {
  /** Resolves when all partial translations that have arrived have been shown. They are shown one after the other. */
  shown: Promise<void>;
  /** How many partial translations have arrived. */
  partialCount: number;
  resolve: (answer: unknown) => void;
  reject: (error: Error) => void;
}

let worker: Worker | undefined;
let nextId = 0;
const pending = new Map<number, PendingRequest>();

function send(message: ToWorker): void {
  worker ??= startWorker();
  worker.postMessage(message);
}

function startWorker(): Worker {
  const address = URL.createObjectURL(new Blob([textOfElement("jumok-engine")], { type: "text/javascript" }));
  const newWorker = new Worker(address);
  newWorker.onmessage = ({ data }: MessageEvent<FromWorker>) => receive(data);
  newWorker.onerror = (event) => {
    for (const { reject } of pending.values()) reject(new Error(event.message || "The model in this file cannot be started."));
    pending.clear();
  };
  const model = JSON.parse(textOfElement("jumok-model"));
  newWorker.postMessage({ kind: "model", model, weights: textOfElement("jumok-weights") } satisfies ToWorker);
  return newWorker;
}

function receive(message: FromWorker): void {
  const request = pending.get(message.id);
  if (!request) return;
  if ("partial" in message) {
    const [index, { onPartial }] = [request.partialCount++, request];
    if (onPartial) request.shown = request.shown.then(() => onPartial(message.partial, index));
    return;
  }
  pending.delete(message.id);
  if ("error" in message) request.reject(new Error(message.error));
  else void request.shown.then(() => request.resolve(message.answer));
}

/** Send a request to the model in this file. The request may contain reactive state of Svelte, which `postMessage` cannot copy.
 * So a plain snapshot of the request is sent. */
export function askModel(operation: string, request: object, options: AskOptions = {}): Promise<unknown> {
  const id = nextId++;
  return new Promise((resolve, reject) => {
    pending.set(id, { ...options, shown: Promise.resolve(), partialCount: 0, resolve, reject });
    options.signal?.addEventListener("abort", () => {
      if (!pending.delete(id)) return;
      send({ kind: "cancel", id });
      reject(new Error("aborted"));
    });
    send({ kind: "request", id, operation, request: $state.snapshot(request) } as ToWorker);
  });
}
