"""DOCX, PPTX and XLSX: paragraphs (in a workbook: strings) are segments; formatted runs are inline elements.

    <w:p><w:r><w:t>My name </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>is</w:t></w:r>…</w:p>

The format of most characters of a paragraph is its base; words in other formats, links and insertions are
inline elements. Runs that differ only in Word's notes on proofing are one run. Deleted text, hidden text,
field codes and formulas are not translated.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from jumok.documents.document import DocumentFormat
from jumok.documents.marked_template import SegmentMark
from jumok.documents.ooxml_language import set_ooxml_language
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
from jumok.documents.xml_reader import XmlReader, escape_xml, render_xml
from jumok.documents.xml_tree import decode_xml, read_xml
from jumok.documents.zip_document import ArchivePart, ZipDocument, open_archive, read_part, unpack_parts
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from zipfile import ZipFile

    from jumok.documents.xml_tree import XmlNode, XmlSource

_PREFIXES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "x",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "x",
    "http://schemas.openxmlformats.org/drawingml/2006/chart": "c",
    "http://purl.oclc.org/ooxml/drawingml/chart": "c",
    "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments": "tc",
}
_PARAGRAPHS = frozenset(["w:p", "a:p", "x:si", "x:is", "x:text"])
_RUNS = frozenset(["w:r", "a:r", "x:r"])
_TEXTS = frozenset(["w:t", "a:t", "x:t"])
_PROPERTIES = frozenset(["w:rPr", "a:rPr", "x:rPr"])
_WRAPPERS = frozenset(["w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:dir", "w:bdo"])
_WRAPPER_PROPERTIES = frozenset(["w:smartTagPr", "w:customXmlPr"])
"""Properties that stay at the beginning of their wrapper."""
_LABELS = {"docx": frozenset(["c:v"]), "pptx": frozenset(["c:v"]), "xlsx": frozenset(["tc:text"])}
"""Elements with plain text: labels of a chart's data (in a workbook the cells have them), and comments."""
_OPAQUE = frozenset(["w:del", "w:moveFrom", "c:numCache", "c:numLit"])
"""Deleted text of tracked changes and the numbers of a chart, which are copied."""
_STAY_BEFORE = frozenset(
    ["w:pPr", "a:pPr", "w:bookmarkStart", "w:commentRangeStart", "w:permStart", "w:moveToRangeStart"]
)
_STAY_AFTER = frozenset(
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
"""Ranges and properties: the order of their ends matters, so they do not move with words."""
_DROPPED = frozenset(["w:proofErr", "w:lastRenderedPageBreak"])
"""Notes about the old text, which a translated paragraph does not need."""
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
"""How many links may be nested; a deeper one is atomic."""
_PART_NAMES = {
    "docx": r"word/(document\d*|header\d*|footer\d*|footnotes|endnotes|comments)\.xml"
    r"|word/(charts/chart|diagrams/data|diagrams/drawing)\d+\.xml",
    "pptx": r"ppt/(slides/slide|notesSlides/notesSlide|charts/chart|diagrams/data|diagrams/drawing)\d+\.xml",
    "xlsx": r"xl/(sharedStrings|(worksheets/sheet|comments|drawings/drawing|charts/chart)\d+)\.xml"
    r"|xl/(comments/comment|threadedComments/threadedComment)s?\d+\.xml",
}


# --- Reading ------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Run(Element):
    """A run: its start tag with its properties, and its end tag."""

    dialect: str = ""
    """w, a or x, as in _PREFIXES."""
    prefix: str = ""
    """The prefix of the file's element names, with its colon; "" if they have none."""


class _RunText(NamedTuple):
    """Text in a run."""

    text: str
    run: Run


@dataclass(slots=True)
class _Paragraph:
    """The content of a paragraph in order: text with its run, markup that is atomic, elements that move."""

    before: list[str] = field(default_factory=list)
    items: list[_RunText | str | Tag] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def last_run(self) -> Run | None:
        return next((item.run for item in reversed(self.items) if isinstance(item, _RunText)), None)

    def base(self) -> Run | None:
        """Return the run with the format of most characters."""
        lengths: Counter[str] = Counter()
        runs: dict[str, Run] = {}
        for item in self.items:
            if isinstance(item, _RunText):
                lengths[item.run.opening] += len(item.text)
                runs.setdefault(item.run.opening, item.run)
        return runs[lengths.most_common(1)[0][0]] if lengths else None


class _Reader(XmlReader):
    """Turns the paragraphs of one part into segments."""

    def __init__(self, source: XmlSource, kind: str, *, keep: frozenset[str] = frozenset()) -> None:
        super().__init__(source)
        self._labels = _LABELS[kind]
        self._keep = keep  # texts that are not translated

    def is_paragraph(self, node: XmlNode) -> bool:
        if node.name == "w:sdtContent":  # the words of a control inside a paragraph stay in it
            return any(child.name in _RUNS for child in node.children)
        return node.name in _PARAGRAPHS or node.name in self._labels

    def is_opaque(self, node: XmlNode) -> bool:
        if node.name == "tc:threadedComment":  # a person is mentioned by the position of the name
            return any(child.name == "tc:mentions" and child.children for child in node.children)
        return node.name in _OPAQUE

    def read_content(self, node: XmlNode) -> str | None:
        if node.name in self._labels:
            return self._read_label(node)
        paragraph = _Paragraph()
        self._read_children(node.children, paragraph)
        return self._mark(paragraph, self.raw_content(node))

    def _read_label(self, node: XmlNode) -> str | None:
        text = node.content()
        if not has_letters(text):
            return None
        return self.template.add(SegmentMark(Segment(text, [], self.raw_content(node)), render_xml))

    def _mark(self, paragraph: _Paragraph, raw: str) -> str | None:
        """Return the mark of the paragraph's segment; None if it has nothing to translate."""
        base = paragraph.base()
        if base is None:
            return None
        segment = _build_segment(paragraph, base, raw)
        if not has_letters(segment.text) or segment.text.strip() in self._keep:
            return None
        render = partial(_render_runs, base=base)
        before, after = "".join(paragraph.before), "".join(paragraph.after)
        return self.template.add(SegmentMark(segment, render, before, after))

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
            elif part:  # of a field that began in an earlier paragraph
                ends_words = part == "end" and paragraph.last_run() is not None
                (paragraph.after if ends_words else paragraph.before).append(self.markup(child))
            else:
                self._read_child(child, paragraph, depth)
            index += 1

    def _read_child(self, child: XmlNode, paragraph: _Paragraph, depth: int) -> None:
        name = child.name
        if name in _STAY_BEFORE:
            paragraph.before.append(self.markup(child))
        elif name in _STAY_AFTER:
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
            opening = self.source.opening(child) + "".join(map(self.source.raw_node, properties))
            element = Element(opening, self.source.closing(child))
            paragraph.items.append(Tag(element, begins=True))
            words = [node for node in child.children if node not in properties]
            self._read_children(words, paragraph, depth)
            paragraph.items.append(Tag(element, begins=False))
        elif name and name not in _DROPPED:
            paragraph.items.append(self.markup(child))

    def _read_run(self, node: XmlNode, paragraph: _Paragraph) -> None:
        source = self.source
        properties = next((child for child in node.children if child.name in _PROPERTIES), None)
        if properties is not None and (properties.find("w:vanish") or properties.find("w:webHidden")):
            paragraph.items.append(self.markup(node))
            return
        raw_properties = "" if properties is None else source.raw_node(properties)
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
            elif child is not properties and child.name and child.name not in _DROPPED:
                paragraph.items.append(run.opening + self.markup(child) + run.closing)

    def _read_field(
        self, children: Sequence[XmlNode], field: _Field, paragraph: _Paragraph, depth: int
    ) -> int:
        """Read a field; return the index of the child after it.

        The words of a link move with their field; other fields are atomic. If a field ends in a later
        paragraph, as a table of contents does, its code stays before the words.
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
    """Return whether a node is a link in one field element; the words of other such fields are computed."""
    return node.name == "w:fldSimple" and _is_link_code(node.attributes.get("w:instr", ""))


def _is_link_code(code: str) -> bool:
    return code.strip().upper().startswith("HYPERLINK")


def _is_link(code: Sequence[XmlNode]) -> bool:
    texts = [node.content() for child in code for node in child.walk() if node.name == "w:instrText"]
    return _is_link_code("".join(texts))


def _build_segment(paragraph: _Paragraph, base: Run, raw: str) -> Segment:
    builder = SegmentBuilder()
    current: Run | None = None  # the run that is open, if it is not the base
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
    """Return the mark of a field that a run has: begin, separate or end; "" if it has none.

    A run that begins and ends the same field is "whole".
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
    name = re.match(r"<([^\s/>]+)", source.raw(node.start, node.end))
    return f"{name[1].partition(':')[0]}:" if name and ":" in name[1] else ""


def _character_of(node: XmlNode, prefix: str) -> str | None:
    """Return the character for a tab, a break or a hyphen; None if no character represents the whole node."""
    if not node.attributes:
        return _CHARACTERS.get(node.name)
    # In a file without prefixes, the name of the attribute is unknown.
    is_typed_break = prefix and node.name == "w:br" and node.attributes.keys() == {"w:type"}
    return _BREAKS.get(node.attributes["w:type"]) if is_typed_break else None


def _to_segment_text(node: XmlNode) -> str:
    text = node.content()
    if node.name == "a:t":
        return text.replace("\t", TAB)
    return re.sub(r"[\t\r\n]+", " ", text) if node.name == "w:t" else text


# --- Writing ------------------------------------------------------------------------------------------------


def _render_runs(pieces: Sequence[str | Tag], base: Run) -> str:
    """Write text in runs: in the innermost open run, or else in the base."""
    output: list[str] = []
    open_runs = [base]
    texts: list[str] = []  # of the run that is being written
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


# --- Files --------------------------------------------------------------------------------------------------


def _has_text(name: str, kind: str) -> bool:
    return re.fullmatch(_PART_NAMES[kind], name) is not None


def _read(data: bytes, kind: str) -> ZipDocument:
    parts = {}
    with open_archive(data) as archive:
        names = archive.namelist()
        keep = _table_headers(archive) if kind == "xlsx" else frozenset()
        for name in sorted(names, key=_natural_order):
            if not _has_text(name, kind):
                continue
            raw = read_part(archive, name)
            if name.startswith("xl/worksheets/") and b"inlineStr" not in raw:
                continue  # its strings are those of sharedStrings.xml
            text, encoding = decode_xml(raw)
            template = _Reader(read_xml(text, _PREFIXES), kind, keep=keep).read()
            if template.segments:
                parts[name] = ArchivePart(template, encoding)
    if "[Content_Types].xml" not in names:
        raise DataError(f"This archive is no .{kind} file: it has no part [Content_Types].xml.")
    return ZipDocument(data, parts, set_ooxml_language)


def _natural_order(name: str) -> list[tuple[int, str]]:
    """Sort slide2 before slide10."""
    return [(int(digits or 0), letters) for letters, digits in re.findall(r"(\D+)(\d*)", name)]


def _table_headers(archive: ZipFile) -> frozenset[str]:
    """Return the headers of tables, which formulas use as names and Excel expects in the cells."""
    names = [name for name in archive.namelist() if re.fullmatch(r"xl/tables/table\d+\.xml", name)]
    roots = [read_xml(decode_xml(read_part(archive, name))[0], _PREFIXES).root for name in names]
    columns = [node for root in roots for node in root.walk() if node.name == "x:tableColumn"]
    return frozenset(node.attributes.get("name", "").strip() for node in columns)


def _format(kind: str, media_type: str) -> DocumentFormat:
    return DocumentFormat(
        (f".{kind}",),
        f"application/vnd.openxmlformats-officedocument.{media_type}",
        partial(_read, kind=kind),
        syntax_characters=b"<",
        unpack=partial(unpack_parts, has_text=partial(_has_text, kind=kind)),
    )


DOCX = _format("docx", "wordprocessingml.document")
PPTX = _format("pptx", "presentationml.presentation")
XLSX = _format("xlsx", "spreadsheetml.sheet")
