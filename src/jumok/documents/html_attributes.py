"""Attributes of HTML that people read: descriptions of images, tooltips, hints in forms, labels.

    <img src="a.png" alt="A red house">        the value of `alt` is translated, that of `src` is not

These are the attributes that HTML calls translatable. While a document is read, a mark is put into the tag in
place of each value, so that the value moves with its tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from jumok.documents.message import is_address
from jumok.documents.segment import has_letters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.text.words import Span

_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'<>=`]++))?+""")
_MARK = re.compile("\0([0-9]+)\0")  # the document itself contains no NUL
_OF_EVERY_ELEMENT = frozenset(["alt", "aria-label", "aria-description", "placeholder", "title"])
_LABELLED = frozenset(["optgroup", "option", "track"])
_BUTTONS = frozenset(["button", "reset", "submit"])
_DESCRIPTIONS = frozenset(
    ["description", "og:description", "og:title", "twitter:description", "twitter:title"]
)
_WITHOUT_TEXT = frozenset(["link", "script", "style"])
_KEEPS_LINES = frozenset(["placeholder", "title"])  # a tooltip shows its line breaks


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """A value to translate, and how the document writes it, with its quotation marks."""

    text: str
    raw: str

    def write(self, translation: str) -> str:
        if translation == self.text:
            return self.raw
        quote = "'" if self.raw.startswith("'") else '"'
        return quote + escape(translation, quote=False).replace(quote, f"&#{ord(quote)};") + quote


class AttributeMarks:
    """The values to translate of the tags of a document, and the marks that stand for them."""

    def __init__(self) -> None:
        self.values: list[AttributeValue] = []

    def mark(self, tag: str, name: str, unescape: Callable[[str], str]) -> str:
        """Return an opening tag with marks in place of the values to translate."""
        pieces, position = [], 0
        for attribute, (start, end) in _attributes_to_translate(tag, name):
            raw = tag[start:end]
            value = raw[1:-1] if raw[0] in "\"'" else raw
            if attribute not in _KEEPS_LINES:
                value = re.sub(r"[ \t\r\n\f]+", " ", value)
            text = unescape(value)
            if has_letters(text) and not is_address(text):
                pieces += [tag[position:start], f"\0{len(self.values)}\0"]
                position = end
                self.values.append(AttributeValue(text, raw))
        return "".join([*pieces, tag[position:]])


def fill_marks(markup: str, values: Sequence[AttributeValue], translations: Sequence[str]) -> str:
    """Return the markup with the translations of attributes in place of their marks."""

    def write(mark: re.Match[str]) -> str:
        index = int(mark[1])
        return values[index].write(translations[index])

    return _MARK.sub(write, markup) if values else markup


def _attributes_to_translate(tag: str, name: str) -> list[tuple[str, Span]]:
    """Return the names of the attributes to translate, with the spans of their values, in order."""
    if name in _WITHOUT_TEXT:
        return []
    spans: dict[str, Span] = {}  # of the first attribute of a name; browsers ignore the others
    for found in _ATTRIBUTE.finditer(tag, len(name) + 1):
        spans.setdefault(found[1].lower(), found.span(2))

    def value_of(attribute: str) -> str:
        return tag[slice(*spans.get(attribute, (0, 0)))].strip("\"' ").lower()

    names = set(_OF_EVERY_ELEMENT)
    if name in _LABELLED:
        names.add("label")
    if name == "input" and value_of("type") in _BUTTONS:
        names.add("value")
    if name == "meta" and not _DESCRIPTIONS.isdisjoint((value_of("name"), value_of("property"))):
        names.add("content")
    return [
        (attribute, span) for attribute, span in spans.items() if attribute in names and span[0] < span[1]
    ]
