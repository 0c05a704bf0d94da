"""Attention between tokens becomes attention between words.

The weights of the tokens of a key word are added. The rows of the tokens of a query word are averaged.
"""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.text.word_mapping import NO_WORD, merge_to_words, words_of_spans

WEIGHTS = numpy.array([[0.1, 0.2, 0.3, 0.4], [0.3, 0.4, 0.2, 0.1], [0.0, 0.0, 0.5, 0.5]], dtype=numpy.float32)


def test_weights_equal_those_computed_by_hand() -> None:
    merged = merge_to_words(WEIGHTS, [0, 0, 1], [0, 0, 1, NO_WORD])
    numpy.testing.assert_allclose(merged, [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]], rtol=1e-6)
    assert merged.dtype == numpy.float32


def test_special_tokens_can_be_dropped() -> None:
    merged = merge_to_words(WEIGHTS, [0, 0, NO_WORD], [0, 0, 1, NO_WORD], keep_special_tokens=False)
    numpy.testing.assert_allclose(merged, [[0.5, 0.25]], rtol=1e-6)


def test_special_tokens_follow_the_words_in_their_order() -> None:
    merged = merge_to_words(WEIGHTS, [0, 1, 2], [NO_WORD, 1, 0, NO_WORD])
    numpy.testing.assert_allclose(merged, WEIGHTS[:, [2, 1, 0, 3]])


def test_a_word_without_tokens_has_zero_weights() -> None:
    merged = merge_to_words(WEIGHTS, [0, 0, 2], [0, 0, 0, 0], num_query_words=4, num_key_words=2)
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
    with_tokens = sorted(set(query_words) - {NO_WORD})
    rows = merged[..., with_tokens, :].sum(axis=-1)
    numpy.testing.assert_allclose(rows, numpy.ones_like(rows))


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ([(0, 2), (2, 4)], [0, 0]),
        ([(0, 5)], [0]),  # overlaps the first word most
        ([(3, 6), (6, 8)], [0, 1]),  # equal overlaps: the first
        ([(4, 5), (5, 8)], [1, 1]),  # a space belongs to the word that follows
        ([(8, 10)], [1]),  # a token after the last word belongs to the last word
        ([(4, 4)], [1]),  # a token without text at the end of the first word
    ],
)
def test_a_token_belongs_to_the_word_it_overlaps_most(
    tokens: list[tuple[int, int]], words: list[int]
) -> None:
    assert words_of_spans(tokens, [(0, 4), (5, 8)]) == words
