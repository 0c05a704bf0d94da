"""Finds the texts of a workbook on which its formulas depend.

    =COUNTIF(B:B,"Open")                a cell "Open" is not translated, because the count would become 0
    =ISNUMBER(SEARCH("urgent",A2))      cells with "urgent" in a longer text are translated

Cells whose whole text is compared in a formula are not translated. If a formula searches for a word inside
cells, the cells are translated, and a note names the formula. The column names of tables and pivot tables are
not translated, because formulas and pivot tables refer to them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

from jumok.documents.segment import has_letters
from jumok.documents.xml_tree import decode_xml, read_xml
from jumok.documents.zip_document import read_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from zipfile import ZipFile

    from jumok.documents.xml_tree import XmlNode

_PREFIXES = {
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "x",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "x",
}
WORKBOOK_PART = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_COLUMNS = {
    r"xl/tables/table\d+\.xml": "x:tableColumn",
    r"xl/pivotCache/pivotCacheDefinition\d+\.xml": "x:cacheField",
}
"""The parts with column names, and the elements in them that name a column."""
_FORMULA = re.compile(
    r"<(?:\w++:)?(?:c(?P<cell>\s[^<>]*+)>(?=\s*+<(?:\w++:)?f[\s>])"
    r"|(?:conditionalFormatting|dataValidation)(?P<rule>\s[^<>]*+)>"
    r"|definedName(?P<name>\s[^<>]*+)>(?P<definition>[^<]++)"
    r"|(?:f|formula[12]?)(?:\s[^<>]*+)?>(?P<formula>[^<]++))"
)
"""Matches the start tag of a cell with a formula, the start tag of a rule, a name with its definition, and a
formula. A formula in a cell or a rule is a match of its own, after the match of the cell or rule."""
_PLACE = re.compile(r"""\s(?:r|sqref|name)=["']([^"']*)""")
_TOKEN = re.compile(
    r'"(?P<text>(?:[^"]|"")*+)"|(?P<function>[A-Za-z_][\w.]*)\(|(?P<open>[({])|(?P<close>[)}])'
    r"|(?P<operator><>|[<>]=?|=)|'(?:[^']|'')*+'|[,;&+*/^-]|[^\s\"'(){}<>=,;&+*/^-]+"
)
_COMPARING = re.compile(
    "(?:COUNT|SUM|AVERAGE)IFS?|(?:MAX|MIN)IFS|X?MATCH|[HVX]?LOOKUP|SWITCH|EXACT|GETPIVOTDATA"
)
"""Functions that compare texts in their arguments with the texts of cells."""
_SEARCHING = frozenset(["SEARCH", "FIND", "SUBSTITUTE", "TEXTBEFORE", "TEXTAFTER", "TEXTSPLIT"])
"""Functions that search the texts of cells for texts in their arguments."""
_CUTTING = frozenset(["LEFT", "RIGHT", "MID"])
"""Functions that return a part of a text. A formula can compare this part with another text."""
_CRITERION = re.compile(r"<>|[<>]=?|=")
_MAX_SEARCHED = 200  # the maximum number of texts that are searched for in the cells
_MAX_LISTED = 20  # the maximum number of texts in a note


class FormulaText(NamedTuple):
    """A text in a formula, and the location of the formula."""

    text: str
    location: str
    is_part: bool
    """Whether the formula compares the text with a part of a cell's text."""


@dataclass(slots=True)
class CellFilter:
    """Decides which cells are not translated, and stores the reasons."""

    columns: frozenset[str] = frozenset()
    """The names of the columns of tables and pivot tables."""
    compared_texts: Mapping[str, FormulaText] = field(default_factory=dict)
    """The texts that formulas compare with whole cells. The keys are the texts, casefolded."""
    searched_texts: Sequence[FormulaText] = ()
    """The texts that formulas search for inside cells."""
    _excluded_cells: dict[str, str] = field(default_factory=dict)  # text of a cell → location of the formula
    _translated_cells: dict[str, None] = field(default_factory=dict)  # the texts of these cells

    def add_cell(self, text: str) -> bool:
        """Store the text of a cell for `is_translated` and `notes`. Return whether the cell is translated."""
        text = text.strip()
        if text in self.columns:
            return False
        formula_text = self.compared_texts.get(text.casefold())
        if formula_text is not None and has_letters(text):
            self._excluded_cells.setdefault(text, formula_text.location)
            return False
        self._translated_cells[text] = None
        return True

    def is_translated(self, text: str) -> bool:
        """Return whether one of the cells added so far has this text and is translated."""
        return text.strip() in self._translated_cells and has_letters(text)

    def notes(self) -> list[str]:
        """Return remarks for the reader of the translation. Call this after all cells have been added."""
        notes = []
        if self._excluded_cells:
            listed = _list_texts(self._excluded_cells.items())
            notes.append(f"These cells are not translated, because formulas compare with them: {listed}")
        texts = "\n".join(self._translated_cells).casefold()
        to_check = {
            searched_text.text: searched_text.location
            for searched_text in self.searched_texts
            if _longest_literal(searched_text.text) in texts
        }
        if to_check:
            listed = _list_texts(to_check.items())
            notes.append(f"Formulas look for these words in cells that are translated, check them: {listed}")
        return notes


def names_sheets_or_columns(name: str) -> bool:
    """Return whether a part with this name lists names of sheets or columns.

    The workbook part and its relations list sheets. The parts of tables and pivot tables list columns.
    """
    return name in (WORKBOOK_PART, _RELATIONS) or any(re.fullmatch(pattern, name) for pattern in _COLUMNS)


def read_cell_filter(archive: ZipFile) -> CellFilter:
    """Return a filter for the texts that formulas, rules, tables and pivot tables of a workbook refer to."""
    compared_texts: dict[str, FormulaText] = {}
    searched_texts: dict[str, FormulaText] = {}
    for formula_text in _formula_texts(archive):
        texts = searched_texts if formula_text.is_part else compared_texts
        texts.setdefault(formula_text.text.strip().casefold(), formula_text)
    words = [word for word in searched_texts.values() if _is_word(_longest_literal(word.text))]
    return CellFilter(_column_names(archive), compared_texts, words[:_MAX_SEARCHED])


def has_text_results(archive: ZipFile) -> bool:
    """Return whether cells have texts as the results of formulas.

    By default, Excel does not compute formulas when it opens a file, so the old results would be shown. Some
    programs write all strings as if they were results of formulas. Such cells count as well.
    """
    result = re.compile(rb"<(?:\w+:)?c\s[^<>]*?\bt=\"str\"")
    return any(result.search(read_part(archive, name)) for name in _sheet_parts(archive))


def formulas_use_column_names(archive: ZipFile) -> bool:
    """Return whether formulas refer to columns by their names, as in `Table1[Price]`."""
    reference = re.compile(rb"<(?:\w++:)?(?:f|calculatedColumnFormula)(?:\s[^<>]*+)?>[^<\[]*+\[")
    names = [*_sheet_parts(archive), *filter(names_sheets_or_columns, archive.namelist())]
    return any(reference.search(read_part(archive, name)) for name in names)


def compute_on_load(workbook: bytes) -> bytes:
    """Edit the part xl/workbook.xml so that Excel computes all formulas when it opens the file.

    A part without the element calcPr is returned unchanged.
    """
    setting = re.compile(rb"(<(?:\w+:)?calcPr\b[^<>]*?\sfullCalcOnLoad=[\"'])[^\"'<>]*+")
    if setting.search(workbook):
        return setting.sub(rb"\g<1>1", workbook, count=1)
    return re.sub(rb"<(?:\w+:)?calcPr\b", rb'\g<0> fullCalcOnLoad="1"', workbook, count=1)


def _column_names(archive: ZipFile) -> frozenset[str]:
    names = []
    for pattern, element in _COLUMNS.items():
        for part in filter(re.compile(pattern).fullmatch, archive.namelist()):
            columns = (node for node in _read_root(archive, part).walk() if node.name == element)
            names += [node.attributes.get("name", "").strip() for node in columns]
    return frozenset(names)


def _read_root(archive: ZipFile, name: str) -> XmlNode:
    return read_xml(decode_xml(read_part(archive, name))[0], _PREFIXES).root


def _sheet_parts(archive: ZipFile) -> list[str]:
    return [name for name in archive.namelist() if re.fullmatch(r"xl/worksheets/\w+\.xml", name)]


def _sheet_names(archive: ZipFile) -> dict[str, str]:
    """Return the name of each sheet, by the name of its part."""
    if not {WORKBOOK_PART, _RELATIONS} <= set(archive.namelist()):
        return {}
    targets = {
        node.attributes.get("Id", ""): node.attributes.get("Target", "")
        for node in _read_root(archive, _RELATIONS).walk()
    }
    names = {}
    for node in _read_root(archive, WORKBOOK_PART).walk():
        if node.name == "x:sheet":
            ids = [value for key, value in node.attributes.items() if key.endswith(":id")]
            target = targets.get(ids[0], "") if ids else ""
            names["xl/" + target.removeprefix("/xl/")] = node.attributes.get("name", "")
    return names


def _formula_texts(archive: ZipFile) -> Iterator[FormulaText]:
    """Yield the texts that formulas compare with the texts of cells, or search for in them."""
    sheets = _sheet_names(archive)
    workbook = [WORKBOOK_PART] if WORKBOOK_PART in archive.namelist() else []
    for name in [*workbook, *_sheet_parts(archive)]:
        sheet = sheets.get(name, name.rpartition("/")[2].removesuffix(".xml"))
        location = ""
        for match in _FORMULA.finditer(decode_xml(read_part(archive, name))[0]):
            if tag := match["cell"] or match["rule"] or match["name"]:
                place = _PLACE.search(tag)
                location = unescape(place[1]) if place else ""
                location = location if match["name"] else f"{sheet}!{location}"
            formula = match["formula"] or match["definition"]
            if formula and ('"' in formula or "&quot;" in formula):
                for text, is_part in _compared_texts(unescape(formula).strip()):
                    yield FormulaText(text, location, is_part)


def _compared_texts(formula: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts that a formula compares with the texts of cells, or searches for in them.

    Also yield whether the formula compares the text with a part of a cell's text, not with the whole text.
    """
    tokens = list(_TOKEN.finditer(formula))
    # A formula that is a single text is a constant of a rule or a name, or has the choices of a list. If a
    # cell has such a formula (="Open"), its result is not translated, so cells with the same text stay equal.
    if len(tokens) == 1:
        for text in _unquote(tokens[0]["text"] or "").split(","):
            yield text, False
        return
    cuts_texts = not _CUTTING.isdisjoint(map(_function_of, tokens))
    # For each open bracket its function, or "=" if it follows a comparison operator, or else the entry of the
    # bracket around it.
    around = [""]
    after_operator = False
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token["function"]:
            around.append(_function_of(token))
        elif token["open"]:
            around.append("=" if after_operator else around[-1])
        elif token["close"]:
            around = around[:-1] or [""]
        elif token["text"] is not None:
            text = _unquote(token["text"])
            criterion = _CRITERION.match(text)
            text = text[criterion.end() :] if criterion else text
            by_operator = after_operator or around[-1] == "=" or (following and following["operator"])
            if by_operator or _COMPARING.fullmatch(around[-1]):
                yield text, (cuts_texts if by_operator else re.search("[*?]", text) is not None)
            elif around[-1] in _SEARCHING:
                yield text, True
        after_operator = bool(token["operator"])


def _function_of(token: re.Match[str]) -> str:
    """Return the name of a function without the prefix of newer functions, such as `_xlfn.`."""
    return (token["function"] or "").upper().rpartition(".")[2]


def _unquote(text: str) -> str:
    return text.replace('""', '"')


def _longest_literal(text: str) -> str:
    """Return the longest part of a criterion without wildcards, casefolded."""
    return max(re.split("[*?~]+", text.strip().casefold()), key=len)


def _is_word(text: str) -> bool:
    return len(text) > 1 and has_letters(text)


def _list_texts(items: Iterable[tuple[str, str]]) -> str:
    listed = [f'"{text}" ({location})' for text, location in items]
    return ", ".join(listed[:_MAX_LISTED]) + (", …" if len(listed) > _MAX_LISTED else ".")
