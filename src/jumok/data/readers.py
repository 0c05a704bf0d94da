"""Readers: one function a format, each a stream of (line number, pair).

    TSV        source ⇥ target [⇥ alignment]                  header optional
    CSV        the same three columns, quoted where needed    header optional
    JSONL      {"source": …, "target": …} or {"en": …, "ko": …}, optionally "alignment"; or all that inside
               {"translation": …}
    two texts  a sentence a line, its translation on the same line of the other file
    one text   a sentence a line: pairs without a source

Every line becomes a pair, blank ones too: what is worth keeping is for the check-up to say, and it counts.
"""

from __future__ import annotations

import csv
import json
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from jumok.corpus.alignments import parse_alignment
from jumok.corpus.languages import find_language, names_language
from jumok.corpus.lines import read_lines
from jumok.corpus.unequal import unequal_lines
from jumok.errors import DataError
from jumok.values import Alignment, Pair

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

    from jumok.corpus.lines import InputFile

__all__ = [
    "NumberedPair",
    "csv_rows",
    "header_languages",
    "json_columns",
    "read_csv",
    "read_jsonl",
    "read_parallel",
    "read_text",
    "read_tsv",
    "unknown_codes",
]

NumberedPair = tuple[int, Pair]

EDGE_SPACE, HEADER = "space at the edge of a sentence", "header line"

_SOURCE_NAMES, _TARGET_NAMES = {"source", "src"}, {"target", "tgt", "trg"}
_ALIGNMENT_NAMES = {"alignment", "alignments"}


def read_parallel(source: InputFile, target: InputFile, noticed: Counter[str]) -> Iterator[NumberedPair]:
    """Two files, line by line. Unequal counts are refused where the shorter one ends."""
    lines = zip_longest(read_lines(source, noticed), read_lines(target, noticed))
    for number, (source_line, target_line) in enumerate(lines, start=1):
        if source_line is None or target_line is None:
            raise unequal_lines(source, target)
        yield number, _pair(source_line, target_line, noticed)


def read_text(file: InputFile, noticed: Counter[str]) -> Iterator[NumberedPair]:
    for number, line in enumerate(read_lines(file, noticed), start=1):
        yield number, _pair("", line, noticed)


def read_tsv(file: InputFile, noticed: Counter[str], *, header: bool) -> Iterator[NumberedPair]:
    for number, line in enumerate(read_lines(file, noticed), start=1):
        if number == 1 and header:
            noticed[HEADER] += 1
            continue
        cells = line.split("\t")
        if len(cells) == 2:
            yield number, _pair(cells[0], cells[1], noticed)
        else:
            yield number, _pair_of_cells(file, number, cells, "a tab", noticed)


def read_csv(file: InputFile, noticed: Counter[str], *, header: bool) -> Iterator[NumberedPair]:
    for number, row in csv_rows(file, read_lines(file, noticed)):
        if number == 1 and header:
            noticed[HEADER] += 1
        else:
            yield number, _pair_of_cells(file, number, row, "a comma", noticed)


