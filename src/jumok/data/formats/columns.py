"""Tables: choose the two columns of a file that hold the pairs, and read the pairs.

`--columns` chooses by number or by name. Without it, columns are chosen only if the choice is clear:

    two columns                             source and target
    three, the third a word alignment       source, target and alignment
    a header with `source` and `target`     the columns of these names, or of synonyms such as `term`
    a header that names two languages       the columns of these languages
    a header with more than two languages   the columns of the languages that --from and --to name
    exactly two columns of text             these two; the others may be numbers, links, codes or licences

Any other table is refused. The message lists its columns and the option to add.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from jumok.data.alignments import parse_alignment
from jumok.data.formats.pair_file import HEADER, PairFile, line_error, make_pair, no_pairs_error, shorten
from jumok.errors import DataError, suggest
from jumok.text.languages import find_language, looks_like_language
from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jumok.data.formats.pair_file import NumberedPair, ReadOptions
    from jumok.data.input_files import InputFile

Row = tuple[int, list[str]]
"""The number of a row, counted from 1, and its cells."""

_SOURCE_NAMES = {"source", "src", "term", "source term", "원문", "용어"}
_TARGET_NAMES = {"target", "tgt", "trg", "translation", "target term", "번역", "번역문", "번역어"}
_ALIGNMENT_NAMES = {"alignment", "alignments"}
_SAMPLE_ROWS = 100
_MAX_HEADER_CELL = 40  # characters
# Numbers, dates, times, identifiers; links; licences, as in the files that tatoeba.org offers for Anki.
_NOT_A_SENTENCE = re.compile(r"[\d\s.,:;#/+%()-]*|\w+://\S+|CC[ -]BY\b.*", re.IGNORECASE)


class HeaderWarning(UserWarning):
    """A first line was taken as a header although jumok does not know all languages that it names."""


@dataclass(frozen=True, slots=True)
class Table:
    """A file as rows. `separator` is what messages call the separator ("a tab"), "" in a spreadsheet."""

    file: InputFile
    rows: Callable[[Counter[str]], Iterator[Row]]
    separator: str
    note: str = ""  # a choice made while opening, such as the separator

    @property
    def ragged(self) -> bool:
        """Whether rows may be of different lengths: spreadsheets leave out empty cells at the end."""
        return not self.separator


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The columns of the source and of the target, counted from 0.

    `width` is the number of columns of the table. `width` 0 stands for the simple layout: the source, the
    target and optionally a word alignment.

    If `width` is not 0, `alignment` is the column of the word alignment, or None if no alignment is read.
    """

    source: int = 0
    target: int = 1
    width: int = 0
    alignment: int | None = None
    has_header: bool = False
    languages: tuple[str, str] = ("", "")
    note: str = ""


def open_table(table: Table, options: ReadOptions) -> PairFile:
    """Choose the columns of a table and return its pairs."""
    sample = [row for _, row in islice(table.rows(Counter()), _SAMPLE_ROWS)]
    filled_rows = [row for row in sample if any(row)]
    if not filled_rows:
        if sample:  # blank lines are empty pairs; cleaning counts them
            return PairFile(partial(_read, table, ColumnChoice()), note=table.note)
        raise no_pairs_error(table.file)
    choice = (
        _requested_columns(table, filled_rows, options)
        if options.columns
        else _find_columns(table, filled_rows, options)
    )
    notes = "; ".join(filter(None, (choice.note, table.note)))
    return PairFile(partial(_read, table, choice), choice.languages, notes)


# --- which columns ---


def _find_columns(table: Table, sample: list[list[str]], options: ReadOptions) -> ColumnChoice:
    """Return the columns that hold the pairs; raise if that is not clear."""
    first, width = sample[0], max(map(len, sample)) if table.ragged else len(sample[0])
    languages = header_languages(first)
    if languages is not None:
        _warn_about_unknown_codes(table.file, first)
        alignment = 2 if len(first) == 3 else None
        if first[0].strip().casefold() in _TARGET_NAMES:
            return ColumnChoice(
                1, 0, width, alignment, has_header=True, note="the first column is the target"
            )
        width = width if table.ragged else 0
        return ColumnChoice(width=width, alignment=alignment, has_header=True, languages=languages)
    named = _columns_in_header(table, sample, options)
    if named is not None:
        return named
    if width <= 2 and not (width == 1 and table.ragged):
        return ColumnChoice(width=width if table.ragged else 0)
    if width == 3 and not table.ragged and all(len(row) < 3 or _is_alignment(row[2]) for row in sample):
        return ColumnChoice()
    texts = [index for index in range(width) if _is_text_column(sample, index, width, ragged=table.ragged)]
    if len(texts) == 2:
        note = f"columns {texts[0] + 1} and {texts[1] + 1} of {width}: the others are not text"
        return ColumnChoice(texts[0], texts[1], width, note=note)
    raise _unclear_columns_error(table, first, width)


