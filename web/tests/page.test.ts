import { describe, expect, it } from "vitest";

import { describeChange, edgeWords, firstChangedStep, independentOfSentence, isSilenced, isWithoutEffect, numGiven, partlyPinned, prefixTexts, releaseWeight, scopedEdge, setWeight, silence, toggleHead, weightSetAt, parseChanges, type Change, type Edge } from "../src/lib/changes";
import type { Explanation, TokenizedSentence } from "../src/lib/format";
import { mergeWords } from "../src/lib/diff";
import { computeLayout, FONT_SIZE, isSameCell, LABEL_HEIGHT, MIN_FONT_SIZE } from "../src/lib/heatmap";
import { boxAt, labelMiddles, linesOf } from "../src/lib/lines";
import { comparisonOrder, joinTokens, mapFrom } from "../src/lib/maps";
import { fill, likelihood, times } from "../src/lib/numbers";
import { parsePreferences } from "../src/lib/preferences";
import { localise } from "../src/lib/problems";
import { LANGUAGES } from "../src/lib/strings";
import { choiceData, mapTable, originComments, originOf, toCsv } from "../src/lib/tables";
import { unfamiliarWords } from "../src/lib/unfamiliar";

/** Two layers of three heads. */
const SHAPE = [2, 3];
const silenceAll: Change = { kind: "silence", site: "cross", layer: null, head: null };
const edge: Edge = { site: "cross", layer: null, head: null, queries: [2], keys: [0, 1] };

/** The silenced heads: "12" is head 2 of layer 1. */
const silencedHeads = (changes: Change[]) => [0, 1].flatMap((layer) => [0, 1, 2].filter((head) => isSilenced(changes, "cross", layer, head)).map((head) => `${layer}${head}`));

describe("silenced heads", () => {
  it("`toggleHead` silences a head and restores it", () => {
    const off = toggleHead([], "cross", 1, 2, SHAPE);
    expect(silencedHeads(off)).toEqual(["12"]);
    expect(toggleHead(off, "cross", 1, 2, SHAPE)).toEqual([]);
    expect(isSilenced(off, "encoder", 1, 2)).toBe(false);
  });

  it("`toggleHead` restores one head of a silenced layer or site, and the other heads stay silenced", () => {
    expect(silencedHeads(toggleHead([silenceAll], "cross", 0, 1, SHAPE))).toEqual(["00", "02", "10", "11", "12"]);
    expect(silencedHeads(toggleHead([{ ...silenceAll, layer: 1 }], "cross", 1, 0, SHAPE))).toEqual(["11", "12"]);
    expect(silencedHeads(toggleHead([{ ...silenceAll, head: 2 }], "cross", 0, 2, SHAPE))).toEqual(["12"]);
  });

  it("`silence` adds no change for a head that is already silenced, and uses one change for all heads", () => {
    const one = silence([], "cross", [[0, 0]], SHAPE);
    expect(silence(one, "cross", [[0, 0], [0, 1]], SHAPE)).toHaveLength(2);
    expect(silence(one, "cross", [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]], SHAPE)).toEqual([silenceAll]);
  });
});

