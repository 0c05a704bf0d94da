"""The tokenizer: text to token ids and back.

    decode(encode(text)) == normalise(text)     with byte fallback, for every text

A thin layer over a SentencePiece model. It adds this round trip, segmentations sampled with the caller's
generator, and the word that each token belongs to.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError, ModelFolderError
from jumok.text.character_map import refuse_character_map
from jumok.text.normalisation import escape, normalise, replace_surrogates, unescape, unescaped_offsets
from jumok.text.subword_sampling import BpeDropout, NBestSampler, SegmentationSampler, resample_groups
from jumok.text.word_mapping import NO_WORD, words_of_spans
from jumok.text.words import Span, word_spans
from jumok.types import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.random import Generator

__all__ = ["Tokenizer", "TokenizerPair", "load_tokenizer", "tokenizer_from_file"]

_SPECIAL_TOKENS = {PAD: "<pad>", UNKNOWN: "<unk>", BEGIN: "<s>", END: "</s>"}
_UNKNOWN_TEXT = "⁇"
_MIN_TEXTS_FOR_THREADS = 32


class Tokenizer:
    """A SentencePiece model. Made by `train_tokenizer`, `load_tokenizer` or `Tokenizer.from_bytes`."""

    token_shape: tuple[int, ...] = ()
    """The shape of one token: () is one id."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._processor, self._tokens = _parse(data)
        self._token_bytes = [self._bytes_of(token) for token in range(len(self._tokens))]

    @classmethod
    def from_bytes(cls, data: bytes) -> Tokenizer:
        """Return the tokenizer that `to_bytes` wrote. Damaged data raise a ModelFolderError."""
        return cls(data)

    def to_bytes(self) -> bytes:
        """Return the SentencePiece model, which any program with SentencePiece can read."""
        return self._data

    @property
    def vocab_size(self) -> int:
        """Number of tokens, including the four special tokens."""
        return len(self._tokens)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the model in hexadecimal."""
        return hashlib.sha256(self._data).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Return the token ids of the best segmentation, without `<s>` and `</s>`."""
        ids: list[int] = self._processor.encode(escape(normalise(text)), out_type=int)
        return ids

    def encode_batch(self, texts: Iterable[str], *, threads: int = -1) -> list[list[int]]:
        """Return `encode` of each text, on all cores by default; a few texts are encoded without threads."""
        prepared = [escape(normalise(text)) for text in texts]
        if len(prepared) < _MIN_TEXTS_FOR_THREADS:
            return [self._processor.encode(text, out_type=int) for text in prepared]
        ids: list[list[int]] = self._processor.encode(prepared, out_type=int, num_threads=threads)
        return ids

    def sample(self, text: str, strength: float, generator: Generator) -> list[int]:
        """Return the token ids of a random segmentation, which depends only on the state of the generator.

        Strength 0 gives the best segmentation. For unigram models the strength is the share of words that get
        another segmentation; for BPE it is the probability that a merge is skipped.
        """
        best = self.encode(text)
        if strength <= 0:
            return best
        return resample_groups(best, self._splittable_text, self._sampler, strength, generator)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text. Special tokens have no text, but `<unk>` is ⁇; invalid bytes become U+FFFD."""
        text = self._raw_text(ids)
        return unescape(replace_surrogates(text.removeprefix(" ")))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens as strings for display: "▁" is a space, `<0xE2>` a byte."""
        self._check_ids(ids)
        return [self._tokens[token] for token in ids]

    def word_of_token(self, text: str, ids: Sequence[int]) -> list[int]:
        """Return the index in `split_words(text)` for each token, −1 for special tokens such as `</s>`.

        A token that spans several words belongs to the one it overlaps most, a whitespace token to the word
        that follows. `ids` may be any segmentation of the text. If they decode to something else (an unknown
        character, another normal form), both texts are aligned by their longest common substrings.
        """
        escaped, spans = self._text_and_spans(ids)
        offsets = unescaped_offsets(escaped)
        decoded = unescape(escaped)
        spans = [(offsets[start], offsets[end]) for start, end in spans]
        if decoded != text:
            aligned = _aligned_offsets(decoded, text)
            spans = [(aligned[start], aligned[end]) for start, end in spans]
        words = words_of_spans(spans, word_spans(text))
        return [NO_WORD if self._has_no_text(token) else word for token, word in zip(ids, words, strict=True)]

    def _text_and_spans(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        """Return the escaped text and each token's span in it; a byte spans its whole character."""
        text = self._raw_text(ids)
        character_of_byte = [i for i, c in enumerate(text) for _ in range(_num_bytes(c))]
        space = 1 if text.startswith(" ") else 0  # SentencePiece puts one before every text
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
        """Return the escaped text, with the space that SentencePiece puts before every text.

        An invalid byte becomes one surrogate, so that every byte still belongs to a character.
        """
        self._check_ids(ids)
        token_bytes = self._token_bytes
        return b"".join([token_bytes[token] for token in ids]).decode("utf-8", errors="surrogateescape")

    def _bytes_of(self, token: int) -> bytes:
        """Return the UTF-8 bytes of a token."""
        if self._has_no_text(token):
            return b""
        if token == UNKNOWN:
            return _UNKNOWN_TEXT.encode()
        if self._processor.is_byte(token):
            return bytes.fromhex(self._tokens[token][3:5])  # <0xE2>
        return self._tokens[token].replace("▁", " ").encode()

    @staticmethod
    def _has_no_text(token: int) -> bool:
        return token in (PAD, BEGIN, END)

    def _check_ids(self, ids: Sequence[int]) -> None:
        if ids and not (min(ids) >= 0 and max(ids) < self.vocab_size):
            wrong = next(token for token in ids if not 0 <= token < self.vocab_size)
            raise DataError(
                f"There is no token {wrong}: this vocabulary has the tokens 0 to {self.vocab_size - 1}. "
                "Do the ids come from another tokenizer?"
            )

    @cached_property
    def _splittable_text(self) -> list[str | None]:
        """The text of each token, or None for special tokens, bytes and tags, which sampling leaves alone."""
        return [
            None
            if token in _SPECIAL_TOKENS or self._processor.is_byte(token) or text.startswith("▁<")
            else text.replace("▁", " ")
            for token, text in enumerate(self._tokens)
        ]

    @cached_property
    def _sampler(self) -> SegmentationSampler:
        # A group of tokens is a part of a text: no space may be put before it.
        processor = _load_processor(self._data)
        processor.override_normalizer_spec(add_dummy_prefix=False)
        scores = [processor.get_score(token) for token in range(self.vocab_size)]
        try:
            processor.nbest_encode_as_ids(" ", nbest_size=2)
        except RuntimeError:  # only unigram models have an n-best list; BPE's score of a token is −rank
            ids = {text: token for token, text in enumerate(self._splittable_text) if text is not None}
            return BpeDropout({text: -scores[token] for text, token in ids.items()}, ids)
        return NBestSampler(lambda text, n: list(processor.nbest_encode_as_ids(text, nbest_size=n)), scores)

    def __reduce__(self) -> tuple[object, ...]:
        return Tokenizer.from_bytes, (self._data,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __repr__(self) -> str:
        return f"<Tokenizer: {self.vocab_size} tokens, {self.fingerprint[:8]}>"


@dataclass(frozen=True, slots=True)
class TokenizerPair:
    """The tokenizers of both sides; the same object if they are shared."""

    source: Tokenizer
    target: Tokenizer
    shared: bool


def tokenizer_from_file(data: bytes) -> Tokenizer:
    """Return the tokenizer in the bytes of a file, which a stranger may have made."""
    refuse_character_map(data)
    return Tokenizer.from_bytes(data)


def load_tokenizer(path: Path, *, parse: Callable[[bytes], Tokenizer] = tokenizer_from_file) -> Tokenizer:
    """Return the tokenizer stored in a file; `parse` reads its bytes."""
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise ModelFolderError(f"The tokenizer at {path} cannot be read: {error.strerror}.") from None
    except ModelFolderError as error:
        raise ModelFolderError(f"{path}: {error}") from None


def _load_processor(data: bytes) -> Any:
    from sentencepiece import SentencePieceProcessor  # start-up

    processor = SentencePieceProcessor()
    processor.load_from_serialized_proto(data)
    return processor


def _parse(data: bytes) -> tuple[Any, list[str]]:
    """Return SentencePiece's processor and the tokens by id. Raise a ModelFolderError if data are damaged."""
    try:
        processor = _load_processor(data)
        tokens = [processor.id_to_piece(i) for i in range(processor.piece_size())]
    except (RuntimeError, UnicodeDecodeError) as error:
        raise ModelFolderError(_foreign_file_message(f"SentencePiece reports: {error}")) from None
    if dict(enumerate(tokens[:4])) != _SPECIAL_TOKENS:
        raise ModelFolderError(_foreign_file_message(f"the first four tokens are {' '.join(tokens[:4])}"))
    return processor, tokens


def _foreign_file_message(reason: str) -> str:
    return (
        f"this is not a tokenizer that jumok wrote ({reason}). The file is damaged or comes from another "
        "program; download it again or train the tokenizer again."
    )


def _num_bytes(character: str) -> int:
    """Return the number of bytes in UTF-8; a surrogate represents one invalid byte."""
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
