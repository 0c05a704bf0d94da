"""Batches of encoded pairs. The seed and the position of a batch determine the pairs in it.

    batches = Batches(store, batch_tokens=4096, seed=1)
    batch = batches.batch(position)          # position = epoch · per_epoch + index in the order of this epoch

The sentences of a batch are padded to a common length. The only state is the cached plan of the latest epoch,
which depends only on the seed and the epoch. A run that resumes at position N therefore reads the same
batches from N on as an uninterrupted run. `batch_plan.py` lays out the epochs.

With token sampling (subword regularisation) a sentence is segmented at random in each epoch, so its length is
known only when the sentence is used. Batches are then planned as if all sentences were longer by a factor
(`stretch`), which is measured on a sample of the corpus. If a sampled segmentation is still too long for its
batch, the stored segmentation is used instead. Every epoch thus has the same number of batches, and
`batch_tokens` limits a batch as it does without sampling.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.data.batch_plan import SOURCE_TOKENS_FACTOR, EpochPlan, SlotLayout, layout_slots
from jumok.data.feistel_plan import FeistelLayout, has_whole_weights, layout_by_class
from jumok.data.store import FEISTEL, SOURCE_SPECIAL_TOKENS, TARGET_SPECIAL_TOKENS, hash_tokenizers
from jumok.errors import DataError, RecipeError, StorageError
from jumok.types import BEGIN, END, PAD, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jumok.data.store import PairStore, StoredSide, TokenizerPairLike

_STRETCH_SAMPLE = 256  # minimum number of pairs on which the stretch is measured; a smaller store uses all
_STRETCH_QUANTILE = 0.9  # 90 % of the segmentations of the sample are at most as long as planned


class Batches:
    """The batches of a store, epoch after epoch.

    In a batch, rows × longest target is at most `batch_tokens`, padding included, and rows × longest source
    is at most twice `batch_tokens`. A single pair that exceeds these limits is a batch by itself. `sampling`
    above 0 segments sentences at random in each epoch. This needs `tokenizers` and a store with text.
    """

    def __init__(
        self,
        store: PairStore,
        *,
        batch_tokens: int,
        seed: int,
        tokenizers: TokenizerPairLike | None = None,
        sampling: float = 0.0,
    ) -> None:
        if batch_tokens < 1:
            raise RecipeError(f"A batch must have at least one token. Received: batch_tokens={batch_tokens}")
        self.store = store
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.sampling = sampling
        if tokenizers is not None:
            _refuse_other_tokenizers(store, tokenizers)
        self._tokenizers = _check_sampling(store, tokenizers) if sampling > 0 else None
        stretch = self._measure_stretch() if self._tokenizers else 1.0
        self._layout: SlotLayout | FeistelLayout
        if store.order == FEISTEL and has_whole_weights(store.corpora):
            self._layout = layout_by_class(store, batch_tokens=batch_tokens, stretch=stretch)
        else:
            self._layout = layout_slots(
                _stretched(store.source_lengths, stretch),
                _stretched(store.target_lengths, stretch),
                store.corpora,
                batch_tokens=batch_tokens,
            )
        self._latest_plan: EpochPlan | None = None

    @property
    def per_epoch(self) -> int:
        """Batches per epoch, the same number in every epoch."""
        return len(self._layout.starts) - 1

    def epoch_of(self, position: int) -> int:
        return position // self.per_epoch

    def pairs_of(self, position: int) -> NDArray[np.int64]:
        """Return the indices of the pairs in the batch at this position."""
        if position < 0:
            raise DataError(f"Positions of batches count from 0. Received: {position}")
        epoch, index = divmod(position, self.per_epoch)
        if isinstance(self._layout, FeistelLayout):
            return self._layout.pairs_of(self.seed, epoch, index)
        plan = self._plan(epoch, self._layout)
        batch = plan.batch_order[index]
        return plan.pairs[self._layout.starts[batch] : self._layout.starts[batch + 1]]

    def batch(self, position: int) -> Batch:
        """Return the batch at a position. Positions may be requested in any order."""
        pairs = self.pairs_of(position)
        if self._tokenizers is not None:
            return self._sampled_batch(pairs, self.epoch_of(position), self._tokenizers)
        source, source_lengths = _gather(self.store.source, pairs, begin=False)
        target, target_lengths = _gather(self.store.target, pairs, begin=True)
        return _as_batch(source, source_lengths, target, target_lengths)

    def _plan(self, epoch: int, layout: SlotLayout) -> EpochPlan:
        plan = self._latest_plan
        if plan is None or plan.epoch != epoch:
            plan = self._latest_plan = layout.assign(self.seed, epoch)
        return plan

    def _sampled_batch(self, pairs: NDArray[np.int64], epoch: int, tokenizers: TokenizerPairLike) -> Batch:
        max_source = max(0, SOURCE_TOKENS_FACTOR * self.batch_tokens // len(pairs) - SOURCE_SPECIAL_TOKENS)
        max_target = max(0, self.batch_tokens // len(pairs) - TARGET_SPECIAL_TOKENS)
        sources: list[list[int]] = []
        targets: list[list[int]] = []
        for pair in pairs.tolist():
            sampled_source, sampled_target = self._sample_pair(pair, epoch, tokenizers)
            stored_source, stored_target = self.store.pair_ids(pair)
            sources.append(sampled_source if len(sampled_source) <= max_source else stored_source)
            targets.append(sampled_target if len(sampled_target) <= max_target else stored_target)
        return padded_batch(sources, targets)

    def _sample_pair(
        self, pair: int, epoch: int, tokenizers: TokenizerPairLike
    ) -> tuple[list[int], list[int]]:
        """Segment both sides with random numbers that depend only on (seed, epoch, pair)."""
        text = self.store.pair_text(pair)
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch, pair]))
        source = tokenizers.source.sample(text.source, self.sampling, generator)
        return source, tokenizers.target.sample(text.target, self.sampling, generator)

    def _measure_stretch(self) -> float:
        """Return the 90th percentile of sampled length / stored length, at least 1."""
        if self._tokenizers is None:
            return 1.0
        stride = max(1, len(self.store) // _STRETCH_SAMPLE)
        ratios: list[float] = []
        for pair in range(0, len(self.store), stride):
            for sampled, stored in zip(
                self._sample_pair(pair, 0, self._tokenizers), self.store.pair_ids(pair), strict=True
            ):
                ratios.append(len(sampled) / max(1, len(stored)))
        return max(1.0, float(np.quantile(ratios, _STRETCH_QUANTILE)))


class ClassBatches(Batches):
    """The batches of a store whose targets are classes: a target row is `<s>` and the class."""

    def batch(self, position: int) -> Batch:
        return class_batch(super().batch(position))


def class_batch(batch: Batch) -> Batch:
    """Return the batch without the `</s>` of its targets. A target is then two tokens: `<s>` and a class."""
    if batch.target is None or batch.target_lengths is None:
        return batch
    return replace(batch, target=batch.target[:, :2].contiguous(), target_lengths=batch.target_lengths - 1)


def padded_batch(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]] | None = None) -> Batch:
    """Return a batch of sentences, which are token ids without special tokens.

    If `targets` is None, the batch has only sources.
    """
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


def _pad(sentences: Sequence[Sequence[int]], *, begin: bool) -> tuple[NDArray[Any], NDArray[np.int64]]:
    counts = np.fromiter(map(len, sentences), np.int64, count=len(sentences))
    if sentences and isinstance(sentences[0], np.ndarray) and sentences[0].ndim == 2:  # patches of pictures
        return _fill(np.concatenate(sentences), np.cumsum(counts) - counts, counts, begin=begin)
    flat = np.fromiter((token for ids in sentences for token in ids), np.int64, count=int(counts.sum()))
    return _fill(flat, np.cumsum(counts) - counts, counts, begin=begin)


def _gather(
    side: StoredSide, pairs: NDArray[np.int64], *, begin: bool
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    starts = side.offsets[pairs]
    return _fill(side.ids, starts, side.offsets[pairs + 1] - starts, begin=begin)


def _fill(
    flat: NDArray[Any], starts: NDArray[np.int64], counts: NDArray[np.int64], *, begin: bool
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return a padded matrix and the length of each row, special tokens included.

    Row i holds `flat[starts[i] : starts[i] + counts[i]]` between special tokens. For pictures, `flat` has the
    shape (patch, value), and there are no special tokens.
    """
    first = int(begin)  # column of the first id: after <s>, if there is one
    end = int(flat.ndim == 1)  # 1 if </s> follows the ids
    max_count = int(counts.max(initial=0))
    columns = np.arange(max_count)
    inside = columns < counts[:, None]  # (row, token)
    dtype = np.int64 if end else flat.dtype
    rows = np.full((len(counts), first + max_count + end, *flat.shape[1:]), PAD, dtype=dtype)
    rows[:, first : first + max_count][inside] = flat[(starts[:, None] + columns)[inside]]
    if end:
        rows[np.arange(len(counts)), first + counts] = END
    if begin:
        rows[:, 0] = BEGIN
    return rows, counts + first + end


