"""Two files with unequal line counts: where the shift probably begins.

A sentence and its translation have lengths that go together; after a line is lost they no longer do. The
place is found as a change point: the cumulative sum of how far each length ratio strays from the usual, less
the mean, is lowest where straying begins (Page 1954). A shift that lengths do not show is not guessed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from jumok.corpus.lines import read_lines
from jumok.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.corpus.lines import InputFile

__all__ = ["first_suspicious_line", "unequal_lines"]

# The statistic of Kolmogorov exceeds this in one of a hundred files without any shift.
_SIGNIFICANT = 1.63


def unequal_lines(source: InputFile, target: InputFile) -> DataError:
    """The error for two files of unequal length, with the neighbourhood where they seem to part."""
    source_lengths, target_lengths = _line_lengths(source), _line_lengths(target)
    line = first_suspicious_line(source_lengths, target_lengths)
    hint = f"   first difference in length ratio near line {line:,}" if line else ""
    counts = [f"{len(lengths):,} lines" for lengths in (source_lengths, target_lengths)]
    width, places = max(len(source.name), len(target.name)), max(map(len, counts))
    advice = (
        f"Compare the files around line {line:,}."
        if line
        else "Their lengths go together as far as both reach: look at the end of the longer file first."
    )
    return DataError(
        "the two files do not have the same number of lines.\n"
        f"  {source.name:{width}}  {counts[0]:>{places}}\n"
        f"  {target.name:{width}}  {counts[1]:>{places}}{hint}\n"
        f"A sentence and its translation must stand on the same line of both files. {advice}"
    )


def first_suspicious_line(source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]) -> int:
    """The line, counted from 1, near which lengths stop going together; 0 where none stands out."""
    shared = min(len(source_lengths), len(target_lengths))
    if shared < 3:
        return 0
    ratio = np.log((target_lengths[:shared] + 1) / (source_lengths[:shared] + 1))
    straying = np.abs(ratio - np.median(ratio))
    spread = float(straying.std())
    if spread == 0:
        return 0
    sums = np.cumsum(straying - straying.mean())
    lowest = int(sums.argmin())
    if -sums[lowest] < _SIGNIFICANT * spread * np.sqrt(shared):
        return 0
    return lowest + 2  # the first line after the lowest point, counted from 1


def _line_lengths(file: InputFile) -> NDArray[np.int64]:
    return np.fromiter(map(len, read_lines(file, Counter())), np.int64)
