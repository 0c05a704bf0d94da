"""The pieces of a SentencePiece model, for programs that encode text without SentencePiece.

This module reads those fields of the protocol buffer that affect encoding:

    ModelProto:      1 pieces     2 trainer_spec        3 normalizer_spec
    SentencePiece:   1 piece      2 score               3 type
    TrainerSpec:     3 model_type 24 treat_whitespace_as_suffix           35 byte_fallback
    NormalizerSpec:  2 precompiled_charsmap                                3 add_dummy_prefix
                     4 remove_extra_whitespaces                            5 escape_whitespaces
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError, UnsupportedError
from jumok.text.character_map import read_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_KINDS = {1: "unigram", 2: "bpe"}
_TYPES = {1: "normal", 2: "unknown", 3: "control", 4: "user-defined", 5: "unused", 6: "byte"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A token as SentencePiece stores it."""

    text: str
    score: float
    type: str  # a value of `_TYPES`


@dataclass(frozen=True, slots=True)
class SentencePieceFile:
    """Everything that determines how a normalised text is encoded."""

    kind: str  # "unigram" or "bpe"
    byte_fallback: bool
    pieces: tuple[Piece, ...]


def read_sentencepiece_file(data: bytes) -> SentencePieceFile:
    """Read a SentencePiece model. Raise an UnsupportedError if it splits text unlike the models of jumok."""
    try:
        fields = list(_fields(data))
        trainer = dict(_inner_fields(fields, 2))
        normaliser = dict(_inner_fields(fields, 3))
        pieces = tuple(_piece(value) for number, value in fields if number == 1 and isinstance(value, bytes))
        kind = _KINDS.get(_integer(trainer, 3, 1))
    except (IndexError, KeyError, ValueError, struct.error) as error:
        raise ModelFolderError(f"The tokenizer is damaged: {error}. Copy the folder again.") from None
    # The models of jumok put a space before a text and keep all other spaces. Absent fields have defaults.
    splits_as_jumok = (
        kind is not None
        and not trainer.get(24, 0)
        and not normaliser.get(2, b"")
        and bool(normaliser.get(3, 1))
        and not normaliser.get(4, 1)
        and bool(normaliser.get(5, 1))
    )
    if kind is None or not splits_as_jumok:
        raise UnsupportedError(
            "The tokenizer of this model splits text in another way than those that jumok trains: it is "
            "neither unigram nor BPE, or it changes spaces or characters."
        )
    return SentencePieceFile(kind, bool(trainer.get(35, 0)), pieces)


def _piece(data: bytes) -> Piece:
    fields = dict(_fields(data))
    text, score = fields.get(1, b""), fields.get(2, b"\0\0\0\0")
    if not isinstance(text, bytes) or not isinstance(score, bytes):
        raise ValueError("a piece has a number in place of its text or score")
    return Piece(text.decode(), struct.unpack("<f", score)[0], _TYPES[_integer(fields, 3, 1)])


def _integer(fields: dict[int, int | bytes], number: int, default: int) -> int:
    value = fields.get(number, default)
    if not isinstance(value, int):
        raise ValueError(f"field {number} is not a number")
    return value


def _inner_fields(fields: list[tuple[int, int | bytes]], number: int) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of all messages that are fields with this number."""
    for field, value in fields:
        if field == number and isinstance(value, bytes):
            yield from _fields(value)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field. A value is an int or bytes."""
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, position = read_varint(data, position)
            yield tag >> 3, value
            continue
        if wire_type == _BYTES:
            length, position = read_varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            length = 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"a field of kind {wire_type}")
        if position + length > len(data):
            raise ValueError("a field ends outside its message")
        yield tag >> 3, data[position : position + length]
        position += length