def _as_batch(
    source: NDArray[Any],
    source_lengths: NDArray[np.int64],
    target: NDArray[np.int64] | None = None,
    target_lengths: NDArray[np.int64] | None = None,
) -> Batch:
    import torch  # start-up

    return Batch(
        source=torch.from_numpy(source),
        source_lengths=torch.from_numpy(source_lengths),
        target=None if target is None else torch.from_numpy(target),
        target_lengths=None if target_lengths is None else torch.from_numpy(target_lengths),
    )


def _stretched(lengths: NDArray[np.int32], stretch: float) -> NDArray[Any]:
    return lengths if stretch == 1.0 else np.ceil(lengths * stretch)


def _refuse_other_tokenizers(store: PairStore, tokenizers: TokenizerPairLike) -> None:
    if hash_tokenizers(tokenizers) != store.tokenizer_hash:
        raise StorageError(
            f"The pairs in {store.folder} were encoded with another tokenizer. "
            "Delete that folder; the next run encodes them again."
        )


def _check_sampling(store: PairStore, tokenizers: TokenizerPairLike | None) -> TokenizerPairLike:
    if tokenizers is None:
        raise RecipeError(
            "Token sampling segments the text again, so Batches(sampling=…) also needs `tokenizers`."
        )
    if not store.has_text:
        raise RecipeError(
            f"The store in {store.folder} has no text to sample tokens from. Write it with store_text=True."
        )
    return tokenizers
