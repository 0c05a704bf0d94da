"""Batches have each pair once per epoch, an order that the seed determines, and little padding."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.batch_plan import SOURCE_TOKENS_FACTOR, layout_slots
from jumok.data.batching import Batches, padded_batch
from jumok.data.store import CorpusPairs, PairStore, StoredCorpus, StoredSide, write_store
from jumok.errors import DataError, RecipeError, StorageError
from jumok.types import BEGIN, END, PAD
from support.corpus_fakes import FakeTokenizer, FakeTokenizerPair, pairs_of_lengths

if TYPE_CHECKING:
    from pathlib import Path

TOKENIZERS = FakeTokenizerPair()
lengths_of_corpora = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=150)
seeds = st.integers(0, 2**32)


def store_in_memory(lengths: list[tuple[int, int]], weights: tuple[float, ...] = (1.0,)) -> PairStore:
    """Return a store without files that has these token counts; all ids of pair i are 4 + i % 1000."""
    sides = []
    for column in (0, 1):
        counts = np.array([pair[column] for pair in lengths])
        ids = np.repeat(4 + np.arange(len(lengths)) % 1000, counts).astype(np.uint16)
        sides.append(StoredSide(ids, np.concatenate([[0], np.cumsum(counts)])))
    bounds = np.linspace(0, len(lengths), len(weights) + 1).astype(int).tolist()
    corpora = tuple(
        StoredCorpus(f"corpus {i}", weight, bounds[i], bounds[i + 1]) for i, weight in enumerate(weights)
    )
    return PairStore(None, sides[0], sides[1], corpora, "fingerprint", "tokenizer hash")  # type: ignore[arg-type]


def natural_lengths(count: int) -> list[tuple[int, int]]:
    """Return lengths that are distributed like those of sentences and their translations."""
    generator = np.random.default_rng(3)
    source = np.clip(generator.gamma(6, 2.5, count), 1, 90)
    target = np.clip(source * generator.normal(1.05, 0.18, count), 1, 90)
    return list(zip(source.astype(int).tolist(), target.astype(int).tolist(), strict=True))


def pairs_of_epoch(batches: Batches, epoch: int) -> list[list[int]]:
    first = epoch * batches.per_epoch
    return [batches.pairs_of(position).tolist() for position in range(first, first + batches.per_epoch)]


@given(lengths_of_corpora, seeds, st.integers(1, 600), st.integers(0, 3))
def test_each_pair_occurs_once_per_epoch(
    lengths: list[tuple[int, int]], seed: int, batch_tokens: int, epoch: int
) -> None:
    batches = Batches(store_in_memory(lengths), batch_tokens=batch_tokens, seed=seed)
    used_pairs = [pair for batch in pairs_of_epoch(batches, epoch) for pair in batch]
    assert sorted(used_pairs) == list(range(len(lengths)))


@given(lengths_of_corpora, seeds, st.integers(1, 600), st.tuples(st.floats(0.05, 3), st.floats(0.05, 3)))
def test_a_batch_of_several_pairs_never_exceeds_its_limits(
    lengths: list[tuple[int, int]], seed: int, batch_tokens: int, weights: tuple[float, float]
) -> None:
    batches = Batches(store_in_memory(lengths, weights), batch_tokens=batch_tokens, seed=seed)
    for position in range(2 * batches.per_epoch):
        batch = batches.batch(position)
        assert batch.target is not None
        assert len(batch) > 0
        if len(batch) > 1:
            assert batch.target.numel() <= batch_tokens
            assert batch.source.numel() <= SOURCE_TOKENS_FACTOR * batch_tokens


@given(lengths_of_corpora, seeds, st.integers(20, 200), st.data())
def test_a_resumed_run_reads_the_same_batches_as_an_uninterrupted_run(
    lengths: list[tuple[int, int]], seed: int, batch_tokens: int, data: st.DataObject
) -> None:
    stored = store_in_memory(lengths, weights=(1.0, 0.7))
    uninterrupted = Batches(stored, batch_tokens=batch_tokens, seed=seed)
    end = 3 * uninterrupted.per_epoch
    order = [uninterrupted.pairs_of(position).tolist() for position in range(end)]
    stop = data.draw(st.integers(0, end - 1))
    resumed = Batches(stored, batch_tokens=batch_tokens, seed=seed)
    assert [resumed.pairs_of(position).tolist() for position in range(stop, end)] == order[stop:]


def test_the_order_differs_by_epoch_and_by_seed() -> None:
    stored = store_in_memory(natural_lengths(2000))
    seed_1, seed_2 = (Batches(stored, batch_tokens=500, seed=seed) for seed in (1, 2))
    orders = [pairs_of_epoch(seed_1, 0), pairs_of_epoch(seed_1, 1), pairs_of_epoch(seed_2, 0)]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]
    assert seed_1.per_epoch == seed_2.per_epoch


def test_each_epoch_composes_its_batches_differently() -> None:
    batches = Batches(store_in_memory(natural_lengths(20_000)), batch_tokens=1024, seed=1)
    compositions = [{frozenset(batch) for batch in pairs_of_epoch(batches, epoch)} for epoch in (0, 1)]
    assert len(compositions[0] & compositions[1]) < 0.05 * batches.per_epoch


def test_batches_of_short_and_of_long_sentences_are_mixed() -> None:
    """The batches of an epoch are not sorted by the length of their sentences."""
    batches = Batches(store_in_memory(natural_lengths(5000)), batch_tokens=500, seed=1)
    lengths = batches.store.target_lengths
    means = np.array([lengths[pairs].mean() for pairs in pairs_of_epoch(batches, 0)])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.25


def test_batches_have_little_padding() -> None:
    batches = Batches(store_in_memory(natural_lengths(30_000)), batch_tokens=4096, seed=1)
    real = padded = 0
    for position in range(batches.per_epoch):
        batch = batches.batch(position)
        assert batch.target is not None
        assert batch.target_lengths is not None
        padded += batch.source.numel() + batch.target.numel()
        real += int(batch.source_lengths.sum() + batch.target_lengths.sum())
    assert 1 - real / padded < 0.08


def test_a_batch_has_special_tokens_padding_and_lengths() -> None:
    batches = Batches(store_in_memory([(2, 1), (1, 3)]), batch_tokens=100, seed=0)
    batch = batches.batch(0)
    rows = {
        tuple(source): tuple(target)
        for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True)
    }  # type: ignore[union-attr]
    assert rows == {(4, 4, END): (BEGIN, 4, END, PAD, PAD), (5, END, PAD): (BEGIN, 5, 5, 5, END)}
    assert sorted(batch.source_lengths.tolist()) == [2, 3]
    assert batch.source.dtype == batch.source_lengths.dtype == torch.int64


def test_a_pair_longer_than_the_batch_is_a_batch_by_itself() -> None:
    batches = Batches(store_in_memory([(50, 50), (2, 2), (3, 3)]), batch_tokens=20, seed=0)
    assert [0] in pairs_of_epoch(batches, 0)


def test_a_whole_weight_repeats_each_pair_and_a_fraction_draws_pairs_evenly() -> None:
    batches = Batches(store_in_memory(natural_lengths(600), (2.0, 0.3, 1.5)), batch_tokens=300, seed=5)
    # Pairs 0 to 199 have weight 2, the next 200 weight 0.3, the last 200 weight 1.5.
    epochs = 200
    counts: Counter[int] = Counter()
    for epoch in range(epochs):
        counts_in_epoch = Counter(pair for batch in pairs_of_epoch(batches, epoch) for pair in batch)
        assert all(counts_in_epoch[pair] == 2 for pair in range(200))
        assert sum(counts_in_epoch[pair] for pair in range(200, 400)) == 60  # 0.3 times 200 pairs
        assert all(counts_in_epoch[pair] in (1, 2) for pair in range(400, 600))
        counts.update(counts_in_epoch)
    rates = np.array([counts[pair] / epochs for pair in range(200, 400)])
    assert rates.mean() == pytest.approx(0.3)
    assert np.abs(rates - 0.3).max() < 0.15  # more than four standard deviations of 200 independent draws


def test_a_tiny_weight_still_draws_one_pair_per_epoch() -> None:
    batches = Batches(store_in_memory([(3, 3)] * 4, (0.01,)), batch_tokens=100, seed=1)
    assert [len(batch) for batch in pairs_of_epoch(batches, 0)] == [1]  # although 0.01 · 4 is less than one


def test_the_position_of_a_batch_gives_its_epoch_and_invalid_arguments_are_refused() -> None:
    batches = Batches(store_in_memory(natural_lengths(300)), batch_tokens=100, seed=1)
    assert batches.epoch_of(batches.per_epoch - 1) == 0
    assert batches.epoch_of(batches.per_epoch) == 1
    with pytest.raises(DataError, match="-1"):
        batches.batch(-1)
    with pytest.raises(RecipeError, match="batch_tokens=0"):
        Batches(batches.store, batch_tokens=0, seed=1)


def test_the_order_is_the_same_on_every_machine() -> None:
    """The expected order was recorded once. With another order, resumed runs would read other batches."""
    batches = Batches(store_in_memory([(n % 7 + 1, n % 5 + 1) for n in range(12)]), batch_tokens=16, seed=7)
    assert pairs_of_epoch(batches, epoch=3) == [[11, 1, 7], [0, 10, 5, 6], [2, 3], [8, 9], [4]]


# --- token sampling: the option `sampling` segments each sentence at random ---


def store_with_text(folder: Path) -> PairStore:
    return write_store(
        folder / "data",
        [CorpusPairs("all", pairs_of_lengths(natural_lengths(300)))],
        TOKENIZERS,
        max_tokens=100,
        store_text=True,
    )


def test_the_random_segmentation_of_a_batch_does_not_depend_on_the_batches_read_before(
    tmp_path: Path,
) -> None:
    stored = store_with_text(tmp_path)
    one, other = (
        Batches(stored, batch_tokens=400, seed=1, tokenizers=TOKENIZERS, sampling=0.3) for _ in range(2)
    )
    later = one.per_epoch + 3
    one.batch(0)
    assert torch.equal(one.batch(later).source, other.batch(later).source)
    pairs = [one.pairs_of(position).tolist() for position in (later, later + one.per_epoch)]
    assert pairs[0] != pairs[1]


def test_segmentations_differ_by_epoch_and_batches_keep_their_limits(
    tmp_path: Path,
) -> None:
    stored = store_with_text(tmp_path)
    batches = Batches(stored, batch_tokens=400, seed=1, tokenizers=TOKENIZERS, sampling=0.3)
    lengths: dict[int, set[int]] = {}  # pair → lengths of its source in the four epochs
    for position in range(4 * batches.per_epoch):
        batch = batches.batch(position)
        assert batch.target is not None
        assert batch.target.numel() <= 400 or len(batch) == 1
        assert batch.source.numel() <= SOURCE_TOKENS_FACTOR * 400 or len(batch) == 1
        for pair, length in zip(
            batches.pairs_of(position).tolist(), batch.source_lengths.tolist(), strict=True
        ):
            lengths.setdefault(pair, set()).add(length)
    # Of the 300 pairs, most have different lengths in different epochs.
    assert sum(len(pair_lengths) > 1 for pair_lengths in lengths.values()) > 200


def test_token_sampling_needs_a_store_with_text_and_its_tokenizers(tmp_path: Path) -> None:
    stored = store_with_text(tmp_path)
    without_text = write_store(
        tmp_path / "without-text", [CorpusPairs("x", pairs_of_lengths([(1, 1)]))], TOKENIZERS, max_tokens=9
    )
    other = FakeTokenizerPair(source=FakeTokenizer(name="other"))
    with pytest.raises(RecipeError, match="also needs `tokenizers`"):
        Batches(stored, batch_tokens=100, seed=1, sampling=0.1)
    with pytest.raises(RecipeError, match="store_text"):
        Batches(without_text, batch_tokens=100, seed=1, tokenizers=TOKENIZERS, sampling=0.1)
    with pytest.raises(StorageError, match="another tokenizer"):
        Batches(stored, batch_tokens=100, seed=1, tokenizers=other, sampling=0.1)


# --- padded_batch ---


@given(
    st.lists(st.tuples(st.lists(st.integers(4, 99)), st.lists(st.integers(4, 99))), min_size=1, max_size=9)
)
def test_padded_batch_holds_its_sentences(pairs: list[tuple[list[int], list[int]]]) -> None:
    batch = padded_batch([source for source, _ in pairs], [target for _, target in pairs])
    assert batch.target is not None
    assert batch.target_lengths is not None
    for row, (source, target) in enumerate(pairs):
        length = int(batch.source_lengths[row])
        assert batch.source[row, :length].tolist() == [*source, END]
        assert (batch.source[row, length:] == PAD).all()
        length = int(batch.target_lengths[row])
        assert batch.target[row, :length].tolist() == [BEGIN, *target, END]
        assert (batch.target[row, length:] == PAD).all()
    assert batch.source.shape[1] == int(batch.source_lengths.max())


def test_padded_batch_accepts_sources_alone_and_refuses_unequal_counts() -> None:
    batch = padded_batch([[5], []])
    assert batch.target is None
    assert batch.target_lengths is None
    assert batch.source.tolist() == [[5, END], [END, PAD]]
    with pytest.raises(DataError, match="2 sources, 1 targets"):
        padded_batch([[1], [2]], [[1]])


# --- layout_slots ---


def test_the_plan_of_100_000_pairs_has_every_pair_once() -> None:
    """This test takes about 50 ms. With a million pairs, it would take half a second."""
    lengths = np.array(natural_lengths(100_000))
    slots = layout_slots(
        lengths[:, 0], lengths[:, 1], [StoredCorpus("a", 1.0, 0, 100_000)], batch_tokens=4096
    )
    assert np.array_equal(np.sort(slots.assign(1, 0).pairs), np.arange(100_000))
