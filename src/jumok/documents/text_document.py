"""Documents that are text files: they are decoded, parsed into a template of segments, and encoded again.

A byte order mark and the line ends of the file are preserved. In a format that is read line by line, all line
ends of a file that mixes "\\r\\n" and "\\n" become "\\r\\n".
"""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Protocol

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.documents.document import SegmentTranslation

    SetLanguage = Callable[[str, str, str], str]  # text, the language to declare, the language of the source

_BYTE_ORDER_MARK = "\ufeff"


class TextTemplate(Protocol):
    """Text with segments to translate, and everything else verbatim."""

    @property
    def segments(self) -> list[str]: ...

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        """Return the text with each segment replaced by its translation."""
        ...


@dataclass(frozen=True, slots=True)
class CompositeTemplate:
    """Templates with verbatim text between them."""

    parts: list[str | TextTemplate]
    line_end: str = "\n"
    """The line end of the new file. It replaces each line feed in `parts`."""

    @property
    def segments(self) -> list[str]:
        return [text for part in self.parts if not isinstance(part, str) for text in part.segments]

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        filled, start = [], 0
        for part in self.parts:
            if isinstance(part, str):
                filled.append(part)
            else:
                end = start + len(part.segments)
                filled.append(part.fill(translations[start:end]))
                start = end
        return "".join(filled).replace("\n", self.line_end)


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """How the text of a file is encoded."""

    name: str
    byte_order_mark: bool

    def encode(self, text: str) -> bytes:
        return (_BYTE_ORDER_MARK * self.byte_order_mark + text).encode(self.name)


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A template with the encoding of its file."""

    template: TextTemplate
    encoding: TextEncoding
    set_language: SetLanguage | None = None
    """Returns the text with the new language declared. None if the format declares no language."""
    notes: Sequence[str] = ()

    @property
    def segments(self) -> list[str]:
        return self.template.segments

    def write(
        self, translations: Sequence[SegmentTranslation], language: str = "", source_language: str = ""
    ) -> bytes:
        text = self.template.fill(translations)
        if language and self.set_language is not None:
            text = self.set_language(text, language, source_language)
        return self.encoding.encode(text)


def read_text(
    data: bytes,
    parse: Callable[[str], TextTemplate],
    set_language: SetLanguage | None = None,
) -> TextDocument:
    """Decode a file and parse its text."""
    text, encoding = decode_text(data)
    return TextDocument(parse(text), encoding, set_language)


def decode_text(data: bytes) -> tuple[str, TextEncoding]:
    """Return the text of a file and its encoding. UTF-16 is recognised by its byte order mark."""
    name = "utf-8"
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        name = "utf-16-le" if data.startswith(BOM_UTF16_LE) else "utf-16-be"
    try:
        text = data.decode(name)
    except UnicodeDecodeError as error:
        raise DataError(
            f"The file is not {'UTF-8' if name == 'utf-8' else 'UTF-16'} (byte {error.start + 1:,}). "
            "Convert it to UTF-8 and try again."
        ) from None
    has_mark = text.startswith(_BYTE_ORDER_MARK)
    return text.removeprefix(_BYTE_ORDER_MARK), TextEncoding(name, has_mark)


def declare_utf8(text: str, declaration: str) -> str:
    """Replace the charset that is declared after the pattern `declaration` by UTF-8."""
    other_charset = rf"({declaration}charset\s*=\s*[\"']?)(?!utf-8\b)[\w.:-]+"
    return re.sub(other_charset, r"\1UTF-8", text, flags=re.IGNORECASE)


def line_end_of(text: str) -> str:
    """Return "\\r\\n" if any line ends in it, else "\\n"."""
    return "\r\n" if "\r\n" in text else "\n"


def split_lines(text: str) -> list[str]:
    """Split at "\\n" only: `str.splitlines` also splits at other line breaks of Unicode."""
    return [line.removesuffix("\n") for line in StringIO(text)]
