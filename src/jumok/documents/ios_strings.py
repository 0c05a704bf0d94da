"""iOS and macOS messages (.strings): `"key" = "value";`, in UTF-8 or UTF-16. The values are translated."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.message import EncodedMessage, Message
from jumok.documents.text_document import CompositeTemplate, read_text
from jumok.errors import DataError

if TYPE_CHECKING:
    from jumok.documents.text_document import TextTemplate

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_ENTRY = re.compile(
    rf"(?P<blank_or_comment>\s++|/\*.*?\*/|//[^\n]*+)|(?:{_STRING}|[\w.$-]++)\s*+=\s*+(?P<value>{_STRING})\s*+;",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:[Uu]([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CHARACTER_OF_ESCAPE = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def _parse(text: str) -> CompositeTemplate:
    parts: list[str | TextTemplate] = []
    position = copied_end = 0
    while position < len(text):
        match = _ENTRY.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise DataError(f'Line {line:,} is not understood. Expected: "key" = "value"; or a comment.')
        if match["blank_or_comment"] is None:
            start, end = match.span("value")
            message = Message(_unescape(match["value"][1:-1]))
            parts += [text[copied_end:start], EncodedMessage(match["value"], message, _encode)]
            copied_end = end
        position = match.end()
    return CompositeTemplate([*parts, text[copied_end:]])


def _unescape(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _CHARACTER_OF_ESCAPE.get(match[2], match[2]),
        text,
    )


def _encode(text: str) -> str:
    escapes = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


STRINGS = DocumentFormat(
    (".strings",),
    "text/plain; charset=utf-8",
    partial(read_text, parse=_parse),
    syntax_characters=b"\n=",
)
