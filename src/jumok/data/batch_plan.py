"""The plan of batches: the slots of each batch, and the pair in each slot in a given epoch.

A resumed run finds its position from one integer, so every epoch must have the same number of batches,
although each epoch composes its batches differently. Batches therefore consist of *slots*. A slot has a
maximum source length and a maximum target length. The slots of each batch are the same in every epoch. An
epoch only assigns pairs to the slots.

- Lengths are rounded up to *length classes* (exact when short, coarser when long). Pairs of one
  class are exchangeable: the slots sorted by class stay the same while the pairs in them are shuffled.
- A weight of 2 gives each pair two slots. A weight of 0.4 gives a corpus 0.4 slots per pair, and each epoch
  chooses the pairs by *systematic sampling*: sort the pairs by length and, from a random start, take every
  (1 / 0.4)-th pair. Every pair has probability 0.4, and the number of chosen pairs is always the same. The
  i-th chosen pair is always one of a few neighbours in the sorted order, so its slot has a maximum length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jumok.data.store import StoredCorpus

# One random stream per use. `index` in `random_uint64` is the epoch. For masking in training, it is the
# position of the batch, counted over all epochs.
SHUFFLE_STREAM, ORDER_STREAM, START_STREAM, MASKING_STREAM = 0, 1, 2, 3

SOURCE_TOKENS_FACTOR = 2  # a batch has at most SOURCE_TOKENS_FACTOR * batch_tokens source tokens
# Each length up to these values is a class of its own. Above them, neighbouring classes differ by 1/8 to 1/4
# of the length for targets, and by 1/16 to 1/8 for sources. Coarser classes mix batches better and pad more.
# On Multi30k with 4,096 tokens, these values pad 6 %. Two pairs of one batch are then in different batches of
# the next epoch in three of five cases.
MAX_EXACT_TARGET, MAX_EXACT_SOURCE = 8, 16


def random_uint64(seed: int, index: int, stream: int, count: int) -> NDArray[np.uint64]:
    """Return random numbers that are the same in every version of numpy, unlike `Generator.permutation`."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, index, stream]))
    return bits.random_raw(count)


@dataclass(frozen=True)
class EpochPlan:
    """The pairs and the order of the batches of one epoch.

    The batch that is read as number i of the epoch is b = `batch_order[i]`. It has the pairs `pairs[starts[b]
    : starts[b + 1]]`, where `starts` is the field of `SlotLayout`.
    """

    epoch: int
    pairs: NDArray[np.int64]  # (slots,)
    batch_order: NDArray[np.int64]  # (batches,)


@dataclass(frozen=True)
class SampledPairs:
    """The pairs of a corpus whose weight has a fractional part.

    For the fractional part, each epoch uses `count` of the pairs.
    """

    pairs: NDArray[np.int64]
    count: int


@dataclass(frozen=True)
class SlotLayout:
    """The part of the plan that is the same in every epoch."""

    keys: NDArray[np.uint64]  # (pairs,) sort key by length class, in the upper 32 bits
    in_every_epoch: NDArray[np.int64]  # each pair as often as the whole part of its weight says
    sampled: tuple[SampledPairs, ...]
    slot_order: NDArray[np.int64]  # (slots,) sorts the pairs of `in_every_epoch` and `sampled` by slot
    starts: NDArray[np.int64]  # (batches + 1,) where each batch begins in slot order

    def assign(self, seed: int, epoch: int) -> EpochPlan:
        """Assign pairs to slots for an epoch; a pure function of seed and epoch."""
        shuffle = random_uint64(seed, epoch, SHUFFLE_STREAM, len(self.keys)) >> np.uint64(32)
        keys = self.keys | shuffle
        assigned = [_sorted_by(keys, self.in_every_epoch)]
        offsets = random_uint64(seed, epoch, START_STREAM, len(self.sampled)) / 2.0**64
        for sampled, offset in zip(self.sampled, offsets, strict=True):
            assigned.append(_systematic_sample(_sorted_by(keys, sampled.pairs), sampled.count, float(offset)))
        pairs = np.concatenate(assigned)[self.slot_order]
        random = random_uint64(seed, epoch, ORDER_STREAM, len(self.starts) - 1)
        return EpochPlan(epoch, pairs, batch_order=np.argsort(random, kind="stable"))


