"""Attributes of HTML that people read: descriptions of images, tooltips, hints in forms, labels.

    <img src="a.png" alt="A red house">        `alt` is translated, and `src` is not

The HTML standard calls these attributes translatable. The descriptions of a page for Open Graph and Twitter
are translated as well. While a document is parsed, a mark replaces each value in its tag. When the tag moves,
the mark moves with it.
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
_MARK = re.compile("\0([0-9]+)\0")  # A document that contains a NUL of its own gets no marks.
_ATTRIBUTES_OF_EVERY_ELEMENT = frozenset(["alt", "aria-label", "aria-description", "placeholder", "title"])
_ELEMENTS_WITH_LABEL = frozenset(["optgroup", "option", "track"])
_BUTTON_TYPES = frozenset(["button", "reset", "submit"])
_DESCRIPTION_NAMES = frozenset(
    ["description", "og:description", "og:title", "twitter:description", "twitter:title"]
)
_EXCLUDED_ELEMENTS = frozenset(["link", "script", "style"])  # their titles name style sheets
_ATTRIBUTES_WITH_LINE_BREAKS = frozenset(["placeholder", "title"])  # a tooltip shows its line breaks


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """The value of an attribute to translate."""

    text: str
    raw: str
    """The value as it is written in the document, with its quotation marks."""

    def write(self, translation: str) -> str:
        if translation == self.text:
            return self.raw
        quote = "'" if self.raw.startswith("'") else '"'
        return quote + escape(translation, quote=False).replace(quote, f"&#{ord(quote)};") + quote


class AttributeMarks:
    """Replaces attribute values in the tags of a document by marks, and stores the values."""

    def __init__(self) -> None:
        self.values: list[AttributeValue] = []

    def mark(self, tag: str, name: str, unescape: Callable[[str], str]) -> str:
        """Return the opening tag with each value to translate replaced by a mark, and store the values."""
        pieces, position = [], 0
        for attribute, (start, end) in _attributes_to_translate(tag, name):
            raw = tag[start:end]
            value = raw[1:-1] if raw[0] in "\"'" else raw
            if attribute not in _ATTRIBUTES_WITH_LINE_BREAKS:
                value = re.sub(r"[ \t\r\n\f]+", " ", value)
            text = unescape(value)
            if has_letters(text) and not is_address(text):
                pieces += [tag[position:start], f"\0{len(self.values)}\0"]
                position = end
                self.values.append(AttributeValue(text, raw))
        return "".join([*pieces, tag[position:]])


def fill_marks(markup: str, values: Sequence[AttributeValue], translations: Sequence[str]) -> str:
    """Return the markup with each mark replaced by the translation of its attribute value."""

    def write(mark: re.Match[str]) -> str:
        index = int(mark[1])
        return values[index].write(translations[index])

    return _MARK.sub(write, markup) if values else markup


def _attributes_to_translate(tag: str, name: str) -> list[tuple[str, Span]]:
    """Return the names of the attributes to translate, with the spans of their values, in order."""
    if name in _EXCLUDED_ELEMENTS:
        return []
    spans: dict[str, Span] = {}  # if an attribute is repeated, its first value counts, as in browsers
    for match in _ATTRIBUTE.finditer(tag, len(name) + 1):
        spans.setdefault(match[1].lower(), match.span(2))

    def value_of(attribute: str) -> str:
        return tag[slice(*spans.get(attribute, (0, 0)))].strip("\"' ").lower()

    names = set(_ATTRIBUTES_OF_EVERY_ELEMENT)
    if name in _ELEMENTS_WITH_LABEL:
        names.add("label")
    if name == "input" and value_of("type") in _BUTTON_TYPES:
        names.add("value")
    if name == "meta" and not _DESCRIPTION_NAMES.isdisjoint((value_of("name"), value_of("property"))):
        names.add("content")
    return [
        (attribute, span) for attribute, span in spans.items() if attribute in names and span[0] < span[1]
    ]
