/** SentencePiece's unigram and BPE encoding, and decoding, as in src/jumok/text/tokenizer.py and token_table.py. */

import type { StoredTokenizer } from "./model_file";
import { BEGIN, END, PAD, UNKNOWN } from "./model";
import { plainSpaces, seenSpaces } from "./plain_spaces";
import { escape, normalise, unescape, unescapedOffsets } from "./normalisation";
import { alignedOffsets, NO_WORD, splitWords, wordsOfSpans, wordSpans, type Span } from "./words";

const SPACE = "▁";
const UNKNOWN_TEXT = "⁇";
const UNKNOWN_PENALTY = 10;
const REPLACEMENT = "\ufffd";

export interface TokenizedSentence {
  text: string;
  ids: number[];
  tokens: string[];
  words: string[];
  word_of_token: number[];
}

/** A token in the text: its characters, and its id or −1. */
type Piece = [string, number];

/** A node of the tree of all tokens, character by character. */
interface Node {
  id: number;
  next: Map<string, Node>;
}

export class Tokenizer {
  readonly vocabSize: number;
  #tokens: string[];
  #scores: Float32Array;
  #types: string;
  #kind: StoredTokenizer["kind"];
  #byteIds: number[] | null;
  #ids = new Map<string, number>();
  #root: Node = { id: -1, next: new Map() };
  #userDefined: Node = { id: -1, next: new Map() };
  #tokenBytes: Uint8Array[];
  #seenSpaces: ReadonlySet<string>;
  #lowest = Infinity;
  #highest = -Infinity;