def layout_slots(
    source_lengths: NDArray[Any],
    target_lengths: NDArray[Any],
    corpora: Sequence[StoredCorpus],
    *,
    batch_tokens: int,
) -> SlotLayout:
    """Lay out slots and batches for pairs of these lengths, special tokens included."""
    source_classes = length_classes(source_lengths, MAX_EXACT_SOURCE)
    target_classes = length_classes(target_lengths, MAX_EXACT_TARGET)
    keys = class_sort_keys(source_classes, target_classes)
    in_every_epoch, sampled = _split_by_weight(corpora)
    sorted_pairs = _sorted_by(keys, in_every_epoch)
    source_bounds, target_bounds = [source_classes[sorted_pairs]], [target_classes[sorted_pairs]]
    for corpus in sampled:
        sorted_pairs = _sorted_by(keys, corpus.pairs)
        source_bounds.append(_window_maximum(source_classes[sorted_pairs], corpus.count))
        target_bounds.append(_window_maximum(target_classes[sorted_pairs], corpus.count))
    source_bound, target_bound = np.concatenate(source_bounds), np.concatenate(target_bounds)
    slot_order = np.argsort(class_sort_keys(source_bound, target_bound), kind="stable")
    starts = _form_batches(source_bound[slot_order], target_bound[slot_order], batch_tokens)
    return SlotLayout(keys, in_every_epoch, tuple(sampled), slot_order, starts)


def length_classes(lengths: NDArray[Any], max_exact: int) -> NDArray[np.int64]:
    """Round lengths up, and keep lengths up to `max_exact`.

    Lengths up to twice `max_exact` are rounded up to multiples of 2, lengths up to four times `max_exact` to
    multiples of 4, and so on.
    """
    lengths = lengths.astype(np.int64)
    doublings = np.ceil(np.log2(np.maximum(lengths, 1) / max_exact)).clip(0).astype(np.int64)
    width = np.left_shift(1, doublings)
    return np.asarray(-(-lengths // width) * width, dtype=np.int64)


def class_sort_keys(
    source_classes: NDArray[np.int64], target_classes: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return keys that sort length classes by target, then by source.

    The order of the sources is ascending in one target class and descending in the next one, so that
    neighbours in the sorted order have similar lengths.
    """
    limit = np.int64(1 << 16)
    ascending = np.searchsorted(np.unique(target_classes), target_classes) % 2 == 0
    source = np.minimum(source_classes, limit - 1)
    by_source = np.where(ascending, source, limit - 1 - source)
    key = np.minimum(target_classes, limit - 1) * limit + by_source
    return key.astype(np.uint64) << np.uint64(32)


def _sorted_by(keys: NDArray[np.uint64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    ranks = np.argsort(keys[pairs], kind="stable")
    return np.asarray(pairs[ranks], dtype=np.int64)


def _split_by_weight(corpora: Sequence[StoredCorpus]) -> tuple[NDArray[np.int64], list[SampledPairs]]:
    """Return the pairs with a slot in every epoch, and the pairs that are sampled in each epoch.

    Each pair is in the first result as often as the whole part of its weight says. The pairs of a corpus
    whose weight has a fractional part are also in the second result.
    """
    in_every_epoch: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    sampled: list[SampledPairs] = []
    for corpus in corpora:
        pairs = np.arange(corpus.first, corpus.end, dtype=np.int64)
        repeats = int(corpus.weight)
        in_every_epoch.append(np.repeat(pairs, repeats))
        fraction = corpus.weight - repeats
        if fraction > 0 and len(pairs):
            sampled.append(SampledPairs(pairs, max(1, round(fraction * len(pairs)))))
    return np.concatenate(in_every_epoch), sampled


def _systematic_sample(sorted_pairs: NDArray[np.int64], count: int, offset: float) -> NDArray[np.int64]:
    """Return `count` of the sorted pairs at a constant stride. `offset` in [0, 1) shifts all positions."""
    positions = (np.arange(count) + offset) * (len(sorted_pairs) / count)
    return sorted_pairs[np.minimum(positions.astype(np.int64), len(sorted_pairs) - 1)]


def _window_maximum(classes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the maximum length that each sampled pair can have, whatever the offset of the sample."""
    stride = len(classes) / count
    first = np.minimum((np.arange(count) * stride).astype(np.int64), len(classes) - 1)
    end = np.minimum(((np.arange(count) + 1) * stride).astype(np.int64) + 1, len(classes))
    padded = np.append(classes, 0)  # reduceat needs every index to be valid
    windows = np.stack([first, end], axis=1).ravel()
    return np.asarray(np.maximum.reduceat(padded, windows)[::2], dtype=np.int64)


def _form_batches(
    source_bounds: NDArray[np.int64], target_bounds: NDArray[np.int64], batch_tokens: int
) -> NDArray[Any]:
    """Return where each batch begins: slots join a batch until rows × longest slot would exceed a limit."""
    starts = [0]
    total = len(target_bounds)
    while starts[-1] < total:
        start = starts[-1]
        window = slice(start, start + max(1, batch_tokens // int(target_bounds[start])))
        target = np.maximum.accumulate(target_bounds[window])
        source = np.maximum.accumulate(source_bounds[window])
        rows = np.arange(1, len(target) + 1)
        fits = (rows * target <= batch_tokens) & (rows * source <= SOURCE_TOKENS_FACTOR * batch_tokens)
        starts.append(start + max(1, int(fits.sum())))
    return np.array(starts, dtype=np.int64)
