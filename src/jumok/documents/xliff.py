"""XLIFF 1.2 and 2.x: units without a translation are filled in; the others stay.

In XLIFF 1.2, a new translation has the state "translated", or "needs-review-translation" if its placeholders
are not those of the source. Units and groups with translate="no" stay as they are.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.marked_template import SegmentMark
from jumok.documents.message import add_message, has_same_placeholders, pair_up
from jumok.documents.segment import Element, SegmentBuilder, has_letters
from jumok.documents.xml_document import read_xml_file
from jumok.documents.xml_reader import XmlReader, escape_xml, render_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.documents.segment import Tag
    from jumok.documents.xml_tree import XmlNode

_PREFIXES = {
    "urn:oasis:names:tc:xliff:document:1.1": "",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    **{f"urn:oasis:names:tc:xliff:document:2.{minor}": "" for minor in range(3)},
}
_UNITS = frozenset(["trans-unit", "segment"])  # of 1.2, of 2.x
_WRAPPERS = frozenset(["g", "mrk", "pc"])
_OPENING = {"bpt": "ept", "bx": "ex", "sc": "ec"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}


class _Reader(XmlReader):
    def is_paragraph(self, node: XmlNode) -> bool:
        return node.name in _UNITS

    def is_opaque(self, node: XmlNode) -> bool:
        return node.attributes.get("translate") == "no"

    def read_content(self, node: XmlNode) -> str | None:
        source, target = node.find("source"), node.find("target")
        if source is None or (target is not None and (target.content().strip() or _has_elements(target))):
            return None
        builder = SegmentBuilder()
        self._read_inline(source.children, builder)
        segment = builder.finish()
        if not has_letters(segment.text):
            return None
        prefix = re.match(r"<([\w.-]+:)?", self.source.raw(node.start, node.content_start))
        opening = f"<{(prefix and prefix[1]) or ''}target>" if target is None else self.source.opening(target)
        render = partial(
            _render_target, opening=opening, source=source.content(), has_state=node.name == "trans-unit"
        )
        mark = self.template.add(SegmentMark(segment, render, fills_target=True))
        raw = self.source.raw
        if target is not None:
            return raw(node.content_start, target.start) + mark + raw(target.end, node.content_end)
        indent = raw(node.content_start, source.start)
        last = node.find("seg-source") or source
        before, after = raw(node.content_start, last.end), raw(last.end, node.content_end)
        return before + (indent if not indent.strip() else "") + mark + after

    def _read_inline(self, children: Sequence[XmlNode], builder: SegmentBuilder) -> None:
        partners = pair_up([_code_of(child) for child in children])
        for index, child in enumerate(children):
            if not child.name:
                add_message(builder, child.text, encode=escape_xml)
            elif child.name in _WRAPPERS and not _is_protected(child):
                builder.open_element(Element(self.source.opening(child), self.source.closing(child)))
                self._read_inline(child.children, builder)
                builder.close_element()
            elif index not in partners:
                builder.add_atomic(self.source.raw_node(child))
            elif partners[index] > index:
                closing = self.source.raw_node(children[partners[index]])
                builder.open_element(Element(self.source.raw_node(child), closing))
            else:
                builder.close_element()


def _has_elements(node: XmlNode) -> bool:
    return any(child.name for child in node.children)


def _is_protected(node: XmlNode) -> bool:
    return node.attributes.get("mtype") == "protected" or node.attributes.get("translate") == "no"


def _code_of(node: XmlNode) -> tuple[str, bool] | None:
    """Return a key that both codes of a pair share, and whether this one opens it; None for other nodes."""
    attributes = node.attributes
    if node.name in _OPENING:
        return f"{node.name} {attributes.get('rid') or attributes.get('id')}", True
    if node.name in _CLOSING:
        key = attributes.get("startRef") or attributes.get("rid") or attributes.get("id")
        return f"{_CLOSING[node.name]} {key}", False
    return None


def _render_target(pieces: Sequence[str | Tag], *, opening: str, source: str, has_state: bool) -> str:
    content = render_xml(pieces)
    name = re.match(r"<([^\s/>]+)", opening)
    if has_state:
        is_good = has_same_placeholders(source, re.sub(r"<[^<>]*>", "", content))
        opening = re.sub(r"""\sstate\s*=\s*(?:"[^"]*"|'[^']*')""", "", opening)
        state = "translated" if is_good else "needs-review-translation"
        opening = f'{opening[:-1]} state="{state}">'
    return f"{opening}{content}</{name[1] if name else 'target'}>"


def _set_language(text: str, language: str) -> str:
    """Name the target language where the file names only the source."""
    declarations = {("file", "source-language"): "target-language", ("xliff", "srcLang"): "trgLang"}
    for (name, source), target in declarations.items():
        tag = rf"<(?:[\w.-]+:)?{name}\b(?![^<>]*\s{target}=)[^<>]*?\s{source}=\"[^\"]*\""
        text = re.sub(tag, rf'\g<0> {target}="{language}"', text)
    return text


XLIFF = DocumentFormat(
    (".xlf", ".xliff"),
    "application/xliff+xml",
    partial(read_xml_file, prefixes=_PREFIXES, root="xliff", reader=_Reader, set_language=_set_language),
    syntax_characters=b"<&",
)
