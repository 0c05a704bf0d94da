"""Spreadsheets: XLSX (Excel) and ODS (LibreOffice), read as tables from their XML.

One sheet is read: the first sheet that has a row with at least two cells of text among its first 100 rows.
The note of the opened file names the other sheets. Hidden sheets of XLSX are ignored. Formulas give their
last result. Formatting, comments and phonetic guides are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from jumok.data.formats.columns import Row, Table, open_table
from jumok.data.formats.pair_file import no_pairs_error, valid_unicode
from jumok.data.formats.xml_events import MAX_TEXT, read_xml
from jumok.data.input_files import member_names, read_blocks
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.data.formats.pair_file import PairFile, ReadOptions
    from jumok.data.input_files import InputFile

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_WORKBOOK, _SHARED_STRINGS, _CONTENT = "xl/workbook.xml", "xl/sharedStrings.xml", "content.xml"
_MAX_COLUMNS = 256
_MAX_SHARED_CHARACTERS = 1 << 28
_SAMPLE_ROWS = 100
_MAX_DIGITS = 18
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_CELL_NAME = re.compile(r"([A-Z]{1,3})[0-9]+")


class _Sheet(NamedTuple):
    name: str
    part: str  # its file in the archive
    hidden: bool


def open_xlsx(file: InputFile, options: ReadOptions) -> PairFile:
    """Open an Excel workbook. Its first visible sheet with text is read as a table (`columns.py`)."""
    _refuse_old_office(file)
    members = member_names(file)
    if _WORKBOOK not in members:
        raise DataError(f"{file.name} is not an Excel workbook: it has no {_WORKBOOK}. Is it the right file?")
    strings = _shared_strings(file) if _SHARED_STRINGS in members else []
    sheets = [sheet for sheet in _xlsx_sheets(file) if sheet.part in members]
    row_readers = {
        sheet.name: partial(_xlsx_rows, file, sheet.part, strings) for sheet in sheets if not sheet.hidden
    }
    return _open_sheets(file, row_readers, options)


def open_ods(file: InputFile, options: ReadOptions) -> PairFile:
    """Open an OpenDocument spreadsheet. Its first sheet with text is read as a table (`columns.py`)."""
    _refuse_old_office(file)
    if _CONTENT not in member_names(file):
        raise DataError(
            f"{file.name} is not an OpenDocument file: it has no {_CONTENT}. Is it the right file?"
        )
    content = file.in_archive(_CONTENT)
    names = list(dict.fromkeys(sheet for sheet, _ in read_xml(content, _OdsRows(names_only=True), Counter())))
    row_readers = {name: partial(_ods_rows, content, name) for name in names}
    return _open_sheets(file, row_readers, options)


def _refuse_old_office(file: InputFile) -> None:
    if next(read_blocks(file), b"").startswith(_OLD_OFFICE):
        raise DataError(
            f"{file.name} is an Office file in a format from before 2007, or one with a password. Save it as "
            ".xlsx without a password."
        )


def _open_sheets(
    file: InputFile, row_readers: dict[str, partial[Iterator[Row]]], options: ReadOptions
) -> PairFile:
    """Open the first sheet with at least two cells of text in one of its first `_SAMPLE_ROWS` rows."""
    for name, read in row_readers.items():
        sample = (cells for _, cells in islice(read(Counter()), _SAMPLE_ROWS))
        if any(len([cell for cell in cells if cell.strip()]) > 1 for cells in sample):
            others = ", ".join(repr(other) for other in row_readers if other != name)
            note = f"sheet {name!r}; not read: {others}" if others else ""
            return open_table(Table(file, read, "", note), options)
    raise no_pairs_error(file)


# --- XLSX ---


class _Attributes:
    """Collects the attributes of each element whose name is one of `names`. Ignores ends and text."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._elements: list[dict[str, str]] = []

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if name in self._names:
            self._elements.append(attributes)

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...

    def take(self) -> list[dict[str, str]]:
        elements, self._elements = self._elements, []
        return elements


