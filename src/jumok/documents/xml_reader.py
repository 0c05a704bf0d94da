"""Read XML: each element that a format treats as a paragraph becomes a segment. The rest is copied."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from jumok.documents.marked_template import MarkedSegment, MarkedTemplate, render_tags
from jumok.documents.message import is_address
from jumok.documents.segment import Segment, has_letters
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from jumok.documents.xml_tree import XmlNode, XmlSource

    _AttributeKey = tuple[bool, str]

_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
MAX_PARAGRAPH_DEPTH = 16
"""Maximum depth of nested paragraphs. The paragraphs of a text box are nested in another paragraph. Files
of office programs have only a few levels of nested paragraphs."""
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
    """Turns the paragraphs of an XML file into segments. Subclasses define the paragraphs of a format."""

    def __init__(self, source: XmlSource) -> None:
        self.source = source
        self.template = MarkedTemplate()
        self._markup_of: dict[XmlNode, str] = {}  # paragraph that has been read → its markup
        self._depth = 0  # the number of nested paragraphs that are being read
        self._mark_of_value: dict[str, str] = {}  # value of an attribute → its mark

    @abstractmethod
    def is_paragraph(self, node: XmlNode) -> bool:
        """Return whether the text inside an element is a segment."""

    def is_opaque(self, node: XmlNode) -> bool:
        """Return whether an element is copied with everything inside it."""
        return False

    def text_attributes(self, node: XmlNode) -> frozenset[str]:
        """Return the names of the attributes that people read. The names are those in the tree."""
        return _NO_ATTRIBUTES

    def is_untranslated_value(self, node: XmlNode, value: str) -> bool:
        """Return whether an attribute that people read is not translated because of its value."""
        return not has_letters(value) or is_address(value) or _FILE_NAME.fullmatch(value.strip()) is not None

    @abstractmethod
    def read_content(self, node: XmlNode) -> str | None:
        """Return the mark for the content of a paragraph, or None if there is nothing to translate."""

    def read(self) -> MarkedTemplate:
        """Read the whole file."""
        source, root = self.source, self.source.root
        before, after = source.raw(0, root.start), source.data[root.end :].decode()
        self.template.markup = before + self.markup(root) + after
        return self.template

    def markup(self, node: XmlNode) -> str:
        """Return an element as it is in the file, with marks for the paragraphs and attributes inside it."""
        pieces = []
        position = node.start
        for marked in self._marked_nodes(node):
            is_paragraph = marked is not node and self.is_paragraph(marked)
            if is_paragraph and marked not in self._markup_of:
                self._markup_of[marked] = self._read_paragraph(marked)
            pieces += [
                self.source.raw(position, marked.start),
                self._markup_of[marked] if is_paragraph else self._start_tag(marked),
            ]
            position = marked.end if is_paragraph else marked.content_start
        return "".join([*pieces, self.source.raw(position, node.end)])

    def raw_content(self, node: XmlNode) -> str:
        """Return the content of an element as it is in the file, with marks as in `markup`."""
        return "".join(map(self.markup, node.children))

    def opening(self, node: XmlNode) -> str:
        """Return the start tag of an element with marks for its attributes. For `<a/>`, return `<a>`."""
        tag = self._start_tag(node)
        return f"{tag[:-2].rstrip()}>" if node.is_empty_tag and tag.endswith("/>") else tag

    def add_text(self, node: XmlNode) -> str | None:
        """Return the mark for the plain text inside an element, or None if there is nothing to translate."""
        text = node.content()
        if not has_letters(text):
            return None
        return self.template.add(MarkedSegment(Segment(text, [], self.raw_content(node)), render_xml))

    def _start_tag(self, node: XmlNode) -> str:
        tag = self.source.raw(node.start, node.content_start)
        names = self.text_attributes(node)
        to_translate = {
            _key_of(name): value
            for name, value in node.attributes.items()
            if name in names and not self.is_untranslated_value(node, value)
        }
        return (
            _ATTRIBUTE.sub(partial(self._mark_attribute, to_translate=to_translate), tag)
            if to_translate
            else tag
        )

    def _mark_attribute(self, attribute: re.Match[str], to_translate: Mapping[_AttributeKey, str]) -> str:
        """Return an attribute with a mark for its value.

        Equal values share a mark. Otherwise runs with the same tooltip would differ, and would not be joined.
        """
        text = to_translate.get(_key_of(attribute[1]))
        if text is None:
            return attribute[0]
        group = 2 if attribute[3] is None else 3
        raw = attribute[group]
        if raw not in self._mark_of_value:
            segment = MarkedSegment(Segment(text, [], raw), render_attribute)
            self._mark_of_value[raw] = self.template.add(segment)
        start, end = attribute.start(group) - attribute.start(), attribute.end(group) - attribute.start()
        return attribute[0][:start] + self._mark_of_value[raw] + attribute[0][end:]

    def _read_paragraph(self, node: XmlNode) -> str:
        # The limit bounds the memory: the markup of each paragraph is stored, and it contains the markup of
        # the paragraphs inside it.
        if self._depth == MAX_PARAGRAPH_DEPTH:
            raise DataError(f"The file has text boxes nested more than {MAX_PARAGRAPH_DEPTH} deep.")
        self._depth += 1
        content = self.read_content(node)
        if content is None:
            content = self.raw_content(node)
        self._depth -= 1
        start, end = self._start_tag(node), self.source.raw(node.content_end, node.end)
        return start + content + end

    def _marked_nodes(self, node: XmlNode) -> Iterator[XmlNode]:
        """Yield the outermost paragraphs inside an element, and other elements with attributes to translate.

        The element itself is yielded if it has such attributes. Elements inside a paragraph are not yielded.
        """
        pending = [node]
        while pending:
            current = pending.pop()
            if self.is_opaque(current):
                continue
            if current is not node and self.is_paragraph(current):
                yield current
            else:
                if not self.text_attributes(current).isdisjoint(current.attributes):
                    yield current
                pending.extend(reversed(current.children))


def _key_of(attribute: str) -> _AttributeKey:
    """Return whether the name of an attribute has a prefix, and the name without the prefix.

    The prefix itself is ignored, because the file and the tree may use different prefixes.
    """
    _, colon, local = attribute.rpartition(":")
    return bool(colon), local


class TextElementReader(XmlReader):
    """Reads an XML file in which only the plain text of some elements is translated."""

    def __init__(self, source: XmlSource, names: Container[str]) -> None:
        super().__init__(source)
        self._names = names

    def is_paragraph(self, node: XmlNode) -> bool:
        return node.name in self._names

    def read_content(self, node: XmlNode) -> str | None:
        return self.add_text(node)
