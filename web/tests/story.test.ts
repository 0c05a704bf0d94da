import { existsSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { packWeights } from "../src/engine/packing";
import type { Change } from "../src/lib/changes";
import type { Explanation } from "../src/lib/format";
import { docsAddress, docsFile, GLOSSARY, PANEL_PAGES } from "../src/lib/glossary";
import type { SentenceScore } from "../src/lib/format";
import { parsePreferences } from "../src/lib/preferences";
import { DASHES, lastUpdate, runLines, trainingLoss } from "../src/lib/metrics";
import { exportedCell, SENTENCE_COLUMNS, sortSentences, type SentenceColumn } from "../src/lib/sentences";
import { CHALLENGES, decisiveCrossHead, DONE, FEWEST, numSilenced, STORY, type Scene } from "../src/lib/story";
import { toCsv } from "../src/lib/tables";

const text = (words: string[]) => ({ text: words.join(" "), ids: [], tokens: [], words, word_of_token: [] });
const explanation = (after: string[], before?: string[]) =>
  ({
    target: text(after),
    before: before && { target: text(before), log_prob: 0, log_prob_changed: 0 },
    attention: { cross: packWeights([1, 1], [1, 2, 1, 1]) },
    statistics: { cross: { effect: [[-0.1, -2]] } },
  }) as unknown as Explanation;
const scene = (changes: Partial<Scene> = {}): Scene => ({ explanation: explanation(["a", "b"]), changes: [], pointed: { source: [], target: [] }, sentence: "I go.", example: "I go.", ...changes });
const silenced = (head: number | null, layer: number | null = 0): Change => ({ kind: "silence", site: "cross", layer, head });

describe("the story", () => {
  it("has seven steps in both languages", () => {
    for (const { steps, challenges } of Object.values(STORY)) {
      expect(steps.length).toBe(7);
      expect(DONE.length).toBe(7);
      expect(challenges.length).toBe(CHALLENGES.length);
    }
    expect(STORY.ko.steps.map(({ act }) => !!act)).toEqual(STORY.en.steps.map(({ act }) => !!act));
  });

  it("waits for what the reader does", () => {
    const waits = (step: number, changes: Partial<Scene>) => [DONE[step](scene()), DONE[step](scene(changes))];
    expect(waits(2, { pointed: { source: [0], target: [] } })).toEqual([false, true]);
    expect(waits(3, { changes: [silenced(1)] })).toEqual([false, true]);
    expect(waits(4, { changes: [silenced(0), silenced(1)], explanation: explanation(["x"], ["a"]) })).toEqual([false, true]);
    expect(waits(4, { changes: [silenced(null, null)], explanation: explanation(["x"], ["a"]) })).toEqual([false, true]);
    expect(DONE[4](scene({ changes: [silenced(0)], explanation: explanation(["x"], ["a"]) }))).toBe(false);
    expect(waits(5, { changes: [{ kind: "pin", site: "cross", layer: null, head: null, queries: [0], keys: [0] }] })).toEqual([false, true]);
    expect(waits(6, { sentence: "You go." })).toEqual([false, true]);
    expect(DONE[0](scene())).toBe(true);
    expect(DONE[0](scene({ explanation: undefined }))).toBe(false);
  });

  it("names the head that counts", () => {
    expect(decisiveCrossHead(explanation([]))).toEqual([0, 1]);
    expect(decisiveCrossHead(undefined)).toBeNull();
  });

  it("knows when a challenge is solved", () => {
    const [twice, fewest, shorter] = CHALLENGES;
    expect(twice(scene({ explanation: explanation(["책", "책"], ["책", "을"]) }))).toBe(true);
    expect(twice(scene({ explanation: explanation([".", "."], ["책", "."]) }))).toBe(false);
    expect(CHALLENGES[FEWEST]).toBe(fewest);
    expect(fewest(scene({ explanation: explanation(["c"], ["a"]), changes: [silenced(0)] }))).toBe(true);
    expect(fewest(scene({ explanation: explanation(["c"], ["a"]), changes: [silenced(null, null)] }))).toBe(true);
    expect(fewest(scene({ explanation: explanation(["a"], ["a"]), changes: [silenced(0)] }))).toBe(false);
    expect(fewest(scene({ explanation: explanation(["c"], ["a"]), changes: [{ kind: "pin", site: "cross", layer: null, head: null, queries: [0], keys: [0] }] }))).toBe(false);
    expect([[silenced(0)], [silenced(null, null)], []].map((changes) => numSilenced(scene({ changes })))).toEqual([1, 2, 0]);
    expect(shorter(scene({ explanation: explanation(["a"], ["a", "b"]) }))).toBe(true);
    expect(shorter(scene())).toBe(false);
  });
});

it("a list of sentences is sorted, with missing numbers last", () => {
  const row = (source: string, loss: number | null, uncovered: string[]): SentenceScore => ({ source, reference: "", hypothesis: "", chrf: 0, loss, uncovered, repeats: 0, change: null });
  const rows = [row("b", 2, []), row("a", null, ["x", "y"]), row("c", 1, ["x"])];
  const order = (column: SentenceColumn, descending: boolean) => sortSentences(rows, column, descending).map(({ source }) => source).join("");
  expect([order("loss", false), order("loss", true)]).toEqual(["cba", "bca"]);
  expect([order("uncovered", true), order("source", false), order("source", true)]).toEqual(["acb", "abc", "cba"]);
});

it("a list of sentences is saved with all digits, and nothing where there is no number", () => {
  const row = { source: "a", reference: "b", hypothesis: "c", chrf: 12.345, loss: 0.1074, uncovered: ["a", "d"], repeats: 0, change: -3.4 };
  expect(SENTENCE_COLUMNS.map((column) => exportedCell(row, column))).toEqual(["a", "c", 12.345, 0.1074, "a d", 0, -3.4]);
  expect(toCsv([[exportedCell(row, "change"), exportedCell({ ...row, change: null }, "change")]])).toBe("-3.4,\r\n");
});

it("training and validation losses are compared without label smoothing", () => {
  const line = { kind: "train", step: 5, loss: 0.304, perplexity: Math.E };
  expect(trainingLoss([line])).toEqual([[5, 1]]);
  expect(trainingLoss([{ kind: "train", step: 5, loss: 0.304 }])).toEqual([[5, 0.304]]); // an old run has no perplexity
});

it("each of several runs has a dash of its own, and each metric a colour", () => {
  const run = (name: string) => ({ name, metrics: [{ kind: "train", step: 5, loss: 0.3 }] });
  const lines = runLines([{ name: "training", points: trainingLoss }], run("a").metrics, [run("b"), { name: "empty", metrics: [] }, run("c")]);
  expect(lines.map(({ name, run }) => [name, run])).toEqual([["training", undefined], ["training, b", 0], ["training, c", 2]]);
  expect(lastUpdate([run("a").metrics, [{ kind: "validation", step: 7 }, {}]])).toBe(7);
  expect(DASHES[0]).not.toBe(DASHES[2]);
  expect(new Set(DASHES).size).toBe(DASHES.length);
});

it("it is remembered that the first steps were seen", () => {
  expect(parsePreferences("ko.dark.seen")).toEqual({ language: "ko", appearance: "dark", storySeen: true });
  expect(parsePreferences("ko.dark").storySeen).toBeUndefined();
});

it("every term has a definition in both languages", () => {
  for (const { en, ko, page } of Object.values(GLOSSARY)) {
    expect(en.text.length).toBeGreaterThan(20);
    expect(ko.text).toMatch(/[가-힣]/);
    expect(page).toMatch(/^[\w/-]+\.md$/);
  }
});

it.each([...new Set([...Object.values(GLOSSARY).map(({ page }) => page), ...Object.values(PANEL_PAGES)])])("%s is linked in the reader's language", (page) => {
  const name = page.slice(0, -".md".length);
  expect([docsFile(page, "en"), docsFile(page, "ko")]).toEqual([`${name}.md`, `${name}.ko.md`]);
  for (const language of ["en", "ko"] as const) expect(existsSync(new URL(`../../docs/${docsFile(page, language)}`, import.meta.url)), docsFile(page, language)).toBe(true);
  expect(docsAddress("http://docs/", page, "en")).toBe(`http://docs/${name}.html`);
  expect(docsAddress("http://docs/", page, "ko")).toBe(`http://docs/ko/${name}.ko.html`);
});
