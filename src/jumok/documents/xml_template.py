"""XML with segments: the file as text in which each segment is a mark, replaced when the file is written.

Marks can be nested: an image with a text box, or a footnote, is an atomic element of one segment and has
segments of its own.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from jumok.documents.segment import Segment, Tag, has_letters, place

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from jumok.documents.document import SegmentTranslation
    from jumok.documents.xml_tree import XmlNode, XmlSource

    Render = Callable[[Sequence[str | Tag]], str]

__all__ = ["SegmentMark", "TextElementReader", "XmlReader", "XmlTemplate", "escape_xml", "render_tags"]

_MARK = re.compile("\0([0-9]+)\0")  # XML contains no NUL
_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class SegmentMark:
    """A segment, and how it is written in this format."""

    segment: Segment
    render: Render
    before: str = ""
    after: str = ""
    """Markup that stays before and after the words, whatever their order."""
    fills_target: bool = False
    """Whether the translation is written beside the source, so that it is never left as it was."""


class XmlTemplate:
    """Text with marks, and the segments that replace them. A reader adds marks and sets `markup`."""

    def __init__(self) -> None:
        self.markup = ""
        self._marks: list[SegmentMark] = []

    def add(self, mark: SegmentMark) -> str:
        """Return what stands for the segment in the markup."""
        self._marks.append(mark)
        return f"\0{len(self._marks) - 1}\0"

    @property
    def segments(self) -> list[str]:
        return [mark.segment.text for mark in self._marks]

    def fill(self, translations: Sequence[SegmentTranslation]) -> str:
        def replace(found: re.Match[str]) -> str:
            index = int(found[1])
            return _MARK.sub(replace, _fill_mark(self._marks[index], translations[index]))

        return _MARK.sub(replace, self.markup)


class XmlReader(ABC):
    """Reads a part: finds its paragraphs, however the format calls them, and turns each into a segment."""

    def __init__(self, source: XmlSource) -> None:
        self.source = source
        self.template = XmlTemplate()
        self._markup_of: dict[XmlNode, str] = {}  # of the paragraphs that have been read

    @abstractmethod
    def is_paragraph(self, node: XmlNode) -> bool:
        """Return whether the text inside an element is a segment."""

    def is_opaque(self, node: XmlNode) -> bool:
        """Return whether an element is copied, whatever is inside it."""
        return False

    @abstractmethod
    def read_content(self, node: XmlNode) -> str | None:
        """Return the mark for the content of a paragraph; None if it has nothing to translate."""

    def read(self) -> XmlTemplate:
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
        waiting = [node]
        while waiting:
            found = waiting.pop()
            if self.is_opaque(found):
                continue
            if found is not node and self.is_paragraph(found):
                yield found
            else:
                waiting.extend(reversed(found.children))


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
        return self.template.add(SegmentMark(Segment(text, [], self.raw_content(node)), render_tags))


def _fill_mark(mark: SegmentMark, translation: SegmentTranslation) -> str:
    segment = mark.segment
    if translation.text == segment.text and segment.raw is not None and not mark.fills_target:
        return segment.raw
    return mark.before + mark.render(place(segment, translation)) + mark.after


def escape_xml(text: str) -> str:
    """Return text as XML content, without the characters that XML does not allow."""
    return escape(_NOT_XML.sub("", text), quote=False)


def render_tags(pieces: Iterable[str | Tag], encode: Callable[[str], str] = escape_xml) -> str:
    """Write text and tags one after the other, as in formats whose text has tags inside."""
    return "".join(
        encode(piece)
        if isinstance(piece, str)
        else piece.element.opening
        if piece.begins
        else piece.element.closing
        for piece in pieces
    )
