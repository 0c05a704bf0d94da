r"""The text of a subtitle: what is said, without the marks that tell players how and where to show it.

    {\an8}<i>Where is he?</i>                      {\an8}<i>그는 어디 있어요?</i>
    - At {\b1}home{\b0}.                           - {\b1}집에{\b0}요.

Marks that change the look of words go with them; any other stays where it stands. What one person says is
one text, and is cut into as many lines again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from jumok.serve.markup import DEEPEST, INLINE, Markup, read_tokens
from jumok.serve.tags import Kind, Token, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jumok.serve.translating import SpanLink

__all__ = ["Cue", "read_cue"]

_BREAK = re.compile(r"<br\s*+/?>", re.IGNORECASE)
# {\an8} of SubStation, {i} and {y:i} of older formats, the times of karaoke; other words in braces are text.
_MARK = r"\{(?:\\[^{}]*+|/?[bius]|[a-zA-Z]:[^{}]*+)\}|<\d++:[\d:.,]++>"
_NOTE = r"[♩♪♫♬]"
_DASH = r"[-‐–—]++(?!\d)"  # a number may be less than zero
_KEPT = re.compile(f"{_MARK}|{_NOTE}")
_LOOK = re.compile(r"\{\\([bius])([01])\}|\{(/?)([bius])\}")
_HIDDEN = re.compile(rf"<[^<>]*+>|{_MARK}")
_WORD = re.compile(rf"(?:<[^<>]*+>|{_MARK}|\S)++")
_FIRST_DASH = re.compile(rf"\s*+{_DASH}[ \t]*+")
_SPEAKS = re.compile(rf"\s*+(?:{_DASH}|{_NOTE})[ \t]*+(?=\S)")
_ENDED = re.compile(r"[^\w\s,;:]\s*$")


@dataclass(frozen=True, slots=True)
class Cue:
    """What one person says in a subtitle, over so many lines."""

    markup: Markup
    lines: int

    @property
    def texts(self) -> list[str]:
        return self.markup.texts

    def write(self, translated: Sequence[str], links: Sequence[Sequence[SpanLink]]) -> str:
        written = self.markup.write(translated, links)
        for name, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
            written = written.replace(name, character)
        return "\n".join(_wrap(written, self.lines))


def read_cue(text: str) -> list[Cue]:
    """A subtitle, cut at lines whose dash says that somebody else speaks, and at verses of a song."""
    lines = _BREAK.sub("\n", text).split("\n")
    tags = list(tokens(text))
    opened, closed = (
        {_base(tag.name) for tag in tags if tag.kind is kind} for kind in (Kind.OPENING, Kind.CLOSING)
    )
    cues = []
    still_open: list[Token] = []
    for start, end in pairwise([*_starts(lines), len(lines)]):
        said = "\n".join(lines[start:end]).replace("&", "&amp;")
        row = [*still_open, *_without_dash(_tokens(said, opened & closed))]
        still_open = _left_open(row)
        cues.append(Cue(read_tokens(row), end - start))
    return cues


def _starts(lines: Sequence[str]) -> Iterator[int]:
    """The lines at which somebody begins to speak: a dash within a sentence is none of that."""
    before = ""
    speakers = False
    for number, line in enumerate(lines):
        shown = _HIDDEN.sub("", line)
        speaks = _SPEAKS.match(shown) is not None
        if number == 0 or (speaks and (speakers or _ENDED.search(before))):
            speakers = speakers or speaks
            yield number
        before = shown


def _base(name: str) -> str:
    """<c.yellow> ends with </c>."""
    return name.partition(".")[0]


def _tokens(text: str, paired: set[str]) -> Iterator[Token]:
    """Tags that HTML does not know go with their words if they have an end."""
    for token in tokens(text):
        name = _base(token.name)
        if token.kind is Kind.TEXT:
            yield from _in_text(token.raw)
        elif token.kind is Kind.OTHER or token.name in INLINE:
            yield token
        elif name in paired:
            yield Token(token.kind, token.raw, "span", f"</{name}>")
        else:
            yield Token(Kind.OTHER, token.raw)


def _in_text(text: str) -> Iterator[Token]:
    last = 0
    for found in _KEPT.finditer(text):
        if found.start() > last:
            yield Token(Kind.TEXT, text[last : found.start()])
        yield _mark(found[0])
        last = found.end()
    if last < len(text):
        yield Token(Kind.TEXT, text[last:])


def _mark(raw: str) -> Token:
    look = _LOOK.fullmatch(raw)
    if look is None:
        return Token(Kind.OTHER, raw)
    if look[1]:
        kind = Kind.OPENING if look[2] == "1" else Kind.CLOSING
        return Token(kind, raw, look[1], rf"{{\{look[1]}0}}")
    return Token(Kind.CLOSING if look[3] else Kind.OPENING, raw, look[4], f"{{/{look[4]}}}")


def _without_dash(row: Iterable[Token]) -> Iterator[Token]:
    """The dash of a speaker is kept and is no part of what is said."""
    begun = False
    for token in row:
        text = token.raw
        if token.kind is Kind.TEXT and not begun and text.strip():
            begun = True
            if dash := _FIRST_DASH.match(text):
                yield Token(Kind.OTHER, dash[0])
                text = text[dash.end() :]
        if text:
            yield token._replace(raw=text)


def _left_open(row: Sequence[Token]) -> list[Token]:
    """What the next speaker's words stand in too."""
    left: list[Token] = []
    for token in row:
        if token.kind is Kind.OPENING and len(left) < DEEPEST:
            left.append(token)
        elif token.kind is Kind.CLOSING:
            inside = [place for place, one in enumerate(left) if one.name == token.name]
            del left[inside[-1] if inside else len(left) :]
    return left


def _wrap(text: str, lines: int) -> list[str]:
    """About as long each, as it is seen; a tag is not broken."""
    rows: list[list[str]] = [[]]
    room = _length(text) / lines
    length = -1  # of the last row; a space less than words
    for word in _WORD.findall(text):
        if rows[-1] and len(rows) < lines and length + _length(word) / 2 > room:
            rows.append([])
            length = -1
        rows[-1].append(word)
        length += 1 + _length(word)
    return [" ".join(row) for row in rows]


def _length(text: str) -> int:
    return len(_HIDDEN.sub("", text))
