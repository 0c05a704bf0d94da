"""Tiny models of digits in words, and sentences for them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

DIGITS = {
    "en": ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"],
    "de": ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"],
    "fr": ["zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"],
}
TINY: dict[str, Any] = {
    "model.width": 16,
    "model.feed_forward": 16,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "text.pieces": 300,
    "training.batch_tokens": 64,
    "training.steps": 3,
    "search.beam": 2,
    "search.longest": 1.0,
}


def train_digits(folder: Path, source: str, target: str) -> Path:
    import jumok

    generator = random.Random(1)
    lines = set()
    while len(lines) < 60:
        digits = [generator.randrange(10) for _ in range(generator.randint(2, 5))]
        lines.add("\t".join(" ".join(DIGITS[code][digit] for digit in digits) for code in (source, target)))
    pairs = folder / f"digits.{source}-{target}.tsv"
    pairs.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    return jumok.train(pairs, out=folder / f"{source}-{target}", **TINY)


def sentences(count: int, seed: int = 1) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(DIGITS["en"], k=generator.randint(1, 12))) for _ in range(count)]
