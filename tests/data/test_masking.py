"""The number of masked tokens and their replacements are correct.

The seed and the position of a batch in the run determine which tokens of the batch are masked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from jumok.data.batch_plan import MASKING_STREAM, random_uint64
from jumok.data.batching import padded_batch
from jumok.data.masking import MaskedBatches, mask_tokens, random_uint64_by_sentence
from jumok.data.store import CorpusPairs, write_store
from jumok.types import BEGIN, END, PAD, UNKNOWN, Batch, Pair
from support.corpus_fakes import FakeTokenizerPair

if TYPE_CHECKING:
    from pathlib import Path

VOCAB_SIZE = 500


def plain_batch(rows: int = 400, length: int = 40) -> Batch:
    tokens = (np.arange(rows * length).reshape(rows, length) % (VOCAB_SIZE - 4) + 4).tolist()
    return padded_batch([[] for _ in tokens], tokens)


def mask_batch(batch: Batch, seed: int = 1) -> Batch:
    assert batch.target is not None
    rows, columns = batch.target[:, 1:].shape
    bits = random_uint64(seed=seed, index=0, stream=MASKING_STREAM, count=rows * columns)
    return mask_tokens(batch, bits.reshape(rows, columns), vocab_size=VOCAB_SIZE)


def test_15_per_cent_of_the_tokens_are_chosen_and_80_per_cent_of_these_are_masked() -> None:
    plain = plain_batch()
    batch = mask_batch(plain)
    text, labels = plain.target[:, 1:], batch.target[:, 1:]
    chosen = labels != PAD
    assert torch.equal(chosen.sum(dim=1), torch.full((400,), 6))  # in each of 400 rows, 15 % of 40 tokens
    assert torch.equal(labels[chosen], text[chosen])
    assert torch.equal(batch.source[~chosen], text[~chosen])  # tokens that are not chosen stay
    masked = (batch.source[chosen] == UNKNOWN).double().mean()  # <unk> is the mask token
    stayed = (batch.source[chosen] == text[chosen]).double().mean()
    assert float(masked) == pytest.approx(0.8, abs=0.03)
    assert float(stayed) == pytest.approx(0.1, abs=0.03)
    assert int(batch.source.min()) >= UNKNOWN  # the lowest id: the rows have no padding
    assert int(batch.source.max()) < VOCAB_SIZE


def test_tokens_at_every_position_are_chosen_equally_often() -> None:
    chosen = (mask_batch(plain_batch(4000, 20)).target[:, 1:] != PAD).double().mean(dim=0)
    assert chosen[-1] == 0  # </s> is never masked
    torch.testing.assert_close(chosen[:-1], torch.full((20,), 0.15, dtype=torch.double), atol=0.03, rtol=0)


def test_short_and_padded_sentences_have_a_masked_token_and_keep_their_lengths() -> None:
    batch = mask_batch(padded_batch([[], [], []], [[7], [8, 9, 10], list(range(20, 40))]))
    assert ((batch.target[:, 1:] != PAD).sum(dim=1)).tolist() == [1, 1, 3]
    assert batch.source_lengths.tolist() == [2, 4, 21]
    assert batch.target_lengths.tolist() == [3, 5, 22]
    assert batch.target[:, 0].tolist() == [BEGIN] * 3
    assert [int(batch.source[row, length - 1]) for row, length in enumerate((2, 4, 21))] == [END] * 3
    assert torch.all(batch.source[0, 2:] == PAD)


def test_a_masked_batch_does_not_depend_on_the_batches_read_before(tmp_path: Path) -> None:
    pairs = [Pair("", " ".join(f"w{(i * j) % 23}" for j in range(1, 4 + i % 9))) for i in range(40)]
    tokenizers = FakeTokenizerPair()
    store = write_store(tmp_path / "data", [CorpusPairs("text", pairs)], tokenizers, max_tokens=50)
    assert len(store) == 40
    assert store.source_lengths.tolist() == [1] * 40  # </s>

    def make_batches() -> MaskedBatches:
        return MaskedBatches(store, batch_tokens=64, seed=1, tokenizers=tokenizers)

    first = make_batches()
    in_next_epoch = first.per_epoch + 2
    for position in (0, 3, in_next_epoch):
        expected, received = first.batch(position).source, make_batches().batch(position).source
        torch.testing.assert_close(received, expected, atol=0, rtol=0)


def test_the_seed_and_the_position_of_a_batch_decide_which_tokens_are_masked(tmp_path: Path) -> None:
    tokenizers = FakeTokenizerPair()
    pairs = [Pair("", " ".join(f"w{n}" for n in range(40)))]  # all batches hold this one sentence
    store = write_store(tmp_path / "data", [CorpusPairs("text", pairs)], tokenizers, max_tokens=50)

    def masked(seed: int, position: int) -> list[int]:
        batches = MaskedBatches(store, batch_tokens=64, seed=seed, tokenizers=tokenizers)
        return batches.batch(position).source[0].tolist()

    assert masked(seed=1, position=0) == masked(seed=1, position=0)
    assert masked(seed=1, position=0) != masked(seed=2, position=0)
    assert masked(seed=1, position=0) != masked(seed=1, position=1)


def test_a_mask_by_sentence_depends_only_on_the_sentence() -> None:
    sentences = [[5, 6, 7, 8, 9, 10, 11], [12, 13], [14, 15, 16, 17]]
    together = padded_batch([[], [], []], sentences)
    batched = mask_tokens(together, random_uint64_by_sentence(together), vocab_size=VOCAB_SIZE)
    for row, sentence in enumerate(sentences):
        alone = padded_batch([[]], [sentence])
        masked = mask_tokens(alone, random_uint64_by_sentence(alone), vocab_size=VOCAB_SIZE)
        length = len(sentence) + 1
        assert torch.equal(masked.source[0], batched.source[row, :length])
        assert torch.equal(masked.target[0], batched.target[row, : length + 1])
    positions = set()
    for first in range(50):
        alone = padded_batch([[]], [[first + 5, 6, 7, 8, 9, 10]])
        labels = mask_tokens(alone, random_uint64_by_sentence(alone), vocab_size=VOCAB_SIZE).target[0, 1:]
        positions.add(int((labels != PAD).nonzero()[0]))
    assert len(positions) == 6  # each of the six tokens is masked in one of the 50 sentences
