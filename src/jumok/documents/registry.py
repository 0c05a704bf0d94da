"""The document formats that jumok translates, found by the suffix of a file name.

To add a format, write a module with its `DocumentFormat` and add it to `DOCUMENT_FORMATS`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jumok.documents.android import ANDROID
from jumok.documents.epub import EPUB
from jumok.documents.html import HTML
from jumok.documents.ios_strings import STRINGS
from jumok.documents.json_messages import ARB, JSON, XCSTRINGS
from jumok.documents.markdown import MARKDOWN
from jumok.documents.ooxml_files import DOCX, PPTX, XLSX
from jumok.documents.open_document import ODP, ODT
from jumok.documents.plain_text import PLAIN_TEXT
from jumok.documents.po import PO
from jumok.documents.subtitles import SRT, VTT
from jumok.documents.xliff import XLIFF
from jumok.documents.yaml_messages import YAML
from jumok.errors import DataError

if TYPE_CHECKING:
    from jumok.documents.document import Document, DocumentFormat

DOCUMENT_FORMATS = (
    PLAIN_TEXT,
    MARKDOWN,
    HTML,
    EPUB,
    DOCX,
    PPTX,
    XLSX,
    ODT,
    ODP,
    SRT,
    VTT,
    PO,
    XLIFF,
    JSON,
    ARB,
    YAML,
    ANDROID,
    STRINGS,
    XCSTRINGS,
)

_BY_SUFFIX = {
    suffix: document_format for document_format in DOCUMENT_FORMATS for suffix in document_format.suffixes
}


_SAVE_AS = "Open it in {program} or LibreOffice, save it as {suffix}, and translate that."
_ADVICE = {
    ".pdf": "A PDF has no paragraphs, only placed characters. Translate the document it was made from, or "
    "open it in Word or LibreOffice, save it as .docx, and translate that.",
    **{suffix: _SAVE_AS.format(program="Word", suffix=".docx") for suffix in (".doc", ".rtf", ".docm")},
    **{suffix: _SAVE_AS.format(program="Excel", suffix=".xlsx") for suffix in (".xls", ".xlsm", ".ods")},
    **{suffix: _SAVE_AS.format(program="PowerPoint", suffix=".pptx") for suffix in (".ppt", ".pptm")},
}
"""Advice to the user by suffix, for document types that jumok cannot translate."""
_ADVICE_ON_LINES = {
    **{suffix: _SAVE_AS.format(program="Excel", suffix=".xlsx") for suffix in (".csv", ".tsv")},
    ".gz": "Decompress it, and translate the file that was in it.",
}
"""Advice to the user by suffix, for files that are not documents. Their lines can be translated."""


class DocumentTooLargeError(DataError):
    """The document has too many syntax characters, or its uncompressed size is too large."""


def find_format(file_name: str) -> DocumentFormat:
    """Return the format for the suffix of a file name. A name without a suffix is plain text."""
    suffix = _suffix_of(file_name)
    try:
        return _BY_SUFFIX[suffix]
    except KeyError:
        known_types = ", ".join(document_format.suffix for document_format in DOCUMENT_FORMATS)
        advice = (_ADVICE | _ADVICE_ON_LINES).get(suffix, f"Known types: {known_types}.")
        raise DataError(f"{suffix[:20]} files cannot be translated. {advice}") from None


def is_document(file_name: str) -> bool:
    """Return whether a file name has the suffix of a format."""
    return _suffix_of(file_name, default="") in _BY_SUFFIX


def is_refused(file_name: str) -> bool:
    """Return whether a name has the suffix of a document type that jumok cannot translate, such as PDF."""
    return _suffix_of(file_name) in _ADVICE


def _suffix_of(file_name: str, default: str = PLAIN_TEXT.suffix) -> str:
    """Return the suffix of a name in lower case, or `default` if the name has no suffix."""
    name = re.split(r"[\\/]", file_name.lower())[-1]
    return f".{name.rpartition('.')[2]}" if "." in name else default


def read_document(
    file_name: str,
    data: bytes,
    *,
    max_syntax_characters: int | None = None,
    max_parsed_bytes: int | None = None,
) -> tuple[DocumentFormat, Document]:
    """Return the format of a file and its parsed content.

    `max_syntax_characters` limits the number of `syntax_characters` of the format in the file. Each of them
    takes microseconds to parse. `max_parsed_bytes` limits the uncompressed size of the parsed parts. If a
    limit is None, it is not checked.
    """
    document_format = find_format(file_name)
    if max_syntax_characters is not None or max_parsed_bytes is not None:
        _check_size(document_format, data, max_syntax_characters, max_parsed_bytes)
    return document_format, document_format.read(data)


def _check_size(
    document_format: DocumentFormat, data: bytes, max_syntax_characters: int | None, max_bytes: int | None
) -> None:
    num_bytes = num_syntax_characters = 0
    for part in document_format.parsed_parts(data):
        num_bytes += len(part)
        if max_bytes is not None and num_bytes > max_bytes:
            raise DocumentTooLargeError(
                f"The text of the file has more than {max_bytes // 2**20:,} MB without compression. Send it "
                "in parts."
            )
        num_syntax_characters += document_format.count_syntax_characters(part)
    if max_syntax_characters is not None and num_syntax_characters > max_syntax_characters:
        raise DocumentTooLargeError(
            f"The file has {num_syntax_characters:,} tags, entities, line ends and other marks of syntax. At "
            f"most {max_syntax_characters:,} are allowed. Send it in parts."
        )
