"""Lines of a minimal corpus, digits in English and German words, and a model that is too small to learn it.

`support.digits` has the same task as `Pair` objects, and a model that learns the task.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]

# A model that is too small to learn anything, because most tests do not depend on the quality of a model.
TINY: dict[str, Any] = {
    "model.width": 16,
    "model.feed_forward": 16,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "text.vocab_size": 300,
    "training.batch_tokens": 64,
    "training.steps": 3,
    "search.beam": 2,
    "search.max_length_ratio": 1.0,
}


def digit_lines(count: int, seed: int = 1) -> list[tuple[str, str, str]]:
    """Return `count` triples (source, target, alignment) with distinct sources."""
    generator = random.Random(seed)
    lines: dict[str, tuple[str, str, str]] = {}
    while len(lines) < count:
        digits = [generator.randrange(10) for _ in range(generator.randint(2, 5))]
        source, target = (" ".join(words[digit] for digit in digits) for words in (ENGLISH, GERMAN))
        lines[source] = (source, target, " ".join(f"{i}-{i}" for i in range(len(digits))))
    return list(lines.values())


def write_tsv(path: Path, lines: Sequence[Sequence[str]]) -> Path:
    path.write_text("".join("\t".join(cells) + "\n" for cells in lines), encoding="utf-8")
    return path
