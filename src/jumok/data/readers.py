"""Readers of sentence pairs, one per file format.

    TSV        source ⇥ target [⇥ alignment]                  header optional
    CSV        the same three columns, quoted if needed       header optional
    JSONL      {"source": …, "target": …} or {"en": …, "ko": …}, optionally "alignment"; may be wrapped in
               {"translation": …}
    two texts  one sentence per line, its translation on the same line of the other file
    one text   one sentence per line: pairs without a source

A reader yields (line number, pair). Every line becomes a pair, blank ones too: cleaning decides which pairs
are used, and counts the others.

To support another format, write a function such as `open_tsv` and add a row to `PAIR_FORMATS`.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import PurePath
from typing import Any

from jumok.data.alignments import parse_alignment
from jumok.data.lines import InputFile, read_lines, without_compression
from jumok.data.unequal_lines import unequal_lines_error
from jumok.errors import DataError
from jumok.text.languages import find_language, looks_like_language
from jumok.types import Alignment, Pair

__all__ = [
    "PAIR_FORMATS",
    "HeaderWarning",
    "NumberedPair",
    "PairFile",
    "find_pair_format",
    "holds_pairs",
    "no_pairs_error",
    "open_csv",
    "open_jsonl",
    "open_tsv",
    "read_parallel",
    "read_text",
]

NumberedPair = tuple[int, Pair]
"""A pair and the line, counted from 1, on which it begins."""
PairReader = Callable[[Counter[str]], Iterator[NumberedPair]]
"""Reads all pairs of a file; the counter counts what it dropped, such as a byte order mark."""

EDGE_SPACE, HEADER = "space at the edge of a sentence", "header line"

_SOURCE_NAMES, _TARGET_NAMES = {"source", "src"}, {"target", "tgt", "trg"}
_ALIGNMENT_NAMES = {"alignment", "alignments"}


class HeaderWarning(UserWarning):
    """A first line was taken as a header although only one of its languages is known."""


@dataclass(frozen=True, slots=True)
class PairFile:
    """An opened file of pairs: how to read it, and the languages that its beginning names."""

    read: PairReader
    languages: tuple[str, str] = ("", "")  # codes of source and target, "" if the file does not name them


OpenPairs = Callable[[InputFile, str, str], PairFile]
"""Opens a file of pairs. The two codes are the requested languages, "" if none was requested."""


# --- formats: how a file is opened ---


def open_tsv(file: InputFile, source: str, target: str) -> PairFile:
    """Open tab-separated pairs; languages come from a header."""
    cells = _first_line(file).split("\t")
    languages = _read_header(file, cells)
    return PairFile(partial(_read_tsv, file, header=languages is not None), languages or ("", ""))


def open_csv(file: InputFile, source: str, target: str) -> PairFile:
    """Open comma-separated pairs; languages come from a header."""
    cells = next((row for _, row in _csv_rows(file, [_first_line(file)])), [])
    languages = _read_header(file, cells)
    return PairFile(partial(_read_csv, file, header=languages is not None), languages or ("", ""))


def open_jsonl(file: InputFile, source: str, target: str) -> PairFile:
    """Open JSON objects, one per line; languages come from the keys of the first."""
    lines = enumerate(read_lines(file, Counter()), start=1)
    number, line = next(((number, line) for number, line in lines if line.strip()), (0, ""))
    if not line:
        raise no_pairs_error(file)
    columns = _json_columns(_json_record(file, number, line))
    wanted = [key for key in columns if columns[key] in (source, target)]
    if len(columns) > 2 and source and target and len(wanted) == 2:
        columns = {key: columns[key] for key in wanted}
    if len(columns) != 2:
        raise DataError(
            f"Line {number} of {file.name} should have the keys `source` and `target` or two language codes. "
            f"Received: {', '.join(columns) or 'none of them'}. "
            + ("Choose two with --from and --to." if columns else "")
        )
    [source_key, target_key] = columns
    read = partial(_read_jsonl, file, source_key=source_key, target_key=target_key)
    return PairFile(read, (columns[source_key], columns[target_key]))


PAIR_FORMATS: dict[str, OpenPairs] = {
    ".tsv": open_tsv,
    ".csv": open_csv,
    ".jsonl": open_jsonl,
    ".ndjson": open_jsonl,
}
"""Suffix of a file of pairs → the function that opens it. Other files are texts in one language."""


def find_pair_format(file: InputFile) -> OpenPairs | None:
    """Return the function that opens a file of pairs, or None if it is a text in one language.

    Standard input has no name: it is JSONL if it begins with "{", otherwise TSV.
    """
    if file.spooled:
        first = next(read_lines(file, Counter()), "")
        return open_jsonl if first.startswith("{") else open_tsv
    return PAIR_FORMATS.get(PurePath(file.plain_name).suffix.lower())


def holds_pairs(name: str) -> bool:
    """Return whether a file of this name holds pairs, and not a text in one language."""
    return PurePath(without_compression(name)).suffix.lower() in PAIR_FORMATS


# --- readers: how a file is read ---


def read_parallel(source: InputFile, target: InputFile, dropped: Counter[str]) -> Iterator[NumberedPair]:
    """Yield the pairs of two texts, line by line. Unequal line counts are refused where the shorter ends."""
    lines = zip_longest(read_lines(source, dropped), read_lines(target, dropped))
    for number, (source_line, target_line) in enumerate(lines, start=1):
        if source_line is None or target_line is None:
            raise unequal_lines_error(source, target)
        yield number, _pair(source_line, target_line, dropped)


def read_text(file: InputFile, dropped: Counter[str]) -> Iterator[NumberedPair]:
    """Yield the lines of a text as pairs without a source."""
    for number, line in enumerate(read_lines(file, dropped), start=1):
        yield number, _pair("", line, dropped)


def _read_tsv(file: InputFile, dropped: Counter[str], *, header: bool) -> Iterator[NumberedPair]:
    for number, line in enumerate(read_lines(file, dropped), start=1):
        if number == 1 and header:
            dropped[HEADER] += 1
            continue
        cells = line.split("\t")
        if len(cells) == 2:
            yield number, _pair(cells[0], cells[1], dropped)
        else:
            yield number, _pair_of_cells(file, number, cells, "a tab", dropped)


def _read_csv(file: InputFile, dropped: Counter[str], *, header: bool) -> Iterator[NumberedPair]:
    for number, row in _csv_rows(file, read_lines(file, dropped)):
        if number == 1 and header:
            dropped[HEADER] += 1
        else:
            yield number, _pair_of_cells(file, number, row, "a comma", dropped)


def _csv_rows(file: InputFile, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of CSV with the number of their first line: a quoted cell may span several lines."""
    rows = csv.reader(line + "\n" for line in lines)
    number = 1
    try:
        for row in rows:
            yield number, row
            number = rows.line_num + 1
    except csv.Error as error:  # the module also refuses a cell of more than 131,072 characters
        raise _line_error(file, number, f"is not CSV ({error})", "Is a quotation mark left open?") from None


