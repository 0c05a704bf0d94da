"""XLIFF 1.2 and 2.x: units without a translation are filled in; the others stay.

A target that copies the source is filled in if its state says that it is untranslated ("new"). In XLIFF 1.2,
a unit may be divided into segments (`<mrk mtype="seg">` in seg-source), each of which is filled in by itself.
A new translation in XLIFF 1.2 has the state "translated", or "needs-review-translation" if its placeholders
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
    from collections.abc import Callable, Iterable, Sequence

    from jumok.documents.segment import Tag
    from jumok.documents.xml_tree import XmlNode

_PREFIXES = {
    "urn:oasis:names:tc:xliff:document:1.1": "",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    **{f"urn:oasis:names:tc:xliff:document:2.{minor}": "" for minor in range(3)},
}
_UNITS = frozenset(["trans-unit", "segment"])  # of 1.2, of 2.x
_NOT_TRANSLATED = frozenset(["new", "needs-translation", "initial"])
_NEEDS_REVIEW = "needs-review-translation"
_WRAPPERS = frozenset(["g", "mrk", "pc"])
_OPENING = {"bpt": "ept", "bx": "ex", "sc": "ec"}
_CLOSING = {closing: opening for opening, closing in _OPENING.items()}


class _Reader(XmlReader):
    def is_paragraph(self, node: XmlNode) -> bool:
        return node.name in _UNITS

    def is_opaque(self, node: XmlNode) -> bool:
        return node.attributes.get("translate") == "no"

    def read_content(self, node: XmlNode) -> str | None:
        source, segmented, target = (node.find(name) for name in ("source", "seg-source", "target"))
        if source is None:
            return None
        if target is not None and _is_copy(source, target, node):
            target.children = []
        opening = self._opening(node, target)
        if segmented is not None and _segments_of(segmented):
            new = self._fill_segments(segmented, target, opening)
        elif target is not None and (target.content().strip() or _has_elements(target)):
            return None
        else:
            has_state = node.name == "trans-unit"
            render = partial(_render_target, opening=opening, source=source.content(), has_state=has_state)
            new = self._add_segment(source, render)
        return None if new is None else self._put_target(node, target, new)

    def _opening(self, node: XmlNode, target: XmlNode | None) -> str:
        """Return the start tag of the target. A target that is missing gets the prefix of its unit."""
        if target is not None:
            return self.source.opening(target)
        prefix = re.match(r"<([\w.-]+:)?", self.source.raw(node.start, node.content_start))
        return f"<{(prefix and prefix[1]) or ''}target>"

    def _add_segment(self, source: XmlNode, render: Callable[[Iterable[str | Tag]], str]) -> str | None:
        """Return the mark for a translation; None if there is nothing to translate."""
        builder = SegmentBuilder()
        self._read_inline(source.children, builder)
        segment = builder.finish()
        if not has_letters(segment.text):
            return None
        return self.template.add(SegmentMark(segment, render, fills_target=True))

    def _fill_segments(self, segmented: XmlNode, target: XmlNode | None, opening: str) -> str | None:
        """Return the target with marks in its empty segments; None if all are translated.

        A target without segments gets those of the source.
        """
        sources = _segments_of(segmented)
        frame = segmented if target is None or not target.children else target
        marks: list[str] = []
        pieces = [_with_state(opening, "translated")]
        position = frame.content_start
        for mid, segment in _segments_of(frame).items():
            if mid not in sources or (frame is target and segment.children):
                continue
            source = sources[mid]
            start = self.source.opening(segment)
            mark = self._add_segment(source, partial(_render_segment, opening=start, source=source.content()))
            if mark is not None:
                marks.append(mark)
            copy = start + self.source.raw(source.content_start, source.content_end)
            pieces += [self.source.raw(position, segment.start), mark or copy, self.source.closing(segment)]
            position = segment.end
        pieces += [self.source.raw(position, frame.content_end), _closing(opening)]
        return "".join(pieces) if marks else None

    def _put_target(self, node: XmlNode, target: XmlNode | None, mark: str) -> str:
        """Return the content of a unit with a new target: in place of the old one, or after the source."""
        raw = self.source.raw
        if target is not None:
            return raw(node.content_start, target.start) + mark + raw(target.end, node.content_end)
        source = node.find("source") or node
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


def _is_copy(source: XmlNode, target: XmlNode, unit: XmlNode) -> bool:
    """Return whether the target copies the source and its state says that it is untranslated."""
    state = target.attributes.get("state") or unit.attributes.get("state")
    return state in _NOT_TRANSLATED and target.content().strip() == source.content().strip()


def _segments_of(node: XmlNode) -> dict[str, XmlNode]:
    """Return the marked segments of a unit by their ids."""
    return {
        child.attributes.get("mid", ""): child
        for child in node.walk()
        if child.name == "mrk" and child.attributes.get("mtype") == "seg"
    }


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


def _render_target(pieces: Iterable[str | Tag], *, opening: str, source: str, has_state: bool) -> str:
    content = render_xml(pieces)
    if has_state:
        opening = _with_state(
            opening, "translated" if _keeps_placeholders(content, source) else _NEEDS_REVIEW
        )
    return f"{opening}{content}{_closing(opening)}"


def _render_segment(pieces: Iterable[str | Tag], *, opening: str, source: str) -> str:
    """Write a segment without its end tag. A segment has no state, so a comment asks for a review."""
    content = render_xml(pieces)
    if not _keeps_placeholders(content, source):
        opening = f'{opening[:-1]} comment="{_NEEDS_REVIEW}">'
    return opening + content


def _keeps_placeholders(content: str, source: str) -> bool:
    return has_same_placeholders(source, re.sub(r"<[^<>]*>", "", content))


def _with_state(opening: str, state: str) -> str:
    opening = re.sub(r"""\sstate\s*=\s*(?:"[^"]*"|'[^']*')""", "", opening)
    return f'{opening[:-1]} state="{state}">'


def _closing(opening: str) -> str:
    name = re.match(r"<([^\s/>]+)", opening)
    return f"</{name[1] if name else 'target'}>"


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