  constructor({ kind, byte_fallback: byteFallback, tokens, scores, types }: StoredTokenizer) {
    this.vocabSize = tokens.length;
    [this.#kind, this.#tokens, this.#scores, this.#types] = [kind, tokens, Float32Array.from(scores), types];
    this.#seenSpaces = seenSpaces(tokens);
    this.#byteIds = byteFallback ? new Array<number>(256).fill(UNKNOWN) : null;
    const encoder = new TextEncoder();
    this.#tokenBytes = tokens.map((token, id) => {
      const type = types[id];
      if (type === "b") {
        const byte = parseInt(token.slice(3, 5), 16);
        if (this.#byteIds) this.#byteIds[byte] = id;
        return Uint8Array.of(byte);
      }
      if ("ndx".includes(type)) this.#ids.set(token, id);
      if (type === "n") [this.#lowest, this.#highest] = [Math.min(this.#lowest, this.#scores[id]), Math.max(this.#highest, this.#scores[id])];
      if ([PAD, BEGIN, END].includes(id)) return new Uint8Array(0);
      return encoder.encode(id === UNKNOWN ? UNKNOWN_TEXT : token.replaceAll(SPACE, " "));
    });
    for (const [token, id] of this.#ids) {
      insert(this.#root, token, id);
      if (types[id] === "d") insert(this.#userDefined, token, id);
    }
  }

  /** A text to translate, with plain spaces in place of those that occur in no token. */
  normaliseSpaces(text: string): string {
    return plainSpaces(text, this.#seenSpaces);
  }

  /** The token ids of the best segmentation, without `<s>` and `</s>`. */
  encode(text: string): number[] {
    const escaped = escape(normalise(text));
    if (!escaped) return [];
    const characters = [...(SPACE + escaped.replaceAll(" ", SPACE))];
    return this.#toIds(this.#kind === "unigram" ? this.#viterbi(characters) : this.#merge(characters));
  }

  /** The text. Special tokens have no text, but `<unk>` is ⁇; invalid bytes become U+FFFD. */
  decode(ids: readonly number[]): string {
    const text = this.#rawCharacters(ids).join("");
    return unescape(text.startsWith(" ") ? text.slice(1) : text);
  }

  tokens(ids: readonly number[]): string[] {
    return ids.map((id) => this.#tokens[id]);
  }

  /** A text with its tokens and words. */
  sentence(text: string, ids: readonly number[]): TokenizedSentence {
    return { text, ids: [...ids], tokens: this.tokens(ids), words: splitWords(text), word_of_token: this.#wordOfToken(text, ids) };
  }

  /** Known pieces become their ids; unknown ones become bytes, or one `<unk>` for a run of them. */
  #toIds(pieces: readonly Piece[]): number[] {
    const ids: number[] = [];
    let wasUnknown = false;
    for (const [piece, id] of pieces) {
      if (id >= 0) ids.push(id);
      else if (this.#byteIds) for (const byte of new TextEncoder().encode(piece)) ids.push(this.#byteIds[byte]);
      else if (!wasUnknown) ids.push(UNKNOWN);
      wasUnknown = id < 0;
    }
    return ids;
  }

  /** The most probable segmentation of a unigram model. Sums have single precision, as in SentencePiece. */
  #viterbi(characters: readonly string[]): Piece[] {
    const unknownScore = Math.fround(this.#lowest - UNKNOWN_PENALTY);
    const best = new Float32Array(characters.length + 1);
    const start = new Int32Array(characters.length + 1).fill(-1);
    const ids = new Int32Array(characters.length + 1).fill(-1);
    const propose = (from: number, to: number, sum: number, id: number): void => {
      if (start[to] >= 0 && !(sum > best[to])) return;
      [best[to], start[to], ids[to]] = [sum, from, id];
    };
    for (let from = 0; from < characters.length; from++) {
      let node: Node | undefined = this.#root;
      let [hasSingle, length] = [false, 0];
      for (let at = from; at < characters.length; at++) {
        node = node.next.get(characters[at]);
        if (!node) break;
        length += utf8Length(characters[at]);
        const { id } = node;
        if (id < 0 || this.#types[id] === "x") continue;
        // A token that the user defined is always taken.
        const score = this.#types[id] === "d" ? Math.fround(length * this.#highest) - 0.1 : this.#scores[id];
        propose(from, at + 1, score + best[from], id);
        hasSingle ||= at === from;
      }
      if (!hasSingle) propose(from, from + 1, Math.fround(unknownScore + best[from]), -1);
    }
    const pieces: Piece[] = [];
    for (let end = characters.length; end > 0; end = start[end]) pieces.unshift([characters.slice(start[end], end).join(""), ids[end]]);
    return pieces;
  }

  /** Merge neighbours, the pair with the best score first; of equals, the leftmost. */
  #merge(characters: readonly string[]): Piece[] {
    const symbols: { piece: string; frozen: boolean }[] = [];
    for (let at = 0; at < characters.length; ) {
      const defined = longestMatch(this.#userDefined, characters, at);
      symbols.push({ piece: characters.slice(at, at + (defined || 1)).join(""), frozen: defined > 0 });
      at += defined || 1;
    }
    for (;;) {
      let [best, score] = [-1, -Infinity];
      for (let i = 0; i + 1 < symbols.length; i++) {
        if (symbols[i].frozen || symbols[i + 1].frozen) continue;
        const id = this.#ids.get(symbols[i].piece + symbols[i + 1].piece);
        if (id !== undefined && this.#scores[id] > score) [best, score] = [i, this.#scores[id]];
      }
      if (best < 0) break;
      symbols.splice(best, 2, { piece: symbols[best].piece + symbols[best + 1].piece, frozen: false });
    }
    return symbols.map(({ piece }) => [piece, this.#ids.get(piece) ?? -1]);
  }

  /** The characters of the escaped text, with the space before it; an invalid byte is one U+FFFD. */
  #rawCharacters(ids: readonly number[]): string[] {
    return decodeUtf8(ids.flatMap((id) => [...this.#tokenBytes[id]])).map(([character]) => character);
  }

  /** The index of the word of each token, −1 for special tokens. */
  #wordOfToken(text: string, ids: readonly number[]): number[] {
    const decoded = decodeUtf8(ids.flatMap((id) => [...this.#tokenBytes[id]]));
    const space = decoded[0]?.[0] === " " ? 1 : 0;
    const characterOfByte = decoded.flatMap(([, bytes], i) => new Array<number>(bytes).fill(i));
    let byte = 0;
    const escapedSpans = ids.map((id): Span => {
      const last = byte + this.#tokenBytes[id].length - 1;
      if (last < byte) {
        const character = Math.max(0, (byte < characterOfByte.length ? characterOfByte[byte] : decoded.length) - space);
        return [character, character];
      }
      const span: Span = [Math.max(0, characterOfByte[byte] - space), characterOfByte[last] + 1 - space];
      byte = last + 1;
      return span;
    });
    const escaped = decoded.slice(space).map(([character]) => character);
    const offsets = unescapedOffsets(escaped);
    let spans = escapedSpans.map(([start, end]): Span => [offsets[start], offsets[end]]);
    const characters = [...text];
    const unescaped = unescape(escaped.join(""));
    if (unescaped !== text) {
      const aligned = alignedOffsets([...unescaped], characters);
      spans = spans.map(([start, end]) => [aligned[start], aligned[end]]);
    }
    return wordsOfSpans(spans, wordSpans(characters)).map((word, i) => ([PAD, BEGIN, END].includes(ids[i]) ? NO_WORD : word));
  }
}

function insert(root: Node, token: string, id: number): void {
  let node = root;
  for (const character of token) {
    let next = node.next.get(character);
    if (!next) node.next.set(character, (next = { id: -1, next: new Map() }));
    node = next;
  }
  node.id = id;
}

/** The length of the longest token of a tree that begins at `from`; 0 if there is none. */
function longestMatch(root: Node, characters: readonly string[], from: number): number {
  let [node, length]: [Node | undefined, number] = [root, 0];
  for (let at = from; node && at < characters.length; at++) {
    node = node.next.get(characters[at]);
    if (node && node.id >= 0) length = at + 1 - from;
  }
  return length;
}

function utf8Length(character: string): number {
  const code = character.codePointAt(0)!;
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Characters with their numbers of bytes; each byte that is not valid UTF-8 becomes one U+FFFD. */
function decodeUtf8(bytes: readonly number[]): [string, number][] {
  const characters: [string, number][] = [];
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at];
    const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    try {
      if (first >= 0x80 && at + length > bytes.length) throw new RangeError();
      characters.push([length === 1 ? String.fromCharCode(first) : STRICT.decode(Uint8Array.from(bytes.slice(at, at + length))), length]);
      at += length;
    } catch {
      characters.push([REPLACEMENT, 1]);
      at++;
    }
  }
  return characters;
}
