"""DOCX, PPTX and XLSX files: the parts that contain text, and the workbooks with the data of charts.

The labels of a chart are stored twice: in the chart and in its workbook, an .xlsx file inside the archive.
Both copies are translated, so that the labels stay the same when somebody edits the data.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

from jumok.documents.document import DocumentFormat, SegmentTranslation
from jumok.documents.ooxml import OoxmlReader
from jumok.documents.ooxml_language import ooxml_language_setter
from jumok.documents.segment import has_letters
from jumok.documents.workbook import (
    WORKBOOK_PART,
    CellFilter,
    compute_on_load,
    formulas_use_column_names,
    has_text_results,
    names_sheets_or_columns,
    read_cell_filter,
)
from jumok.documents.xml_tree import decode_xml
from jumok.documents.zip_document import ArchivePart, ZipDocument, open_archive, read_part, unpack_parts
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zipfile import ZipFile

    from jumok.documents.zip_document import LanguageSetter, PartWithText

_PART_NAMES = {
    "docx": r"word/(document\d*|header\d*|footer\d*|footnotes|endnotes|comments)\.xml"
    r"|word/(charts/chart(?:Ex)?|diagrams/data|diagrams/drawing|drawings/drawing)\d*\.xml",
    "pptx": r"ppt/(slides/slide|notesSlides/notesSlide|charts/chart(?:Ex)?|diagrams/data|diagrams/drawing"
    r"|drawings/drawing)\d*\.xml|ppt/comments/(comment\d*|modernComment_\w+)\.xml",
    "xlsx": r"xl/(sharedStrings|(worksheets/sheet|comments|drawings/drawing|charts/chart(?:Ex)?)\d*)\.xml"
    r"|xl/(tables/table|comments/comment|threadedComments/threadedComment)s?\d*\.xml",
}
_SHEET_TEXT = re.compile(
    rb"inlineStr|<(?:\w+:)?(?:filter\s|(?:odd|even|first)(?:Head|Foot)er>"
    rb"|(?:hyperlink|dataValidation)\s[^<>]*?(?:tooltip|prompt|error)"
    rb"|c\s[^<>]*?\bt=[\"']str[\"'][^<>]*+>\s*+<(?:\w++:)?v)"
)
"""Matches the XML of a worksheet that contains text. Most worksheets only refer to sharedStrings.xml."""
_RELATIONS_OF_CHARTS = re.compile(r"(word|ppt)/charts/_rels/chart(?:Ex)?\d+\.xml\.rels")
_WORKBOOK_TARGET = re.compile(r"""\sTarget=["']([^"'<>]*+(?<=\.xlsx))["'](?![^<>]*+External)""")


def _has_text(name: str, kind: str) -> bool:
    """Return whether parts of this name contain text in a file of this kind: "docx", "pptx" or "xlsx"."""
    return re.fullmatch(_PART_NAMES[kind], name, re.IGNORECASE) is not None


def _is_parsed(name: str, kind: str) -> bool:
    """Return whether a part is parsed, because it contains text, or the names of sheets or columns."""
    return _has_text(name, kind) or (kind == "xlsx" and names_sheets_or_columns(name))


def _read(data: bytes, kind: str) -> ZipDocument:
    with open_archive(data) as archive:
        names = archive.namelist()
        cell_filter = read_cell_filter(archive) if kind == "xlsx" else CellFilter()
        parts = _read_parts(archive, kind, cell_filter)
        notes = cell_filter.notes()
        for name in _workbooks_of_charts(archive):
            workbook = _read_chart_workbook(read_part(archive, name))
            if workbook is None:
                notes.append(f"The workbook behind a chart is damaged and is not translated: {name}.")
            elif workbook.segments:
                parts[name] = workbook
        recomputes = kind == "xlsx" and bool(parts) and has_text_results(archive)
    if "[Content_Types].xml" not in names:
        raise DataError(f"This archive is no .{kind} file: it has no part [Content_Types].xml.")
    return ZipDocument(data, parts, partial(_language_setter, recomputes=recomputes), notes)


def _read_parts(
    archive: ZipFile, kind: str, cell_filter: CellFilter, *, renames_columns: bool = False
) -> dict[str, PartWithText]:
    parts: dict[str, PartWithText] = {}
    for name in sorted(archive.namelist(), key=_natural_order):
        if not _has_text(name, kind):
            continue
        raw = read_part(archive, name)
        if name.lower().startswith("xl/worksheets/") and not _SHEET_TEXT.search(raw):
            continue  # all its strings are in sharedStrings.xml
        text, encoding = decode_xml(raw)
        template = OoxmlReader(text, kind, cell_filter, renames_columns=renames_columns).read()
        if template.segments:
            parts[name] = ArchivePart(template, encoding)
    return parts


def _natural_order(name: str) -> list[tuple[int, str, str]]:
    """Return a sort key that puts slide2 before slide10, and notesSlide1 before slide2.

    Numbers are compared by their lengths and digits, because `int` rejects thousands of digits.
    """
    parts = ((letters, digits.lstrip("0")) for letters, digits in re.findall(r"(\D+)(\d*)", name))
    return [(len(digits), digits, letters) for letters, digits in parts]


def _language_setter(name: str, *, recomputes: bool) -> LanguageSetter | None:
    """Return the function that sets the language of a part, or None.

    If `recomputes` is true, the function for the workbook part makes Excel compute all formulas on opening.
    """
    if name == WORKBOOK_PART and recomputes:
        return lambda data, _: compute_on_load(data)
    return ooxml_language_setter(name)


# --- Charts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ChartWorkbook:
    """The workbook behind a chart. The columns of its table are renamed like their header cells."""

    document: ZipDocument
    columns: frozenset[str]
    """The names of the columns that are renamed. If the set is empty, no column is renamed."""

    @property
    def segments(self) -> list[str]:
        return self.document.segments

    def write(self, translations: Sequence[SegmentTranslation]) -> bytes:
        """Write the workbook. If two columns would get the same name, all columns keep their names."""
        pairs = list(zip(self.segments, translations, strict=True))
        names = dict.fromkeys(self.columns, "") | {text.strip(): new.text for text, new in pairs}
        new_names = {(names[column] or column).strip().casefold() for column in self.columns}
        if len(new_names) < len(self.columns):
            translations = [
                SegmentTranslation(text) if text.strip() in self.columns else new for text, new in pairs
            ]
        return self.document.write(translations)


def _workbooks_of_charts(archive: ZipFile) -> list[str]:
    """Return the names of the parts that are workbooks of charts."""
    names: dict[str, None] = {}
    for part in filter(_RELATIONS_OF_CHARTS.fullmatch, archive.namelist()):
        folder = posixpath.dirname(posixpath.dirname(part))
        for target in _WORKBOOK_TARGET.findall(decode_xml(read_part(archive, part))[0]):
            names[posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")] = None
    return [name for name in names if name in archive.NameToInfo]


def _read_chart_workbook(data: bytes) -> _ChartWorkbook | None:
    """Read the workbook of a chart. Return None if it is damaged, so that the document can be translated.

    The columns of its table are renamed if no formula uses their names and each name is the text of a cell.
    """
    try:
        with open_archive(data) as archive:
            cell_filter = read_cell_filter(archive)
            if not formulas_use_column_names(archive):
                without_columns = CellFilter(
                    compared_texts=cell_filter.compared_texts, searched_texts=cell_filter.searched_texts
                )
                parts = _read_parts(archive, "xlsx", without_columns, renames_columns=True)
                if all(map(without_columns.is_translated, filter(has_letters, cell_filter.columns))):
                    return _ChartWorkbook(ZipDocument(data, parts), cell_filter.columns)
            return _ChartWorkbook(ZipDocument(data, _read_parts(archive, "xlsx", cell_filter)), frozenset())
    except DataError:
        return None


# --- Formats ------------------------------------------------------------------------------------------------


def _unpack(data: bytes, kind: str) -> Iterator[bytes]:
    """Yield the parts that are parsed, including the parts inside the workbooks of charts."""
    yield from unpack_parts(data, partial(_is_parsed, kind=kind))
    with open_archive(data) as archive:
        for name in _workbooks_of_charts(archive):
            workbook = read_part(archive, name)
            # The caller adds up the sizes of the parts, and the workbook counts as well. Zeros are yielded in
            # place of its bytes, because compressed bytes must not be counted as syntax characters.
            yield bytes(len(workbook))
            try:
                yield from unpack_parts(workbook, partial(_is_parsed, kind="xlsx"))
            except DataError:  # a damaged workbook is not translated
                continue


def _format(kind: str, media_type: str) -> DocumentFormat:
    return DocumentFormat(
        (f".{kind}",),
        f"application/vnd.openxmlformats-officedocument.{media_type}",
        partial(_read, kind=kind),
        syntax_characters=b"<",
        unpack=partial(_unpack, kind=kind),
    )


DOCX = _format("docx", "wordprocessingml.document")
PPTX = _format("pptx", "presentationml.presentation")
XLSX = _format("xlsx", "spreadsheetml.sheet")