def _read_jsonl(
    file: InputFile, dropped: Counter[str], *, source_key: str, target_key: str
) -> Iterator[NumberedPair]:
    for number, line in enumerate(read_lines(file, dropped), start=1):
        if not line or line.isspace():
            yield number, Pair("", "")
            continue
        record = _json_record(file, number, line)
        for key in (source_key, target_key):
            if not isinstance(record.get(key), str):
                raise _line_error(file, number, f"has no text under {key!r}", f"Received: {_shorten(line)}")
        pair = _pair(_valid_unicode(record[source_key]), _valid_unicode(record[target_key]), dropped)
        alignment = _json_alignment(file, number, record.get("alignment"))
        yield number, pair if alignment is None else Pair(pair.source, pair.target, alignment)


# --- headers: languages that a file names ---


def _first_line(file: InputFile) -> str:
    line = next(read_lines(file, Counter()), None)
    if line is None:
        raise no_pairs_error(file)
    return line


def _read_header(file: InputFile, cells: list[str]) -> tuple[str, str] | None:
    """Return the languages that a first row names, or None if it is a pair; warn of an uncertain header."""
    languages = header_languages(cells)
    if languages is not None and (unknown := _unknown_codes(cells)):
        warnings.warn(
            f"the first line of {file.name} was taken as a header, not as a pair: it names two languages, "
            f"though jumok does not know {' and '.join(unknown)}. If it is a pair, put a header above it.",
            HeaderWarning,
            stacklevel=2,
        )
    return languages


