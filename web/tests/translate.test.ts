/** Tests of the translation page: offsets, addresses, texts, arrow keys, events, links between words, history and draft. */

import { describe, expect, test, vi } from "vitest";

import { indexAfterArrowKey } from "../src/translate/dom";
import { Choices, MAX_CHOICES, readDraft, tagsOf, writeDraft } from "../src/translate/draft";
import { addEntry, MAX_CHARACTERS, MAX_ENTRIES, readHistory, writeHistory, type Entry } from "../src/translate/history";
import { checkAnswer, IN_STREAM, parseEvent, readEvents, RefusedError, TOO_LARGE } from "../src/translate/server";
import { guarded } from "../src/translate/storage";
import { countCharacters, firstCharacters, MAX_ADDRESS_CHARACTERS, percent, readAddress, unitOffsets, writeAddress } from "../src/translate/text";
import { joinSentences, linkedWords, prefixOf, readVersion, sentenceAt, sentenceReader, tint } from "../src/translate/translation";

describe("offsets", () => {
  test("are converted, because the server counts an emoji as one character and JavaScript as two", () => {
    const offset = unitOffsets("a😀b");
    expect([0, 1, 2, 3].map(offset)).toEqual([0, 1, 3, 4]);
    expect(unitOffsets("abc")(2)).toBe(2);
    expect(countCharacters("a😀b")).toBe(3);
    expect(firstCharacters("a😀b", 2)).toBe("a😀");
  });
});

describe("addresses", () => {
  const [isSource, isTarget] = [(code: string) => ["auto", "en"].includes(code), (code: string) => code === "ko"];
  const read = (hash: string) => readAddress(hash, isSource, isTarget);
  test.each(["I go.", "100%", "a/b/c", "#?&=+", "줄\n바꿈", "😀"])("%j is read as it was written", (text) => {
    const input = { source: "en", target: "ko", text };
    expect(read(writeAddress(input))).toEqual(input);
  });
  test("without languages, with unknown languages or with a % that is not an escape are read as text", () => {
    expect(read("#I%20go")).toEqual({ text: "I go" });
    expect(read("#100%")).toEqual({ text: "100%" });
    expect(read("#xx/ko/a")).toEqual({ text: "xx/ko/a" });
    expect(read("")).toBeNull();
  });
  test("do not contain an empty text or a long text", () => {
    expect(writeAddress({ source: "en", target: "ko", text: " " })).toBe("");
    expect(writeAddress({ source: "en", target: "ko", text: "a".repeat(MAX_ADDRESS_CHARACTERS + 1) })).toBe("");
  });
});

test("a probability between 0 and 1 is never rounded to 0% or 100%", () => {
  expect([0, 0.004, 0.81, 0.996, 1].map(percent)).toEqual(["0%", "< 1%", "81%", "> 99%", "100%"]);
});

test("a text contains its values unchanged, even if they have dollar signs", async () => {
  const dataset = { strings: '{"en":{"linked":"aligned with {words}"}}', errors: '{"en":{"too slow":"Error: {message}"}}' };
  vi.stubGlobal("document", { body: { dataset }, documentElement: { lang: "en" }, cookie: "" });
  const { localiseError, string } = await import("../src/translate/settings");
  expect(string("linked", { words: "$$, $&, $'" })).toBe("aligned with $$, $&, $'");
  expect(localiseError("too slow: $&", 500)).toBe("Error: too slow: $&");
  vi.unstubAllGlobals();
});

test("arrow keys move through a list in a circle, and enter it at the first or the last element", () => {
  expect([0, 1, 2].map((current) => indexAfterArrowKey(current, 1, 3))).toEqual([1, 2, 0]);
  expect([0, 1, 2].map((current) => indexAfterArrowKey(current, -1, 3))).toEqual([2, 0, 1]);
  expect([indexAfterArrowKey(-1, 1, 3), indexAfterArrowKey(-1, -1, 3)]).toEqual([0, 2]);
});

test("a less probable word has a stronger tint", () => {
  expect([null, 0.9, 0.6, 0.3, 0.1].map(tint)).toEqual([0, 0, 1, 2, 3]);
});

