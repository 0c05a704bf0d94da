"""HTML files: markup as in `html_markup`, and a declaration of the encoding."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.html_markup import read_markup
from jumok.documents.text_document import declare_utf8, read_text

if TYPE_CHECKING:
    from jumok.documents.html_markup import HtmlMarkup

__all__ = ["HTML"]


def _parse(text: str) -> HtmlMarkup:
    return read_markup(declare_utf8(text, r"<meta\b[^<>]*?"))


HTML = DocumentFormat(
    (".html", ".htm"),
    "text/html; charset=utf-8",
    partial(read_text, parse=_parse),
    syntax_characters=b"<&",
)
