"""Texts with one sentence per line: two parallel texts give pairs, a single text is plain text."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from jumok.data.formats.pair_file import make_pair
from jumok.data.lines import read_lines
from jumok.data.unequal_lines import unequal_lines_error

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from jumok.data.formats.pair_file import NumberedPair
    from jumok.data.input_files import InputFile


def read_parallel(source: InputFile, target: InputFile, dropped: Counter[str]) -> Iterator[NumberedPair]:
    """Yield the pairs of two texts, line by line. Raise a DataError when one text ends before the other."""
    lines = zip_longest(read_lines(source, dropped), read_lines(target, dropped))
    for number, (source_line, target_line) in enumerate(lines, start=1):
        if source_line is None or target_line is None:
            raise unequal_lines_error(source, target)
        yield number, make_pair(source_line, target_line, dropped)


def read_text(file: InputFile, dropped: Counter[str]) -> Iterator[NumberedPair]:
    """Yield the lines of a text as pairs without a source."""
    for number, line in enumerate(read_lines(file, dropped), start=1):
        yield number, make_pair("", line, dropped)