describe("events", () => {
  const stream = (...chunks: string[]) => new Blob(chunks).stream() as ReadableStream<Uint8Array<ArrayBuffer>>;
  test("are read across chunks", async () => {
    const events = [];
    for await (const event of readEvents(stream("event: a\nda", 'ta: {"x":1}\n\nevent: b\ndata: 2\n\n'))) events.push(event);
    expect(events).toEqual([{ name: "a", data: { x: 1 } }, { name: "b", data: 2 }]);
    expect(parseEvent('event: c\ndata: "d: e"')).toEqual({ name: "c", data: "d: e" });
  });
  test("with the name `error` end the stream with a RefusedError", async () => {
    const read = async () => {
      for await (const event of readEvents(stream('event: error\ndata: {"error":"too slow"}\n\n'))) void event;
    };
    await expect(read()).rejects.toThrow(RefusedError);
    await expect(read()).rejects.toThrow("too slow");
    await expect(read()).rejects.toMatchObject({ status: IN_STREAM, retrySeconds: 0 });
    const tooLarge = stream('event: error\ndata: {"error":"too much","status":413}\n\n');
    await expect(readEvents(tooLarge).next()).rejects.toMatchObject({ status: TOO_LARGE });
  });
  test("are not read from an error response, which is thrown with its message", async () => {
    const errorResponse = () => Response.json({ error: "expired" }, { status: 404 });
    await expect(checkAnswer(errorResponse())).rejects.toMatchObject({ message: "expired", status: 404 });
    const answer = new Response("a");
    expect(await checkAnswer(answer)).toBe(answer);
  });
});

describe("a translation", () => {
  const answer = {
    text: "나는 😀 간다.",
    score: -1,
    words: [
      { span: [0, 2] as [number, number], probability: 0.9 },
      { span: [3, 4] as [number, number], probability: 0.2 },
      { span: [5, 7] as [number, number], probability: null },
    ],
    alignment: [
      { source: [2, 4] as [number, number], target: [5, 7] as [number, number] },
      { source: [0, 1] as [number, number], target: [0, 2] as [number, number] },
      { source: [0, 1] as [number, number], target: [5, 7] as [number, number] },
    ],
  };
  const version = readVersion(answer, "I go.");
  test("links words in both directions", () => {
    expect(version.words.map(({ span }) => version.text.slice(...span))).toEqual(["나는", "😀", "간다"]);
    expect(version.sourceWords).toEqual([[0, 1], [2, 4]]);
    expect(linkedWords(version, "source", 0)).toEqual([0, 2]);
    expect(linkedWords(version, "target", 2).sort()).toEqual([0, 1]);
    expect(linkedWords(version, "target", 1)).toEqual([]);
    expect(prefixOf(version, 2)).toBe("나는 😀");
  });
  test("has sentences that can be found by a position in the text", () => {
    const read = sentenceReader("😀. I go.");
    const sentences = [read({ ...answer, text: "가", words: [], alignment: [], span: [0, 2], before: "" }), read({ ...answer, span: [3, 8], before: " " })];
    expect(sentences[1].source).toBe("I go.");
    expect(joinSentences(sentences, "\n")).toBe("가 나는 😀 간다.\n");
    expect([0, 2, 4, 9].map((place) => sentenceAt(sentences, place))).toEqual([0, 0, 1, 1]);
  });
});

