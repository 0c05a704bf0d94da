"""The text of a segment of TMX or XLIFF: without its inline codes.

    <bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept> <g id="2">now</g><ph x="1"/>.     →  Save now.

Codes are formatting of another program. Some codes have formatting as their content (bpt, ept, ph, it, ut;
also sub, a note inside such a code): these are dropped with their content. Other codes surround text (hi, g,
pc, mrk): the text is kept. A line break becomes a space. If there are spaces around a dropped code, they
become one space, or none before a punctuation mark.
"""

from __future__ import annotations

import re

from jumok.data.formats.xml_events import MAX_TEXT
from jumok.errors import DataError

INLINE_CODE = "inline code"
_CODES_WITH_CONTENT = frozenset({"bpt", "ept", "ph", "it", "ut", "sub"})
_EMPTY_CODES = frozenset({"x", "bx", "ex", "sc", "ec"})
_TYPE_ATTRIBUTES = ("type", "ctype", "subType", "equiv-text")
_LINE_BREAKS = frozenset({"lb", "x-lb", "x-br", "br", "xlf:lb", "<br/>", "<br>"})
_MARK = "\0"  # where a code was: XML has no such character
_AROUND_MARK = re.compile(r"(?<![ \0])[ \0]*\0[ \0]*(?P<end>[.,;:!?)…。、]?)")
_LINE_END = re.compile(r"(?<!\s)\s*\n\s*")


class SegmentText:
    """Collects the text of one segment from XML events."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._code_depth = 0  # number of open elements: a code that is dropped, and those inside it
        self.code_count = 0  # dropped codes

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._code_depth or name in _CODES_WITH_CONTENT:
            if not self._code_depth:
                self._add_code(attributes)
            self._code_depth += 1
        elif name in _EMPTY_CODES:
            self._add_code(attributes)
        elif name == "cp":  # XLIFF 2: a character that XML forbids
            self.code_count += 1

    def end(self, name: str) -> None:
        if self._code_depth:
            self._code_depth -= 1

    def add(self, text: str) -> None:
        if self._code_depth:
            return
        self._length += len(text)
        if self._length > MAX_TEXT:
            raise DataError(f"A segment has more than {MAX_TEXT:,} characters, which no sentence has.")
        self._parts.append(text)

    def _add_code(self, attributes: dict[str, str]) -> None:
        self.code_count += 1
        types = {attributes.get(name, "").casefold() for name in _TYPE_ATTRIBUTES}
        self._parts.append(f" {_MARK}" if types & _LINE_BREAKS else _MARK)

    def text(self) -> str:
        text = "".join(self._parts)
        if _MARK in text:
            text = _AROUND_MARK.sub(_without_mark, text)
        return _LINE_END.sub(" ", text) if "\n" in text else text


def _without_mark(match: re.Match[str]) -> str:
    space = " " if " " in match[0] and not match["end"] else ""
    return space + match["end"]
