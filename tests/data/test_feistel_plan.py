"""The plan of large stores uses each pair as often as its weight says, in batches with little padding."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data import store as store_module
from jumok.data.batch_plan import SOURCE_TOKENS_FACTOR, layout_slots
from jumok.data.batching import Batches
from jumok.data.feistel_plan import FeistelLayout, Permutation, has_whole_weights, layout_by_class
from jumok.data.store import FEISTEL, StoredCorpus

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fake_store(source: NDArray[Any], target: NDArray[Any], corpora: list[StoredCorpus]) -> Any:
    """Return a fake store whose sentences have these numbers of tokens. It has no ids."""

    def side(lengths: NDArray[Any], ids: NDArray[Any]) -> Any:
        return SimpleNamespace(offsets=np.concatenate([[0], np.cumsum(lengths)]), ids=ids)

    return SimpleNamespace(
        source=side(source, np.empty(0)),
        target=side(target, np.empty(0)),
        corpora=corpora,
        special_tokens=(1, 2),
        order=FEISTEL,
    )


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000, 65_537, 300_000])
def test_a_permutation_is_a_bijection(count: int) -> None:
    permuted = Permutation(count, (1, 0, count))(np.arange(count))
    assert np.array_equal(np.sort(permuted), np.arange(count))


def test_permutations_of_other_keys_differ_and_look_random() -> None:
    first, second = (Permutation(10**9, (seed, 0, 0))(np.arange(100_000)) for seed in (1, 2))
    assert not np.array_equal(first, second)
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.02
    # χ² of 100,000 numbers in 1,000 bins, 100 of them expected per bin, divided by the number of bins.
    bins = np.bincount(first // 10**6, minlength=1000)
    assert ((bins - 100) ** 2 / 100).sum() / 1000 == pytest.approx(1, abs=0.2)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 60)), min_size=1, max_size=400),
    st.integers(1, 400),
    st.integers(1, 3),
    st.integers(0, 2**31),
)
def test_each_pair_is_used_as_often_as_its_weight_in_every_epoch(
    lengths: list[tuple[int, int]], batch_tokens: int, weight: int, seed: int
) -> None:
    source, target = np.array(lengths).T
    middle = len(lengths) // 2
    corpora = [StoredCorpus("a", 1.0, 0, middle), StoredCorpus("b", float(weight), middle, len(lengths))]
    store = fake_store(source, target, corpora)
    layout = layout_by_class(store, batch_tokens=batch_tokens)
    # In a batch, </s> makes a source longer by one token; <s> and </s> make a target longer by two.
    sorted_layout = layout_slots(source + 1, target + 2, corpora, batch_tokens=batch_tokens)
    assert np.array_equal(layout.starts, sorted_layout.starts)  # the same batches, with other pairs in them
    for epoch in (0, 1):
        batches = [layout.pairs_of(seed, epoch, index) for index in range(len(layout.starts) - 1)]
        used_counts = np.bincount(np.concatenate(batches), minlength=len(lengths))
        assert (used_counts[:middle] == 1).all()
        assert (used_counts[middle:] == weight).all()
        for pairs in batches:
            rows = len(pairs)
            assert rows == 1 or rows * (target[pairs].max() + 2) <= batch_tokens
            assert rows == 1 or rows * (source[pairs].max() + 1) <= SOURCE_TOKENS_FACTOR * batch_tokens


def test_batches_of_a_store_in_feistel_order_use_a_feistel_layout() -> None:
    lengths = np.arange(1, 200) % 17 + 1
    batches = Batches(fake_store(lengths, lengths, [StoredCorpus("a", 1.0, 0, 199)]), batch_tokens=64, seed=3)
    assert isinstance(batches._layout, FeistelLayout)
    assert batches._layout.sorted_pairs.dtype == np.uint32  # four bytes per pair
    epochs = [
        np.concatenate([batches.pairs_of(epoch * batches.per_epoch + i) for i in range(batches.per_epoch)])
        for epoch in (0, 1)
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(199))
    assert not np.array_equal(*epochs)
    assert not has_whole_weights([StoredCorpus("a", 0.5, 0, 10)])
    # The corpora of published results have fewer pairs: the order of their batches must not change.
    assert store_module.MAX_SORTED_PAIRS == 1_000_000
