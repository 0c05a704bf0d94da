"""Fake tokenizers, for which a word is a token, and sentence pairs with given numbers of words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jumok.types import Pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

NUM_SPECIAL_TOKENS = 4


@dataclass(frozen=True)
class FakeTokenizer:
    """A tokenizer for which a word is a token. Sampling splits some words into characters.

    The id of a token is computed from the sum of its code points and from the vocabulary size, so two tokens
    may have the same id.
    """

    vocab_size: int = 1000
    name: str = "words"
    token_shape: tuple[int, ...] = ()

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self._token_id(word) for word in text.split()] for text in texts]

    def sample(self, text: str, strength: float, generator: np.random.Generator) -> list[int]:
        ids: list[int] = []
        for word in text.split():
            units = list(word) if generator.random() < strength else [word]
            ids.extend(map(self._token_id, units))
        return ids

    def to_bytes(self) -> bytes:
        return f"{self.name} {self.vocab_size}".encode()

    def _token_id(self, unit: str) -> int:
        return NUM_SPECIAL_TOKENS + sum(map(ord, unit)) % (self.vocab_size - NUM_SPECIAL_TOKENS)


@dataclass(frozen=True)
class FakeTokenizerPair:
    """Two fake tokenizers. The ids of the target do not fit into 16 bits."""

    source: FakeTokenizer = field(default_factory=FakeTokenizer)
    target: FakeTokenizer = field(default_factory=lambda: FakeTokenizer(vocab_size=70_000, name="many words"))


def pairs_of_lengths(lengths: Sequence[tuple[int, int]]) -> list[Pair]:
    """Return one pair per item of `lengths`, with these numbers of words in the source and the target.

    The first words of the sources differ, and so do those of the targets.
    """
    return [
        Pair(_sentence(index, source), _sentence(index + 5, target))
        for index, (source, target) in enumerate(lengths)
    ]


def _sentence(index: int, words: int) -> str:
    return " ".join([f"w{index}", *(f"x{position}" for position in range(words - 1))])
