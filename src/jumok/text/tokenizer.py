"""Subwords: text as a list of piece ids and back, exactly.

    decode(encode(text)) == normalise(text)

A thin layer over a SentencePiece model. What it adds: a round trip without exceptions, cuts drawn with the
caller's generator, and the word that each piece belongs to.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError, ModelFolderError
from jumok.text.cutting import Cutter, MergeDropout, NBest, cut_anew
from jumok.text.normalising import escape, normalise, replace_surrogates, unescape, unescaped_offsets
from jumok.text.piece_words import NO_WORD, words_of_spans
from jumok.text.words import Span, word_spans
from jumok.values import BEGIN, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.random import Generator

__all__ = ["Subwords", "Vocabularies", "load_subwords"]

_MARKS = {PAD: "<pad>", UNKNOWN: "<unk>", BEGIN: "<s>", END: "</s>"}
_UNREADABLE = "⁇"
FEWEST_FOR_THREADS = 32


class Subwords:
    """A vocabulary of pieces. Made by `learn_subwords`, `load_subwords` or `Subwords.from_bytes`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._processor, self._pieces = _read(data)
        self._spellings = [self._spelling(piece) for piece in range(len(self._pieces))]

    @classmethod
    def from_bytes(cls, data: bytes) -> Subwords:
        """The inverse of `to_bytes`. Damaged data raise a ModelFolderError."""
        return cls(data)

    def to_bytes(self) -> bytes:
        """A SentencePiece model, readable by any program that knows them."""
        return self._data

    @property
    def size(self) -> int:
        """How many pieces there are, the four marks included."""
        return len(self._pieces)

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of the model, in hexadecimal."""
        return hashlib.sha256(self._data).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The best cut of a text as piece ids, without `<s>` and `</s>`."""
        ids: list[int] = self._processor.encode(escape(normalise(text)), out_type=int)
        return ids

    def encode_batch(self, texts: Iterable[str], *, threads: int = -1) -> list[list[int]]:
        """`encode` of many texts at once, on all cores unless told; few are faster without threads."""
        prepared = [escape(normalise(text)) for text in texts]
        if len(prepared) < FEWEST_FOR_THREADS:
            return [self._processor.encode(text, out_type=int) for text in prepared]
        ids: list[list[int]] = self._processor.encode(prepared, out_type=int, num_threads=threads)
        return ids

    def sample(self, text: str, strength: float, generator: Generator) -> list[int]:
        """A random cut of a text, a function of the state of the generator.

        Strength 0 is the best cut. For unigram pieces it is the share of words that get another cut; for BPE
        it is the probability that a merge is skipped.
        """
        best = self.encode(text)
        if strength <= 0:
            return best
        return cut_anew(best, self._cuttable, self._cutter, strength, generator)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of pieces. Marks are silent; bytes that form no character become U+FFFD."""
        text = self._written(ids)
        return unescape(replace_surrogates(text.removeprefix(" ")))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as shown to people: "▁" is a space, `<0xE2>` a byte."""
        self._check(ids)
        return [self._pieces[piece] for piece in ids]

    def word_of_piece(self, text: str, ids: Sequence[int]) -> list[int]:
        """The index into `split_words(text)` for each piece of a text, −1 for marks such as `</s>`.

        A piece that spans several words goes with the one of which it holds most, a piece of whitespace with
        the word that follows. `ids` may be any cut of the text; where they spell it differently (an unknown
        character, another normal form), the two are aligned by their longest common stretches.
        """
        escaped, spans = self._spell(ids)
        offsets = unescaped_offsets(escaped)
        spelt = unescape(escaped)
        spans = [(offsets[start], offsets[end]) for start, end in spans]
        if spelt != text:
            moved = _offsets_between(spelt, text)
            spans = [(moved[start], moved[end]) for start, end in spans]
        words = words_of_spans(spans, word_spans(text))
        return [NO_WORD if self._is_silent(piece) else word for piece, word in zip(ids, words, strict=True)]

    def _spell(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        """The escaped text of pieces, and where each stands in it; a byte spans its whole character."""
        text = self._written(ids)
        character_of_byte = [i for i, c in enumerate(text) for _ in range(_width(c))]
        space = 1 if text.startswith(" ") else 0  # the one that SentencePiece puts before every text
        spans: list[Span] = []
        byte = 0
        for piece in ids:
            last = byte + len(self._spellings[piece]) - 1
            if last < byte:
                here = max(
                    0, (character_of_byte[byte] if byte < len(character_of_byte) else len(text)) - space
                )
                spans.append((here, here))
            else:
                start, end = character_of_byte[byte] - space, character_of_byte[last] + 1 - space
                spans.append((max(0, start), end))
            byte = last + 1
        return replace_surrogates(text[space:]), spans

    def _written(self, ids: Sequence[int]) -> str:
        """The escaped text of pieces with the space that SentencePiece puts before every text.

        An invalid byte becomes one surrogate, so that the characters still add up to the bytes.
        """
        self._check(ids)
        spellings = self._spellings
        return b"".join([spellings[piece] for piece in ids]).decode("utf-8", errors="surrogateescape")

    def _spelling(self, piece: int) -> bytes:
        """The UTF-8 that a piece stands for."""
        if self._is_silent(piece):
            return b""
        if piece == UNKNOWN:
            return _UNREADABLE.encode()
        if self._processor.is_byte(piece):
            return bytes.fromhex(self._pieces[piece][3:5])  # <0xE2>
        return self._pieces[piece].replace("▁", " ").encode()

    @staticmethod
    def _is_silent(piece: int) -> bool:
        return piece in (PAD, BEGIN, END)

    def _check(self, ids: Sequence[int]) -> None:
        if ids and not (min(ids) >= 0 and max(ids) < self.size):
            wrong = next(piece for piece in ids if not 0 <= piece < self.size)
            raise DataError(
                f"There is no piece {wrong}: this vocabulary has the pieces 0 to {self.size - 1}. "
                "Were the ids made with another vocabulary?"
            )

    @cached_property
    def _cuttable(self) -> list[str | None]:
        """The text of each piece that could be cut otherwise; None for marks, bytes and tags."""
        return [
            None
            if piece in _MARKS or self._processor.is_byte(piece) or text.startswith("▁<")
            else text.replace("▁", " ")
            for piece, text in enumerate(self._pieces)
        ]

    @cached_property
    def _cutter(self) -> Cutter:
        # A group is a part of a text: nothing must be put before it.
        processor = _load_processor(self._data)
        processor.override_normalizer_spec(add_dummy_prefix=False)
        scores = [processor.get_score(piece) for piece in range(self.size)]
        try:
            processor.nbest_encode_as_ids(" ", nbest_size=2)
        except RuntimeError:  # only unigram models know other cuts; BPE scores a piece with −rank
            known = {text: piece for piece, text in enumerate(self._cuttable) if text is not None}
            return MergeDropout({text: -scores[piece] for text, piece in known.items()}, known)
        return NBest(lambda text, count: list(processor.nbest_encode_as_ids(text, nbest_size=count)), scores)

    def __reduce__(self) -> tuple[object, ...]:
        return Subwords.from_bytes, (self._data,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subwords) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __repr__(self) -> str:
        return f"<Subwords: {self.size} pieces, {self.fingerprint[:8]}>"


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """The pieces of both sides; one and the same where they are shared."""

    source: Subwords
    target: Subwords
    shared: bool


def load_subwords(path: Path) -> Subwords:
    """The pieces stored in a file."""
    try:
        return Subwords.from_bytes(path.read_bytes())
    except OSError as error:
        raise ModelFolderError(f"The pieces at {path} cannot be read: {error.strerror}.") from None
    except ModelFolderError as error:
        raise ModelFolderError(f"{path}: {error}") from None


def _load_processor(data: bytes) -> Any:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor()
    processor.load_from_serialized_proto(data)
    return processor


def _read(data: bytes) -> tuple[Any, list[str]]:
    """SentencePiece's processor and the pieces by id, or a ModelFolderError that says why not."""
    try:
        processor = _load_processor(data)
        pieces = [processor.id_to_piece(i) for i in range(processor.piece_size())]
    except (RuntimeError, UnicodeDecodeError) as error:
        raise ModelFolderError(_damaged(f"SentencePiece says: {error}")) from None
    if dict(enumerate(pieces[:4])) != _MARKS:
        raise ModelFolderError(_damaged(f"the first four are {' '.join(pieces[:4])}"))
    return processor, pieces


def _damaged(reason: str) -> str:
    return (
        f"these are not pieces that jumok wrote ({reason}). The file is damaged or comes from another "
        "program; fetch it again or learn the pieces anew."
    )


def _width(character: str) -> int:
    """Bytes of a character in UTF-8, where a surrogate stands for one invalid byte."""
    code = ord(character)
    if code < 0x80 or 0xD800 <= code <= 0xDFFF:
        return 1
    return 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _offsets_between(spelt: str, text: str) -> list[int]:
    """For each position of `spelt`, its end included, the position of `text` that it corresponds to."""
    offsets = [0] * (len(spelt) + 1)
    matcher = difflib.SequenceMatcher(None, spelt, text, autojunk=False)
    for _, start, end, text_start, text_end in matcher.get_opcodes():
        for i in range(start, end):
            offsets[i] = text_start + (i - start) * (text_end - text_start) // (end - start)
    offsets[-1] = len(text)
    return offsets
