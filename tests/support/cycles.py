"""A minimal language: each sentence is a part of an endlessly repeated alphabet of twelve symbols."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SYMBOLS = [letter + letter for letter in "abcdefghijkl"]
MIN_LENGTH, MAX_LENGTH = 4, 33

# A model that learns this language in a few hundred updates of a few milliseconds each.
SMALL: dict[str, Any] = {
    "model.width": 64,
    "model.feed_forward": 128,
    "model.heads": 4,
    "model.layers": 2,
    "text.vocab_size": 300,
    "training.batch_tokens": 1024,
    "training.learning_rate": 0.008,
    "training.processes": 1,  # so that training does not measure which number is fastest
}


def cycles() -> list[str]:
    """Return all sentences of the language, one per first symbol and length, in random order."""
    texts = [
        " ".join(SYMBOLS[(first + position) % len(SYMBOLS)] for position in range(length))
        for first in range(len(SYMBOLS))
        for length in range(MIN_LENGTH, MAX_LENGTH + 1)
    ]
    random.Random(1).shuffle(texts)
    return texts


def entropy_per_sentence() -> float:
    """Return the lowest possible loss in nats. Only the first symbol and the length cannot be predicted."""
    return math.log(len(SYMBOLS)) + math.log(MAX_LENGTH - MIN_LENGTH + 1)


def write_cycles(folder: Path, *, num_test: int = 40) -> tuple[Path, Path]:
    """Write a training text and a test text. Return the two paths in this order."""
    texts = cycles()
    paths = folder / "text.txt", folder / "test.txt"
    for path, lines in zip(paths, (texts[num_test:], texts[:num_test]), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths
