"""Stand-ins for the text room: pieces that are single characters, or random cuts of words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jumok.values import Pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

FIRST = 4  # after the four marks


@dataclass(frozen=True)
class WordPieces:
    """A word is a piece; sampling sometimes cuts one into characters. Ids are code points modulo size."""

    size: int = 1000
    name: str = "words"

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self._piece(word) for word in text.split()] for text in texts]

    def sample(self, text: str, strength: float, generator: np.random.Generator) -> list[int]:
        ids: list[int] = []
        for word in text.split():
            units = list(word) if generator.random() < strength else [word]
            ids.extend(map(self._piece, units))
        return ids

    def to_bytes(self) -> bytes:
        return f"{self.name} {self.size}".encode()

    def _piece(self, unit: str) -> int:
        return FIRST + sum(map(ord, unit)) % (self.size - FIRST)


@dataclass(frozen=True)
class FakeVocabularies:
    source: WordPieces = field(default_factory=WordPieces)
    target: WordPieces = field(default_factory=lambda: WordPieces(size=70_000, name="many words"))


def pairs_of_lengths(lengths: Sequence[tuple[int, int]]) -> list[Pair]:
    """Pairs with so many words; the first word tells pairs apart."""
    return [
        Pair(_sentence(index, source), _sentence(index + 5, target))
        for index, (source, target) in enumerate(lengths)
    ]


def _sentence(index: int, words: int) -> str:
    return " ".join([f"w{index}", *(f"x{position}" for position in range(words - 1))])
