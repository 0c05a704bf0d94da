"""Pairs drawn from the grammar, in an order that depends on the split and the seed only."""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING

from jumok.corpus.english_korean.patterns import PATTERNS
from jumok.corpus.english_korean.scene import Scene
from jumok.corpus.english_korean.splits import SPLITS, sentence_split
from jumok.errors import DataError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.values import Pair

__all__ = ["LONGEST", "generate", "pattern_names"]

LONGEST = 30  # words on either side, marks and tag included
MOST_IN_VAIN = 100_000  # draws in a row without a new pair: the grammar has no more to give

_BUILDERS = tuple(pattern.build for pattern in PATTERNS.values())
_CUMULATIVE = tuple(accumulate(pattern.weight for pattern in PATTERNS.values()))


def pattern_names() -> tuple[str, ...]:
    """The names of the sentence patterns."""
    return tuple(PATTERNS)


def generate(split: str, count: int, *, seed: int = 1, polite: float = 0.25) -> Iterator[Pair]:
    """Give `count` distinct pairs of a split, of which the share `polite` asks for polite style.

    The pairs depend on split, seed and share only: a smaller count gives the beginning of the same row. Where
    the grammar has fewer, a DataError follows the last of them.
    """
    if split not in SPLITS:
        raise DataError(
            f'There is no split "{split}"; there are {", ".join(SPLITS)}.{nearest(split, SPLITS)}'
        )
    return _pairs(split, count, seed, polite)


def _pairs(split: str, count: int, seed: int, polite: float) -> Iterator[Pair]:
    random = Random(f"{split} {seed}").random
    total = _CUMULATIVE[-1]
    given: set[str] = set()
    in_vain = 0
    while len(given) < count:
        if in_vain == MOST_IN_VAIN:
            raise DataError(
                f"The grammar has no more pairs for the split {split}: after {len(given):,} distinct ones, "
                f"{in_vain:,} draws in a row gave nothing new. Received: count {count:,}. Ask for fewer."
            )
        in_vain += 1
        scene = Scene(random, random() < polite)
        sentence = _BUILDERS[bisect(_CUMULATIVE, random() * total)](scene)
        if max(len(sentence.words), len(sentence.eojeols)) > LONGEST - 2:
            continue
        english = sentence.english()
        if sentence_split(english, scene.splits) != split:
            continue
        pair = sentence.pair(english, polite=scene.polite)
        if pair.source not in given:
            given.add(pair.source)
            in_vain = 0
            yield pair
