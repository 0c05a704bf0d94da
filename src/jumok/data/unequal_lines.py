"""Two parallel texts with unequal line counts: find the line after which sentences no longer match.

The lengths of a sentence and its translation are correlated. After a line that is missing in one text, the
lengths on a line are no longer correlated. This line is found as a change point. The deviation of a line is
the distance of the logarithm of its length ratio from the median. The mean deviation is subtracted from each
deviation. The cumulative sum of the results is lowest where the large deviations begin (Page 1954). A shift
that the lengths do not show is not reported.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from jumok.data.lines import read_lines
from jumok.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.data.input_files import InputFile

# Kolmogorov's statistic exceeds this value in one of a hundred files without a shift.
_MIN_STATISTIC = 1.63


def unequal_lines_error(source: InputFile, target: InputFile) -> DataError:
    """Return the error for two files of unequal length, with the line near which they seem to diverge."""
    source_lengths, target_lengths = _line_lengths(source), _line_lengths(target)
    line = first_suspicious_line(source_lengths, target_lengths)
    hint = f"   first difference in length ratio near line {line:,}" if line else ""
    counts = [f"{len(lengths):,} lines" for lengths in (source_lengths, target_lengths)]
    name_width, count_width = max(len(source.name), len(target.name)), max(map(len, counts))
    advice = (
        f"Compare the files around line {line:,}."
        if line
        else "No difference was found in the lines that both files have. Look at the end of the longer file."
    )
    return DataError(
        "the two files do not have the same number of lines.\n"
        f"  {source.name:{name_width}}  {counts[0]:>{count_width}}\n"
        f"  {target.name:{name_width}}  {counts[1]:>{count_width}}{hint}\n"
        f"A sentence and its translation must be on the same line of both files. {advice}"
    )


def first_suspicious_line(source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]) -> int:
    """Return the line, counted from 1, near which lengths stop being correlated; 0 if there is none."""
    common_lines = min(len(source_lengths), len(target_lengths))
    if common_lines < 3:
        return 0
    ratio = np.log((target_lengths[:common_lines] + 1) / (source_lengths[:common_lines] + 1))
    deviation = np.abs(ratio - np.median(ratio))
    spread = float(deviation.std())
    if spread == 0:
        return 0
    sums = np.cumsum(deviation - deviation.mean())
    lowest = int(sums.argmin())
    if -sums[lowest] < _MIN_STATISTIC * spread * np.sqrt(common_lines):
        return 0
    return lowest + 2  # the first line after the lowest point, counted from 1


def _line_lengths(file: InputFile) -> NDArray[np.int64]:
    return np.fromiter(map(len, read_lines(file, Counter())), np.int64)
