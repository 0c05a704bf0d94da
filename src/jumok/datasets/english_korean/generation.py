"""Generate pairs from the grammar."""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING

from jumok.datasets.english_korean.patterns.table import PATTERNS
from jumok.datasets.english_korean.scene import Scene
from jumok.datasets.english_korean.splits import SPLITS, sentence_split
from jumok.errors import DataError, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.types import Pair

MAX_WORDS = 30  # words per side, including punctuation and tag
MAX_FAILED_DRAWS = 100_000  # after this many draws in a row without a new pair, a DataError is raised

_BUILDERS = tuple(pattern.build for pattern in PATTERNS.values())
_CUMULATIVE = tuple(accumulate(pattern.weight for pattern in PATTERNS.values()))


def pattern_names() -> tuple[str, ...]:
    """Return the names of the sentence patterns."""
    return tuple(PATTERNS)


def generate(split: str, count: int, *, seed: int = 1, polite: float = 0.25) -> Iterator[Pair]:
    """Yield `count` distinct pairs of a split. `polite` is the probability that a pair is in polite style.

    The pairs depend only on `split`, `seed` and `polite`. A smaller `count` gives the first pairs of the same
    sequence. If no new pair is found in MAX_FAILED_DRAWS draws, a DataError is raised after the last pair.
    """
    if split not in SPLITS:
        raise DataError(
            f'There is no split "{split}"; there are {", ".join(SPLITS)}.{suggest(split, SPLITS)}'
        )
    return _pairs(split, count, seed, polite)


def _pairs(split: str, count: int, seed: int, polite: float) -> Iterator[Pair]:
    random = Random(f"{split} {seed}").random
    total = _CUMULATIVE[-1]
    sources: set[str] = set()
    failed_draws = 0
    while len(sources) < count:
        if failed_draws == MAX_FAILED_DRAWS:
            raise DataError(
                f"The grammar has no more pairs for the split {split}: after {len(sources):,} distinct ones, "
                f"{failed_draws:,} draws in a row gave nothing new. Received: count {count:,}. Use fewer."
            )
        failed_draws += 1
        scene = Scene(random, random() < polite)
        sentence = _BUILDERS[bisect(_CUMULATIVE, random() * total)](scene)
        if max(len(sentence.words), len(sentence.eojeols)) > MAX_WORDS - 2:  # punctuation and tag
            continue
        english = sentence.english()
        if sentence_split(english, scene.splits) != split:
            continue
        pair = sentence.pair(english, polite=scene.polite)
        if pair.source not in sources:
            sources.add(pair.source)
            failed_draws = 0
            yield pair
