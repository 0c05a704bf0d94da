"""ODT and ODP: paragraphs and headings are segments. Spans and links move with their words.

The tags of a span whose style only records an editing session are dropped if its paragraph is translated. The
deleted text of tracked changes is in <text:tracked-changes>, which is copied.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.languages import east_asian_font, is_east_asian, is_right_to_left, locale_of
from jumok.documents.marked_template import MarkedSegment, render_tags
from jumok.documents.segment import LINE_BREAK, TAB, Element, SegmentBuilder, has_letters
from jumok.documents.xml_reader import XmlReader, escape_xml
from jumok.documents.xml_tree import decode_xml, read_xml
from jumok.documents.zip_document import ArchivePart, ZipDocument, open_archive, read_part, unpack_parts
from jumok.errors import DataError

if TYPE_CHECKING:
    from jumok.documents.xml_tree import XmlNode, XmlSource
    from jumok.documents.zip_document import LanguageSetter

_OASIS = "urn:oasis:names:tc:opendocument:xmlns:"
_PREFIXES = {f"{_OASIS}{name}:1.0": name for name in ("text", "office", "style", "table")}
_PREFIXES[f"{_OASIS}svg-compatible:1.0"] = "svg"
_PREFIXES[f"{_OASIS}drawing:1.0"] = "draw"
_PREFIXES["http://openoffice.org/2009/office"] = "officeooo"
_MEDIA_TYPE = "application/vnd.oasis.opendocument."
_PARAGRAPHS = frozenset(["text:p", "text:h"])
_LABELS = frozenset(["svg:title", "svg:desc", "table:title", "table:desc"])
"""Alternative texts: elements with plain text."""
_TOOLTIP = frozenset(["office:title"])
_WRAPPERS = frozenset(["text:a", "text:meta"])
_ELEMENTS_BEFORE_TEXT = frozenset(["text:bookmark-start", "text:change-start", "text:reference-mark-start"])
_ELEMENTS_AFTER_TEXT = frozenset(
    ["text:bookmark-end", "text:change-end", "text:reference-mark-end", "office:annotation-end"]
)
"""Ends of ranges. The order of the ends matters, so they do not move with words."""
_PART = re.compile(r"(?:Object [^/]+/)?content\.xml|styles\.xml")
"""The parts with text: the document, its charts, and the styles, which contain headers and footers."""


class _Reader(XmlReader):
    def __init__(self, source: XmlSource) -> None:
        super().__init__(source)
        self._plain_styles = _styles_without_formatting(source.root)

    def is_paragraph(self, node: XmlNode) -> bool:
        return node.name in _PARAGRAPHS or node.name in _LABELS

    def is_opaque(self, node: XmlNode) -> bool:
        return node.name == "text:tracked-changes"

    def text_attributes(self, node: XmlNode) -> frozenset[str]:
        return _TOOLTIP if node.name in ("text:a", "draw:a") else frozenset()

    def read_content(self, node: XmlNode) -> str | None:
        if node.name in _LABELS:
            return self.add_text(node)
        builder = SegmentBuilder()
        before: list[str] = []
        after: list[str] = []
        self._read_inline(node, builder, before, after)
        segment = builder.finish(self.raw_content(node))
        if not has_letters(segment.text):
            return None
        name = re.match(r"<([^\s/>:]+):", self.source.raw(node.start, node.content_start))
        render = partial(render_tags, encode=partial(_encode, prefix=name[1] if name else "text"))
        return self.template.add(MarkedSegment(segment, render, "".join(before), "".join(after)))

    def _read_inline(
        self, node: XmlNode, builder: SegmentBuilder, before: list[str], after: list[str]
    ) -> None:
        for child in node.children:
            name = child.name
            is_plain = child.attributes.get("text:style-name") in self._plain_styles
            if not name:
                builder.add_text(re.sub(r"[ \t\r\n]+", " ", child.text))
            elif name == "text:s":
                builder.add_text(" " * _count_spaces(child))
            elif name in ("text:tab", "text:line-break"):
                builder.add_text(TAB if name == "text:tab" else LINE_BREAK)
            elif name == "text:span" and is_plain:
                self._read_inline(child, builder, before, after)
            elif name == "text:span" or name in _WRAPPERS:
                builder.open_element(Element(self.opening(child), self.source.closing(child)))
                self._read_inline(child, builder, before, after)
                builder.close_element()
            elif name in _ELEMENTS_BEFORE_TEXT:
                before.append(self.markup(child))
            elif name in _ELEMENTS_AFTER_TEXT:
                after.append(self.markup(child))
            elif name != "text:soft-page-break":
                builder.add_atomic(self.markup(child))


def _count_spaces(node: XmlNode) -> int:
    count = node.attributes.get("text:c", "1")
    return min(int(count[:9]), 1_000) if count.isdecimal() else 1  # `int` rejects thousands of digits


def _styles_without_formatting(root: XmlNode) -> frozenset[str]:
    """Return the text styles that have no properties, or with which LibreOffice records editing sessions."""
    names = []
    for node in root.walk():
        if node.name == "style:style" and node.attributes.get("style:family") == "text":
            properties = [child for child in node.children if child.name]
            attributes = [key for child in properties for key in child.attributes]
            if "style:parent-style-name" not in node.attributes and all(
                key.startswith("officeooo:") for key in attributes
            ):
                names.append(node.attributes.get("style:name", ""))
    return frozenset(names)


def _encode(text: str, prefix: str) -> str:
    """Return text as XML. Tabs, line breaks and spaces that would be collapsed become elements."""
    marks = {TAB: f"<{prefix}:tab/>", LINE_BREAK: f"<{prefix}:line-break/>"}
    parts = re.split(f"([{TAB}{LINE_BREAK}]| {{2,}})", text)
    return "".join(
        marks.get(part)
        or (f' <{prefix}:s {prefix}:c="{len(part) - 1}"/>' if part[:2] == "  " else escape_xml(part))
        for part in parts
    )


# --- Files --------------------------------------------------------------------------------------------------


def _read(data: bytes, kind: str) -> ZipDocument:
    parts = {}
    with open_archive(data) as archive:
        # LibreOffice also writes text-web and text-template.
        if not read_part(archive, "mimetype").startswith(f"{_MEDIA_TYPE}{kind}".encode()):
            raise DataError(f"This archive is no OpenDocument {kind}: its part mimetype says something else.")
        for name in sorted(filter(_PART.fullmatch, archive.namelist())):
            text, encoding = decode_xml(read_part(archive, name))
            if "/" in name and "<office:chart" not in text:
                continue  # a formula, or a spreadsheet with formulas
            template = _Reader(read_xml(text, _PREFIXES)).read()
            if template.segments:
                parts[name] = ArchivePart(template, encoding)
    return ZipDocument(data, parts, _language_setter)


def _language_setter(name: str) -> LanguageSetter | None:
    return _set_language if name == "styles.xml" else None


def _set_language(data: bytes, language: str) -> bytes:
    """Set the language, the direction and the East Asian font of the default styles."""
    style = re.compile(r"<style:default-style\b.*?</style:default-style>", re.DOTALL)
    text, encoding = decode_xml(data)
    return style.sub(lambda match: _set_style_language(match[0], language), text).encode(encoding)


def _set_style_language(style: str, language: str) -> str:
    code, _, country = locale_of(language).partition("-")
    suffix = "-asian" if is_east_asian(language) else "-complex" if is_right_to_left(language) else ""
    prefix = "style" if suffix else "fo"
    values = {f"{prefix}:language{suffix}": code, f"{prefix}:country{suffix}": country or "none"}
    if font := east_asian_font(language):
        values["style:font-family-asian"] = font
        style = re.sub(r'\sstyle:font-name-asian="[^"]*"', "", style)
    for attribute, value in values.items():
        style = _set_attribute(style, "style:text-properties", attribute, value)
    if is_right_to_left(language):
        return _set_attribute(style, "style:paragraph-properties", "style:writing-mode", "rl-tb")
    return re.sub(r'(\sstyle:writing-mode=)"rl(?:-tb)?"', r'\1"lr-tb"', style)


def _set_attribute(style: str, name: str, attribute: str, value: str) -> str:
    def set_in_tag(match: re.Match[str]) -> str:
        tag = re.sub(rf'\s{attribute}="[^"]*"', "", match[0])
        return tag.replace(f"<{name}", f'<{name} {attribute}="{value}"', 1)

    return re.sub(rf"<{name}\b[^<>]*>", set_in_tag, style, count=1)


def _format(suffix: str, kind: str) -> DocumentFormat:
    return DocumentFormat(
        (suffix,),
        f"{_MEDIA_TYPE}{kind}",
        partial(_read, kind=kind),
        syntax_characters=b"<",
        unpack=partial(unpack_parts, is_parsed=lambda name: _PART.fullmatch(name) is not None),
    )


ODT = _format(".odt", "text")
ODP = _format(".odp", "presentation")