describe("lines", () => {
  it("a weight is set, replaced and released", () => {
    const half = setWeight([silenceAll], edge, 0.5);
    expect(weightSetAt(half, edge)).toBe(0.5);
    expect(setWeight(half, edge, 0.25)).toHaveLength(2);
    const two = setWeight(half, { ...edge, keys: [3] }, 0.3);
    expect(two).toHaveLength(3);
    expect(setWeight(two, { ...edge, keys: [4] }, 1)).toEqual([silenceAll, { kind: "pin", ...edge, keys: [4], weight: 1 }]);
    expect(releaseWeight(half, edge)).toEqual([silenceAll]);
    expect(weightSetAt([], edge)).toBeNull();
  });

  it("another sentence keeps only silenced heads, and `firstChangedStep` is the earliest query of all changes", () => {
    const changes = setWeight([silenceAll], edge, 1);
    expect(independentOfSentence(changes)).toEqual([silenceAll]);
    expect(firstChangedStep(changes)).toBe(0);
    expect(firstChangedStep(changes.slice(1))).toBe(2);
    expect(firstChangedStep([])).toBe(Infinity);
  });

  it("`partlyPinned` lists each word of which a pin changes only some tokens", () => {
    const target = { text: "책을 믿는다.", ids: [5, 6, 7, 8, 9], tokens: ["▁책을", "▁믿", "는", "다", "."], words: ["책을", "믿는다", "."], word_of_token: [0, 1, 1, 1, 2] };
    const pinned = (queries: number[], site: Change["site"] = "cross") => partlyPinned({ target, changes: [{ kind: "pin", site, layer: null, head: null, queries, keys: [0] }] } as unknown as Explanation);
    expect(pinned([1])).toEqual([{ word: "믿는다", pinned: 1, tokens: 3, forTokens: false }]);
    expect([pinned([0]), pinned([1, 2, 3]), pinned([5]), pinned([1], "encoder")]).toEqual([[], [], [], []]);
    expect(pinned([3, 4])).toEqual([{ word: "믿는다", pinned: 1, tokens: 3, forTokens: false }]);
  });

  it("`forTokens` tells a pin for single tokens from a pin for a whole old word", () => {
    const sentence = (tokens: string[], words: string[], word_of_token: number[]): TokenizedSentence => ({ text: words.join(" "), ids: [], tokens, words, word_of_token });
    const source = sentence(["▁I"], ["I"], [0]);
    const whole = sentence(["▁책을", "▁있"], ["책을", "있"], [0, 1]);
    const split = sentence(["▁책을", "▁있", "다"], ["책을", "있다"], [0, 1, 1]);
    const other = sentence(["▁책을", "▁믿", "다"], ["책을", "믿다"], [0, 1, 1]);
    const partly = (before: TokenizedSentence, target: TokenizedSentence, words?: [string, string], queries = [1]) =>
      partlyPinned({ source, target, before: { target: before }, changes: [{ kind: "pin", site: "cross", layer: null, head: null, queries, keys: [0], ...(words && { words }) }] } as unknown as Explanation).map(({ forTokens }) => forTokens);
    // The word stays the same, and the change was made for one of its tokens.
    expect([partly(split, split, ["있", "I"]), partly(split, split), partly(split, split, ["다", "I"], [2])]).toEqual([[true], [true], [true]]);
    expect(partly(split, other, ["있", "I"])).toEqual([true]);
    // The old word had only one token.
    expect([partly(whole, split, ["있", "I"]), partly(whole, other, ["있", "I"]), partly(whole, split)]).toEqual([[false], [false], [false]]);
    // The pin was chosen in a translation that another change had already altered.
    expect([partly(other, split, ["있", "I"]), partly(other, split, ["간다", "I"])]).toEqual([[true], [false]]);
  });

  it("`numGiven` and `prefixTexts` tell a given prefix from tokens that stay because the changes begin later", () => {
    const pin: Change = { kind: "pin", site: "cross", layer: null, head: null, queries: [3], keys: [0] };
    const explanation = { forced: 3, changes: [pin], facts: {}, target: { tokens: ["▁우리는", "▁오늘", "▁어제", "▁간다"] } } as unknown as Explanation;
    expect([numGiven(explanation, [7, 8]), numGiven(explanation, []), numGiven(explanation, [7, 8, 9])]).toEqual([2, 0, 3]);
    expect([numGiven(explanation), numGiven({ ...explanation, changes: [] }), numGiven({ ...explanation, facts: { given_tokens: 2 } })]).toEqual([0, 3, 2]);
    expect(prefixTexts(explanation, 2)).toEqual({ given: "우리는 오늘", kept: "어제" });
    expect([prefixTexts(explanation, 0), prefixTexts(explanation, 3)]).toEqual([{ given: "", kept: "우리는 오늘 어제" }, { given: "우리는 오늘 어제", kept: "" }]);
  });

  it("a change is described with the words of the translation in which it was chosen", () => {
    const sentence = (text: string) => ({ text, ids: [], tokens: text.split(" ").map((word) => `▁${word}`), words: text.split(" "), word_of_token: text.split(" ").map((_, i) => i) });
    const source = sentence("I read a book");
    const [before, between, after] = ["나는 책을 읽었다", "나는 재미있는 학생은 재미있는 책을 읽었다", "나는 간다"].map(sentence);
    const at = (target: TokenizedSentence, changes: Change[]) => ({ source, target, before: { target: before }, changes, ended: true }) as unknown as Explanation;
    const shown = at(between, []);
    /** The changes after the line from “책을” to “book” was cut. */
    const cut = setWeight([], scopedEdge("cross", { layer: null, head: null }, [4], [3], shown), 0);
    expect(cut).toEqual([{ kind: "pin", site: "cross", layer: null, head: null, queries: [4], keys: [3], weight: 0, words: ["책을", "book"] }]);
    for (const target of [before, between, after]) expect(describeChange(cut[0], at(target, cut), LANGUAGES.en)).toBe("Cut: 책을 → book (Target → source, all layers, all heads)");
    expect(parseChanges(JSON.stringify(cut))).toEqual(cut);
    expect(parseChanges(JSON.stringify([{ ...cut[0], words: ["a"] }]))).toEqual([]);
    expect(edgeWords(shown, { site: "decoder", queries: [2], keys: [1] })).toEqual(["학생은", "나는"]);
    const bytes = { ...shown, target: { ...between, tokens: ["▁", "<0xEA>", "다"], words: ["간다"], word_of_token: [0, 0, 0] } };
    expect([[0, 1, 2], [1, 2]].map((queries) => edgeWords(bytes, { site: "cross", queries, keys: [4] }))).toEqual([["간다", "</s>"], ["<0xEA>다", "</s>"]]);
    expect([between, after].map((target) => isWithoutEffect(cut[0], at(target, cut)))).toEqual([false, true]);
    // A change from Python has no words. Its rows are those of the translation before all changes.
    const { words, ...unnamed } = cut[0] as Extract<Change, { kind: "pin" }>;
    expect(describeChange({ ...unnamed, queries: [1] }, at(after, []), LANGUAGES.en)).toContain("책을 → book");
  });

  it("a line is drawn if its strength is at least MIN_STRENGTH, and the strongest line of each row is marked", () => {
    const map = mapFrom(Float32Array.of(0.5, 0.3, 0.2, 0.04, 0.9, 0.06), ["a", "b"], ["x", "y", "</s>"]);
    expect(linesOf(map, 2, 2).map(({ row, column, strongest }) => [row, column, strongest])).toEqual([
      [0, 1, false],
      [0, 0, true],
      [1, 1, true],
    ]);
  });

  it("in a map in nats, the strength of a line is its number divided by the largest number, and there are no lines if all numbers are tiny", () => {
    const nats = (...values: number[]) => linesOf({ ...mapFrom(Float32Array.from(values), ["a", "b"], ["x", "y"]), quantity: "nats" }, 2, 2).map(({ row, column, strength, negative }) => [row, column, Number(strength.toFixed(2)), negative]);
    expect(nats(0.5, -0.25, 0.02, 0.1)).toEqual([[1, 1, 0.2, false], [0, 1, 0.5, true], [0, 0, 1, false]]);
    expect(nats(20, 0, 0, 0)).toEqual([[0, 0, 1, false]]);
    expect(nats(0.001, -0.002, 0, 0)).toEqual([]);
  });

  it("the name of a line's end has no “·” at its beginning and end", () => {
    expect([joinTokens(["·책", "을", "·"], [0, 1, 2]), joinTokens(["·a", "·b"], [0, 1]), joinTokens(["·"], [0]), joinTokens([], [3])]).toEqual(["책을", "a·b", "·", "?"]);
  });

  it("a moved line ends at the word under the pointer or the nearest word within reach", () => {
    const boxes = [{ left: 0, right: 10, top: 0, bottom: 10 }, undefined, { left: 20, right: 30, top: 0, bottom: 10 }];
    expect(boxAt(boxes, { x: 5, y: 5 }, 8)).toBe(0);
    expect(boxAt(boxes, { x: 17, y: 5 }, 8)).toBe(2);
    expect(boxAt(boxes, { x: 50, y: 50 }, 8)).toBe(-1);
  });

  it("labels that would overlap move to the right or are left out", () => {
    const at = (left: number, top = 0) => ({ left, right: left + 10, top, bottom: top + 10 });
    // The boxes are 10 pixels wide, the labels 20. After a label, 4 pixels stay free. A label moves by at most 14 pixels by default.
    expect(labelMiddles([at(0), at(9), at(60), at(0, 30), undefined], [20, 20, 20, 20, 20])).toEqual([5, null, 65, 5, null]);
    expect(labelMiddles([at(0), at(20), at(40)], [20, 20, 20])).toEqual([5, 29, 53]);
    expect(labelMiddles([at(0), at(20), at(40)], [20, 0, 20])).toEqual([5, null, 45]);
    expect(labelMiddles([at(0), at(10)], [30, 30], 30)).toEqual([5, 39]);
  });
});

