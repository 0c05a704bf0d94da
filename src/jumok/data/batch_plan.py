"""The plan of batches: which slots a batch has, and which pair sits in which slot in a given epoch.

A resumed run finds its place from one integer, so every epoch must have the same number of batches, although
each epoch composes its batches anew. The way out is to plan in *slots*. A slot promises a largest target and
a largest source length. Slots, and the batches cut from them, are fixed; an epoch only seats pairs in them.

- Lengths are rounded up to *steps* (exact when short, a few per cent apart when long). Pairs with the same
  steps are exchangeable: the slots sorted by steps stay the same while the pairs in them are shuffled.
- A weight of 2 gives each pair two slots. A weight of 0.4 gives a part 0.4 slots a pair, and each epoch draws
  who sits there by *systematic sampling*: walk the pairs sorted by length with a stride of 1 / 0.4, from a
  random start. Every pair has chance 0.4, the number drawn is always the same, and since the i-th drawn is
  always one of a few neighbours, its slot has a largest length too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jumok.corpus.store import StoredPart

__all__ = ["EpochPlan", "SlotPlan", "plan_slots", "random_words"]

# The purposes for which an epoch draws random numbers (a batch, to hide pieces): each has its own stream.
SEATS, ORDER, STARTS, HIDING = 0, 1, 2, 3

SOURCE_ROOM = 2  # a batch may hold this many times `batch_tokens` source tokens
# Lengths up to these are steps by themselves; beyond, steps are an eighth to a sixteenth apart (target) or
# half that (source). Coarser steps mix batches better and pad more: on Multi30k with 4,096 tokens these pad
# 6 % and part three of five batch-mates from one epoch to the next.
_FINEST_TARGET, _FINEST_SOURCE = 8, 16


def random_words(seed: int, epoch: int, purpose: int, count: int) -> NDArray[np.uint64]:
    """Raw 64-bit words: unlike `Generator.permutation`, numpy promises never to change them."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, epoch, purpose]))
    return bits.random_raw(count)


@dataclass(frozen=True)
class EpochPlan:
    """One epoch: the pairs of batch b are `pairs[starts[order[b]] : starts[order[b] + 1]]`."""

    epoch: int
    pairs: NDArray[np.int64]  # (slots,)
    order: NDArray[np.int64]  # (batches,)


@dataclass(frozen=True)
class Draw:
    """A part with a fractional weight: `count` of its pairs take part in each epoch."""

    pairs: NDArray[np.int64]
    count: int


@dataclass(frozen=True)
class SlotPlan:
    """What stays the same in every epoch."""

    keys: NDArray[np.uint64]  # (pairs,) sort key by steps, in the upper 32 bits
    always: NDArray[np.int64]  # pairs with a slot in every epoch, once for each whole unit of weight
    draws: tuple[Draw, ...]
    merge: NDArray[np.int64]  # (slots,) brings always + draws into slot order
    starts: NDArray[np.int64]  # (batches + 1,) where each batch begins in slot order

    def seat(self, seed: int, epoch: int) -> EpochPlan:
        """Seat the pairs of an epoch: the same for the same seed and epoch, whoever asks and whenever."""
        shuffle = random_words(seed, epoch, SEATS, len(self.keys)) >> np.uint64(32)
        keys = self.keys | shuffle
        seated = [_sorted_by(keys, self.always)]
        offsets = random_words(seed, epoch, STARTS, len(self.draws)) / 2.0**64
        for draw, offset in zip(self.draws, offsets, strict=True):
            seated.append(_drawn(_sorted_by(keys, draw.pairs), draw.count, float(offset)))
        pairs = np.concatenate(seated)[self.merge]
        order = np.argsort(random_words(seed, epoch, ORDER, len(self.starts) - 1), kind="stable")
        return EpochPlan(epoch, pairs, order)


