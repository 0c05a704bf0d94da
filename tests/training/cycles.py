"""The smallest language: an alphabet that comes round again. Every symbol follows from its neighbours."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SYMBOLS = [letter + letter for letter in "abcdefghijkl"]
SHORTEST, LONGEST = 4, 33

# A model that learns it in some hundred updates of a few milliseconds.
SMALL: dict[str, Any] = {
    "model.width": 64,
    "model.feed_forward": 128,
    "model.heads": 4,
    "model.layers": 2,
    "text.pieces": 300,
    "training.batch_tokens": 1024,
    "training.learning_rate": 0.008,
}


def cycles() -> list[str]:
    """Every beginning with every length, once, in a random order."""
    texts = [
        " ".join(SYMBOLS[(first + place) % len(SYMBOLS)] for place in range(length))
        for first in range(len(SYMBOLS))
        for length in range(SHORTEST, LONGEST + 1)
    ]
    random.Random(1).shuffle(texts)
    return texts


def entropy_a_sentence() -> float:
    """The least loss there can be: the first symbol and the length are free, and all between follows."""
    return math.log(len(SYMBOLS)) + math.log(LONGEST - SHORTEST + 1)


def write_cycles(folder: Path, *, tested: int = 40) -> tuple[Path, Path]:
    """A text to train on and one to test with."""
    texts = cycles()
    paths = folder / "text.txt", folder / "test.txt"
    for path, lines in zip(paths, (texts[tested:], texts[:tested]), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths
