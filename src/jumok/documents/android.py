"""Android's strings.xml: strings, arrays and plurals. Entries with translatable="false" stay as they are."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.marked_template import MarkedSegment, render_tags
from jumok.documents.message import add_message, join_surrogates
from jumok.documents.segment import LINE_BREAK, Element, SegmentBuilder, has_letters
from jumok.documents.xml_document import read_xml_file
from jumok.documents.xml_reader import XmlReader, escape_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.documents.segment import Tag
    from jumok.documents.xml_tree import XmlNode

_PREFIXES = {"urn:oasis:names:tc:xliff:document:1.2": "xliff", "http://schemas.android.com/tools": "tools"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
# The text up to the next quotation mark that is not escaped.
_PART = re.compile(r'((?:[^"\\]|\\.|\\\Z)*+)(?:"|\Z)', re.DOTALL)
_SPACE = "\\u0020"
_SPACE_AT_START = re.compile(r'"\s|\\u0020')
_SPACE_AT_END = re.compile(r'(?:\s"|\\u0020)\Z')
_CHARACTER_OF_ESCAPE = {"n": LINE_BREAK, "t": " "}


class _Reader(XmlReader):
    def is_paragraph(self, node: XmlNode) -> bool:
        return node.name in ("string", "item")

    def is_opaque(self, node: XmlNode) -> bool:
        if node.name in ("style", "declare-styleable"):  # their items are values, such as "bold"
            return True
        is_other_item = node.name == "item" and node.attributes.get("type", "string") != "string"
        return is_other_item or node.attributes.get("translatable") == "false"

    def read_content(self, node: XmlNode) -> str | None:
        builder = SegmentBuilder()
        self._read_inline(node, builder)
        raw = self.raw_content(node)
        segment = builder.finish(raw)
        # A reference to another resource, such as @string/app_name.
        is_reference = re.match(r"\s*[@?][\w.:+]*/", segment.text) is not None
        if not has_letters(segment.text) or is_reference:
            return None
        return self.template.add(MarkedSegment(segment, partial(_render, raw=raw)))

    def _read_inline(self, node: XmlNode, builder: SegmentBuilder) -> None:
        for child in node.children:
            if not child.name:
                add_message(builder, child.text, decode=_decode, encode=escape_xml)
            elif child.name == "br":
                builder.add_text(LINE_BREAK)
            elif child.name in ("?", "xliff:g") or child.is_empty_tag:
                builder.add_atomic(self.source.raw_node(child))
            else:
                builder.open_element(Element(self.source.opening(child), self.source.closing(child)))
                self._read_inline(child, builder)
                builder.close_element()


def _decode(text: str) -> str:
    """Resolve escapes and remove quotation marks. White space outside quotation marks is collapsed.

    A text after a placeholder or a tag is read as if it began outside quotation marks.
    """
    parts = _PART.findall(text)  # outside quotation marks, inside, outside, …
    parts[::2] = [re.sub(r"\s+", " ", part) for part in parts[::2]]
    unescaped = _ESCAPE.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _CHARACTER_OF_ESCAPE.get(match[2], match[2]),
        "".join(parts),
    )
    return join_surrogates(unescaped)


def _render(pieces: Sequence[str | Tag], raw: str) -> str:
    """Write text and tags. A space at the start or end is protected if it is protected in the source.

    Android removes spaces at the start and the end that are not protected.
    """
    text = render_tags(pieces, encode=_encode)
    if text.startswith(" ") and _SPACE_AT_START.match(raw):
        text = _SPACE + text[1:]
    if text.endswith(" ") and _SPACE_AT_END.search(raw):
        text = text[:-1] + _SPACE
    return text


def _encode(text: str) -> str:
    escapes = {"\\": "\\\\", "'": "\\'", '"': '\\"', LINE_BREAK: "\\n"}
    escaped = "".join(escapes.get(character, character) for character in text)
    escaped = re.sub("(?<= ) ", lambda _: _SPACE, escaped)  # Android collapses consecutive spaces
    return escape_xml(re.sub(r"^(?=[@?])", r"\\", escaped))


ANDROID = DocumentFormat(
    (".xml",),
    "application/xml",
    partial(read_xml_file, prefixes=_PREFIXES, root="resources", reader=_Reader),
    syntax_characters=b"<&",
)
