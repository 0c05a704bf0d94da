import { describe, expect, it, vi } from "vitest";

import { splitLine } from "../src/engine/long_lines";
import type { StoredTokenizer } from "../src/engine/model_file";
import { escape, joinLines, MAX_MARKS, normalise, strip, unescape, unescapedOffsets } from "../src/engine/normalisation";
import { replaceParts, textSpans, type Sentences } from "../src/engine/sentences";
import { Tokenizer } from "../src/engine/tokenizer";
import { alignedOffsets, splitWords } from "../src/engine/words";
import { diffWords } from "../src/lib/diff";
import { copyText, normaliseSentence, wholeTranslation } from "../src/lib/texts";

describe("normalisation", () => {
  it("composes Hangul and replaces lone surrogates", () => {
    expect(normalise("\u1112\u1161\u11ab")).toBe("한");
    expect(normalise("a\ud800b😀")).toBe("a\ufffdb😀");
  });

  it("inserts a joiner after every MAX_MARKS combining marks of a run, and none between other characters", () => {
    const bounded = normalise(`a${"\u0301".repeat(2 * MAX_MARKS + 5)}`);
    expect([...bounded].filter((character) => character === "\u034f")).toHaveLength(2);
    expect(normalise(`a${"\u0301".repeat(MAX_MARKS)}`)).not.toContain("\u034f");
    expect(normalise("!".repeat(40))).toBe("!".repeat(40));
  });

  it("escapes the character that SentencePiece uses for a space, and the characters that are used for escaping", () => {
    const text = "▁a\ufdd0\ufdd1";
    expect(escape(text)).not.toContain("▁");
    expect(unescape(escape(text))).toBe(text);
    // The escaped text has six characters: one each for "▁" and "a", and two each for U+FDD0 and U+FDD1. The last number is for its end.
    expect(unescapedOffsets([...escape(text)])).toEqual([0, 1, 2, 2, 3, 3, 4]);
  });

  it("strips the same white space as Python, and joins lines", () => {
    expect(strip("\u2003\x1c a b\t\n")).toBe("a b");
    expect(strip(" \n")).toBe("");
    expect([joinLines("a\nb\r\n"), joinLines("x\u2028y"), joinLines("")]).toEqual(["a b", "x y", ""]);
  });
});

describe("sentences", () => {
  const split = (text: string, sentences: Sentences = "split") => textSpans(text, sentences).map(([start, end]) => text.slice(start, end));

  it("end at full stops, except after abbreviations, initials and numbers of list items", () => {
    expect(split("Dr. Kim and J. Lee go.  They  are here! 1. Open it")).toEqual(["Dr. Kim and J. Lee go.", "They  are here!", "1. Open it"]);
    // A lower-case letter continues the sentence.
    expect(split("So do I. Do you? yes")).toEqual(["So do I.", "Do you? yes"]);
    expect(split("一。二！ x\n\n --- \ny")).toEqual(["一。", "二！", "x", "y"]);
    expect(split("a. B\nc", "keep")).toEqual(["a. B", "c"]);
  });

  it("are replaced by their translations, with the separator of the language", () => {
    const text = "One.   Two.\n three";
    const spans = textSpans(text, "split");
    expect(replaceParts(text, spans, ["x", "y", "z"], "ko")).toBe("x y\n z");
    expect(replaceParts(text, spans, ["x", "", "z"], "zh-TW")).toBe("x\n z");
    for (const [language, expected] of [["th", "x y"], ["cmn_Hans", "xy"], ["jpn", "xy"]]) expect(replaceParts("a？\u3000b。", [[0, 2], [3, 5]], ["x", "y"], language)).toBe(expected);
  });
});