def header_languages(cells: list[str]) -> tuple[str, str] | None:
    """Return the codes of the languages that a first row names ("" if unknown), or None if it is a pair.

    A row is a header only if both cells are language codes or names, or exactly source and target: a sentence
    must never be lost. An unknown code such as `hsb` counts only beside a known one, or in a header with a
    column of alignments.
    """
    names = [cell.strip() for cell in cells]
    if len(names) not in (2, 3) or (len(names) == 3 and names[2].casefold() not in _ALIGNMENT_NAMES):
        return None
    first, second = names[:2]
    if first.casefold() in _SOURCE_NAMES and second.casefold() in _TARGET_NAMES:
        return "", ""
    known = find_language(first), find_language(second)
    if first == second or not all(map(looks_like_language, (first, second))):
        return None
    if not any(known):  # word lists begin with short words too, "two ⇥ dos"
        return ("", "") if len(names) == 3 else None
    if known[0] == known[1]:
        return None
    return known[0].code if known[0] else "", known[1].code if known[1] else ""


def _unknown_codes(cells: list[str]) -> list[str]:
    """Return the codes in a header that are not in the table of languages."""
    names = [cell.strip() for cell in cells[:2]]
    column_names = _SOURCE_NAMES | _TARGET_NAMES
    return [name for name in names if find_language(name) is None and name.casefold() not in column_names]


def _json_columns(record: dict[str, Any]) -> dict[str, str]:
    """Return the keys that hold sentences: key → language code, "" for `source` and `target`."""
    if "source" in record and "target" in record:
        return {"source": "", "target": ""}
    languages = {key: find_language(key) for key, value in record.items() if isinstance(value, str)}
    return {key: language.code for key, language in languages.items() if language}


# --- lines and cells ---


def _json_record(file: InputFile, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _line_error(file, number, f"is not JSON ({error})", f"Received: {_shorten(line)}") from None
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise _line_error(file, number, "is not a JSON object", f"Received: {_shorten(line)}")
    return record


def _pair(source: str, target: str, dropped: Counter[str]) -> Pair:
    stripped_source, stripped_target = source.strip(), target.strip()
    if len(stripped_source) != len(source) or len(stripped_target) != len(target):
        dropped[EDGE_SPACE] += 1
    return Pair(stripped_source, stripped_target)


def _pair_of_cells(
    file: InputFile, number: int, cells: list[str], separator: str, dropped: Counter[str]
) -> Pair:
    """Return the pair in two cells, or in three with an alignment; a blank line is an empty pair."""
    if not any(cells):
        return Pair("", "")
    if len(cells) not in (2, 3):
        raise _line_error(
            file,
            number,
            f"has {len(cells)} column{'s' if len(cells) != 1 else ''}",
            f"Columns are source, target and optionally the word alignment, separated by {separator}. "
            f"Received: {_shorten(' ⇥ '.join(cells))}",
        )
    pair = _pair(cells[0], cells[1], dropped)
    if len(cells) == 2 or not cells[2].strip():
        return pair
    return Pair(pair.source, pair.target, _parse_alignment(file, number, cells[2]))


def _parse_alignment(file: InputFile, number: int, text: str) -> Alignment:
    try:
        return parse_alignment(text)
    except DataError as error:
        raise _line_error(
            file,
            number,
            "has a third column that is not a word alignment",
            f"{_shorten(str(error))} Remove columns that are not needed: `cut -f1,2`.",
        ) from None


def _json_alignment(file: InputFile, number: int, value: object) -> Alignment | None:
    """Parse `"0-0 1-2"` or `[[0, 0], [1, 2]]`."""
    if value is None or value == "":
        return None
    if isinstance(value, list) and all(isinstance(link, list) and len(link) == 2 for link in value):
        value = " ".join(f"{i}-{j}" for i, j in value)
    return _parse_alignment(file, number, value if isinstance(value, str) else repr(value))


def _valid_unicode(text: str) -> str:
    """Replace lone surrogates, which JSON can spell, with U+FFFD, which cleaning finds."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def no_pairs_error(file: InputFile) -> DataError:
    return DataError(f"{file.name} holds no sentence pairs. Is it the right file?")


def _line_error(file: InputFile, number: int, problem: str, advice: str) -> DataError:
    return DataError(f"Line {number:,} of {file.name} {problem}. {advice}")


def _shorten(text: str, max_length: int = 80) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"
