"""The tokens of a vocabulary as text: decoding, display, and the word that each token belongs to.

`TokenTable` is the base class of the tokenizers of text. It does not depend on how a tokenizer splits text.
"""

from __future__ import annotations

import difflib
from functools import cached_property
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.text.normalisation import replace_surrogates, unescape, unescaped_offsets
from jumok.text.plain_spaces import SPECIAL_CHARACTERS, plain_spaces
from jumok.text.word_mapping import NO_WORD, words_of_spans
from jumok.text.words import Span, word_spans
from jumok.types import BEGIN, END, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

_WITHOUT_TEXT = (PAD, BEGIN, END)


class TokenTable:
    """Tokens by id, and the UTF-8 bytes that each token contributes to a text."""

    token_shape: tuple[int, ...] = ()
    """The shape of one token. A token of text is one id and has the shape ()."""

    def __init__(self, tokens: Sequence[str], token_bytes: Sequence[bytes]) -> None:
        self._tokens = list(tokens)
        self._token_bytes = list(token_bytes)

    @property
    def vocab_size(self) -> int:
        """Number of tokens, including the four special tokens."""
        return len(self._tokens)

    def normalise_spaces(self, text: str) -> str:
        """Return the text with ordinary spaces in place of special spaces that are in no token."""
        return plain_spaces(text, self._seen_spaces) if not text.isascii() or "\t" in text else text

    @cached_property
    def _seen_spaces(self) -> frozenset[str]:
        """The special spaces and invisible characters that occur in a token."""
        return frozenset("".join(self._tokens)).intersection(SPECIAL_CHARACTERS)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids.

        `<unk>` becomes ⁇, and the other special tokens have no text. Invalid bytes become U+FFFD.
        """
        text = self._raw_text(ids)
        return unescape(replace_surrogates(text.removeprefix(" ")))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens as strings for display: "▁" is a space, `<0xE2>` a byte."""
        self._check_ids(ids)
        return [self._tokens[token] for token in ids]

    def word_of_token(self, text: str, ids: Sequence[int]) -> list[int]:
        """Return for each token the index of its word in `split_words(text)`.

        The index is −1 for `<pad>`, `<s>` and `</s>`, and for every token if the text has no words. A token
        that spans several words belongs to the word with the largest overlap. A token of white space belongs
        to the word that follows, or to the last word. `ids` may be any segmentation of the text. If the ids
        decode to a different text (because of an unknown character or another normal form), both texts are
        aligned by their longest common substrings.
        """
        escaped, spans = self._text_and_spans(ids)
        offsets = unescaped_offsets(escaped)
        decoded = unescape(escaped)
        spans = [(offsets[start], offsets[end]) for start, end in spans]
        if decoded != text:
            aligned = _aligned_offsets(decoded, text)
            spans = [(aligned[start], aligned[end]) for start, end in spans]
        words = words_of_spans(spans, word_spans(text))
        return [NO_WORD if token in _WITHOUT_TEXT else word for token, word in zip(ids, words, strict=True)]

    def _text_and_spans(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        """Return the text, and the span of each token in it. Only a literal "▁" of the text is still escaped.

        The span of a token that is a single byte is the whole character of this byte.
        """
        text = self._raw_text(ids)
        character_of_byte = [i for i, c in enumerate(text) for _ in range(_num_bytes(c))]
        space = 1 if text.startswith(" ") else 0  # SentencePiece puts a space before every text
        spans: list[Span] = []
        byte = 0
        for token in ids:
            last = byte + len(self._token_bytes[token]) - 1
            if last < byte:  # a token without text
                character = character_of_byte[byte] if byte < len(character_of_byte) else len(text)
                start = max(0, character - space)
                spans.append((start, start))
            else:
                start, end = character_of_byte[byte] - space, character_of_byte[last] + 1 - space
                spans.append((max(0, start), end))
            byte = last + 1
        return replace_surrogates(text[space:]), spans

    def _raw_text(self, ids: Sequence[int]) -> str:
        """Return the text, with SentencePiece's space before it. Only a literal "▁" is still escaped.

        An invalid byte becomes one surrogate, so that every byte still belongs to a character.
        """
        self._check_ids(ids)
        token_bytes = self._token_bytes
        return b"".join([token_bytes[token] for token in ids]).decode("utf-8", errors="surrogateescape")

    def _check_ids(self, ids: Sequence[int]) -> None:
        if ids and not (min(ids) >= 0 and max(ids) < self.vocab_size):
            wrong = next(token for token in ids if not 0 <= token < self.vocab_size)
            raise DataError(
                f"There is no token {wrong}: this vocabulary has the tokens 0 to {self.vocab_size - 1}. "
                "Do the ids come from another tokenizer?"
            )


def _num_bytes(character: str) -> int:
    """Return the number of bytes of a character in UTF-8. A surrogate represents one invalid byte."""
    code = ord(character)
    if code < 0x80 or 0xD800 <= code <= 0xDFFF:
        return 1
    return 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _aligned_offsets(decoded: str, text: str) -> list[int]:
    """Return for each offset in `decoded`, including its end, the corresponding offset in `text`."""
    offsets = [0] * (len(decoded) + 1)
    matcher = difflib.SequenceMatcher(None, decoded, text, autojunk=False)
    for _, start, end, text_start, text_end in matcher.get_opcodes():
        for i in range(start, end):
            offsets[i] = text_start + (i - start) * (text_end - text_start) // (end - start)
    offsets[-1] = len(text)
    return offsets