def _columns_in_header(table: Table, sample: list[list[str]], options: ReadOptions) -> ColumnChoice | None:
    """Return the two columns that a header names by two languages, or as source and target.

    Return None if the table has fewer than three columns, or if its first row is not such a header. If
    `--columns` was given, the caller only checks whether the result is None, to find out whether there is a
    header.
    """
    names = [cell.strip() for cell in sample[0]]
    if len(names) < 3 or any(len(name) > _MAX_HEADER_CELL or name[:1].isdigit() for name in names):
        return None
    folded = [name.casefold() for name in names]
    # The indices of the two columns; -1: not found.
    chosen = [
        next((i for i, name in enumerate(folded) if name in words), -1)
        for words in (_SOURCE_NAMES, _TARGET_NAMES)
    ]
    codes = [language.code if (language := find_language(name)) else "" for name in names]
    for index in range(len(codes)):  # a column of numbers called `id` is not Indonesian
        if len(sample) > 1 and not _is_text_column(sample[1:], index, len(names), ragged=True):
            codes[index] = ""
    if min(chosen) < 0:
        wanted = (options.source, options.target)
        chosen = [codes.index(code) if code and code in codes else -1 for code in wanted]
        columns = [index for index, code in enumerate(codes) if code and codes.index(code) == index]
        if min(chosen) < 0 and (len(columns) == 2 or (len(columns) > 2 and options.columns)):
            chosen = columns[:2]
        elif min(chosen) < 0 and len(columns) > 2:
            raise DataError(
                f"{table.file.name} has columns in several languages: "
                f"{', '.join(names[i] for i in columns)}. "
                "Choose two with --from and --to, or with --columns "
                f"{names[columns[0]]},{names[columns[1]]}."
            )
    if min(chosen) < 0:
        return None
    return _named_choice(names, chosen[0], chosen[1])


def _named_choice(names: list[str], source: int, target: int) -> ColumnChoice:
    codes = [language.code if (language := find_language(names[i])) else "" for i in (source, target)]
    note = f"columns {names[source]!r} and {names[target]!r} of {len(names)}"
    return ColumnChoice(
        source, target, len(names), has_header=True, languages=(codes[0], codes[1]), note=note
    )


def _requested_columns(table: Table, sample: list[list[str]], options: ReadOptions) -> ColumnChoice:
    """Return the columns that `--columns` names; raise if the table does not have them."""
    wanted = [name.strip() for name in options.columns.split(",")]
    if len(wanted) != 2 or not all(wanted) or wanted[0] == wanted[1]:
        raise DataError(
            "--columns takes two columns, by name or number, source first: --columns en,ko or --columns 2,4. "
            f"Received: {options.columns}"
        )
    names = [cell.strip() for cell in sample[0]]
    width = max(map(len, sample)) if table.ragged else len(names)
    indices = [_column_index(table, name, names, width) for name in wanted]
    names += [""] * (width - len(names))  # a column beyond the first row has no name
    if any(not name.isdecimal() for name in wanted):
        return _named_choice(names, *indices)
    languages = header_languages([names[index] for index in indices])
    note = f"columns {indices[0] + 1} and {indices[1] + 1} of {width}"
    has_header = languages is not None or _columns_in_header(table, sample, options) is not None
    return ColumnChoice(
        indices[0], indices[1], width, has_header=has_header, languages=languages or ("", ""), note=note
    )


