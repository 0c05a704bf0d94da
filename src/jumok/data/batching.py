"""Batches: encoded pairs, padded to a common length, in an order that one integer finds again.

    batches = Batches(store, batch_tokens=4096, seed=1)
    batch = batches.batch(position)          # position = epoch · per_epoch + index in that epoch's order

Nothing is remembered between two calls but the plan of the latest epoch, a function of (seed, epoch): a run
that resumes at position N reads what the uninterrupted run reads from N on. `plan.py` says how an epoch is
laid out.

With piece sampling a sentence is cut anew each time, so its length is only known when it is used. Batches are
then planned for stretched lengths (the stretch is measured on a sample of the corpus), and a cut that would
still burst its batch gives way to the best cut: `batch_tokens` holds in every batch, and so does `per_epoch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.corpus.plan import SOURCE_ROOM, EpochPlan, SlotPlan, plan_slots
from jumok.corpus.store import SOURCE_MARKS, TARGET_MARKS, vocabulary_hash
from jumok.errors import DataError, RecipeError, StorageError
from jumok.values import BEGIN, END, PAD, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jumok.corpus.store import PairStore, StoredSide, VocabularyPair

__all__ = ["Batches", "padded_batch"]

_STRETCH_SAMPLE = 256  # sentences cut by sampling to measure how much longer they get
_STRETCH_SHARE = 0.9  # nine cuts in ten are no longer than planned


class Batches:
    """The batches of a store, epoch after epoch.

    `batch_tokens` bounds rows × longest target, padding counted, and twice that bounds rows × longest source;
    a single pair that is longer is a batch by itself. `sampling` above 0 cuts the pieces anew each time and
    needs `vocabularies` and a store that kept its text.
    """

    def __init__(
        self,
        store: PairStore,
        *,
        batch_tokens: int,
        seed: int,
        vocabularies: VocabularyPair | None = None,
        sampling: float = 0.0,
    ) -> None:
        if batch_tokens < 1:
            raise RecipeError(
                f"A batch needs room for at least one token. Received: batch_tokens={batch_tokens}"
            )
        self.store = store
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.sampling = sampling
        if vocabularies is not None:
            _refuse_other_vocabulary(store, vocabularies)
        self._vocabularies = _to_sample_with(store, vocabularies) if sampling > 0 else None
        stretch = self._measure_stretch() if self._vocabularies else 1.0
        self._slots: SlotPlan = plan_slots(
            _stretched(store.source_lengths, stretch),
            _stretched(store.target_lengths, stretch),
            store.parts,
            batch_tokens=batch_tokens,
        )
        self._latest: EpochPlan | None = None

    @property
    def per_epoch(self) -> int:
        """Batches in an epoch: the same number in every one."""
        return len(self._slots.starts) - 1

    def epoch_of(self, position: int) -> int:
        return position // self.per_epoch

    def pairs_of(self, position: int) -> NDArray[np.int64]:
        """Which pairs of the store make up the batch at this position."""
        if position < 0:
            raise DataError(f"A position in the corpus counts from 0. Received: {position}")
        epoch, index = divmod(position, self.per_epoch)
        plan = self._plan(epoch)
        slot = plan.order[index]
        return plan.pairs[self._slots.starts[slot] : self._slots.starts[slot + 1]]

    def batch(self, position: int) -> Batch:
        """The batch at a position; any position may be asked for, in any order."""
        pairs = self.pairs_of(position)
        if self._vocabularies is not None:
            return self._sampled(pairs, self.epoch_of(position), self._vocabularies)
        source, source_lengths = _gather(self.store.source, pairs, begin=False)
        target, target_lengths = _gather(self.store.target, pairs, begin=True)
        return _as_batch(source, source_lengths, target, target_lengths)

    def _plan(self, epoch: int) -> EpochPlan:
        plan = self._latest
        if plan is None or plan.epoch != epoch:
            plan = self._latest = self._slots.seat(self.seed, epoch)
        return plan

    def _sampled(self, pairs: NDArray[np.int64], epoch: int, vocabularies: VocabularyPair) -> Batch:
        source_room = max(0, SOURCE_ROOM * self.batch_tokens // len(pairs) - SOURCE_MARKS)
        target_room = max(0, self.batch_tokens // len(pairs) - TARGET_MARKS)
        sources: list[list[int]] = []
        targets: list[list[int]] = []
        for pair in pairs.tolist():
            cut_source, cut_target = self._sample_pair(pair, epoch, vocabularies)
            best_source, best_target = self.store.pair_ids(pair)
            sources.append(cut_source if len(cut_source) <= source_room else best_source)
            targets.append(cut_target if len(cut_target) <= target_room else best_target)
        return padded_batch(sources, targets)

    def _sample_pair(
        self, pair: int, epoch: int, vocabularies: VocabularyPair
    ) -> tuple[list[int], list[int]]:
        """Cut both sides with numbers that depend on nothing but (seed, epoch, pair)."""
        text = self.store.pair_text(pair)
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch, pair]))
        source = vocabularies.source.sample(text.source, self.sampling, generator)
        return source, vocabularies.target.sample(text.target, self.sampling, generator)

    def _measure_stretch(self) -> float:
        """How much longer than the best cut nine sampled cuts in ten stay below."""
        if self._vocabularies is None:
            return 1.0
        every = max(1, len(self.store) // _STRETCH_SAMPLE)
        ratios: list[float] = []
        for pair in range(0, len(self.store), every):
            for cut, best in zip(
                self._sample_pair(pair, 0, self._vocabularies), self.store.pair_ids(pair), strict=True
            ):
                ratios.append(len(cut) / max(1, len(best)))
        return max(1.0, float(np.quantile(ratios, _STRETCH_SHARE)))


def padded_batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]] | None = None) -> Batch:
    """Pad sentences of piece ids (without marks) into one batch; without `targets`, of sources only."""
    source, source_lengths = _pad(sources, begin=False)
    if targets is None:
        return _as_batch(source, source_lengths)
    if len(targets) != len(sources):
        raise DataError(
            f"A batch needs as many targets as sources. Received: {len(sources)} sources, "
            f"{len(targets)} targets"
        )
    target, target_lengths = _pad(targets, begin=True)
    return _as_batch(source, source_lengths, target, target_lengths)


def _pad(sentences: Sequence[Sequence[int]], *, begin: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts = np.fromiter(map(len, sentences), np.int64, count=len(sentences))
    flat = np.fromiter((piece for ids in sentences for piece in ids), np.int64, count=int(counts.sum()))
    return _fill(flat, np.cumsum(counts) - counts, counts, begin=begin)


def _gather(
    side: StoredSide, pairs: NDArray[np.int64], *, begin: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts = side.offsets[pairs]
    return _fill(side.ids, starts, side.offsets[pairs + 1] - starts, begin=begin)


def _fill(
    flat: NDArray[Any], starts: NDArray[np.int64], counts: NDArray[np.int64], *, begin: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of `counts` pieces that begin at `starts` in `flat`, with marks and padding, and their lengths."""
    first = int(begin)
    longest = int(counts.max(initial=0))
    columns = np.arange(longest)
    inside = columns < counts[:, None]  # (row, piece)
    rows = np.full((len(counts), first + longest + 1), PAD, dtype=np.int64)
    rows[:, first : first + longest][inside] = flat[(starts[:, None] + columns)[inside]]
    rows[np.arange(len(counts)), first + counts] = END
    if begin:
        rows[:, 0] = BEGIN
    return rows, counts + first + 1


