"""The interface of all formats: an opened file of pairs, and the options for reading it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jumok.data.input_files import InputFile
from jumok.errors import DataError
from jumok.types import Pair

NumberedPair = tuple[int, Pair]
"""A pair and the line or row on which it begins, or its index if there are no lines, counted from 1."""
PairReader = Callable[[Counter[str]], Iterator[NumberedPair]]
"""Reads all pairs of a file. It counts in its argument what it dropped, such as a byte order mark."""

EDGE_SPACE, HEADER = "space at the edge of a sentence", "header line"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The requested languages (codes, "" if none was requested) and columns (`en,ko` or `2,4`)."""

    source: str = ""
    target: str = ""
    columns: str = ""


@dataclass(frozen=True, slots=True)
class PairFile:
    """An opened file of pairs: a function that reads its pairs, and the languages that the file names."""

    read: PairReader
    languages: tuple[str, str] = ("", "")  # codes of source and target, "" if the file does not name them
    note: str = ""  # a choice that the user should know, such as the chosen columns


OpenPairs = Callable[[InputFile, ReadOptions], PairFile]
"""Opens a file of pairs. It raises a DataError if the file is not of its format."""


def make_pair(source: str, target: str, dropped: Counter[str]) -> Pair:
    """Return a pair without spaces at the edges of its sentences; `dropped` counts pairs with such spaces."""
    stripped_source, stripped_target = source.strip(), target.strip()
    if len(stripped_source) != len(source) or len(stripped_target) != len(target):
        dropped[EDGE_SPACE] += 1
    return Pair(stripped_source, stripped_target)


def valid_unicode(text: str) -> str:
    """Replace lone surrogates with U+FFFD. JSON can contain them, and cleaning skips pairs with U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def refuse_columns(file: InputFile, options: ReadOptions) -> None:
    """Raise if columns were requested for a format without columns."""
    if options.columns:
        raise DataError(
            f"{file.name} has no columns to choose from. Received: --columns {options.columns}. Leave it "
            "out; --from and --to choose languages."
        )


def no_pairs_error(file: InputFile) -> DataError:
    return DataError(f"{file.name} holds no sentence pairs. Is it the right file?")


def line_error(file: InputFile, number: int, problem: str, advice: str) -> DataError:
    return DataError(f"Line {number:,} of {file.name} {problem}. {advice}")


def shorten(text: str, max_length: int = 80) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"