def _xlsx_sheets(file: InputFile) -> list[_Sheet]:
    """Return the sheets of a workbook in their order."""
    parts = {}
    relations = file.in_archive("xl/_rels/workbook.xml.rels")
    for relation in read_xml(relations, _Attributes("Relationship"), Counter()):
        target = relation.get("Target", "")
        path = PurePosixPath(target.lstrip("/")) if target.startswith("/") else PurePosixPath("xl") / target
        parts[relation.get("Id", "")] = str(path)
    sheets = []
    for attributes in read_xml(file.in_archive(_WORKBOOK), _Attributes("sheet"), Counter()):
        identifier = next((value for name, value in attributes.items() if name.endswith(":id")), "")
        hidden = attributes.get("state", "visible") != "visible"
        sheets.append(_Sheet(attributes.get("name", ""), parts.get(identifier, ""), hidden))
    return sheets


def _shared_strings(file: InputFile) -> list[str]:
    strings, size = [], 0
    for text in read_xml(file.in_archive(_SHARED_STRINGS), _SharedStrings(), Counter()):
        strings.append(text)
        size += len(text)
        if size > _MAX_SHARED_CHARACTERS:
            raise DataError(f"{file.name} holds too much text for a spreadsheet. Save it as .csv.")
    return strings


class _TextParts:
    """The text of one cell or shared string, with a limit."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._length = 0

    def add(self, data: str) -> None:
        self._length += len(data)
        if self._length > MAX_TEXT:
            raise DataError(f"A cell has more than {MAX_TEXT:,} characters, which no sentence has.")
        self.parts.append(data)

    def take(self) -> str:
        text = "".join(self.parts)
        self.parts, self._length = [], 0
        return text


def _unescape(text: str) -> str:
    """Decode the escapes of XLSX, such as `_x000D_` for a carriage return."""
    if "_x" not in text:
        return text
    return valid_unicode(_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)).replace("\r\n", "\n")


class _SharedStrings:
    """Collects shared strings. Runs of rich text are joined, and phonetic guides are left out."""

    def __init__(self) -> None:
        self._strings: list[str] = []
        self._text = _TextParts()
        self._in_text = self._in_guide = False

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        self._in_guide = self._in_guide or name == "rPh"
        self._in_text = name == "t" and not self._in_guide

    def end(self, name: str) -> None:
        self._in_text = False
        if name == "rPh":
            self._in_guide = False
        elif name == "si":
            self._strings.append(_unescape(self._text.take()))

    def text(self, data: str) -> None:
        if self._in_text:
            self._text.add(data)

    def take(self) -> list[str]:
        strings, self._strings = self._strings, []
        return strings


def _xlsx_rows(file: InputFile, part: str, strings: list[str], dropped: Counter[str]) -> Iterator[Row]:
    return read_xml(file.in_archive(part), _XlsxRows(strings), dropped)


class _XlsxRows:
    """Collects the rows of a sheet. Each cell names its column, because the file leaves out empty cells."""

    def __init__(self, strings: list[str]) -> None:
        self._strings = strings
        self._rows: list[Row] = []
        self._number = 0
        self._cells: list[str] = []
        self._column = 0
        self._kind = ""  # of the cell: "s" for the index of a shared string, otherwise a value or text
        self._text = _TextParts()
        self._in_value = self._in_guide = False

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        self._in_guide = self._in_guide or name == "rPh"
        self._in_value = name in {"v", "t"} and not self._in_guide
        if name == "c":
            match = _CELL_NAME.fullmatch(attributes.get("r", ""))
            self._column = _column_number(match[1]) if match else len(self._cells)
            self._kind = attributes.get("t", "n")
            self._text.take()
        elif name == "row":
            self._number = _to_number(attributes.get("r", ""), default=self._number + 1)
            self._cells = []

    def end(self, name: str) -> None:
        self._in_value = False
        if name == "rPh":
            self._in_guide = False
        elif name == "c" and self._column < _MAX_COLUMNS:
            self._cells += [""] * (self._column + 1 - len(self._cells))
            self._cells[self._column] = self._value(self._text.take())
        elif name == "row":
            self._rows.append((self._number, self._cells))

    def text(self, data: str) -> None:
        if self._in_value:
            self._text.add(data)

    def take(self) -> list[Row]:
        rows, self._rows = self._rows, []
        return rows

    def _value(self, text: str) -> str:
        if self._kind != "s":
            return _unescape(text)
        index = _to_number(text, default=-1)
        return self._strings[index] if 0 <= index < len(self._strings) else ""


def _to_number(text: str, default: int) -> int:
    """Parse the number of a row or of a shared string; return the default if the text is not a number."""
    if not text.isdecimal():
        return default
    if len(text) > _MAX_DIGITS:
        raise DataError(f"A number of a row or string has {len(text):,} digits. Save the file as .csv.")
    return int(text)


def _column_number(letters: str) -> int:
    """Return 0 for A, 25 for Z, 26 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


