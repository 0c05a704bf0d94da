"""HTML files: the text is translated by `html_markup`, and UTF-8 and the new language are declared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.html_markup import HtmlMarkup, read_markup
from jumok.documents.languages import is_right_to_left
from jumok.documents.text_document import declare_utf8, read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.documents.document import SegmentTranslation

_ROOT = re.compile(r"<html(?=[\s>])[^<>]*+>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HtmlFile:
    """The markup of a file. A segment that equals its translation is copied from the source file."""

    markup: HtmlMarkup

    @property
    def segments(self) -> list[str]:
        return self.markup.segments

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        return self.markup.fill(translations, keep_unchanged=True)


def _parse(text: str) -> HtmlFile:
    return HtmlFile(read_markup(declare_utf8(text, r"<meta\b[^<>]*?")))


def set_html_language(text: str, language: str) -> str:
    """Set the attributes `lang`, `xml:lang` and `dir` of the root element.

    `xml:lang` is not added if it is missing. `dir` is added only for languages written from right to left.
    """
    root = _ROOT.search(text)
    if root is None:
        return text
    tag = _set_attribute(root[0], "lang", language)
    if re.search(r"\sxml:lang\s*=", tag):
        tag = _set_attribute(tag, "xml:lang", language)
    if is_right_to_left(language) or re.search(r"\sdir\s*=", tag, re.IGNORECASE):
        tag = _set_attribute(tag, "dir", "rtl" if is_right_to_left(language) else "ltr")
    return text[: root.start()] + tag + text[root.end() :]


def _set_attribute(tag: str, name: str, value: str) -> str:
    attribute = re.search(rf"""\s{name}\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+)""", tag, re.IGNORECASE)
    if attribute is None:
        return re.sub(r"^<[^\s/>]+", rf'\g<0> {name}="{value}"', tag)
    return tag[: attribute.start(1)] + f'"{value}"' + tag[attribute.end(1) :]


HTML = DocumentFormat(
    (".html", ".htm"),
    "text/html; charset=utf-8",
    partial(
        read_text,
        parse=_parse,
        set_language=lambda text, language, _: set_html_language(text, language),
    ),
    syntax_characters=b"<&",
)
