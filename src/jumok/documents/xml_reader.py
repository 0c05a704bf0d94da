"""Read XML: each element that a format treats as a paragraph becomes a segment; the rest stays as it is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from jumok.documents.marked_template import MarkedTemplate, SegmentMark, render_tags
from jumok.documents.message import is_address
from jumok.documents.segment import Segment, has_letters
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from jumok.documents.xml_tree import XmlNode, XmlSource

    _AttributeKey = tuple[bool, str]

_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
MAX_PARAGRAPH_DEPTH = 16
"""Paragraphs inside each other: that of a text box is inside another one. Office programs nest a few."""
_NO_ATTRIBUTES: frozenset[str] = frozenset()
_ATTRIBUTE = re.compile(r"""\s([^\s=<>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_FILE_NAME = re.compile(
    r"\S+\.\w{2,4}|.*\.(?:png|jpe?g|gif|bmp|svg|emf|wmf|tiff?|webp)", re.IGNORECASE | re.DOTALL
)


def escape_xml(text: str) -> str:
    """Return text as XML content, without the characters that XML does not allow."""
    return escape(remove_invalid_characters(text), quote=False)


def remove_invalid_characters(text: str) -> str:
    """Remove control characters, which XML does not allow in any form."""
    return _NOT_XML.sub("", text)


def escape_attribute(text: str) -> str:
    """Return text as the value of an attribute. Line breaks are escaped, or they would be read as spaces."""
    escaped = escape(remove_invalid_characters(text))
    return escaped.replace("\n", "&#10;").replace("\t", "&#9;")


render_xml = partial(render_tags, encode=escape_xml)
render_attribute = partial(render_tags, encode=escape_attribute)


class XmlReader(ABC):
    """Reads a part: finds the elements that are paragraphs of the format, and turns each into a segment."""

    def __init__(self, source: XmlSource) -> None:
        self.source = source
        self.template = MarkedTemplate()
        self._markup_of: dict[XmlNode, str] = {}  # of the paragraphs that have been read
        self._depth = 0  # paragraphs inside each other that are being read
        self._mark_of_value: dict[str, str] = {}  # of attributes

    @abstractmethod
    def is_paragraph(self, node: XmlNode) -> bool:
        """Return whether the text inside an element is a segment."""

    def is_opaque(self, node: XmlNode) -> bool:
        """Return whether an element is copied with everything inside it."""
        return False

    def text_attributes(self, node: XmlNode) -> frozenset[str]:
        """Return the attributes of an element that people read, by their names in the tree."""
        return _NO_ATTRIBUTES

    def keeps_value(self, node: XmlNode, value: str) -> bool:
        """Return whether such an attribute stays as it is because of its value."""
        return not has_letters(value) or is_address(value) or _FILE_NAME.fullmatch(value.strip()) is not None

    @abstractmethod
    def read_content(self, node: XmlNode) -> str | None:
        """Return the mark for the content of a paragraph; None if it has nothing to translate."""

    def read(self) -> MarkedTemplate:
        source, root = self.source, self.source.root
        before, after = source.raw(0, root.start), source.data[root.end :].decode()
        self.template.markup = before + self.markup(root) + after
        return self.template

    def markup(self, node: XmlNode) -> str:
        """Return an element as it is in the file, with marks for the paragraphs and attributes inside it."""
        pieces = []
        position = node.start
        for found in self._marked_nodes(node):
            is_paragraph = found is not node and self.is_paragraph(found)
            if is_paragraph and found not in self._markup_of:
                self._markup_of[found] = self._read_paragraph(found)
            pieces += [
                self.source.raw(position, found.start),
                self._markup_of[found] if is_paragraph else self._start_tag(found),
            ]
            position = found.end if is_paragraph else found.content_start
        return "".join([*pieces, self.source.raw(position, node.end)])

    def raw_content(self, node: XmlNode) -> str:
        return "".join(map(self.markup, node.children))

    def opening(self, node: XmlNode) -> str:
        """Return the start tag with marks for its attributes, also of an element that is written `<a/>`."""
        tag = self._start_tag(node)
        return f"{tag[:-2].rstrip()}>" if node.is_empty_tag and tag.endswith("/>") else tag

    def add_text(self, node: XmlNode) -> str | None:
        """Return the mark for the plain text inside an element; None if it has nothing to translate."""
        text = node.content()
        if not has_letters(text):
            return None
        return self.template.add(SegmentMark(Segment(text, [], self.raw_content(node)), render_xml))

    def _start_tag(self, node: XmlNode) -> str:
        tag = self.source.raw(node.start, node.content_start)
        names = self.text_attributes(node)
        wanted = {
            _key_of(name): value
            for name, value in node.attributes.items()
            if name in names and not self.keeps_value(node, value)
        }
        return _ATTRIBUTE.sub(partial(self._mark_attribute, wanted=wanted), tag) if wanted else tag

    def _mark_attribute(self, found: re.Match[str], wanted: Mapping[_AttributeKey, str]) -> str:
        """Return an attribute with a mark for its value. Equal values share a mark: equal runs stay equal."""
        text = wanted.get(_key_of(found[1]))
        if text is None:
            return found[0]
        group = 2 if found[3] is None else 3
        raw = found[group]
        if raw not in self._mark_of_value:
            mark = SegmentMark(Segment(text, [], raw), render_attribute)
            self._mark_of_value[raw] = self.template.add(mark)
        start, end = found.start(group) - found.start(), found.end(group) - found.start()
        return found[0][:start] + self._mark_of_value[raw] + found[0][end:]

    def _read_paragraph(self, node: XmlNode) -> str:
        if self._depth == MAX_PARAGRAPH_DEPTH:  # the markup of each is held in memory, with those inside it
            raise DataError(f"The file has text boxes nested more than {MAX_PARAGRAPH_DEPTH} deep.")
        self._depth += 1
        content = self.read_content(node)
        if content is None:
            content = self.raw_content(node)
        self._depth -= 1
        start, end = self._start_tag(node), self.source.raw(node.content_end, node.end)
        return start + content + end

    def _marked_nodes(self, node: XmlNode) -> Iterator[XmlNode]:
        """Yield the outermost paragraphs inside an element, and the elements outside them with attributes."""
        pending = [node]
        while pending:
            found = pending.pop()
            if self.is_opaque(found):
                continue
            if found is not node and self.is_paragraph(found):
                yield found
            else:
                if not self.text_attributes(found).isdisjoint(found.attributes):
                    yield found
                pending.extend(reversed(found.children))


def _key_of(attribute: str) -> _AttributeKey:
    """Return whether a name has a prefix, and the rest: the prefix in the file may differ from the tree's."""
    _, colon, local = attribute.rpartition(":")
    return bool(colon), local


class TextElementReader(XmlReader):
    """Reads a part in which some elements contain plain text, and nothing else is translated."""

    def __init__(self, source: XmlSource, names: Container[str]) -> None:
        super().__init__(source)
        self._names = names

    def is_paragraph(self, node: XmlNode) -> bool:
        return node.name in self._names

    def read_content(self, node: XmlNode) -> str | None:
        return self.add_text(node)
