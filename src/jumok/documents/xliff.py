"""XLIFF 1.2 and 2.x: units without a translation are filled in. All other units are copied.

A target that copies the source is filled in if its state says that it is untranslated, such as "new". In
XLIFF 1.2, a unit may be divided into segments (`<mrk mtype="seg">` in seg-source). Each segment is filled in
separately. A new translation gets the state "translated". If the placeholders of the translation differ from
those of the source, it gets the state "needs-review-translation" in XLIFF 1.2, and the state "initial" in
XLIFF 2. A segment of XLIFF 1.2 has no state, so it gets the comment "needs-review-translation". In XLIFF 2,
segments with the state translated, reviewed or final are copied. Units and groups with translate="no" are
copied as well.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from jumok.documents.document import DocumentFormat
from jumok.documents.marked_template import MarkedSegment
from jumok.documents.message import add_message, has_same_placeholders, pair_up
from jumok.documents.segment import Element, SegmentBuilder, has_letters
from jumok.documents.xml_document import read_xml_file
from jumok.documents.xml_reader import XmlReader, escape_xml, render_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jumok.documents.segment import Tag
    from jumok.documents.xml_tree import XmlNode, XmlSource

_PREFIXES = {
    "urn:oasis:names:tc:xliff:document:1.1": "",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    **{f"urn:oasis:names:tc:xliff:document:2.{minor}": "" for minor in range(3)},
}
_UNITS = frozenset(["trans-unit", "segment"])  # trans-unit in XLIFF 1.2, segment in XLIFF 2.x
_UNTRANSLATED_STATES = frozenset(["new", "needs-translation", "initial"])
_NEEDS_REVIEW = "needs-review-translation"
_FINISHED_STATES = frozenset(["translated", "reviewed", "final"])  # states of XLIFF 2.x
_REVIEW_OF_SEGMENT = 'state="initial" subState="jumok:needs-review"'
_WRAPPERS = frozenset(["g", "mrk", "pc"])
_CLOSING_CODE_OF = {"bpt": "ept", "bx": "ex", "sc": "ec"}
_OPENING_CODE_OF = {closing: opening for opening, closing in _CLOSING_CODE_OF.items()}


class _Reader(XmlReader):
    def __init__(self, source: XmlSource) -> None:
        super().__init__(source)
        self._translatable: dict[XmlNode, bool] = {}  # whether each element is translated

    def is_paragraph(self, node: XmlNode) -> bool:
        return node.name in _UNITS

    def _read_paragraph(self, node: XmlNode) -> str:
        if not self._is_translatable(node):
            return self.source.raw_node(node)
        if node.name == "segment":
            return self._read_segment_of_xliff_2(node)
        return super()._read_paragraph(node)

    def _is_translatable(self, node: XmlNode) -> bool:
        """Return whether a unit is translated.

        The attribute `translate` of the unit decides. If the unit has none, the attribute of the nearest
        ancestor with `translate` decides.
        """
        if not self._translatable:
            self._translatable = {self.source.root: True}
            for parent in self.source.root.walk():
                for child in parent.children:
                    value = child.attributes.get("translate")
                    self._translatable[child] = value != "no" if value else self._translatable[parent]
        return self._translatable[node]

    def _read_segment_of_xliff_2(self, node: XmlNode) -> str:
        """Read a segment of XLIFF 2.x. A mark replaces the whole segment, because its tag also changes."""
        raw = self.source.raw_node(node)
        source, target = node.find("source"), node.find("target")
        if source is None or node.attributes.get("state") in _FINISHED_STATES:
            return raw
        if target is not None and _is_copy(source, target, node):
            target.children = []  # a copy of the source is treated as an empty target
        if target is not None and (target.content().strip() or _has_elements(target)):
            return raw
        before, after = self._around_target(node, target)
        render = partial(
            _render_segment_of_xliff_2,
            start_tag=self.source.raw(node.start, node.content_start),
            before=before + self._opening(node, target),
            after=_closing(self._opening(node, target)) + after + self.source.closing(node),
            source=source.content(),
        )
        return self._add_segment(source, render) or raw

    def read_content(self, node: XmlNode) -> str | None:
        source, seg_source, target = (node.find(name) for name in ("source", "seg-source", "target"))
        if source is None:
            return None
        if target is not None and _is_copy(source, target, node):
            target.children = []  # a copy of the source is treated as an empty target
        opening = self._opening(node, target)
        if seg_source is not None and _segments_of(seg_source):
            new = self._fill_segments_of_xliff_1(seg_source, target, opening)
        elif target is not None and (target.content().strip() or _has_elements(target)):
            return None
        else:
            new = self._add_segment(source, partial(_render_target, opening=opening, source=source.content()))
        if new is None:
            return None
        before, after = self._around_target(node, target)
        return before + new + after

    def _opening(self, node: XmlNode, target: XmlNode | None) -> str:
        """Return the start tag of the target. The tag of a new target has the prefix of the unit."""
        if target is not None:
            return self.source.opening(target)
        prefix = re.match(r"<([\w.-]+:)?", self.source.raw(node.start, node.content_start))
        return f"<{(prefix and prefix[1]) or ''}target>"

    def _add_segment(self, source: XmlNode, render: Callable[[Iterable[str | Tag]], str]) -> str | None:
        """Return the mark for a translation, or None if there is nothing to translate."""
        builder = SegmentBuilder()
        self._read_inline(source.children, builder)
        segment = builder.finish()
        if not has_letters(segment.text):
            return None
        return self.template.add(MarkedSegment(segment, render, fills_target=True))

    def _fill_segments_of_xliff_1(
        self, seg_source: XmlNode, target: XmlNode | None, opening: str
    ) -> str | None:
        """Return the target with marks in its empty segments, or None if no segment is to be translated.

        If the target has no segments, the segments of the source are copied into it.
        """
        sources = _segments_of(seg_source)
        # The markup around the new segments is copied from this element.
        frame = seg_source if target is None or not target.children else target
        marks: list[str] = []
        pieces = [_with_state(opening, "translated")]
        position = frame.content_start
        for mid, segment in _segments_of(frame).items():
            if mid not in sources or (frame is target and segment.children):
                continue
            source = sources[mid]
            start = self.source.opening(segment)
            mark = self._add_segment(
                source, partial(_render_segment_of_xliff_1, opening=start, source=source.content())
            )
            if mark is not None:
                marks.append(mark)
            copy = start + self.source.raw(source.content_start, source.content_end)
            pieces += [self.source.raw(position, segment.start), mark or copy, self.source.closing(segment)]
            position = segment.end
        pieces += [self.source.raw(position, frame.content_end), _closing(opening)]
        return "".join(pieces) if marks else None

    def _around_target(self, node: XmlNode, target: XmlNode | None) -> tuple[str, str]:
        """Return the content of a unit before and after its target. A new target comes after the source."""
        raw = self.source.raw
        if target is not None:
            return raw(node.content_start, target.start), raw(target.end, node.content_end)
        source = node.find("source") or node
        indent = raw(node.content_start, source.start)
        last = node.find("seg-source") or source
        before, after = raw(node.content_start, last.end), raw(last.end, node.content_end)
        return before + (indent if not indent.strip() else ""), after

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
    return state in _UNTRANSLATED_STATES and target.content().strip() == source.content().strip()


def _segments_of(node: XmlNode) -> dict[str, XmlNode]:
    """Return the segments of a unit of XLIFF 1.2 (<mrk mtype="seg">) by their ids."""
    return {
        child.attributes.get("mid", ""): child
        for child in node.walk()
        if child.name == "mrk" and child.attributes.get("mtype") == "seg"
    }


def _is_protected(node: XmlNode) -> bool:
    return node.attributes.get("mtype") == "protected" or node.attributes.get("translate") == "no"


def _code_of(node: XmlNode) -> tuple[str, bool] | None:
    """Return a key that is the same for both codes of a pair, and whether this node is the opening code.

    Return None if the node is not such a code.
    """
    attributes = node.attributes
    if node.name in _CLOSING_CODE_OF:
        return f"{node.name} {attributes.get('rid') or attributes.get('id')}", True
    if node.name in _OPENING_CODE_OF:
        key = attributes.get("startRef") or attributes.get("rid") or attributes.get("id")
        return f"{_OPENING_CODE_OF[node.name]} {key}", False
    return None


def _render_target(pieces: Iterable[str | Tag], *, opening: str, source: str) -> str:
    content = render_xml(pieces)
    opening = _with_state(opening, "translated" if _keeps_placeholders(content, source) else _NEEDS_REVIEW)
    return f"{opening}{content}{_closing(opening)}"


def _render_segment_of_xliff_2(
    pieces: Iterable[str | Tag], *, start_tag: str, before: str, after: str, source: str
) -> str:
    """Write a segment of XLIFF 2.x with its new state. The old subState is removed with the old state."""
    content = render_xml(pieces)
    state = 'state="translated"' if _keeps_placeholders(content, source) else _REVIEW_OF_SEGMENT
    start_tag = re.sub(r"""\s(?:state|subState)\s*=\s*(?:"[^"]*"|'[^']*')""", "", start_tag)
    return f"{start_tag[:-1]} {state}>{before}{content}{after}"


def _render_segment_of_xliff_1(pieces: Iterable[str | Tag], *, opening: str, source: str) -> str:
    """Write a segment of XLIFF 1.2 without its end tag. It has no state, so a comment asks for a review."""
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
    """Declare the target language in elements that declare only the source language."""
    declarations = {("file", "source-language"): "target-language", ("xliff", "srcLang"): "trgLang"}
    for (name, source), target in declarations.items():
        tag = rf"<(?:[\w.-]+:)?{name}\b(?![^<>]*\s{target}\s*=)[^<>]*?"
        attribute = rf"\s{source}\s*=\s*(?:\"[^\"]*\"|'[^']*')"
        text = re.sub(tag + attribute, rf'\g<0> {target}="{language}"', text)
    return text


XLIFF = DocumentFormat(
    (".xlf", ".xliff"),
    "application/xliff+xml",
    partial(read_xml_file, prefixes=_PREFIXES, root="xliff", reader=_Reader, set_language=_set_language),
    syntax_characters=b"<&",
)
