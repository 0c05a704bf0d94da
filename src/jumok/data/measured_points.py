"""Measured scores of training runs. docs/quality.md has the same points with their commands.

`jumok check` quotes the points nearest to the size of a corpus. It does not predict a score, because the
score depends on the text of the corpus as well as on its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """One training run: its corpus, its duration, and its score."""

    corpus: str
    pairs: int  # number of training pairs
    minutes: int
    bleu: float  # on unseen pairs
    tokenizer: str  # of sacreBLEU


MEASURED_POINTS = (
    MeasuredPoint("Multi30k English–German, picture captions", 1_000, 3, 10.9, "13a"),
    MeasuredPoint("Multi30k English–German, picture captions", 29_000, 15, 34.8, "13a"),
    MeasuredPoint("Multi30k English–German, lowercased and tokenized", 29_000, 45, 40.5, "none"),
    MeasuredPoint("built-in English–Korean, generated sentences", 120_000, 3, 97.1, "13a"),
)


def nearest_points(pairs: int, count: int = 2) -> list[MeasuredPoint]:
    """Return the `count` points with the nearest numbers of pairs on a logarithmic scale, nearest first."""
    distance = {point: abs(math.log(max(pairs, 1) / point.pairs)) for point in MEASURED_POINTS}
    return sorted(MEASURED_POINTS, key=distance.__getitem__)[:count]
