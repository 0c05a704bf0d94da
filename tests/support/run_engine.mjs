// Runs the engine of live files under Node: messages to the worker are lines of stdin, its answers lines of stdout.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { runInThisContext } from "node:vm";

globalThis.postMessage = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
runInThisContext(readFileSync(process.argv[2], "utf8"));
for await (const line of createInterface({ input: process.stdin })) globalThis.onmessage({ data: JSON.parse(line) });
