"""Check the precompiled character maps in SentencePiece models.

A character map is a binary trie that SentencePiece follows with few checks. Crafted maps have crashed
SentencePiece. jumok normalises text itself (`normalisation.py`), so tokenizers that jumok trained have no
map, and a model folder of jumok with a map is refused. In imported models, the size of the map's texts is
limited. This module finds the map in the bytes of the model, before SentencePiece reads them. It reads these
fields of the protocol buffer (https://protobuf.dev/programming-guides/encoding/):

    ModelProto:      1 pieces   2 trainer_spec   3 normalizer_spec   4 self_test_data   5 denormalizer_spec
    NormalizerSpec:  1 name     2 precompiled_charsmap   …
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.errors import ModelFolderError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NORMALIZER_SPECS = (3, 5)
_CHARACTER_MAP = 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
MAX_EXPANSION = 64
"""The maximum number of bytes that may replace one character. In Unicode's NFKC the maximum is 33, for ﷺ."""
_MAX_TAG = 2**32 - 1  # a C++ reader ignores higher bits, so a tag with such bits could hide a character map


def refuse_character_map(data: bytes) -> None:
    """Raise a ModelFolderError if a SentencePiece model has a character map or is damaged."""
    if any(_character_maps(data)):
        raise ModelFolderError(
            "this is not a tokenizer that jumok wrote: it has a precompiled character map, which may be "
            "made to crash SentencePiece. Do not use a folder that you do not trust."
        )


def limit_character_map(data: bytes) -> None:
    """Raise a ModelFolderError if a character map could make a text more than `MAX_EXPANSION` times as long.

    A map has three parts: the size of its trie (four bytes), the trie, and the texts that the values of the
    trie point to. Each text ends with a zero byte.
    """
    for character_map in _character_maps(data):
        texts = character_map[4 + int.from_bytes(character_map[:4], "little") :]
        if texts and not texts.endswith(b"\0"):
            raise ModelFolderError(
                "its character map is damaged: its last text has no end. Copy the file again from its origin."
            )
        longest = max(map(len, texts.split(b"\0")))
        if longest > MAX_EXPANSION:
            raise ModelFolderError(
                f"its character map makes {longest:,} bytes of one character, and at most {MAX_EXPANSION} "
                "are allowed: a short text could fill the memory. Do not use a model that you do not trust."
            )


def _character_maps(data: bytes) -> list[bytes]:
    """Return the character maps in a SentencePiece model.

    Raise a ModelFolderError if the data is not a SentencePiece model.
    """
    try:
        return [
            data[inner_start:inner_end]
            for number, start, end in _fields(data, 0, len(data))
            if number in _NORMALIZER_SPECS
            for inner, inner_start, inner_end in _fields(data, start, end)
            if inner == _CHARACTER_MAP and inner_end > inner_start
        ]
    except (IndexError, ValueError) as error:
        raise ModelFolderError(
            f"this is not a tokenizer that jumok wrote (it is not a protocol buffer: {error}). The file is "
            "damaged or comes from another program; download it again or train the tokenizer again."
        ) from None


def _fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number, start and end of the length-delimited fields of a message.

    Fields with number 1 and less than 128 bytes are skipped for speed. Most tokens are such fields.
    """
    position = start
    while position < end:
        tag = data[position]
        if tag == 0x0A and data[position + 1] < 0x80:  # the usual case: a token of less than 128 bytes
            position += 2 + data[position + 1]
            continue
        tag, position = read_varint(data, position)
        if tag > _MAX_TAG:
            raise ValueError(f"there is no field {tag >> 3}")
        wire_type = tag & 7
        if wire_type == _BYTES:
            length, position = read_varint(data, position)
            yield tag >> 3, position, position + length
            position += length
        elif wire_type == _VARINT:
            _, position = read_varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            position += 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"a field of kind {wire_type}")
    if position != end:
        raise ValueError("a field ends outside its message")


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Decode a varint, an integer with seven bits per byte. Return the integer and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number of more than ten bytes")
