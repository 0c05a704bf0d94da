"""The plan of batches for large stores: a keyed permutation names the pair of each slot.

`batch_plan.py` sorts all pairs for each epoch, which needs about 100 bytes per pair. Here the pairs are
sorted by length class once, which needs four bytes per pair. The length class of a pair consists of its
rounded source length and its rounded target length, as in `batch_plan.py`. The slots of a class hold the
pairs of this class in the order of a Feistel network whose key is (seed, epoch, class). Such a network is a
bijection, so each pair is used once per epoch, or as often as its weight says. The pair of a slot can be
computed without computing the other slots. A second Feistel network determines the order of the batches.

Two numbers name a length class. Its *code* is `rounded target length << 16 | rounded source length`. Its
*index* is its position when the classes are sorted by `class_sort_keys`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.data.batch_plan import (
    MAX_EXACT_SOURCE,
    MAX_EXACT_TARGET,
    ORDER_STREAM,
    SHUFFLE_STREAM,
    SOURCE_TOKENS_FACTOR,
    class_sort_keys,
    length_classes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from jumok.data.store import PairStore, StoredCorpus

_ROUNDS = 4
_CHUNK_PAIRS = 1 << 20
_LENGTH_BITS = 16


class Permutation:
    """A bijection of 0 … count - 1, given by a key.

    A balanced Feistel network permutes the numbers below an even power of two. A result of `count` or more is
    permuted again until it is below `count` (cycle walking). A few repetitions are usually enough.
    """

    def __init__(self, count: int, key: Sequence[int]) -> None:
        self._count = np.uint64(count)
        half = (max(2, (count - 1).bit_length()) + 1) // 2
        self._half, self._mask = np.uint64(half), np.uint64((1 << half) - 1)
        self._round_keys = np.random.PCG64(np.random.SeedSequence(list(key))).random_raw(_ROUNDS)

    def __call__(self, indices: NDArray[Any]) -> NDArray[np.int64]:
        permuted = self._permute(indices.astype(np.uint64))
        outside = np.flatnonzero(permuted >= self._count)
        while len(outside):
            permuted[outside] = self._permute(permuted[outside])
            outside = outside[permuted[outside] >= self._count]
        return permuted.astype(np.int64)

    def _permute(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left, right = values >> self._half, values & self._mask
        for round_key in self._round_keys:
            left, right = right, left ^ (_mix(right + round_key) & self._mask)
        return (left << self._half) | right


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return well-mixed bits: the finaliser of splitmix64 (Steele et al. 2014). Overflow wraps around."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@dataclass(frozen=True)
class FeistelLayout:
    """Slots sorted by length class. Class index c has the slots class_starts[c] … class_starts[c + 1] - 1."""

    sorted_pairs: NDArray[np.uint32]  # (slots,) the pairs, sorted by class
    class_starts: NDArray[np.int64]  # (classes + 1,)
    starts: NDArray[np.int64]  # (batches + 1,) the slot where each batch begins

    def pairs_of(self, seed: int, epoch: int, index: int) -> NDArray[np.int64]:
        """Return the pairs of the batch at an index of an epoch."""
        batch_order = Permutation(len(self.starts) - 1, (seed, epoch, ORDER_STREAM))
        batch = int(batch_order(np.array([index]))[0])
        start, end = int(self.starts[batch]), int(self.starts[batch + 1])
        pairs: list[NDArray[np.int64]] = []
        while start < end:
            class_index = int(np.searchsorted(self.class_starts, start, side="right")) - 1
            first, class_end = self.class_starts[class_index : class_index + 2].tolist()
            shuffle = Permutation(class_end - first, (seed, epoch, SHUFFLE_STREAM, class_index))
            stop = min(end, class_end)
            slots = first + shuffle(np.arange(start - first, stop - first))
            pairs.append(self.sorted_pairs[slots].astype(np.int64))
            start = stop
        return np.concatenate(pairs)


def has_whole_weights(corpora: Sequence[StoredCorpus]) -> bool:
    """Return whether all weights are whole numbers, which a Feistel layout needs."""
    return all(corpus.weight == int(corpus.weight) for corpus in corpora)


def layout_by_class(store: PairStore, *, batch_tokens: int, stretch: float = 1.0) -> FeistelLayout:
    """Lay out slots and batches, with all lengths multiplied by `stretch`. Weights must be whole numbers."""
    counts: dict[int, int] = {}  # the number of slots of each class, by the code of the class
    for _, codes in _chunks(store, stretch):
        for code, count in zip(
            *(array.tolist() for array in np.unique(codes, return_counts=True)), strict=True
        ):
            counts[code] = counts.get(code, 0) + count
    sorted_codes = np.array(sorted(counts), dtype=np.int64)
    source, target = sorted_codes & ((1 << _LENGTH_BITS) - 1), sorted_codes >> _LENGTH_BITS
    class_order = np.argsort(class_sort_keys(source, target), kind="stable")  # neighbours are similar
    index_of = np.empty(len(class_order), np.int64)  # from the position in `sorted_codes` to the class index
    index_of[class_order] = np.arange(len(class_order))
    sizes = np.array([counts[code] for code in sorted_codes[class_order].tolist()], dtype=np.int64)
    class_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    sorted_pairs = np.empty(class_starts[-1], np.uint32)
    next_free = class_starts[:-1].copy()  # the next free slot of each class
    for pairs, codes in _chunks(store, stretch):
        indices = index_of[np.searchsorted(sorted_codes, codes)]
        sorted_chunk = np.argsort(indices, kind="stable")  # positions in the chunk, sorted by class
        indices, begins = np.unique(indices[sorted_chunk], return_index=True)
        bounds = np.append(begins, len(sorted_chunk))
        for class_index, begin, end in zip(
            indices.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
        ):
            free = next_free[class_index]
            sorted_pairs[free : free + end - begin] = pairs[sorted_chunk[begin:end]]
            next_free[class_index] += end - begin
    starts = _form_batches(class_starts, source[class_order], target[class_order], batch_tokens)
    return FeistelLayout(sorted_pairs, class_starts, starts)


def _chunks(store: PairStore, stretch: float) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield pairs, as often as their weight says, and the code of the length class of each pair."""
    special_tokens = store.special_tokens
    for corpus in store.corpora:
        for first in range(corpus.first, corpus.end, _CHUNK_PAIRS):
            end = min(first + _CHUNK_PAIRS, corpus.end)
            rounded_lengths = []
            for side, added, max_exact in (
                (store.source, special_tokens[0], MAX_EXACT_SOURCE),
                (store.target, special_tokens[1], MAX_EXACT_TARGET),
            ):
                lengths = np.diff(side.offsets[first : end + 1]) + added
                rounded = length_classes(np.ceil(lengths * stretch) if stretch != 1 else lengths, max_exact)
                rounded_lengths.append(np.minimum(rounded, (1 << _LENGTH_BITS) - 1))
            source, target = rounded_lengths
            repeats = int(corpus.weight)
            pairs = np.repeat(np.arange(first, end), repeats)
            yield pairs, np.repeat(target << _LENGTH_BITS | source, repeats)