describe("a line that is too long", () => {
  const words = (text: string) => text.split(/\s+/).length;
  const characters = (text: string) => [...text].length;

  // The expected parts are those of Python: tests/text/test_long_lines.py.
  it("is split at sentences, then commas, then spaces", () => {
    const sentences = ["The first sentence has seven words here.", "Is the second one a question now?", "Yes it is!"];
    expect(splitLine(sentences.join(" "), words, 9)).toEqual(sentences);
    expect(splitLine("Dr. Kim told us to wait for a moment. Then the door opened.", words, 11)).toEqual(["Dr. Kim told us to wait for a moment.", "Then the door opened."]);
    expect(splitLine("one two three, four five six; seven eight", words, 6)).toEqual(["one two three, four five six;", "seven eight"]);
    expect(splitLine("one two three four five six seven", words, 3)).toEqual(["one two three", "four five six", "seven"]);
    expect(splitLine("今日は天気がいいです。明日は雨が降るでしょう。", characters, 14)).toEqual(["今日は天気がいいです。", "明日は雨が降るでしょう。"]);
  });

  it("is split between any characters if it has no spaces, but, if possible, not before a combining character", () => {
    expect(splitLine("😀😀e\u0301😀", characters, 3)).toEqual(["😀😀", "e\u0301😀"]);
    // A part of one character has no room for the mark.
    expect(splitLine("e\u0301e\u0301", characters, 1)).toEqual(["e", "\u0301", "e", "\u0301"]);
    // The line has 10 + 31 + 39 = 80 characters, and its middle is the last mark of the letter. So the line is split before the letter.
    const [before, letter, after] = ["a".repeat(40 - MAX_MARKS), `e${"\u0301".repeat(MAX_MARKS)}`, "b".repeat(39)];
    expect(splitLine(before + letter + after, characters, 79)).toEqual([before, letter + after]);
  });
});

describe("words", () => {
  it("are split at punctuation and in scripts without spaces, and tags stay whole", () => {
    expect(splitWords("No, I go <polite> home.")).toEqual(["No", ",", "I", "go", "<polite>", "home", "."]);
    expect(splitWords("「漢字」 ab漢c e\u0301!")).toEqual(["「", "漢", "字", "」", "ab", "漢", "c", "e\u0301", "!"]);
    expect(splitWords("I 👩\u200d👩\u200d👧👋🏽.")).toEqual(["I", "👩\u200d👩\u200d👧", "👋🏽", "."]);
    expect(splitWords("a\u200db 👩👧")).toEqual(["a\u200db", "👩", "👧"]);
  });

  it("keep the two regional indicators of a flag together", () => {
    const [korea, france] = ["\u{1f1f0}\u{1f1f7}", "\u{1f1eb}\u{1f1f7}"];
    expect(splitWords(`I ${korea}${france}.`)).toEqual(["I", korea, france, "."]);
    expect(splitWords(`${korea}집${france}`)).toEqual([korea, "집", france]);
    // The third regional indicator has no partner. After another character, the next two regional indicators are a flag again.
    expect(splitWords(`${korea}\u{1f1eb} ${korea}!${france}`)).toEqual([korea, "\u{1f1eb}", korea, "!", france]);
  });

  it("`alignedOffsets` aligns two texts by their longest common substrings", () => {
    expect(alignedOffsets([..."ab⁇cd"], [..."abXYcd"])).toEqual([0, 1, 2, 4, 5, 6]);
    expect(alignedOffsets([], [..."ab"])).toEqual([2]);
  });

  it("`diffWords` marks the words that differ between two texts", () => {
    const text = (words: string) => ({ text: words, words: words.split(" ") });
    const [before, after] = diffWords(text("I go home now"), text("I run home"));
    expect(before.map(({ changed }) => changed)).toEqual([false, true, false, true]);
    expect(after.map(({ word, changed }) => [word, changed])).toEqual([["I", false], ["run", true], ["home", false]]);
  });
});

const SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"];
const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);

/** A tokenizer as a live file stores it. Each piece is [token, score, type]. The type is one letter; if it is missing, it is "n". */
function stored(kind: "unigram" | "bpe", pieces: [string, number, string?][], byteFallback = false): StoredTokenizer {
  const byteTokens = byteFallback ? bytes : [];
  return {
    kind,
    byte_fallback: byteFallback,
    tokens: [...SPECIAL, ...byteTokens, ...pieces.map(([piece]) => piece)],
    scores: [...SPECIAL, ...byteTokens].map(() => 0).concat(pieces.map(([, score]) => score)),
    // One letter per token, as model_file.ts lists them: <pad>, <unk>, <s>, </s>, the bytes, the others.
    types: `cucc${"b".repeat(byteTokens.length)}${pieces.map(([, , type]) => type ?? "n").join("")}`,
  };
}

