"""HTML as a row of tags, texts and the rest, found in time that grows with the document and not faster.

The parser of the standard library looks again and again for the end of what never ends: a hundred thousand
characters of "<a " keep it busy for minutes. A server must not be kept busy. Nothing is lost here: the raw
tokens joined are the document.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Kind", "Token", "tokens"]

# Quotes may hold ">". A "<" outside of them means that the tag before it was none. Nothing that was read is
# given back ("*+"): a name without an end would be tried at every length.
_TAG = re.compile(r"""</?([a-zA-Z][^\s/>"'<]*+)(?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>""")
_NAME = re.compile(r"""</?([a-zA-Z][^\s/>"'<]*+)[^<>]*+>""")
_RAW = ("script", "style", "textarea")
_LONGEST_TAG = 4_096


class Kind(Enum):
    """What a token is."""

    TEXT = auto()
    OPENING = auto()
    CLOSING = auto()
    OTHER = auto()  # a comment, a declaration


class Token(NamedTuple):
    """A stretch of a document; tags have a name, and `closing` is their end where it is not `</name>`."""

    kind: Kind
    raw: str
    name: str = ""
    closing: str = ""


def tokens(document: str) -> Iterator[Token]:
    """The document cut into tokens."""
    begin = place = 0
    while (place := document.find("<", place)) >= 0:
        token = _tag(document, place) or _other(document, place)
        if token is None:
            place += 1  # a "<" that is text
            continue
        if place > begin:
            yield Token(Kind.TEXT, document[begin:place])
        yield token
        begin = place = place + len(token.raw)
        if token.kind is Kind.OPENING and token.name in _RAW:
            end = re.compile(f"</{token.name}", re.IGNORECASE).search(document, begin)
            place = end.start() if end else len(document)
            if place > begin:
                yield Token(Kind.TEXT, document[begin:place])
            begin = place
    if begin < len(document):
        yield Token(Kind.TEXT, document[begin:])


def _tag(document: str, place: int) -> Token | None:
    found = _TAG.match(document, place, place + _LONGEST_TAG)
    if found is None:
        # A very long tag (a picture written into its own address) holds no ">" before its end.
        following = document.find("<", place + 1)
        found = _NAME.match(document, place, following if following >= 0 else len(document))
    if found is None:
        return None
    kind = Kind.CLOSING if found[0].startswith("</") else Kind.OPENING
    return Token(kind, found[0], found[1].lower())


def _other(document: str, place: int) -> Token | None:
    if document.startswith("<!--", place):
        end = document.find("-->", place + 4)
        return Token(Kind.OTHER, document[place:] if end < 0 else document[place : end + 3])
    if document.startswith(("<!", "<?"), place):
        end = document.find(">", place)
        return Token(Kind.OTHER, document[place:] if end < 0 else document[place : end + 1])
    return None