def csv_rows(file: InputFile, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of CSV, each with the number of its first line: a quoted cell may span several."""
    rows = csv.reader(line + "\n" for line in lines)
    number = 1
    try:
        for row in rows:
            yield number, row
            number = rows.line_num + 1
    except csv.Error as error:  # it also refuses a cell of more than 131,072 characters
        raise _bad_line(file, number, f"is not CSV ({error})", "Is a quotation mark left open?") from None


def read_jsonl(
    file: InputFile, noticed: Counter[str], *, source_key: str, target_key: str
) -> Iterator[NumberedPair]:
    for number, line in enumerate(read_lines(file, noticed), start=1):
        if not line or line.isspace():
            yield number, Pair("", "")
            continue
        record = json_record(file, number, line)
        for key in (source_key, target_key):
            if not isinstance(record.get(key), str):
                raise _bad_line(file, number, f"has no text under {key!r}", f"Received: {_shortened(line)}")
        pair = _pair(_whole(record[source_key]), _whole(record[target_key]), noticed)
        alignment = _json_alignment(file, number, record.get("alignment"))
        yield number, pair if alignment is None else Pair(pair.source, pair.target, alignment)


def header_languages(cells: list[str]) -> tuple[str, str] | None:
    """The languages that a first row names ("" for those not known), or None where it is a pair.

    A row is a header only where both cells are language codes or names, or exactly source and target: a
    sentence must never be lost. A code that is not in the table, `hsb`, counts beside one that is, or above
    alignments.
    """
    names = [cell.strip() for cell in cells]
    if len(names) not in (2, 3) or (len(names) == 3 and names[2].casefold() not in _ALIGNMENT_NAMES):
        return None
    first, second = names[:2]
    if first.casefold() in _SOURCE_NAMES and second.casefold() in _TARGET_NAMES:
        return "", ""
    known = find_language(first), find_language(second)
    if first == second or not all(map(names_language, (first, second))):
        return None
    if not any(known):  # lists of words begin with short words too, "two ⇥ dos"
        return ("", "") if len(names) == 3 else None
    if known[0] == known[1]:
        return None
    return known[0].code if known[0] else "", known[1].code if known[1] else ""


def unknown_codes(cells: list[str]) -> list[str]:
    """Of a header: the codes in it that the table of languages does not know."""
    names = [cell.strip() for cell in cells[:2]]
    column_names = _SOURCE_NAMES | _TARGET_NAMES
    return [name for name in names if find_language(name) is None and name.casefold() not in column_names]


def json_columns(record: dict[str, Any]) -> dict[str, str]:
    """Which keys hold sentences: key → language code, "" for `source` and `target`."""
    if "source" in record and "target" in record:
        return {"source": "", "target": ""}
    languages = {key: find_language(key) for key, value in record.items() if isinstance(value, str)}
    return {key: language.code for key, language in languages.items() if language}


def json_record(file: InputFile, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad_line(file, number, f"is not JSON ({error})", f"Received: {_shortened(line)}") from None
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise _bad_line(file, number, "is not a JSON object", f"Received: {_shortened(line)}")
    return record


def _pair(source: str, target: str, noticed: Counter[str]) -> Pair:
    bare_source, bare_target = source.strip(), target.strip()
    if len(bare_source) != len(source) or len(bare_target) != len(target):
        noticed[EDGE_SPACE] += 1
    return Pair(bare_source, bare_target)


def _pair_of_cells(
    file: InputFile, number: int, cells: list[str], separator: str, noticed: Counter[str]
) -> Pair:
    """Two cells, or three with an alignment; a blank line is a pair of empty sentences."""
    if not any(cells):
        return Pair("", "")
    if len(cells) not in (2, 3):
        raise _bad_line(
            file,
            number,
            f"has {len(cells)} column{'s' if len(cells) != 1 else ''}",
            f"Columns are source, target and, where there is one, the word alignment, with {separator} "
            f"between. Received: {_shortened(' ⇥ '.join(cells))}",
        )
    pair = _pair(cells[0], cells[1], noticed)
    if len(cells) == 2 or not cells[2].strip():
        return pair
    return Pair(pair.source, pair.target, _parsed(file, number, cells[2]))


def _parsed(file: InputFile, number: int, text: str) -> Alignment:
    try:
        return parse_alignment(text)
    except DataError as error:
        raise _bad_line(
            file,
            number,
            "has a third column that is no word alignment",
            f"{_shortened(str(error))} Columns that are not needed can be cut off: `cut -f1,2`.",
        ) from None


def _json_alignment(file: InputFile, number: int, value: object) -> Alignment | None:
    """`"0-0 1-2"` or `[[0, 0], [1, 2]]`."""
    if value is None or value == "":
        return None
    if isinstance(value, list) and all(isinstance(link, list) and len(link) == 2 for link in value):
        value = " ".join(f"{i}-{j}" for i, j in value)
    return _parsed(file, number, value if isinstance(value, str) else repr(value))


def _whole(text: str) -> str:
    """JSON can spell half a character (a lone surrogate); it becomes U+FFFD, which the check-up finds."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _bad_line(file: InputFile, number: int, what: str, advice: str) -> DataError:
    return DataError(f"Line {number:,} of {file.name} {what}. {advice}")


def _shortened(text: str, longest: int = 80) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
