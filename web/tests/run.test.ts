import { expect, it } from "vitest";

import type { HeadProfile, SentenceScore } from "../src/lib/format";
import { DASHES, lastUpdate, chartLines, trainingLoss } from "../src/lib/metrics";
import { exportedCell, SENTENCE_COLUMNS, sortSentences, type SentenceColumn } from "../src/lib/sentences";
import { profileTable, toCsv } from "../src/lib/tables";

it("a list of sentences is sorted in both directions, with missing numbers last", () => {
  const row = (source: string, loss: number | null, uncovered: string[]): SentenceScore => ({ source, reference: "", hypothesis: "", chrf: 0, loss, uncovered, repeats: 0, change: null });
  const rows = [row("b", 2, []), row("a", null, ["x", "y"]), row("c", 1, ["x"])];
  const order = (column: SentenceColumn, descending: boolean) => sortSentences(rows, column, descending).map(({ source }) => source).join("");
  expect([order("loss", false), order("loss", true)]).toEqual(["cba", "bca"]);
  expect([order("uncovered", true), order("source", false), order("source", true)]).toEqual(["acb", "abc", "cba"]);
});

it("a list of sentences is saved with all digits, and missing numbers are saved as empty cells", () => {
  const row = { source: "a", reference: "b", hypothesis: "c", chrf: 12.345, loss: 0.1074, uncovered: ["a", "d"], repeats: 0, change: -3.4 };
  expect(SENTENCE_COLUMNS.map((column) => exportedCell(row, column))).toEqual(["a", "c", 12.345, 0.1074, "a d", 0, -3.4]);
  expect(toCsv([[exportedCell(row, "change"), exportedCell({ ...row, change: null }, "change")]])).toBe("-3.4,\r\n");
});

it("head profiles are saved with one row per head, and missing numbers are saved as empty cells", () => {
  const profile: HeadProfile = { model: "m", site: "cross", layer: 1, head: 0, sentences: 50, available: 80, offset: null, entropy: 0.25, on_special: 0.5, error: null, effect: -2, bleu: 40, bleu_without: 30.5, changed: 7, strongest: [] };
  const [names, row] = profileTable([profile]);
  expect(Object.fromEntries(names.map((name, i) => [name, row[i]]))).toEqual({ model: "m", site: "cross", layer: 1, head: 0, sentences: 50, available: 80, offset: "", entropy: 0.25, on_special: 0.5, error: "", effect: -2, bleu: 40, bleu_without: 30.5, changed: 7 });
});

it("the training loss is computed from the perplexity, which excludes label smoothing, if the metrics have it", () => {
  const line = { kind: "train", step: 5, loss: 0.304, perplexity: Math.E };
  expect(trainingLoss([line])).toEqual([[5, 1]]);
  expect(trainingLoss([{ kind: "train", step: 5, loss: 0.304 }])).toEqual([[5, 0.304]]); // the metrics of an old run have no perplexity
});

it("in a chart, each run other than the run of the page has its own dash pattern, and a run without points has no line", () => {
  const run = (name: string) => ({ name, metrics: [{ kind: "train", step: 5, loss: 0.3 }] });
  const lines = chartLines([{ name: "training", points: trainingLoss }], run("a").metrics, [run("b"), { name: "empty", metrics: [] }, run("c")]);
  expect(lines.map(({ name, run }) => [name, run])).toEqual([["training", undefined], ["training, b", 0], ["training, c", 2]]);
  expect(lastUpdate([run("a").metrics, [{ kind: "validation", step: 7 }, {}]])).toBe(7);
  expect(DASHES[0]).not.toBe(DASHES[2]);
  expect(new Set(DASHES).size).toBe(DASHES.length);
});