def _column_index(table: Table, wanted: str, names: list[str], width: int) -> int:
    if wanted.isdecimal():
        if 1 <= int(wanted) <= width:
            return int(wanted) - 1
        raise DataError(f"{table.file.name} has {_column_count(width)}. Received: --columns with {wanted}.")
    language = find_language(wanted) or find_language(wanted.lower())
    for matches in (
        lambda name: name == wanted,
        lambda name: name.casefold() == wanted.casefold(),
        lambda name: language is not None and find_language(name) is language,
    ):
        matching = [index for index, name in enumerate(names) if matches(name)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise DataError(
                f"The first line of {table.file.name} has {len(matching)} columns for {wanted!r}: "
                f"{' and '.join(str(index + 1) for index in matching)}. Choose by number: --columns 1,2."
            )
    listed = ", ".join(map(shorten, names))
    raise DataError(
        f"The first line of {table.file.name} names no column {wanted!r}.{suggest(wanted, names)} "
        f"It has: {shorten(listed, 200)}. Without names, columns have numbers: --columns 1,2."
    )


def _is_text_column(sample: list[list[str]], index: int, width: int, *, ragged: bool) -> bool:
    """Return whether a column holds sentences.

    A column with only numbers, links or licences holds no sentences. If there are several rows, a column with
    the same single word in every row holds no sentences.
    """
    rows = [row for row in sample if len(row) == width or ragged]
    cells = [row[index].strip() for row in rows if index < len(row) and row[index].strip()]
    if not cells or all(_NOT_A_SENTENCE.fullmatch(cell) for cell in cells):
        return False
    same_word = len(cells) > 1 and len(set(cells)) == 1 and " " not in cells[0]
    return not same_word


def _is_alignment(cell: str) -> bool:
    try:
        parse_alignment(cell)
    except DataError:
        return False
    return True


def _unclear_columns_error(table: Table, first: list[str], width: int) -> DataError:
    cells = "".join(f"\n  {number} {shorten(cell, 60)}" for number, cell in enumerate(first[:12], start=1))
    separated = f", separated by {table.separator}" if table.separator else ""
    return DataError(
        f"{table.file.name} has {_column_count(width)}{separated}, and it is not clear which two hold the "
        f"sentences. Its first line:{cells}\nChoose them by number or by name, source first: --columns 1,2."
    )


def _column_count(width: int) -> str:
    return f"{width} column{'s' if width != 1 else ''}"


# --- headers ---


def _warn_about_unknown_codes(file: InputFile, cells: list[str]) -> None:
    """Warn about a header that is uncertain because jumok does not know one of its languages."""
    names = [cell.strip() for cell in cells[:2]]
    known = _SOURCE_NAMES | _TARGET_NAMES
    unknown = [name for name in names if find_language(name) is None and name.casefold() not in known]
    if unknown:
        warnings.warn(
            f"the first line of {file.name} was taken as a header, not as a pair: it names two languages, "
            f"though jumok does not know {' and '.join(unknown)}. If it is a pair, put a header above it.",
            HeaderWarning,
            stacklevel=2,
        )


def header_languages(cells: list[str]) -> tuple[str, str] | None:
    """Return the codes of the languages that a first row names ("" if unknown), or None if it is a pair.

    A row is a header only if its two cells are language codes or names, or one of `_SOURCE_NAMES` and one of
    `_TARGET_NAMES` in either order. A third cell must be `alignment`. No pair of sentences is such a row. A
    code that jumok does not know, such as `hsb`, counts as a language only next to a language that jumok
    knows, or in a header with a column of alignments.
    """
    names = [cell.strip() for cell in cells]
    if len(names) not in (2, 3) or (len(names) == 3 and names[2].casefold() not in _ALIGNMENT_NAMES):
        return None
    first, second = names[:2]
    folded = first.casefold(), second.casefold()
    if any(one in _SOURCE_NAMES and other in _TARGET_NAMES for one, other in (folded, folded[::-1])):
        return "", ""
    known = find_language(first), find_language(second)
    if first == second or not all(map(looks_like_language, (first, second))):
        return None
    if not any(known):  # short words in a list of words look like codes: "two ⇥ dos"
        return ("", "") if len(names) == 3 else None
    if known[0] == known[1]:
        return None
    return known[0].code if known[0] else "", known[1].code if known[1] else ""


# --- pairs ---


def _read(table: Table, choice: ColumnChoice, dropped: Counter[str]) -> Iterator[NumberedPair]:
    header_expected = choice.has_header
    for number, cells in table.rows(dropped):
        if header_expected:
            header_expected = not any(cells)  # the header is the first row that is not blank
            if not header_expected:
                dropped[HEADER] += 1
            continue
        if len(cells) == 2 and not choice.width:
            yield number, make_pair(cells[0], cells[1], dropped)
        elif not any(cells):
            yield number, Pair("", "")
        elif choice.width:
            yield number, _chosen_pair(table, choice, number, cells, dropped)
        else:
            yield number, _aligned_pair(table, choice, number, cells, dropped)


def _chosen_pair(
    table: Table, choice: ColumnChoice, number: int, cells: list[str], dropped: Counter[str]
) -> Pair:
    if table.ragged or (choice.alignment is not None and len(cells) == 2):  # a row may lack its alignment
        cells = cells + [""] * (choice.width - len(cells))
    elif len(cells) != choice.width:
        raise _width_error(table, number, cells, f"The first line has {choice.width}.")
    pair = make_pair(cells[choice.source], cells[choice.target], dropped)
    if choice.alignment is None:
        return pair
    return _with_alignment(table, choice, number, pair, cells[choice.alignment])


def _aligned_pair(
    table: Table, choice: ColumnChoice, number: int, cells: list[str], dropped: Counter[str]
) -> Pair:
    """Return the pair of a row with two cells, or with three cells of which the third is a word alignment."""
    if len(cells) not in (2, 3):
        expected = (
            f"Columns are source, target and optionally the word alignment, separated by {table.separator}."
        )
        raise _width_error(table, number, cells, expected)
    pair = make_pair(cells[0], cells[1], dropped)
    return pair if len(cells) == 2 else _with_alignment(table, choice, number, pair, cells[2])


def _with_alignment(table: Table, choice: ColumnChoice, number: int, pair: Pair, cell: str) -> Pair:
    """Return the pair with the word alignment in a cell.

    If the header is `target`, `source`, `alignment`, links are still source-target.
    """
    if not cell.strip():
        return pair
    try:
        return Pair(pair.source, pair.target, parse_alignment(cell))
    except DataError as error:
        columns = f"{choice.source + 1},{choice.target + 1}"
        raise line_error(
            table.file,
            number,
            "has a third column that is not a word alignment",
            f"{shorten(str(error))} If it is not needed, add --columns {columns}.",
        ) from None


def _width_error(table: Table, number: int, cells: list[str], expected: str) -> DataError:
    received = shorten(" ⇥ ".join(cells).replace("\n", " ⏎ "))
    return line_error(
        table.file, number, f"has {_column_count(len(cells))}", f"{expected} Received: {received}"
    )