describe("the history", () => {
  const entry = (text: string): Entry => ({ source: "en", target: "ko", text, result: text });
  const storage = () => {
    const values = new Map<string, string>();
    return { getItem: (name: string) => values.get(name) ?? null, setItem: (name: string, value: string) => values.set(name, value), removeItem: (name: string) => values.delete(name) } as unknown as Storage;
  };
  test("replaces an entry of one character only by a text that begins with this character", () => {
    expect(addEntry([entry("a")], entry("dog"))).toEqual([entry("dog"), entry("a")]);
    expect(addEntry([entry("d")], entry("dog"))).toEqual([entry("dog")]);
  });
  test("is null while it is switched off, and has no malformed entries", () => {
    const stored = storage();
    expect(readHistory(stored)).toBeNull();
    writeHistory(stored, [entry("a")]);
    expect(readHistory(stored)).toEqual([entry("a")]);
    writeHistory(stored, null);
    expect(readHistory(stored)).toBeNull();
    stored.setItem("jumok-history", "[1, {}]");
    expect(readHistory(stored)).toEqual([]);
    stored.setItem("jumok-history", "{");
    expect(readHistory(stored)).toEqual([]);
  });
  test("replaces an entry by its continuation, and has no text twice", () => {
    let entries = addEntry([], entry("I go."));
    entries = addEntry(entries, entry("I go home."));
    expect(entries.map(({ text }) => text)).toEqual(["I go home."]);
    entries = addEntry(addEntry(entries, entry("You go.")), entry("I go home."));
    expect(entries.map(({ text }) => text)).toEqual(["I go home.", "You go."]);
    for (let i = 0; i < MAX_ENTRIES + 10; i++) entries = addEntry(entries, entry(`${i} times`));
    expect(entries).toHaveLength(MAX_ENTRIES);
  });
  test("has a separate entry if the same text is translated into another language", () => {
    const entries = addEntry([entry("I go.")], { ...entry("I go."), target: "de" });
    expect(entries.map(({ target }) => target)).toEqual(["de", "ko"]);
  });
  test("removes the oldest entries above the limit of characters, and does not add an entry that alone is above the limit", () => {
    // The helper `entry` uses its text twice: as the text and as the result.
    const [first, second, third] = ["a", "b", "c"].map((letter) => entry(letter.repeat(MAX_CHARACTERS / 5)));
    expect(addEntry([second, first], third)).toEqual([third, second]);
    expect(addEntry([first], entry("d".repeat(MAX_CHARACTERS / 2 + 1)))).toEqual([first]);
  });
  test("is not stored, and throws no error, if the storage is forbidden", () => {
    const forbidden = guarded(() => {
      throw new Error("SecurityError");
    });
    writeHistory(forbidden, [entry("a")]);
    expect(readHistory(forbidden)).toBeNull();
    const stored = storage();
    writeHistory(guarded(() => stored), [entry("a")]);
    expect(readHistory(stored)).toEqual([entry("a")]);
  });
});

describe("the draft of a tab", () => {
  const memory = () => {
    const items = new Map<string, string>();
    return { getItem: (name: string) => items.get(name) ?? null, setItem: (name: string, value: string) => void items.set(name, value), removeItem: (name: string) => void items.delete(name) };
  };
  const version = (text: string) => ({ text, score: null, words: [], links: [], sourceWords: [] });
  test("has the tags of its text, which are used for an address with the same text but not for another text", () => {
    const store = memory();
    const input = { source: "en", target: "ko", text: "I go." };
    expect([readDraft(store), tagsOf(input, null)]).toEqual([null, undefined]);
    writeDraft(store, { ...input, tags: ["<polite>"] });
    expect(readDraft(store)?.tags).toEqual(["<polite>"]);
    expect(tagsOf(input, readDraft(store))).toEqual(["<polite>"]);
    expect([{ ...input, text: "You go." }, { ...input, target: "de" }, { text: "I go." }].map((other) => tagsOf(other, readDraft(store)))).toEqual([undefined, undefined, undefined]);
  });
  test("keeps a chosen translation until the model's own translation is chosen or MAX_CHOICES newer translations are chosen", () => {
    const store = memory();
    const choices = new Choices(store);
    choices.set("a", version("one"));
    choices.set("b", version("two"));
    expect(new Choices(store).get("a")).toEqual(version("one"));
    choices.set("a", null);
    expect([new Choices(store).get("a"), new Choices(store).get("b")]).toEqual([undefined, version("two")]);
    for (let i = 0; i < MAX_CHOICES; i++) choices.set(String(i), version("x"));
    expect(new Choices(store).get("b")).toBeUndefined();
    store.setItem("jumok-choices", "{");
    expect(new Choices(store).get("0")).toBeUndefined();
  });
});