def plan_slots(
    source_lengths: NDArray[Any],
    target_lengths: NDArray[Any],
    parts: Sequence[StoredPart],
    *,
    batch_tokens: int,
) -> SlotPlan:
    """Lay out slots and batches for pairs of these lengths (marks counted)."""
    source_steps = _steps(source_lengths, _FINEST_SOURCE)
    target_steps = _steps(target_lengths, _FINEST_TARGET)
    keys = _keys(source_steps, target_steps)
    always, draws = _entries(parts)
    slots = [_sorted_by(keys, always)]
    source_bounds, target_bounds = [source_steps[slots[0]]], [target_steps[slots[0]]]
    for draw in draws:
        ranked = _sorted_by(keys, draw.pairs)
        source_bounds.append(_window_maximum(source_steps[ranked], draw.count))
        target_bounds.append(_window_maximum(target_steps[ranked], draw.count))
    source_bound, target_bound = np.concatenate(source_bounds), np.concatenate(target_bounds)
    merge = np.argsort(_keys(source_bound, target_bound), kind="stable")
    starts = _cut(source_bound[merge], target_bound[merge], batch_tokens)
    return SlotPlan(keys, always, tuple(draws), merge, starts)


def _steps(lengths: NDArray[Any], finest: int) -> NDArray[np.int64]:
    """Round lengths up to steps: up to `finest` exactly, up to twice that to multiples of 2, and so on."""
    lengths = lengths.astype(np.int64)
    doublings = np.ceil(np.log2(np.maximum(lengths, 1) / finest)).clip(0).astype(np.int64)
    width = np.left_shift(1, doublings)
    return np.asarray(-(-lengths // width) * width, dtype=np.int64)


def _keys(source_steps: NDArray[np.int64], target_steps: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Sort by target, then by source: upwards and downwards in turn, so that neighbours stay alike."""
    limit = np.int64(1 << 16)
    upwards = np.searchsorted(np.unique(target_steps), target_steps) % 2 == 0
    source = np.minimum(source_steps, limit - 1)
    turned = np.where(upwards, source, limit - 1 - source)
    key = np.minimum(target_steps, limit - 1) * limit + turned
    return key.astype(np.uint64) << np.uint64(32)


def _sorted_by(keys: NDArray[np.uint64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    ranks = np.argsort(keys[pairs], kind="stable")
    return np.asarray(pairs[ranks], dtype=np.int64)


def _entries(parts: Sequence[StoredPart]) -> tuple[NDArray[np.int64], list[Draw]]:
    """Which pairs always have slots, and which parts draw for the fraction of their weight."""
    always: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    draws: list[Draw] = []
    for part in parts:
        pairs = np.arange(part.first, part.last, dtype=np.int64)
        whole = int(part.weight)
        always.append(np.repeat(pairs, whole))
        fraction = part.weight - whole
        if fraction > 0 and len(pairs):
            draws.append(Draw(pairs, max(1, round(fraction * len(pairs)))))
    return np.concatenate(always), draws


def _drawn(ranked: NDArray[np.int64], count: int, offset: float) -> NDArray[np.int64]:
    """Systematic sampling: `count` of the ranked pairs, a constant stride apart, from a start in [0, 1)."""
    positions = (np.arange(count) + offset) * (len(ranked) / count)
    return ranked[np.minimum(positions.astype(np.int64), len(ranked) - 1)]


def _window_maximum(steps: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The largest length that the i-th drawn pair can have, whatever the start."""
    stride = len(steps) / count
    first = np.minimum((np.arange(count) * stride).astype(np.int64), len(steps) - 1)
    beyond = np.minimum(((np.arange(count) + 1) * stride).astype(np.int64) + 1, len(steps))
    padded = np.append(steps, 0)  # reduceat wants every index inside
    windows = np.stack([first, beyond], axis=1).ravel()
    return np.asarray(np.maximum.reduceat(padded, windows)[::2], dtype=np.int64)


def _cut(
    source_bounds: NDArray[np.int64], target_bounds: NDArray[np.int64], batch_tokens: int
) -> NDArray[Any]:
    """Fill batches one after the other until rows × longest would exceed the room on either side."""
    starts = [0]
    total = len(target_bounds)
    while starts[-1] < total:
        start = starts[-1]
        window = slice(start, start + max(1, batch_tokens // int(target_bounds[start])))
        target = np.maximum.accumulate(target_bounds[window])
        source = np.maximum.accumulate(source_bounds[window])
        rows = np.arange(1, len(target) + 1)
        fits = (rows * target <= batch_tokens) & (rows * source <= SOURCE_ROOM * batch_tokens)
        starts.append(start + max(1, int(fits.sum())))
    return np.array(starts, dtype=np.int64)
