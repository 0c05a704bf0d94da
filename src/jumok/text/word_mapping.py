"""From pieces to words: which word a piece belongs to, and attention between words instead of pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import floating
    from numpy.typing import NDArray

    from jumok.text.words import Span

__all__ = ["NO_WORD", "merge_to_words", "words_of_spans"]

NO_WORD = -1
"""The word of a piece that has none: `<s>`, `</s>`, padding, or any piece of a text without words."""


def words_of_spans(pieces: Sequence[Span], words: Sequence[Span]) -> list[int]:
    """The word that each piece overlaps most (the first of equals). Both must be in the order of the text.

    A piece between words, which is whitespace, goes with the word that follows it, or with the last one.
    """
    if not words:
        return [NO_WORD] * len(pieces)
    found: list[int] = []
    first = 0
    for start, end in pieces:
        while first + 1 < len(words) and words[first][1] <= start:
            first += 1
        best, most = first, 0
        for word in range(first, len(words)):
            if words[word][0] >= end:
                break
            overlap = min(end, words[word][1]) - max(start, words[word][0])
            if overlap > most:
                best, most = word, overlap
        found.append(best)
    return found


def merge_to_words(
    weights: NDArray[floating],
    query_words: Sequence[int],
    key_words: Sequence[int],
    *,
    query_count: int | None = None,
    key_count: int | None = None,
    keep_marks: bool = True,
) -> NDArray[floating]:
    """Attention between pieces, (…, query, key), as attention between words, (…, query word, key word).

    The weights of a word's keys are added, since attention to any of its pieces is attention to the word; the
    rows of its queries are averaged. So rows that summed to 1 still do (Clark et al. 2019, §4.1).

    `query_words` and `key_words` give the word of each piece, as `Subwords.word_of_piece` does. Pieces
    without a word (−1: `</s>`) keep a row or column of their own after those of the words, in their order;
    without `keep_marks` they are dropped, and rows may then sum to less than 1. The counts say how many words
    there are, where the last ones may have no piece; a word without a piece has a row or column of zeros.
    """
    import numpy

    queries = _membership(query_words, query_count, keep_marks)  # (query word, query)
    keys = _membership(key_words, key_count, keep_marks)  # (key word, key)
    average = queries / numpy.maximum(queries.sum(axis=-1, keepdims=True), 1)
    merged: NDArray[floating] = average.astype(weights.dtype) @ weights @ keys.T.astype(weights.dtype)
    return merged


def _membership(words: Sequence[int], count: int | None, keep_marks: bool) -> NDArray[floating]:
    """A row a word and a column a piece: 1 where the piece is part of the word."""
    import numpy

    count = max(words, default=NO_WORD) + 1 if count is None else count
    marks = [piece for piece, word in enumerate(words) if word == NO_WORD] if keep_marks else []
    membership = numpy.zeros((count + len(marks), len(words)))
    for piece, word in enumerate(words):
        if word != NO_WORD:
            membership[word, piece] = 1
    for row, piece in enumerate(marks, start=count):
        membership[row, piece] = 1
    return membership
