"""Pieces merge into words by adding keys and averaging queries."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.text import NO_WORD, merge_to_words
from jumok.text.piece_words import words_of_spans

WEIGHTS = numpy.array([[0.1, 0.2, 0.3, 0.4], [0.3, 0.4, 0.2, 0.1], [0.0, 0.0, 0.5, 0.5]], dtype=numpy.float32)


def test_by_hand() -> None:
    merged = merge_to_words(WEIGHTS, [0, 0, 1], [0, 0, 1, NO_WORD])
    numpy.testing.assert_allclose(merged, [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]], rtol=1e-6)
    assert merged.dtype == numpy.float32


def test_marks_dropped() -> None:
    merged = merge_to_words(WEIGHTS, [0, 0, NO_WORD], [0, 0, 1, NO_WORD], keep_marks=False)
    numpy.testing.assert_allclose(merged, [[0.5, 0.25]], rtol=1e-6)


def test_marks_kept_in_their_order_after_the_words() -> None:
    merged = merge_to_words(WEIGHTS, [0, 1, 2], [NO_WORD, 1, 0, NO_WORD])
    numpy.testing.assert_allclose(merged, WEIGHTS[:, [2, 1, 0, 3]])


def test_words_without_a_piece_are_zero() -> None:
    merged = merge_to_words(WEIGHTS, [0, 0, 2], [0, 0, 0, 0], query_count=4, key_count=2)
    numpy.testing.assert_allclose(merged, [[1, 0], [0, 0], [1, 0], [0, 0]], rtol=1e-6)


@given(
    st.lists(st.integers(NO_WORD, 3), min_size=1, max_size=6),
    st.lists(st.integers(NO_WORD, 3), min_size=1, max_size=6),
)
def test_rows_still_sum_to_one(query_words: list[int], key_words: list[int]) -> None:
    weights = numpy.random.default_rng(1).random((2, 3, len(query_words), len(key_words)))
    weights /= weights.sum(axis=-1, keepdims=True)
    merged = merge_to_words(weights, query_words, key_words)
    assert merged.shape[:2] == (2, 3)
    filled = sorted(set(query_words) - {NO_WORD})
    rows = merged[..., filled, :].sum(axis=-1)
    numpy.testing.assert_allclose(rows, numpy.ones_like(rows))


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([(0, 2), (2, 4)], [0, 0]),
        ([(0, 5)], [0]),  # the larger share of two words
        ([(3, 6), (6, 8)], [0, 1]),  # equal shares: the first
        ([(4, 5), (5, 8)], [1, 1]),  # a space goes with the word that follows
        ([(8, 10)], [1]),  # or with the last one
        ([(4, 4)], [1]),
    ],
)
def test_the_word_of_a_span(pieces: list[tuple[int, int]], words: list[int]) -> None:
    assert words_of_spans(pieces, [(0, 4), (5, 8)]) == words