# --- ODS ---


def _ods_rows(content: InputFile, sheet: str, dropped: Counter[str]) -> Iterator[Row]:
    return (row for name, row in read_xml(content, _OdsRows(), dropped) if name == sheet)


class _OdsRows:
    """Collects (sheet, row) from the content of an OpenDocument spreadsheet.

    With `names_only`, it collects one empty row per sheet.
    """

    def __init__(self, *, names_only: bool = False) -> None:
        self._names_only = names_only
        self._rows: list[tuple[str, Row]] = []
        self._sheet = ""
        self._number = 0
        self._row_repeats = 1
        self._cells: list[str] = []
        self._cell: _TextParts | None = None
        self._cell_repeats = 1
        self._num_paragraphs = 0  # of the cell, so far
        self._paragraph_depth = 0  # number of open elements: a paragraph, and those inside it
        self._comment_depth = 0  # number of open elements: a comment, and those inside it

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if self._comment_depth or name == "annotation":
            self._comment_depth += 1
        elif name == "table":
            self._sheet, self._number = attributes.get("table:name", ""), 0
            if self._names_only:
                self._rows.append((self._sheet, (0, [])))
        elif self._names_only:
            return
        elif name == "table-row":
            self._cells, self._number = [], self._number + 1
            self._row_repeats = _repeat_count(attributes, "table:number-rows-repeated")
        elif name in {"table-cell", "covered-table-cell"}:
            self._cell, self._num_paragraphs = _TextParts(), 0
            self._cell_repeats = _repeat_count(attributes, "table:number-columns-repeated")
        elif self._cell is not None:
            self._start_text(name, attributes)

    def _start_text(self, name: str, attributes: dict[str, str]) -> None:
        if name == "p" and not self._paragraph_depth:
            if self._num_paragraphs and self._cell is not None:
                self._cell.add("\n")  # between two paragraphs of a cell
            self._num_paragraphs += 1
        if self._paragraph_depth or name == "p":
            self._paragraph_depth += 1
        special = {"s": " " * min(_repeat_count(attributes, "text:c"), 100), "tab": "\t", "line-break": "\n"}
        if self._paragraph_depth and name in special:
            self.text(special[name])

    def end(self, name: str) -> None:
        if self._comment_depth:
            self._comment_depth -= 1
        elif self._paragraph_depth:
            self._paragraph_depth -= 1
        elif name in {"table-cell", "covered-table-cell"} and self._cell is not None:
            text = self._cell.take()
            room = _MAX_COLUMNS - len(self._cells)
            self._cells += [text] * min(self._cell_repeats, max(room, 0))
            self._cell = None
        elif name == "table-row" and not self._names_only:
            while self._cells and not self._cells[-1]:
                self._cells.pop()
            if self._cells:  # a repeated row is yielded once, because training skips duplicates
                self._rows.append((self._sheet, (self._number, self._cells)))
            self._number += self._row_repeats - 1

    def text(self, data: str) -> None:
        if self._cell is not None and self._paragraph_depth and not self._comment_depth:
            self._cell.add(data)

    def take(self) -> list[tuple[str, Row]]:
        rows, self._rows = self._rows, []
        return rows


def _repeat_count(attributes: dict[str, str], name: str) -> int:
    """Return how often a row, a cell or a space occurs; 1 if the attribute is missing or is not a number."""
    value = attributes.get(name, "1")
    return min(int(value), 1 << 20) if value.isdecimal() and len(value) < 9 else 1