describe("the tokenizer", () => {
  const unigram: [string, number, string?][] = [["▁", -3], ["a", -3], ["b", -3], ["ab", -4], ["▁ab", -5], ["▁<x>", 0, "d"], ["<", -9], ["x", -9], [">", -9]];

  it("finds the most probable segmentation by a unigram model", () => {
    const tokenizer = new Tokenizer(stored("unigram", unigram));
    // The scores sum to −5 − 4 − 3 − 3 = −15, more than those of any other segmentation.
    expect(tokenizer.tokens(tokenizer.encode("abab b"))).toEqual(["▁ab", "ab", "▁", "b"]);
    expect(tokenizer.encode("")).toEqual([]);
  });

  it("always chooses user-defined tokens", () => {
    for (const kind of ["unigram", "bpe"] as const) {
      const tokenizer = new Tokenizer(stored(kind, unigram));
      expect(tokenizer.tokens(tokenizer.encode("a <x> b"))).toContain("▁<x>");
    }
  });

  it("encodes a run of unknown characters as one <unk>, or as bytes if it has byte fallback", () => {
    const [plain, withBytes] = [false, true].map((byteFallback) => new Tokenizer(stored("unigram", unigram, byteFallback)));
    expect(plain.tokens(plain.encode("a한국b"))).toEqual(["▁", "a", "<unk>", "b"]);
    expect(plain.decode(plain.encode("a한국b"))).toBe("a⁇b");
    expect(withBytes.tokens(withBytes.encode("é"))).toEqual(["▁", "<0xC3>", "<0xA9>"]);
    expect(withBytes.decode(withBytes.encode("a한국 b😀"))).toBe("a한국 b😀");
  });

  it("merges the pairs of a BPE model in the order of their scores", () => {
    const tokenizer = new Tokenizer(stored("bpe", [["ab", 0], ["bc", -1], ["▁ab", -2], ["▁", -3], ["a", -4], ["b", -5], ["c", -6]]));
    expect(tokenizer.tokens(tokenizer.encode("abc bc"))).toEqual(["▁ab", "c", "▁", "bc"]);
  });

  it("decodes each invalid byte to one U+FFFD", () => {
    const tokenizer = new Tokenizer(stored("unigram", unigram, true));
    expect(tokenizer.decode([0xe2, 0x82, 0x41, 0x80, 0xf0].map((byte) => byte + SPECIAL.length))).toBe("\ufffd\ufffdA\ufffd\ufffd");
  });

  it("assigns a word to each token even if the text was normalised", () => {
    const tokenizer = new Tokenizer(stored("unigram", unigram, true));
    const text = "ab, e\u0301 ab";
    const { words, word_of_token: wordOfToken, tokens } = tokenizer.sentence(text, tokenizer.encode(text));
    expect(words).toEqual(["ab", ",", "e\u0301", "ab"]);
    expect(tokens.map((token, i) => [token, wordOfToken[i]])).toEqual([["▁ab", 0], ["<0x2C>", 1], ["▁", 2], ["<0xC3>", 2], ["<0xA9>", 2], ["▁ab", 3]]);
  });
});

describe("the whole text", () => {
  const parts = ["나는 간다.", "너는 잔다."].map((text) => ({ source: "", text }));
  const whole = (target: string, index: number) => wholeTranslation({ target: { text: target, ids: [], tokens: [], words: [], word_of_token: [] }, whole_text: { text: "나는 간다. 너는 잔다.", parts, index } });

  it("contains the changed translation of the sentence that is shown, and the unchanged translations of the other sentences", () => {
    expect([whole("나는 간다.", 0), whole("너는 책을 읽는다.", 1), whole("책.", 0)]).toEqual(["나는 간다. 너는 잔다.", "나는 간다. 너는 책을 읽는다.", "책. 너는 잔다."]);
  });

  it("is the translation itself if the text is one sentence", () => {
    expect(wholeTranslation({ target: { text: "a", ids: [], tokens: [], words: [], word_of_token: [] } })).toBe("a");
  });
});

it("a sentence of invisible characters is empty", () => {
  expect(["\u200b", " \u200d\u2060\ufeff\u00ad ", "\u3164\ufe0f", ""].map(normaliseSentence)).toEqual(["", "", "", ""]);
  expect([" a\t\nb ", "👩\u200d👧", "."].map(normaliseSentence)).toEqual(["a b", "👩\u200d👧", "."]);
});

it("copying rejects if the browser has no clipboard, so that the page can say so", async () => {
  vi.stubGlobal("navigator", {});
  await expect(copyText("a")).rejects.toThrow(TypeError);
  vi.unstubAllGlobals();
});
