"""Documents to translate: one registry of file formats, and inline markup moved by word alignment. No HTTP.

A new format is one module with a `DocumentFormat`, and one row in `registry.py`.
"""

from jumok.documents.document import Document, DocumentFormat, SegmentTranslation, SpanLink
from jumok.documents.html_markup import HtmlMarkup, read_markup
from jumok.documents.registry import DOCUMENT_FORMATS, DocumentTooLargeError, find_format, read_document

__all__ = [
    "DOCUMENT_FORMATS",
    "Document",
    "DocumentFormat",
    "DocumentTooLargeError",
    "HtmlMarkup",
    "SegmentTranslation",
    "SpanLink",
    "find_format",
    "read_document",
    "read_markup",
]
