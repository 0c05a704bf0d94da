"""Read XML: each element that a format treats as a paragraph becomes a segment; the rest stays as it is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from jumok.documents.marked_template import MarkedTemplate, SegmentMark, render_tags
from jumok.documents.segment import Segment, has_letters

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from jumok.documents.xml_tree import XmlNode, XmlSource

_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def escape_xml(text: str) -> str:
    """Return text as XML content, without the characters that XML does not allow."""
    return escape(remove_invalid_characters(text), quote=False)


def remove_invalid_characters(text: str) -> str:
    """Remove control characters, which XML does not allow in any form."""
    return _NOT_XML.sub("", text)


render_xml = partial(render_tags, encode=escape_xml)


class XmlReader(ABC):
    """Reads a part: finds the elements that are paragraphs of the format, and turns each into a segment."""

    def __init__(self, source: XmlSource) -> None:
        self.source = source
        self.template = MarkedTemplate()
        self._markup_of: dict[XmlNode, str] = {}  # of the paragraphs that have been read

    @abstractmethod
    def is_paragraph(self, node: XmlNode) -> bool:
        """Return whether the text inside an element is a segment."""

    def is_opaque(self, node: XmlNode) -> bool:
        """Return whether an element is copied with everything inside it."""
        return False

    @abstractmethod
    def read_content(self, node: XmlNode) -> str | None:
        """Return the mark for the content of a paragraph; None if it has nothing to translate."""

    def read(self) -> MarkedTemplate:
        source, root = self.source, self.source.root
        before, after = source.raw(0, root.start), source.data[root.end :].decode()
        self.template.markup = before + self.markup(root) + after
        return self.template

    def markup(self, node: XmlNode) -> str:
        """Return an element as it is in the file, with marks for the paragraphs inside it."""
        pieces = []
        position = node.start
        for paragraph in self._outermost_paragraphs(node):
            if paragraph not in self._markup_of:
                self._markup_of[paragraph] = self._read_paragraph(paragraph)
            pieces += [self.source.raw(position, paragraph.start), self._markup_of[paragraph]]
            position = paragraph.end
        return "".join([*pieces, self.source.raw(position, node.end)])

    def raw_content(self, node: XmlNode) -> str:
        return "".join(map(self.markup, node.children))

    def _read_paragraph(self, node: XmlNode) -> str:
        content = self.read_content(node)
        if content is None:
            content = self.raw_content(node)
        start, end = (
            self.source.raw(node.start, node.content_start),
            self.source.raw(node.content_end, node.end),
        )
        return start + content + end

    def _outermost_paragraphs(self, node: XmlNode) -> Iterator[XmlNode]:
        pending = [node]
        while pending:
            found = pending.pop()
            if self.is_opaque(found):
                continue
            if found is not node and self.is_paragraph(found):
                yield found
            else:
                pending.extend(reversed(found.children))


class TextElementReader(XmlReader):
    """Reads a part in which some elements contain plain text, and nothing else is translated."""

    def __init__(self, source: XmlSource, names: Container[str]) -> None:
        super().__init__(source)
        self._names = names

    def is_paragraph(self, node: XmlNode) -> bool:
        return node.name in self._names

    def read_content(self, node: XmlNode) -> str | None:
        text = node.content()
        if not has_letters(text):
            return None
        return self.template.add(SegmentMark(Segment(text, [], self.raw_content(node)), render_xml))
