/** Encodes texts with a unigram or BPE model of SentencePiece, and decodes tokens, as in src/jumok/text/tokenizer.py and token_table.py. */

import type { StoredTokenizer } from "./model_file";
import { BEGIN, END, PAD, UNKNOWN } from "./model";
import { plainSpaces, spacesInVocabulary } from "./plain_spaces";
import { escape, normalise, unescape, unescapedOffsets } from "./normalisation";
import { alignedOffsets, NO_WORD, splitWords, wordsOfSpans, wordSpans, type Span } from "./words";

/** The character that stands for a space in tokens. */
const SPACE_MARK = "▁";
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

/** A piece of a text: its characters, and the id of its token, or −1 if the vocabulary does not have it. */
type Piece = [string, number];

/** A node of a trie of tokens. */
interface Node {
  /** The id of the token that ends here; −1 if no token ends here. */
  id: number;
  /** The child nodes, by character. */
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
  #knownSpaces: ReadonlySet<string>;
  /** The lowest and highest scores of normal tokens. */
  #lowest = Infinity;
  #highest = -Infinity;

  constructor({ kind, byte_fallback: byteFallback, tokens, scores, types }: StoredTokenizer) {
    this.vocabSize = tokens.length;
    [this.#kind, this.#tokens, this.#scores, this.#types] = [kind, tokens, Float32Array.from(scores), types];
    this.#knownSpaces = spacesInVocabulary(tokens);
    this.#byteIds = byteFallback ? new Array<number>(256).fill(UNKNOWN) : null;
    const encoder = new TextEncoder();
    this.#tokenBytes = tokens.map((token, id) => {
      const type = types[id];
      if (type === "b") {
        const byte = parseInt(token.slice(3, 5), 16);
        if (this.#byteIds) this.#byteIds[byte] = id;
        return Uint8Array.of(byte);
      }
      if ("ndx".includes(type)) this.#ids.set(token, id); // normal, user-defined and unused tokens: see `StoredTokenizer.types`
      if (type === "n") [this.#lowest, this.#highest] = [Math.min(this.#lowest, this.#scores[id]), Math.max(this.#highest, this.#scores[id])];
      if ([PAD, BEGIN, END].includes(id)) return new Uint8Array(0);
      return encoder.encode(id === UNKNOWN ? UNKNOWN_TEXT : token.replaceAll(SPACE_MARK, " "));
    });
    for (const [token, id] of this.#ids) {
      insert(this.#root, token, id);
      if (types[id] === "d") insert(this.#userDefined, token, id);
    }
  }

  /** Replace unusual spaces of a text by ordinary spaces, and remove invisible characters, unless they occur in the vocabulary. */
  normaliseSpaces(text: string): string {
    return plainSpaces(text, this.#knownSpaces);
  }

  /** The token ids of a text, without `<s>` and `</s>`. */
  encode(text: string): number[] {
    const escaped = escape(normalise(text));
    if (!escaped) return [];
    const characters = [...(SPACE_MARK + escaped.replaceAll(" ", SPACE_MARK))];
    return this.#toIds(this.#kind === "unigram" ? this.#viterbi(characters) : this.#merge(characters));
  }

  /** The text of tokens. `<unk>` becomes ⁇; other special tokens are left out. Invalid bytes become U+FFFD. */
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

  /** The token ids of pieces. An unknown piece becomes bytes if the tokenizer has byte fallback. Otherwise a run of unknown pieces becomes a
   * single `<unk>`. */
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
    // For each end of a piece: the best score up to this end, and the start and the id of the best last piece.
    const best = new Float32Array(characters.length + 1);
    const starts = new Int32Array(characters.length + 1).fill(-1);
    const ids = new Int32Array(characters.length + 1).fill(-1);
    const propose = (start: number, end: number, sum: number, id: number): void => {
      if (starts[end] >= 0 && !(sum > best[end])) return;
      [best[end], starts[end], ids[end]] = [sum, start, id];
    };
    for (let start = 0; start < characters.length; start++) {
      let node: Node | undefined = this.#root;
      let [hasSingleCharacter, length] = [false, 0];
      for (let last = start; last < characters.length; last++) {
        node = node.next.get(characters[last]);
        if (!node) break;
        length += utf8Length(characters[last]);
        const { id } = node;
        if (id < 0 || this.#types[id] === "x") continue;
        // The score of a user-defined token is so high that the token is always chosen.
        const score = this.#types[id] === "d" ? Math.fround(length * this.#highest) - 0.1 : this.#scores[id];
        propose(start, last + 1, score + best[start], id);
        hasSingleCharacter ||= last === start;
      }
      if (!hasSingleCharacter) propose(start, start + 1, Math.fround(unknownScore + best[start]), -1);
    }
    const pieces: Piece[] = [];
    for (let end = characters.length; end > 0; end = starts[end]) pieces.unshift([characters.slice(starts[end], end).join(""), ids[end]]);
    return pieces;
  }

  /** The segmentation of a BPE model. In each round, the neighbours whose merged token has the best score are merged. If scores are equal,
   * the leftmost neighbours are merged. */
  #merge(characters: readonly string[]): Piece[] {
    const symbols: { text: string; isUserDefined: boolean }[] = [];
    for (let start = 0; start < characters.length; ) {
      const matchLength = longestMatch(this.#userDefined, characters, start);
      const end = start + (matchLength || 1);
      symbols.push({ text: characters.slice(start, end).join(""), isUserDefined: matchLength > 0 });
      start = end;
    }
    for (;;) {
      let [best, bestScore] = [-1, -Infinity];
      for (let i = 0; i + 1 < symbols.length; i++) {
        if (symbols[i].isUserDefined || symbols[i + 1].isUserDefined) continue;
        const id = this.#ids.get(symbols[i].text + symbols[i + 1].text);
        if (id !== undefined && this.#scores[id] > bestScore) [best, bestScore] = [i, this.#scores[id]];
      }
      if (best < 0) break;
      symbols.splice(best, 2, { text: symbols[best].text + symbols[best + 1].text, isUserDefined: false });
    }
    return symbols.map(({ text }) => [text, this.#ids.get(text) ?? -1]);
  }

  /** The characters of the escaped text, with the space before the text. Each invalid byte becomes one U+FFFD. */
  #rawCharacters(ids: readonly number[]): string[] {
    return decodeUtf8(ids.flatMap((id) => [...this.#tokenBytes[id]])).map(([character]) => character);
  }

  /** The index of the word of each token; −1 for `<pad>`, `<s>` and `</s>`, and for every token if the text has no words. */
  #wordOfToken(text: string, ids: readonly number[]): number[] {
    const decoded = decodeUtf8(ids.flatMap((id) => [...this.#tokenBytes[id]]));
    const space = decoded[0]?.[0] === " " ? 1 : 0; // the number of spaces before the text, which `decode` removes
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

/** The length of the longest token of a trie that begins at the index `start`; 0 if there is none. */
function longestMatch(root: Node, characters: readonly string[], start: number): number {
  let [node, length]: [Node | undefined, number] = [root, 0];
  for (let i = start; node && i < characters.length; i++) {
    node = node.next.get(characters[i]);
    if (node && node.id >= 0) length = i + 1 - start;
  }
  return length;
}

function utf8Length(character: string): number {
  const code = character.codePointAt(0)!;
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The characters of UTF-8 bytes, each as [character, number of bytes]. Each invalid byte becomes one U+FFFD. */
function decodeUtf8(bytes: readonly number[]): [string, number][] {
  const characters: [string, number][] = [];
  for (let start = 0; start < bytes.length; ) {
    const first = bytes[start];
    const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    const end = start + length;
    try {
      if (first >= 0x80 && end > bytes.length) throw new RangeError();
      characters.push([length === 1 ? String.fromCharCode(first) : STRICT.decode(Uint8Array.from(bytes.slice(start, end))), length]);
      start = end;
    } catch {
      characters.push([REPLACEMENT, 1]);
      start++;
    }
  }
  return characters;
}