it("the chosen model comes first in a comparison", () => {
  expect(comparisonOrder(3, 0)).toEqual([0, 1, 2]);
  expect(comparisonOrder(3, 2)).toEqual([2, 0, 1]);
});

describe("texts", () => {
  it("`mergeWords` keeps removed words at their old places", () => {
    const before = { text: "나는 책을 읽는다.", words: ["나는", "책을", "읽는다", "."] };
    const after = { text: "나는 학생을 읽는다.", words: ["나는", "학생을", "읽는다", "."] };
    const merged = mergeWords(before, after);
    expect(merged.map(({ word, state }) => [word, state])).toEqual([["나는", "kept"], ["책을", "old"], ["학생을", "new"], ["읽는다", "kept"], [".", "kept"]]);
    expect(merged[3]).toMatchObject({ index: 2, oldIndex: 2 });
    expect(mergeWords(before, { text: "", words: [] }).map(({ state }) => state)).toEqual(["old", "old", "old", "old"]);
  });

  it("`times` and `likelihood` say how many times less likely something is", () => {
    expect(times(0.05)).toBeNull();
    expect(times(-1)).toBe("2.7");
    expect(times(-9.84)).toBe("19,000");
    expect(times(15.21)).toBe("4.0 × 10⁶");
    expect(times(-67.61)).toBe("2.3 × 10²⁹");
    expect(times(Math.log(9.97e9))).toBe("1.0 × 10¹⁰");
    expect(fill("{a} and {b}", { a: 1 })).toBe("1 and {b}");
    expect([-0.5, 0.05, 2.3].map((change) => likelihood(change, LANGUAGES.en))).toEqual(["1.6 times less likely", "about as likely as before", "10 times more likely"]);
  });

  it("CSV fields are quoted, and cannot be read as formulas", () => {
    expect(toCsv([["a,b", 'say "x"'], [0.5, "=1+1"]])).toBe('"a,b","say ""x"""\r\n0.5,\'=1+1\r\n');
    expect(toCsv([["#1", "b"]], { model: "mine", changes: "Cut: a → b; \n Pin" })).toBe('# model: mine\r\n# changes: Cut: a → b; Pin\r\n"#1",b\r\n');
    expect(mapTable(mapFrom(Float32Array.of(0.5, 0.25), ["a"], ["x", "y"]), "weight")).toEqual([["weight", "x", "y"], ["a", 0.5, 0.25]]);
  });

  it("saved files contain the origin of their numbers", () => {
    const sentence = (text: string) => ({ text, ids: [], tokens: [text], words: [text], word_of_token: [0] });
    const changed = { source: sentence("a"), target: sentence("x"), forced: 0, changes: [silenceAll], before: null, alignments: [{ heads: [[1, 2]] }], attention: { cross: { shape: [2, 3, 1, 1] } } } as unknown as Explanation;
    expect(originOf(changed, "mine")).toEqual({ model: "mine", source: "a", target: "x", changes: [silenceAll], forced: 0, date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) });
    expect(originComments(changed, "mine", LANGUAGES.en).changes).toBe("Silence: Target → source, all layers, all heads");
    expect(originComments({ ...changed, changes: [] }, "mine", LANGUAGES.en).changes).toBe("none");
    const choice = { site: "cross" as const, combination: "read-out" as const, layer: -1, head: 0, words: true, specials: true };
    expect(choiceData(changed, choice)).toEqual({ site: "cross", combination: "read-out", heads: [[1, 2]], words: true, specials: true });
    expect(choiceData(changed, { ...choice, combination: "head" })).toMatchObject({ layer: 0, head: 0, heads: [[0, 0]] });
    expect(choiceData(changed, { ...choice, combination: "mean" })).toMatchObject({ layer: "all" });
    expect(choiceData(changed, choice, true)).toEqual({ site: "cross", heads: null, words: true, specials: true });
  });

  it("error messages are in the language of the page, without advice for programmers", () => {
    const long = "This sentence is too long to be explained at once: it has 1,024 tokens, and the model takes 256. Give a shorter sentence, or explain the `parts` of its translation in Python, one by one.";
    expect(localise(long, LANGUAGES.en)).not.toContain("Python");
    expect(localise(long, LANGUAGES.ko)).toContain("1,024개인데 이 모델은 256개까지");
    expect(localise('The attention "cross" of this sentence has no layer 7: there are 2, counted from 0.', LANGUAGES.ko)).toContain("레이어 7번이 없습니다");
    expect(localise("Not a valid request: sentence: String should have at most 1000 characters.", LANGUAGES.ko)).toBe("글이 너무 깁니다. 한 번에 1000자까지 읽습니다.");
    expect(localise("A sentence has at most 1000 characters.", LANGUAGES.ko)).toBe("글이 너무 깁니다. 한 번에 1000자까지 읽습니다."); // from the engine
    expect(localise("another", LANGUAGES.ko)).toBe("another");
  });

  it("stored preferences are parsed, and unknown values are ignored", () => {
    expect(parsePreferences("ko.dark")).toEqual({ language: "ko", appearance: "dark" });
    expect(parsePreferences("xx.pink")).toEqual({ language: undefined, appearance: undefined });
    expect(parsePreferences("ko.dark.seen")).toEqual({ language: "ko", appearance: "dark", storySeen: true });
  });
});