def _as_batch(
    source: NDArray[np.int64],
    source_lengths: NDArray[np.int64],
    target: NDArray[np.int64] | None = None,
    target_lengths: NDArray[np.int64] | None = None,
) -> Batch:
    import torch  # late: `jumok check` opens this room and needs none of it

    return Batch(
        source=torch.from_numpy(source),
        source_lengths=torch.from_numpy(source_lengths),
        target=None if target is None else torch.from_numpy(target),
        target_lengths=None if target_lengths is None else torch.from_numpy(target_lengths),
    )


def _stretched(lengths: NDArray[np.int32], stretch: float) -> NDArray[Any]:
    return lengths if stretch == 1.0 else np.ceil(lengths * stretch)


def _refuse_other_vocabulary(store: PairStore, vocabularies: VocabularyPair) -> None:
    if vocabulary_hash(vocabularies) != store.vocabulary:
        raise StorageError(
            f"The pairs in {store.folder} were encoded with another vocabulary than the one given. "
            "Delete that folder; they are encoded again by the next run."
        )


def _to_sample_with(store: PairStore, vocabularies: VocabularyPair | None) -> VocabularyPair:
    if vocabularies is None:
        raise RecipeError(
            "Piece sampling cuts the text anew, so Batches(sampling=…) also needs `vocabularies`."
        )
    if not store.has_text:
        raise RecipeError(
            f"The store in {store.folder} has no text to sample pieces from. Write it with keep_text=True."
        )
    return vocabularies
