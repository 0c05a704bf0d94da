"""A set of 64-bit hashes that takes eight bytes an element.

A Python set of ten million integers takes about 700 MB; the sorted runs here take 80. Two different sentences
share a hash with a chance of 3 in a million for a corpus of ten million pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SeenHashes"]


class SeenHashes:
    """Remembers hashes, given in blocks: sorted runs, merged as they grow to the same size."""

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Remember a block. True where a hash is new, False where it came before, here or earlier."""
        values, first = np.unique(hashes, return_index=True)
        new = np.ones(len(values), dtype=bool)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, values), len(run) - 1)
            new &= run[place] != values
        fresh = np.zeros(len(hashes), dtype=bool)
        fresh[first[new]] = True
        if new.any():
            self._remember(values[new])
        return fresh

    def _remember(self, run: NDArray[np.int64]) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)