describe("unfamiliar words", () => {
  /** A sentence whose words have these tokens. */
  const sentence = (words: [string, ...string[]][]): TokenizedSentence => ({
    text: "",
    ids: words.flatMap(([, ...tokens]) => tokens.map((token) => (token === "<unk>" ? 1 : 99))),
    tokens: words.flatMap(([, ...tokens]) => tokens),
    words: words.map(([word]) => word),
    word_of_token: words.flatMap(([, ...tokens], i) => tokens.map(() => i)),
  });
  const none = { foreign: [], unknown: [], spelled: [] };

  it("are those of another script, with unknown characters, or read letter by letter", () => {
    const source = sentence([["나는", "▁나는"], ["Zürich", "▁", "<0x5A>", "<0xC3>", "<0xBC>", "r", "i", "c", "h"], ["GO", "▁", "G", "O"], ["hello", "▁he", "l", "l", "o"], ["😀", "▁", "<unk>"], ["reads", "▁read", "s"], ["3", "▁3"], [".", "."]]);
    expect(unfamiliarWords(source, "en")).toEqual({ foreign: ["나는"], unknown: ["Zürich", "😀"], spelled: ["GO", "hello"] });
  });

  it("do not include Korean words of one-syllable tokens, and are empty if the language is unknown", () => {
    const source = sentence([["책을", "▁책", "을"], ["book", "▁book"]]);
    expect(unfamiliarWords(source, "ko")).toEqual({ ...none, foreign: ["book"] });
    for (const language of [undefined, "", "not a language"]) expect(unfamiliarWords(source, language)).toEqual(none);
  });
});

