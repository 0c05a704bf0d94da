"""The XML of DOCX, PPTX and XLSX: paragraphs are segments. In a workbook, strings are segments.

    <w:p><w:r><w:t>My name </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>is</w:t></w:r>…</w:p>

The base of a paragraph is the run with the formatting of most characters in the paragraph. Links, insertions
and words with other formatting are inline elements. Runs of DOCX that differ only in properties for proofing,
such as the language, are read as one run. Deleted text, hidden text, field codes and formulas are not
translated.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

from jumok.documents.marked_template import MarkedSegment, render_tags
from jumok.documents.segment import (
    COLUMN_BREAK,
    LINE_BREAK,
    PAGE_BREAK,
    TAB,
    Element,
    Segment,
    SegmentBuilder,
    Tag,
    has_letters,
)
from jumok.documents.xml_reader import XmlReader, escape_xml
from jumok.documents.xml_tree import read_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.documents.workbook import CellFilter
    from jumok.documents.xml_tree import XmlNode, XmlSource

_PREFIXES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "x",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "x",
    "http://schemas.openxmlformats.org/presentationml/2006/main": "p",
    "http://purl.oclc.org/ooxml/presentationml/main": "p",
    "http://schemas.openxmlformats.org/drawingml/2006/chart": "c",
    "http://purl.oclc.org/ooxml/drawingml/chart": "c",
    "http://schemas.microsoft.com/office/drawing/2014/chartex": "cx",
    "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments": "tc",
}
_CELL_TEXTS = frozenset(["x:si", "x:is"])  # a string that cells share, and the string of one cell
_SHEET_HEADERS = frozenset(
    f"x:{pages}{end}" for pages in ("odd", "even", "first") for end in ("Header", "Footer")
)
_HEADER_CODE = re.compile(
    r"""(&amp;(?:&amp;|(?:"|&quot;)[^"&]*+(?:"|&quot;)|\d++|K[\dA-Fa-f]{6}|K\d\d[+-]\d{3}|.))""", re.DOTALL
)
"""Codes in the header of a sheet: &L begins the left section, &P is the number of the page, && is an &."""
_CELL_ATTRIBUTES = {"filter": frozenset(["val"]), "tableColumn": frozenset(["totalsRowLabel"])}
"""Attributes of a workbook that repeat the texts of cells."""
_ALTERNATIVE_TEXT = frozenset(["descr", "title"])
_TEXT_ATTRIBUTES = {
    "docPr": _ALTERNATIVE_TEXT,
    "cNvPr": _ALTERNATIVE_TEXT,
    **dict.fromkeys(["shape", "rect", "oval", "roundrect", "group"], frozenset(["alt"])),
    "tblCaption": frozenset(["w:val"]),
    "tblDescription": frozenset(["w:val"]),
    "hlinkClick": frozenset(["tooltip"]),
    "hlinkHover": frozenset(["tooltip"]),
    "hyperlink": frozenset(["tooltip", "w:tooltip"]),
    "dataValidation": frozenset(["promptTitle", "prompt", "errorTitle", "error"]),
    **_CELL_ATTRIBUTES,
}
"""Attributes that people read, by the name of their element: alternative texts, tooltips and input messages.
The keys have no namespace, because programs use docPr, cNvPr and the shapes of VML in many namespaces."""
_NO_ATTRIBUTES: frozenset[str] = frozenset()
_PARAGRAPHS = frozenset(["w:p", "a:p", "x:si", "x:is", "x:text"])
_RUNS = frozenset(["w:r", "a:r", "x:r"])
_TEXTS = frozenset(["w:t", "a:t", "x:t"])
_PROPERTIES = frozenset(["w:rPr", "a:rPr", "x:rPr"])
_WRAPPERS = frozenset(["w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:dir", "w:bdo"])
_WRAPPER_PROPERTIES = frozenset(["w:smartTagPr", "w:customXmlPr"])
"""Properties that stay at the beginning of their wrapper."""
_CHART_LABELS = frozenset(["c:v", "cx:pt", "cx:v"])
_LABELS = {"docx": _CHART_LABELS, "pptx": _CHART_LABELS | {"p:text"}, "xlsx": frozenset(["tc:text"])}
"""Elements with plain text: comments, and the labels of a chart's data. The charts of a workbook take their
labels from its cells."""
_OPAQUE_ELEMENTS = frozenset(["w:del", "w:moveFrom", "c:numCache", "c:numLit", "cx:numDim"])
"""Deleted text of tracked changes and the numbers of a chart, which are copied."""
_ELEMENTS_BEFORE_TEXT = frozenset(
    ["w:pPr", "a:pPr", "w:bookmarkStart", "w:commentRangeStart", "w:permStart", "w:moveToRangeStart"]
)
"""Starts of ranges, and the properties of a paragraph, which stay before its words."""
_ELEMENTS_AFTER_TEXT = frozenset(
    [
        "a:endParaRPr",
        "w:bookmarkEnd",
        "w:commentRangeEnd",
        "w:permEnd",
        "w:moveToRangeEnd",
        "x:rPh",
        "x:phoneticPr",
    ]
)
"""Ends of ranges, properties, and phonetic guides, which stay after the words. The order of the ends matters,
so they do not move with words."""
_DROPPED_ELEMENTS = frozenset(["w:proofErr", "w:lastRenderedPageBreak"])
"""Notes of Word about the source text. They do not apply to the translation."""
_CHARACTERS = {
    "w:tab": TAB,
    "w:br": LINE_BREAK,
    "w:cr": LINE_BREAK,
    "a:br": LINE_BREAK,
    "w:noBreakHyphen": "\u2011",
    "w:softHyphen": "",
}
_BREAKS = {"textWrapping": LINE_BREAK, "page": PAGE_BREAK, "column": COLUMN_BREAK}
"""The characters of <w:br w:type="…"/>."""
_PROOFING_PROPERTIES = re.compile(r"<(\w+:)?(lang|noProof)\b[^<>]*/>")
_EMPTY_PROPERTIES = re.compile(r"<([\w:]*rPr)>\s*</\1>")
_MAX_FIELD_DEPTH = 8
"""The maximum depth of nested fields that are links. A deeper link is an atomic element."""


# --- Reading ------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Run(Element):
    """A run: its start tag with its properties, and its end tag."""

    dialect: str = ""
    """The prefix of the run's namespace in _PREFIXES: w (DOCX), a (PPTX, drawings) or x (XLSX)."""
    prefix: str = ""
    """The prefix of the element names in the file, with a colon, or "" if the names have no prefix."""


class _RunText(NamedTuple):
    """Text in a run."""

    text: str
    run: Run


@dataclass(slots=True)
class _Paragraph:
    """The content of a paragraph.

    `items` contains, in order, text with its run, atomic markup (str), and the tags of elements that move.
    `before` and `after` contain markup that stays before and after the words.
    """

    before: list[str] = field(default_factory=list)
    items: list[_RunText | str | Tag] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def last_run(self) -> Run | None:
        return next((item.run for item in reversed(self.items) if isinstance(item, _RunText)), None)

    def base(self) -> Run | None:
        """Return the first run with the formatting of most characters, or None if there is no text."""
        lengths: Counter[str] = Counter()
        runs: dict[str, Run] = {}
        for item in self.items:
            if isinstance(item, _RunText):
                lengths[item.run.opening] += len(item.text)
                runs.setdefault(item.run.opening, item.run)
        return runs[lengths.most_common(1)[0][0]] if lengths else None


class OoxmlReader(XmlReader):
    """Turns the paragraphs of one part into segments."""

    def __init__(
        self, text: str, kind: str, cell_filter: CellFilter, *, renames_columns: bool = False
    ) -> None:
        """`kind` is "docx", "pptx" or "xlsx".

        If `renames_columns` is true, table columns get the names of their translated header cells.
        """
        super().__init__(read_xml(text, _PREFIXES))
        self._labels = _LABELS[kind]
        self._cell_filter = cell_filter
        self._renames_columns = renames_columns

    def is_paragraph(self, node: XmlNode) -> bool:
        if node.name == "w:sdtContent":  # a control whose words must stay inside the control
            return any(child.name in _RUNS for child in node.children)
        if node.name == "x:c":  # some programs write a string as if it were the result of a formula
            return node.attributes.get("t") == "str" and node.find("x:f") is None
        return node.name in _PARAGRAPHS or node.name in self._labels or node.name in _SHEET_HEADERS

    def is_opaque(self, node: XmlNode) -> bool:
        # A comment with a mention is not translated, because a mention stores the position of a name in it.
        if node.name == "tc:threadedComment":
            return any(child.name == "tc:mentions" and child.children for child in node.children)
        return node.name in _OPAQUE_ELEMENTS

    def text_attributes(self, node: XmlNode) -> frozenset[str]:
        names = _TEXT_ATTRIBUTES.get(node.name.rpartition(":")[2], _NO_ATTRIBUTES)
        return names | {"name"} if self._renames_columns and node.name == "x:tableColumn" else names

    def is_untranslated_value(self, node: XmlNode, value: str) -> bool:
        if node.name.rpartition(":")[2] in _CELL_ATTRIBUTES:
            return not self._cell_filter.is_translated(value)
        return super().is_untranslated_value(node, value)

    def read_content(self, node: XmlNode) -> str | None:
        if node.name in self._labels:
            return self.add_text(node)
        if node.name == "x:c":
            return self._read_cell(node)
        if node.name in _SHEET_HEADERS:
            raw = self.raw_content(node)
            # The headers that Excel writes have no elements and no CDATA.
            return None if "<" in raw else self._read_header(raw)
        if node.name in _CELL_TEXTS and not self._cell_filter.add_cell(_cell_text(node)):
            return None
        paragraph = _Paragraph()
        self._read_children(node.children, paragraph)
        return self._mark(paragraph, self.raw_content(node))

    def _read_cell(self, node: XmlNode) -> str | None:
        """Return the content of a cell with a mark for its value, or None if the cell is not translated."""
        value = node.find("x:v")
        if (
            value is None
            or not self._cell_filter.add_cell(value.content())
            or (mark := self.add_text(value)) is None
        ):
            return None
        before = self.source.raw(node.content_start, value.content_start)
        return before + mark + self.source.raw(value.content_end, node.content_end)

    def _read_header(self, raw: str) -> str:
        """Return the header of a sheet with marks for its left, centre and right sections."""
        sections = []
        builder, start, end = SegmentBuilder(), 0, 0
        # Text, code, text, …, text, and a code that ends the last section.
        for index, piece in enumerate([*_HEADER_CODE.split(raw), "&amp;L"]):
            is_code = index % 2 == 1 and piece != "&amp;&amp;"
            if is_code and piece[-1] in "LCR" and len(piece) == len("&amp;L"):
                sections += [self._mark_section(builder, raw[start:end]), piece]
                builder, start = SegmentBuilder(), end + len(piece)
            elif is_code:
                builder.add_atomic(piece)
            else:
                builder.add_text(unescape(piece).replace("&&", "&"))
            end += len(piece)
        return "".join(sections[:-1])

    def _mark_section(self, builder: SegmentBuilder, raw: str) -> str:
        segment = builder.finish(raw)
        if not has_letters(segment.text):
            return raw
        render = partial(render_tags, encode=lambda text: escape_xml(text.replace("&", "&&")))
        return self.template.add(MarkedSegment(segment, render))

    def _mark(self, paragraph: _Paragraph, raw: str) -> str | None:
        """Return the mark of the paragraph's segment, or None if the paragraph has nothing to translate."""
        base = paragraph.base()
        if base is None:
            return None
        segment = _build_segment(paragraph, base, raw)
        if not has_letters(segment.text):
            return None
        render = partial(_render_runs, base=base)
        before, after = "".join(paragraph.before), "".join(paragraph.after)
        return self.template.add(MarkedSegment(segment, render, before, after))

    def _read_children(self, children: Sequence[XmlNode], paragraph: _Paragraph, depth: int = 0) -> None:
        fields = _match_fields(children)
        index = 0
        while index < len(children):
            child = children[index]
            part = _field_part(child)
            if part == "begin":
                index = self._read_field(children, _Field(index, *fields[index]), paragraph, depth)
                continue
            if part == "whole":
                paragraph.items.append(self.markup(child))
            elif part:  # "separate" or "end" of a field that began in an earlier paragraph
                follows_words = part == "end" and paragraph.last_run() is not None
                (paragraph.after if follows_words else paragraph.before).append(self.markup(child))
            else:
                self._read_child(child, paragraph, depth)
            index += 1

    def _read_child(self, child: XmlNode, paragraph: _Paragraph, depth: int) -> None:
        name = child.name
        if name in _ELEMENTS_BEFORE_TEXT:
            paragraph.before.append(self.markup(child))
        elif name in _ELEMENTS_AFTER_TEXT:
            paragraph.after.append(self.markup(child))
        elif name in _RUNS:
            self._read_run(child, paragraph)
        elif name == "x:t":
            prefix = _file_prefix(self.source, child)
            paragraph.items.append(_RunText(child.content(), Run("", "", dialect="x", prefix=prefix)))
        elif name == "a:br":
            run = paragraph.last_run() or Run("<a:r>", "</a:r>", dialect="a", prefix="a:")
            paragraph.items.append(_RunText(LINE_BREAK, run))
        elif name in _WRAPPERS or _is_simple_link(child):
            properties = [node for node in child.children if node.name in _WRAPPER_PROPERTIES]
            opening = self.opening(child) + "".join(map(self.source.raw_node, properties))
            element = Element(opening, self.source.closing(child))
            paragraph.items.append(Tag(element, begins=True))
            words = [node for node in child.children if node not in properties]
            self._read_children(words, paragraph, depth)
            paragraph.items.append(Tag(element, begins=False))
        elif name and name not in _DROPPED_ELEMENTS:
            paragraph.items.append(self.markup(child))

    def _read_run(self, node: XmlNode, paragraph: _Paragraph) -> None:
        source = self.source
        properties = next((child for child in node.children if child.name in _PROPERTIES), None)
        if properties is not None and (properties.find("w:vanish") or properties.find("w:webHidden")):
            paragraph.items.append(self.markup(node))
            return
        raw_properties = "" if properties is None else self.markup(properties)
        if node.name == "w:r":
            raw_properties = _EMPTY_PROPERTIES.sub("", _PROOFING_PROPERTIES.sub("", raw_properties))
        prefix = _file_prefix(source, node)
        run = Run(f"<{prefix}r>{raw_properties}", f"</{prefix}r>", dialect=node.name[:1], prefix=prefix)
        for child in node.children:
            character = _character_of(child, prefix)
            if child.name in _TEXTS:
                paragraph.items.append(_RunText(_to_segment_text(child), run))
            elif character is not None:
                paragraph.items.append(_RunText(character, run))
            elif child is not properties and child.name and child.name not in _DROPPED_ELEMENTS:
                paragraph.items.append(run.opening + self.markup(child) + run.closing)

    def _read_field(
        self, children: Sequence[XmlNode], field: _Field, paragraph: _Paragraph, depth: int
    ) -> int:
        """Read a field and return the index of the child after the field.

        A link is an inline element around its words. Other fields are atomic. If a field ends in a later
        paragraph, as a table of contents does, its code stays before the words of the paragraph.
        """
        begin, separate, end = field
        if end is None:
            after = len(children) if separate is None else separate + 1
            paragraph.before.append("".join(map(self.markup, children[begin:after])))
            return after
        if separate is None or depth == _MAX_FIELD_DEPTH or not _is_link(children[begin:separate]):
            paragraph.items.append("".join(map(self.markup, children[begin : end + 1])))
            return end + 1
        opening = "".join(map(self.markup, children[begin : separate + 1]))
        element = Element(opening, self.markup(children[end]))
        paragraph.items.append(Tag(element, begins=True))
        self._read_children(children[separate + 1 : end], paragraph, depth + 1)
        paragraph.items.append(Tag(element, begins=False))
        return end + 1


class _Field(NamedTuple):
    """The indices of the runs that begin a field, separate its code from its result, and end it."""

    begin: int
    separate: int | None
    end: int | None


def _match_fields(children: Sequence[XmlNode]) -> dict[int, tuple[int | None, int | None]]:
    """Return the separating and the ending run of each field, by the index of the run that begins it."""
    fields: dict[int, tuple[int | None, int | None]] = {}
    open_fields: list[int] = []
    for index, child in enumerate(children):
        part = _field_part(child)
        if part == "begin":
            open_fields.append(index)
            fields[index] = (None, None)
        elif part == "separate" and open_fields and fields[open_fields[-1]][0] is None:
            fields[open_fields[-1]] = (index, None)
        elif part == "end" and open_fields:
            begin = open_fields.pop()
            fields[begin] = (fields[begin][0], index)
    return fields


def _is_simple_link(node: XmlNode) -> bool:
    """Return whether a node is a link in a simple field. Word computes the words of other simple fields."""
    return node.name == "w:fldSimple" and _is_link_code(node.attributes.get("w:instr", ""))


def _is_link_code(code: str) -> bool:
    return code.strip().upper().startswith("HYPERLINK")


def _is_link(code: Sequence[XmlNode]) -> bool:
    texts = [node.content() for child in code for node in child.walk() if node.name == "w:instrText"]
    return _is_link_code("".join(texts))


def _build_segment(paragraph: _Paragraph, base: Run, raw: str) -> Segment:
    builder = SegmentBuilder()
    current: Run | None = None  # the open run, or None in the base
    for item in paragraph.items:
        opening = item.run.opening if isinstance(item, _RunText) else ""
        if current is not None and opening != current.opening:
            builder.close_element()
            current = None
        if isinstance(item, str):
            builder.add_atomic(item)
        elif isinstance(item, _RunText):
            if current is None and opening != base.opening:
                current = replace(item.run)
                builder.open_element(current)
            builder.add_text(item.text)
        elif item.begins:
            builder.open_element(item.element)
        else:
            builder.close_element()
    return builder.finish(raw)


def _field_part(node: XmlNode) -> str:
    """Return the part of a field that a run marks: "begin", "separate" or "end".

    If the run begins and ends the same field, return "whole". For any other node, return "".
    """
    if node.name != "w:r":
        return ""
    marks = [
        child.attributes.get("w:fldCharType", "") for child in node.children if child.name == "w:fldChar"
    ]
    if marks[:1] == ["begin"] and marks.count("begin") == marks.count("end"):
        return "whole"
    return marks[0] if marks else ""


def _file_prefix(source: XmlSource, node: XmlNode) -> str:
    """Return the prefix of an element's name in the file, with a colon, or "" if the name has no prefix."""
    name = re.match(r"<([^\s/>]+)", source.raw(node.start, node.end))
    return f"{name[1].partition(':')[0]}:" if name and ":" in name[1] else ""


def _character_of(node: XmlNode, prefix: str) -> str | None:
    """Return the character for a tab, a break or a hyphen.

    Return None if the node is something else, or a break with attributes that no character stands for.
    """
    if not node.attributes:
        return _CHARACTERS.get(node.name)
    # If the element names of the file have no prefix, the prefix of the attribute is unknown.
    is_typed_break = prefix and node.name == "w:br" and node.attributes.keys() == {"w:type"}
    return _BREAKS.get(node.attributes["w:type"]) if is_typed_break else None


def _cell_text(node: XmlNode) -> str:
    """Return the text of a cell, without the phonetic guides of Japanese words."""
    runs = (child if child.name == "x:t" else child.find("x:t") for child in node.children)
    return "".join(run.content() for run in runs if run is not None)


def _to_segment_text(node: XmlNode) -> str:
    text = node.content()
    if node.name == "a:t":
        return text.replace("\t", TAB)
    return re.sub(r"[\t\r\n]+", " ", text) if node.name == "w:t" else text


# --- Writing ------------------------------------------------------------------------------------------------


def _render_runs(pieces: Sequence[str | Tag], base: Run) -> str:
    """Write text in runs. Text is written in the innermost open run. If no run is open, the base is used."""
    output: list[str] = []
    open_runs = [base]
    texts: list[str] = []  # the texts of the current run that are not in the output yet
    current = base

    def flush() -> None:
        if texts:
            output.append(_render_run("".join(texts), current))
            texts.clear()

    for piece in pieces:
        if isinstance(piece, str):
            if open_runs[-1].opening != current.opening:
                flush()
                current = open_runs[-1]
            texts.append(piece)
        elif isinstance(piece.element, Run):
            if piece.begins:
                open_runs.append(piece.element)
            else:
                open_runs.pop()
        else:
            flush()
            output.append(piece.element.opening if piece.begins else piece.element.closing)
    flush()
    return "".join(output)


def _render_run(text: str, run: Run) -> str:
    prefix = run.prefix
    if run.dialect == "x":
        return run.opening + _text_element(text, prefix) + run.closing
    if run.dialect == "a":  # a line break is between runs
        lines = [escape_xml(line.replace(TAB, "\t")) for line in text.split(LINE_BREAK)]
        return f"<{prefix}br/>".join(
            f"{run.opening}<{prefix}t>{line}</{prefix}t>{run.closing}" if line else "" for line in lines
        )
    marks = {
        LINE_BREAK: f"<{prefix}br/>",
        TAB: f"<{prefix}tab/>",
        PAGE_BREAK: f'<{prefix}br {prefix}type="page"/>',
        COLUMN_BREAK: f'<{prefix}br {prefix}type="column"/>',
    }
    parts = re.split(f"([{''.join(marks)}])", text)
    content = [marks.get(part) or _text_element(part, prefix) for part in parts if part]
    return run.opening + "".join(content) + run.closing


def _text_element(text: str, prefix: str) -> str:
    space = ' xml:space="preserve"' if text != text.strip() or "  " in text or "\n" in text else ""
    return f"<{prefix}t{space}>{escape_xml(text)}</{prefix}t>"
