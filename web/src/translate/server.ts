/** Sends requests to the server, and reads the events that the server streams. */

/** The server has answered a request with an error. */
export class RefusedError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly retrySeconds = 0,
  ) {
    super(message);
  }
}

/** The status of an error that the server reports in a stream, after the HTTP status has already been sent. An error because of a text
 * that is too much work has the status `TOO_LARGE`, in a stream too. */
export const IN_STREAM = 0;
export const TOO_LARGE = 413;

export interface ServerEvent {
  name: string;
  data: unknown;
}

/** Send fields as JSON, or a form that contains a file. */
export async function post(path: string, fields: object | FormData, signal?: AbortSignal): Promise<Response> {
  const isForm = fields instanceof FormData;
  const response = await fetch(path, {
    method: "POST",
    signal,
    ...(isForm ? { body: fields } : { body: JSON.stringify(fields), headers: { "Content-Type": "application/json" } }),
  });
  return checkAnswer(response);
}

/** Return the response, or throw a RefusedError if its status is an error. */
export async function checkAnswer(response: Response): Promise<Response> {
  if (response.ok) return response;
  const answer: unknown = await response.json().catch(() => ({}));
  const canRetry = response.status === 503 || response.status === 429;
  const retrySeconds = canRetry ? Number(response.headers.get("Retry-After")) || 1 : 0;
  throw new RefusedError(errorText(answer) ?? response.statusText, response.status, retrySeconds);
}

function errorText(answer: unknown): string | undefined {
  return typeof answer === "object" && answer && "error" in answer && typeof answer.error === "string" ? answer.error : undefined;
}

function streamError(data: unknown): RefusedError {
  const { status } = data as { status?: number };
  return new RefusedError(errorText(data) ?? "", status === TOO_LARGE ? TOO_LARGE : IN_STREAM);
}

/** The events of a stream. The event `error`, which ends a stream, is thrown as a RefusedError. */
export async function* readEvents(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const blocks = (rest + chunk.value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event.name === "error") throw streamError(event.data);
        yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

export function parseEvent(block: string): ServerEvent {
  const fields = new Map(block.split("\n").map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]));
  return { name: fields.get("event") ?? "", data: JSON.parse(fields.get("data") ?? "null") };
}
