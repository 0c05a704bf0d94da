"""Documents that are a single XML file. The declared encoding of the file is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.documents.xml_tree import decode_xml, read_xml
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.marked_template import MarkedTemplate
    from jumok.documents.xml_reader import XmlReader
    from jumok.documents.xml_tree import XmlSource


@dataclass(frozen=True, slots=True)
class XmlDocument:
    """A template and the encoding of its file."""

    template: MarkedTemplate
    encoding: str
    set_language: Callable[[str, str], str] | None = None
    notes: Sequence[str] = ()

    @property
    def segments(self) -> list[str]:
        return self.template.segments

    def write(
        self, translations: Sequence[SegmentTranslation], language: str = "", source_language: str = ""
    ) -> bytes:
        text = self.template.fill(translations)
        if language and self.set_language is not None:
            text = self.set_language(text, language)
        # Characters that the encoding cannot represent are written as character references.
        return text.encode(self.encoding, "xmlcharrefreplace")


def read_xml_file(
    data: bytes,
    *,
    prefixes: Mapping[str, str],
    root: str,
    reader: Callable[[XmlSource], XmlReader],
    set_language: Callable[[str, str], str] | None = None,
) -> XmlDocument:
    """Parse an XML file. Raise an error if the name of its root element is not `root`."""
    text, encoding = decode_xml(data)
    source = read_xml(text, prefixes)
    if source.root.name != root:
        raise DataError(f"The root of this XML is <{source.root.name[:60]}>. Expected: <{root}>.")
    return XmlDocument(reader(source).read(), encoding, set_language)
