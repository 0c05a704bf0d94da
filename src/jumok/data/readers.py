"""Readers of sentence pairs, one per file format.

    TSV, CSV     source and target in two columns of any table         formats/columns.py, delimited.py
    XLSX, ODS    the same, in a spreadsheet                            formats/spreadsheets.py
    JSONL        {"source": …, "target": …} or {"en": …, "ko": …}      formats/json_lines.py
    TMX, XLIFF   translation memories and documents for translators    formats/tmx.py, xliff.py
    PO           catalogues of gettext                                 formats/po.py
    ZIP          two parallel texts, or one file of pairs (OPUS)       formats/archives.py
    two texts    one sentence per line, its translation on the same line of the other file
    one text     one sentence per line: pairs without a source

A reader yields (line number, pair). In TSV, CSV, JSONL and texts, every row becomes a pair, even a blank row.
Only a header does not become a pair. Cleaning decides which pairs are used, and counts the skipped pairs. A
reader counts what it drops, such as units without a translation.

To support another format, write a function such as `open_tsv` and add a row to `PAIR_FORMATS`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from jumok.data.formats.archives import open_zip
from jumok.data.formats.delimited import has_tab_columns, open_csv, open_tsv
from jumok.data.formats.json_lines import open_jsonl
from jumok.data.formats.po import open_po
from jumok.data.formats.spreadsheets import open_ods, open_xlsx
from jumok.data.formats.tmx import open_tmx
from jumok.data.formats.xliff import open_xliff
from jumok.data.input_files import without_compression
from jumok.data.lines import read_lines

if TYPE_CHECKING:
    from jumok.data.formats.pair_file import OpenPairs, PairFile, ReadOptions
    from jumok.data.input_files import InputFile


def _open_archive(file: InputFile, options: ReadOptions) -> PairFile:
    return open_zip(file, options, find_format=find_pair_format)


PAIR_FORMATS: dict[str, OpenPairs] = {
    ".tsv": open_tsv,
    ".tab": open_tsv,
    ".csv": open_csv,
    ".jsonl": open_jsonl,
    ".ndjson": open_jsonl,
    ".tmx": open_tmx,
    ".xlf": open_xliff,
    ".xliff": open_xliff,
    ".sdlxliff": open_xliff,
    ".mqxliff": open_xliff,
    ".mxliff": open_xliff,
    ".po": open_po,
    ".xlsx": open_xlsx,
    ".xlsm": open_xlsx,
    ".ods": open_ods,
    ".zip": _open_archive,
}
"""Suffix of a file of pairs → the function that opens it. Other files are texts in one language."""


def find_pair_format(file: InputFile) -> OpenPairs | None:
    """Return the function that opens a file of pairs, or None if the file counts as a text in one language.

    Standard input has no name: it is JSONL if it begins with "{", otherwise TSV. A .txt is TSV if all its
    first lines have the same number of tabs.
    """
    if file.from_stream:
        first = next(read_lines(file, Counter()), "")
        return open_jsonl if first.startswith("{") else open_tsv
    suffix = PurePath(file.plain_name).suffix.lower()
    if suffix == ".txt" and file.path.is_file() and has_tab_columns(file):
        return open_tsv
    return PAIR_FORMATS.get(suffix)


def has_pair_suffix(name: str) -> bool:
    """Return whether the suffix is in `PAIR_FORMATS`. Return False for .txt, although it may hold a table."""
    return PurePath(without_compression(name)).suffix.lower() in PAIR_FORMATS


def split_weight(argument: str) -> tuple[str, float | None]:
    """Return ("pairs.tsv", 2.5) for `pairs.tsv:2.5`. Return no weight if a file `pairs.tsv:2.5` exists.

    Any number is accepted as a weight. `open_corpora` refuses a weight out of range.
    """
    path, colon, weight = argument.rpartition(":")
    if not colon or not path or Path(argument).exists():
        return argument, None
    try:
        return path, float(weight)
    except ValueError:
        return argument, None
