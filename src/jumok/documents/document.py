"""A document: segments of text to translate, and the file written back with their translations.

document_format = find_format("page.html")
document = document_format.read(data)          bytes in
document.segments                              the texts to translate, in order
document.write(translations)                   bytes out; everything else is unchanged
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jumok.documents.segment_codes import Piece
    from jumok.text.words import Span

SpanLink = tuple["Span", "Span"]
"""A character span of the source, and the aligned character span of the translation."""


@dataclass(frozen=True, slots=True)
class SegmentTranslation:
    """The translation of one segment, and the word links by which inline markup moves with its words."""

    text: str
    links: Sequence[SpanLink] = ()
    pieces: Sequence[Piece] | None = None
    """The translation in order: texts, and indices of the segment's codes (`segment_codes`), which are its
    placeholders and tags. If None, the links decide where the codes are placed."""


class Document(Protocol):
    """A parsed file."""

    @property
    def segments(self) -> list[str]: ...

    @property
    def notes(self) -> Sequence[str]:
        """Remarks for the reader of the translated file, for example that some text was not translated."""
        ...

    def write(
        self, translations: Sequence[SegmentTranslation], language: str = "", source_language: str = ""
    ) -> bytes:
        """Return the file with each segment replaced by its translation, in the order of `segments`.

        If the format declares a language, a text direction or fonts, the new file declares those of
        `language`. If `language` is empty, these declarations do not change. A PO or YAML file may declare
        a language that is not the language of its texts. In these formats the declaration changes only if it
        names `source_language` or no language. In an XLIFF file, a declared target language does not change.
        """
        ...


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A file format: its suffixes, its parser, and the characters that make parsing expensive."""

    suffixes: tuple[str, ...]
    """In lower case, with the dot. The server gives the first suffix to translated files."""
    media_type: str
    read: Callable[[bytes], Document]
    """Raises a DataError if the bytes are not of this format."""
    syntax_characters: bytes = b""
    """ASCII characters that cost time to parse, for example at the start of a tag or at the end of a line.
    These characters are counted before parsing.
    """

    unpack: Callable[[bytes], Iterable[bytes]] | None = None
    """Yields the parts of an archive that are parsed. If None, the file itself is parsed."""

    @property
    def suffix(self) -> str:
        return self.suffixes[0]

    def parsed_parts(self, data: bytes) -> Iterable[bytes]:
        """Return the file itself, or the parts of an archive that are parsed."""
        return [data] if self.unpack is None else self.unpack(data)

    def count_syntax_characters(self, part: bytes) -> int:
        """Return the number of syntax characters of a part, which bounds the time that parsing takes."""
        return sum(map(part.count, self.syntax_characters))
