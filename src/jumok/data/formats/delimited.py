"""TSV and CSV. The cells of a CSV are separated by commas, semicolons, tabs or bars, and may be quoted."""

from __future__ import annotations

import csv
from collections import Counter
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from jumok.data.formats.columns import Row, Table, header_languages, open_table
from jumok.data.formats.pair_file import HEADER, line_error, no_pairs_error
from jumok.data.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jumok.data.formats.pair_file import PairFile, ReadOptions
    from jumok.data.input_files import InputFile

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_SAMPLE_LINES = 50
_SEPARATOR_MARK = "sep="  # Excel reads the separator from a first line such as `sep=;`


def open_tsv(file: InputFile, options: ReadOptions) -> PairFile:
    """Open tab-separated pairs; languages come from a header. Files of Tatoeba and Anki have this format."""
    if next(read_lines(file, Counter()), None) is None:
        raise no_pairs_error(file)
    return open_table(Table(file, partial(_tsv_rows, file), _SEPARATORS["\t"]), options)


def open_csv(file: InputFile, options: ReadOptions) -> PairFile:
    """Open pairs separated by commas or by another separator; languages come from a header."""
    lines = list(islice(read_lines(file, Counter()), _SAMPLE_LINES))
    if not lines:
        raise no_pairs_error(file)
    separator = _find_separator(lines)
    name = _SEPARATORS.get(separator, repr(separator))
    note = "" if separator == "," else f"separated by {name}"
    return open_table(Table(file, partial(_csv_rows, file, separator), name, note), options)


def has_tab_columns(file: InputFile) -> bool:
    """Return whether a text is a table: its first lines all have the same number of tabs, at least one."""
    lines = islice((line for line in read_lines(file, Counter()) if line.strip()), _SAMPLE_LINES)
    counts = {line.count("\t") for line in lines}
    return len(counts) == 1 and counts != {0}


def _tsv_rows(file: InputFile, dropped: Counter[str]) -> Iterator[Row]:
    for number, line in enumerate(read_lines(file, dropped), start=1):
        yield number, line.split("\t")


def _find_separator(lines: list[str]) -> str:
    """Return the separator of the first lines of a CSV.

    A first line such as `sep=;` names it. Otherwise it is the separator that gives every row the same number
    of cells, at least two. Among several such separators, prefer one for which the first row is a header,
    then one that gives two cells, then the first in `_SEPARATORS`. If no separator fits, return a comma.
    """
    if lines[0].casefold().startswith(_SEPARATOR_MARK) and len(lines[0]) == len(_SEPARATOR_MARK) + 1:
        return lines[0][-1]
    regular = []  # (has no header, has not two cells, separator): the smallest is the best
    for separator in _SEPARATORS:
        try:
            rows = [row for row in csv.reader(_with_newlines(lines), delimiter=separator) if any(row)]
        except csv.Error:
            continue
        if len(lines) == _SAMPLE_LINES:
            rows = rows[:-1]  # a quoted cell may go on after the sample
        widths = {len(row) for row in rows}
        if len(widths) == 1 and widths != {1}:
            regular.append((header_languages(rows[0]) is None, widths != {2}, separator))
    return min(regular, key=lambda ranked: ranked[:2])[2] if regular else ","


def _with_newlines(lines: Iterable[str]) -> Iterator[str]:
    return (line + "\n" for line in lines)


def _csv_rows(file: InputFile, separator: str, dropped: Counter[str]) -> Iterator[Row]:
    """Yield the rows of CSV with the number of their first line: a quoted cell may span several lines."""
    lines = _CsvLines(read_lines(file, dropped))
    rows = csv.reader(lines, delimiter=separator)
    number = 1
    try:
        for row in rows:
            if number == 1 and [cell.casefold() for cell in row] == [_SEPARATOR_MARK, ""]:  # `sep=;`
                dropped[HEADER] += 1
            elif lines.ended:
                raise line_error(
                    file,
                    number,
                    "opens a quotation mark that is never closed",
                    'Close it, or double a quotation mark that belongs to the text: "".',
                )
            else:
                yield number, row
            number = rows.line_num + 1
    except csv.Error as error:  # the module also refuses a cell of more than 131,072 characters
        raise line_error(file, number, f"is not CSV ({error})", "Is a quotation mark left open?") from None


class _CsvLines:
    """Lines for the csv module.

    `ended` is true once the module has requested a line beyond the last one. If the module then still
    returns a row, a quotation mark in this row is not closed.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        yield from _with_newlines(self._lines)
        self.ended = True