describe("layout", () => {
  it("has rows that are high enough for their labels, even for a long sentence", () => {
    const map = (rows: number, columns: number) => mapFrom(new Float32Array(rows * columns), Array(rows).fill("word"), Array(columns).fill("word"));
    const long = computeLayout(map(11, 57), 600);
    expect(long.cellWidth).toBeLessThan(12);
    expect([long.rowHeight, long.rowFont]).toEqual([LABEL_HEIGHT, FONT_SIZE]);
    const square = computeLayout(map(5, 5), 600);
    expect(square.rowHeight).toBe(square.cellWidth);
    expect(computeLayout(map(200, 200), 600).height).toBeLessThan(1200);
    const { font, rowFont } = computeLayout(map(200, 200), 600);
    expect([font, rowFont]).toEqual([MIN_FONT_SIZE, MIN_FONT_SIZE]);
    expect(MIN_FONT_SIZE).toBeGreaterThanOrEqual(9);
  });

  it("fits the width with slanted labels, and aligns the columns of two maps", () => {
    const map = mapFrom(new Float32Array(8), ["나는"], ["The", "student", "reads", "a", "book", "in", "the", "library"]);
    const layout = computeLayout(map, 400);
    expect(layout.rotation).toBe(-45);
    expect(layout.width).toBeLessThanOrEqual(400);
    const other = computeLayout(mapFrom(new Float32Array(8), ["나는 + 책을"], map.columnLabels), 400, 46, ["나는"]);
    expect(computeLayout(map, 400, 46, ["나는 + 책을"]).left).toBe(other.left);
  });
});

describe("the pointer on a heat map", () => {
  it("distinguishes the label of a row from its first cell", () => {
    expect(isSameCell({ row: 1, column: 0, isLabel: true }, { row: 1, column: 0, isLabel: false })).toBe(false);
    expect(isSameCell({ row: 1, column: 0, isLabel: true }, { row: 1, column: 0, isLabel: true })).toBe(true);
    expect(isSameCell({ row: 1, column: 0, isLabel: false }, { row: 1, column: 0 })).toBe(true); // the second cell was reached with a key
    expect(isSameCell({ row: 1, column: 0 }, { row: 1, column: 1 })).toBe(false);
    expect(isSameCell(null, { row: 0, column: 0 })).toBe(false);
    expect(isSameCell(null, null)).toBe(true);
  });
});
