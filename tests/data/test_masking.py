"""What is hidden of a text: how much, how, and that it is a function of seed and position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from corpus_fakes import FakeVocabularies

from jumok.corpus import MaskedBatches, Part, hide_pieces, padded_batch, write_store
from jumok.corpus.masking import fixed_words
from jumok.corpus.plan import random_words
from jumok.values import BEGIN, END, PAD, UNKNOWN, Batch, Pair

if TYPE_CHECKING:
    from pathlib import Path

PIECES = 500


def many(rows: int = 400, length: int = 40) -> Batch:
    pieces = (np.arange(rows * length).reshape(rows, length) % (PIECES - 4) + 4).tolist()
    return padded_batch([[] for _ in pieces], pieces)


def hide(batch: Batch, seed: int = 1) -> Batch:
    assert batch.target is not None
    rows, columns = batch.target[:, 1:].shape
    words = random_words(seed, 0, 3, rows * columns).reshape(rows, columns)
    return hide_pieces(batch, words, pieces=PIECES)


def test_fifteen_in_a_hundred_are_chosen_and_eight_in_ten_of_them_hidden() -> None:
    plain = many()
    batch = hide(plain)
    text, wanted = plain.target[:, 1:], batch.target[:, 1:]
    chosen = wanted != PAD
    assert torch.equal(chosen.sum(dim=1), torch.full((400,), 6))  # 15 % of 40
    assert torch.equal(wanted[chosen], text[chosen])
    assert torch.equal(batch.source[~chosen], text[~chosen]), "what is not chosen stays"
    hidden = (batch.source[chosen] == UNKNOWN).double().mean()
    stayed = (batch.source[chosen] == text[chosen]).double().mean()
    assert float(hidden) == pytest.approx(0.8, abs=0.03)
    assert float(stayed) == pytest.approx(0.1, abs=0.03)
    assert int(batch.source.min()) >= UNKNOWN
    assert int(batch.source.max()) < PIECES


def test_every_place_is_chosen_alike() -> None:
    chosen = (hide(many(4000, 20)).target[:, 1:] != PAD).double().mean(dim=0)
    assert chosen[-1] == 0, "the end mark is no piece of the text"
    torch.testing.assert_close(chosen[:-1], torch.full((20,), 0.15, dtype=torch.double), atol=0.03, rtol=0)


def test_short_and_padded_sentences() -> None:
    batch = hide(padded_batch([[], [], []], [[7], [8, 9, 10], list(range(20, 40))]))
    assert ((batch.target[:, 1:] != PAD).sum(dim=1)).tolist() == [1, 1, 3]
    assert batch.source_lengths.tolist() == [2, 4, 21]
    assert batch.target_lengths.tolist() == [3, 5, 22]
    assert batch.target[:, 0].tolist() == [BEGIN] * 3
    assert [int(batch.source[row, length - 1]) for row, length in enumerate((2, 4, 21))] == [END] * 3
    assert torch.all(batch.source[0, 2:] == PAD)


def test_a_batch_is_a_function_of_the_seed_and_its_position(tmp_path: Path) -> None:
    pairs = [Pair("", " ".join(f"w{(i * j) % 23}" for j in range(1, 4 + i % 9))) for i in range(40)]
    vocabularies = FakeVocabularies()
    store = write_store(tmp_path / "data", [Part("text", pairs)], vocabularies, longest=50)
    assert len(store) == 40
    assert store.source_lengths.tolist() == [1] * 40

    def batches(seed: int) -> MaskedBatches:
        return MaskedBatches(store, batch_tokens=64, seed=seed, vocabularies=vocabularies)

    one, again = batches(1), batches(1)
    last = one.per_epoch + 2
    for position in (0, 3, last):
        torch.testing.assert_close(one.batch(position).source, again.batch(position).source, atol=0, rtol=0)
    hidden = {
        seed: torch.cat([batches(seed).batch(p).source.flatten() for p in range(one.per_epoch)])
        for seed in (1, 2)
    }
    assert hidden[1].shape != hidden[2].shape or not torch.equal(hidden[1], hidden[2])


def test_a_fixed_mask_follows_the_sentence_and_nothing_else() -> None:
    sentences = [[5, 6, 7, 8, 9, 10, 11], [12, 13], [14, 15, 16, 17]]
    together = padded_batch([[], [], []], sentences)
    whole = hide_pieces(together, fixed_words(together), pieces=PIECES)
    for row, sentence in enumerate(sentences):
        alone = padded_batch([[]], [sentence])
        one = hide_pieces(alone, fixed_words(alone), pieces=PIECES)
        length = len(sentence) + 1
        assert torch.equal(one.source[0], whole.source[row, :length])
        assert torch.equal(one.target[0], whole.target[row, : length + 1])
    places = set()
    for first in range(50):
        alone = padded_batch([[]], [[first + 5, 6, 7, 8, 9, 10]])
        wanted = hide_pieces(alone, fixed_words(alone), pieces=PIECES).target[0, 1:]
        places.add(int((wanted != PAD).nonzero()[0]))
    assert len(places) == 6, "not always the same place"
