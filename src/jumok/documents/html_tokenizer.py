"""Splits HTML into tags, text and other tokens, in time linear in the length of the document.

In many versions of Python, the parser of the standard library searches again and again for the end of an
unfinished tag: a hundred thousand characters of "<a " take minutes, so any client could keep a server busy.
This tokenizer is lossless: the concatenation of the raw tokens is the document.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# Quoted values may contain ">". A "<" outside quotes means that the text before it is no tag. The quantifiers
# are possessive ("*+"): backtracking would try every length of an unfinished name.
_TAG = re.compile(r"""</?([a-zA-Z][^\s/>"'<]*+)(?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>""")
_LONG_TAG = re.compile(r"""</?([a-zA-Z][^\s/>"'<]*+)[^<>]*+>""")
_RAW_TEXT_ELEMENTS = ("script", "style", "textarea")
_MAX_TAG_CHARACTERS = 4_096


class TokenKind(Enum):
    """The kinds of token."""

    TEXT = auto()
    OPENING = auto()
    CLOSING = auto()
    OTHER = auto()  # a comment, a declaration, a processing instruction


class HtmlToken(NamedTuple):
    """A slice of a document. Tags have a name.

    In a start tag, `closing` is the matching end tag. If `closing` is empty, the end tag is `</name>`.
    Only `epub.py` and `subtitle_markup.py` set `closing`.
    """

    kind: TokenKind
    raw: str
    name: str = ""
    closing: str = ""


def tokenize(document: str) -> Iterator[HtmlToken]:
    """Yield the tokens of a document."""
    start = position = 0
    while (position := document.find("<", position)) >= 0:
        token = _read_tag(document, position) or _read_other(document, position)
        if token is None:
            position += 1  # a "<" that is text
            continue
        if position > start:
            yield HtmlToken(TokenKind.TEXT, document[start:position])
        yield token
        start = position = position + len(token.raw)
        if token.kind is TokenKind.OPENING and token.name in _RAW_TEXT_ELEMENTS:
            end = re.compile(f"</{token.name}", re.IGNORECASE).search(document, start)
            position = end.start() if end else len(document)
            if position > start:
                yield HtmlToken(TokenKind.TEXT, document[start:position])
            start = position
    if start < len(document):
        yield HtmlToken(TokenKind.TEXT, document[start:])


def _read_tag(document: str, position: int) -> HtmlToken | None:
    match = _TAG.match(document, position, position + _MAX_TAG_CHARACTERS)
    if match is None:
        # The tag is very long, such as an image in a data URL, or has an unpaired quotation mark. Such a tag
        # ends at the first ">".
        next_tag = document.find("<", position + 1)
        match = _LONG_TAG.match(document, position, next_tag if next_tag >= 0 else len(document))
    if match is None:
        return None
    kind = TokenKind.CLOSING if match[0].startswith("</") else TokenKind.OPENING
    return HtmlToken(kind, match[0], match[1].lower())


def _read_other(document: str, position: int) -> HtmlToken | None:
    if document.startswith("<!--", position):
        end = document.find("-->", position + 4)
        return HtmlToken(TokenKind.OTHER, document[position:] if end < 0 else document[position : end + 3])
    if document.startswith(("<!", "<?"), position):
        end = document.find(">", position)
        return HtmlToken(TokenKind.OTHER, document[position:] if end < 0 else document[position : end + 1])
    return None
