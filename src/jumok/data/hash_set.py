"""A set of 64-bit hashes that takes eight bytes per element.

Ten million hashes take 80 MB. In a Python set, they would take about 700 MB. In a corpus of ten million
pairs, the chance that any two different sentences have the same hash is 3 in a million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class HashSet:
    """A set of hashes as sorted runs, which are merged when they have about the same size."""

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Add a block of hashes. Return which are new: not in the set, and not earlier in the block."""
        values, first = np.unique(hashes, return_index=True)
        new = np.ones(len(values), dtype=bool)
        for run in self._runs:
            index = np.minimum(np.searchsorted(run, values), len(run) - 1)
            new &= run[index] != values
        is_new = np.zeros(len(hashes), dtype=bool)
        is_new[first[new]] = True
        if new.any():
            self._add_run(values[new])
        return is_new

    def _add_run(self, run: NDArray[np.int64]) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)