def _form_batches(
    class_starts: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64], batch_tokens: int
) -> NDArray[np.int64]:
    """Return where each batch begins, by the same rule as `_form_batches` in `batch_plan.py`.

    `source` and `target` are the rounded lengths of each class, by class index. The batches that lie inside
    one class are computed at once.
    """
    total, starts, start = int(class_starts[-1]), [np.zeros(1, np.int64)], 0
    while start < total:
        class_index = int(np.searchsorted(class_starts, start, side="right")) - 1
        # The limit of target tokens allows at most `max_target_rows` rows. When `_form_batches` in
        # `batch_plan.py` forms a batch, it looks at this many slots.
        max_target_rows = max(1, batch_tokens // int(target[class_index]))
        rows = max(1, min(max_target_rows, SOURCE_TOKENS_FACTOR * batch_tokens // int(source[class_index])))
        remaining = int(class_starts[class_index + 1]) - start
        if remaining >= max_target_rows:  # all slots that `batch_plan.py` would look at are of this class
            num_batches = (remaining - max_target_rows) // rows + 1
            ends = start + rows * np.arange(1, num_batches + 1, dtype=np.int64)
        else:
            ends = np.array([start + _mixed_rows(class_starts, source, target, start, batch_tokens)])
        starts.append(ends)
        start = int(ends[-1])
    return np.concatenate(starts)


def _mixed_rows(
    class_starts: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    start: int,
    batch_tokens: int,
) -> int:
    """Return how many slots from `start` on fit into a batch that may reach into the next classes."""
    first = int(np.searchsorted(class_starts, start, side="right")) - 1
    end = min(start + max(1, batch_tokens // int(target[first])), int(class_starts[-1]))
    classes = np.searchsorted(class_starts, np.arange(start, end), side="right") - 1
    rows = np.arange(1, end - start + 1)
    longest_target = np.maximum.accumulate(target[classes])
    longest_source = np.maximum.accumulate(source[classes])
    fits = (rows * longest_target <= batch_tokens) & (
        rows * longest_source <= SOURCE_TOKENS_FACTOR * batch_tokens
    )
    return max(1, int(fits.sum()))
