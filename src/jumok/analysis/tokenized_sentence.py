"""The two sides of a translation, the labels of their maps, and maps between words instead of pieces.

    site      queries (rows)                keys (columns)
    encoder   source pieces, </s>           source pieces, </s>
    decoder   target pieces, </s>           <s>, target pieces
    cross     target pieces, </s>           source pieces, </s>

A row of "decoder" and "cross" is the step that writes the piece of its label; the keys of "decoder" are what
that step has read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.text.piece_words import NO_WORD, merge_to_words
from jumok.text.words import split_words
from jumok.values import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from jumok.text import Subwords

__all__ = ["Side", "label_maps", "word_map"]

BEGIN_LABEL, END_LABEL = "<s>", "</s>"


@dataclass(frozen=True, slots=True)
class Side:
    """A sentence: its text, its pieces without marks, its words, and the word of each piece (−1 for none)."""

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    words: tuple[str, ...]
    word_of_piece: tuple[int, ...]

    @classmethod
    def of(cls, text: str, ids: Sequence[int], subwords: Subwords) -> Side:
        pieces = subwords.pieces(ids)
        words = subwords.word_of_piece(text, ids)
        return cls(text, tuple(ids), tuple(pieces), tuple(split_words(text)), tuple(words))

    def pieces_of(self, word: int) -> tuple[int, ...]:
        """The places of the pieces of a word."""
        return tuple(place for place, own in enumerate(self.word_of_piece) if own == word)


def label_maps(
    weights: Mapping[str, NDArray[Any]], source: Sequence[str], target: Sequence[str]
) -> dict[str, AttentionMap]:
    """Site → its map, with the labels of the table above; `source` and `target` are pieces without marks."""
    read, produced, keys = (BEGIN_LABEL, *target), (*target, END_LABEL), (*source, END_LABEL)
    labels = {"encoder": (keys, keys), "decoder": (produced, read), "cross": (produced, keys)}
    return {site: AttentionMap(site, array, *labels[site]) for site, array in weights.items()}


def word_map(attention: AttentionMap, source: Side, target: Side) -> AttentionMap:
    """A map of pieces as one of words: keys of a word are added, its queries averaged.

    So rows still sum to 1. Marks stand where they stood; pieces without a word come last.
    """
    queries, query_labels = _words(source if attention.site == "encoder" else target, begins=False)
    keys, key_labels = _words(
        target if attention.site == "decoder" else source, begins=attention.site == "decoder"
    )
    weights = merge_to_words(
        attention.weights,
        queries,
        keys,
        query_count=max(queries) + 1,
        key_count=max(keys) + 1,
    )
    return AttentionMap(attention.site, weights, query_labels, key_labels, attention.facts)


def _words(side: Side, *, begins: bool) -> tuple[list[int], tuple[str, ...]]:
    """The word of each piece and mark, and the labels of all words; a mark is a word of its own."""
    homeless = tuple(
        piece for piece, word in zip(side.pieces, side.word_of_piece, strict=True) if word == NO_WORD
    )
    if begins:
        words = [0, *(NO_WORD if word == NO_WORD else word + 1 for word in side.word_of_piece)]
        return words, (BEGIN_LABEL, *side.words, *homeless)
    return [*side.word_of_piece, len(side.words)], (*side.words, END_LABEL, *homeless)
