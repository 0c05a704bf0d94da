/** The model in a live file: its engine runs in a worker, so the page stays responsive while it computes. */

import type { FromWorker, ToWorker } from "../engine/worker";

const textOf = (id: string) => document.getElementById(id)?.textContent ?? "";

/** Whether this page has a model in it. */
export const hasModel = document.getElementById("jumok-engine") !== null;

export interface AskOptions {
  onPartial?: (text: string, index: number) => Promise<void>;
  signal?: AbortSignal;
}

interface PendingRequest extends AskOptions {
  /** Resolves when all partial translations so far have been shown, one after the other. */
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
  const address = URL.createObjectURL(new Blob([textOf("jumok-engine")], { type: "text/javascript" }));
  const started = new Worker(address);
  started.onmessage = ({ data }: MessageEvent<FromWorker>) => receive(data);
  started.onerror = (event) => {
    for (const { reject } of pending.values()) reject(new Error(event.message || "The model in this file cannot be started."));
    pending.clear();
  };
  started.postMessage({ kind: "model", model: JSON.parse(textOf("jumok-model")), weights: textOf("jumok-weights") } satisfies ToWorker);
  return started;
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

/** Ask the model in this file. What the page selects may be reactive state, which a message cannot carry: a plain copy is sent. */
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
