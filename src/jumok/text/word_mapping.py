"""Map tokens to words, and turn attention between tokens into attention between words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import floating
    from numpy.typing import NDArray

    from jumok.text.words import Span

NO_WORD = -1
"""The word index of a token without a word: `<s>`, `</s>`, `<pad>`, a language code that a tokenizer added,
and every token of a text without words."""


def words_of_spans(tokens: Sequence[Span], words: Sequence[Span]) -> list[int]:
    """Return for each token the index of the word that it overlaps most, or the first such word in a tie.

    Tokens and words must be in text order. A token of white space between words belongs to the word that
    follows. A token after the last word belongs to the last word. If there are no words, all indices are −1.
    """
    if not words:
        return [NO_WORD] * len(tokens)
    indices: list[int] = []
    first = 0
    for start, end in tokens:
        while first + 1 < len(words) and words[first][1] <= start:
            first += 1
        best, max_overlap = first, 0
        for word in range(first, len(words)):
            if words[word][0] >= end:
                break
            overlap = min(end, words[word][1]) - max(start, words[word][0])
            if overlap > max_overlap:
                best, max_overlap = word, overlap
        indices.append(best)
    return indices


def merge_to_words(
    weights: NDArray[floating],
    query_words: Sequence[int],
    key_words: Sequence[int],
    *,
    num_query_words: int | None = None,
    num_key_words: int | None = None,
    keep_special_tokens: bool = True,
) -> NDArray[floating]:
    """Turn attention between tokens (…, query, key) into attention between words (…, query word, key word).

    The weights of the keys of a word are added, because attention to any token of a word is attention to the
    word. The rows of the queries of a word are averaged. If the rows sum to 1, the new rows also sum to 1
    (Clark et al. 2019, §4.1).

    `query_words` and `key_words` are the word indices of the tokens, from `Tokenizer.word_of_token`. The rows
    and columns of tokens without a word (−1, such as `</s>`) come after the rows and columns of the words. If
    `keep_special_tokens` is false, these rows and columns are dropped, and rows may sum to less than 1. A
    word without a token has a row or column of zeros. Pass the numbers of words if the last words may have
    no token.
    """
    import numpy  # start-up

    queries = _membership(query_words, num_query_words, keep_special_tokens)  # (query word, query)
    keys = _membership(key_words, num_key_words, keep_special_tokens)  # (key word, key)
    average = queries / numpy.maximum(queries.sum(axis=-1, keepdims=True), 1)
    merged: NDArray[floating] = average.astype(weights.dtype) @ weights @ keys.T.astype(weights.dtype)
    return merged


def _membership(words: Sequence[int], num_words: int | None, keep_special_tokens: bool) -> NDArray[floating]:
    """Return a matrix (word, token). An element is 1 if the token belongs to the word, and 0 if not."""
    import numpy  # start-up

    num_words = max(words, default=NO_WORD) + 1 if num_words is None else num_words
    special = [token for token, word in enumerate(words) if word == NO_WORD] if keep_special_tokens else []
    membership = numpy.zeros((num_words + len(special), len(words)))
    for token, word in enumerate(words):
        if word != NO_WORD:
            membership[word, token] = 1
    for row, token in enumerate(special, start=num_words):
        membership[row, token] = 1
    return membership


def diagonal_links(num_source_words: int, num_target_words: int) -> list[tuple[int, int]]:
    """Return links that depend only on positions, for a model without attention to its source."""
    if not num_source_words:
        return []
    return [(j * num_source_words // num_target_words, j) for j in range(num_target_words)]
