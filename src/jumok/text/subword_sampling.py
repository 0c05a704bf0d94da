"""Random segmentations of a text into tokens, sampled with the caller's generator.

SentencePiece can sample segmentations, but its random state cannot be set for a call and cannot be stored, so
a training run could not be repeated. Here a sample depends only on the text, the strength and the generator.

Tokens never cross a space, so the best segmentation consists of independent groups: the tokens of one word,
or of a run of characters in a script without spaces. A long word or run is divided into several groups. Each
group is segmented separately.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, pairwise
from math import exp
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.random import Generator

# A group ends at the first token with which it has at least this many characters. Most words are shorter. In
# scripts without spaces, this limits the number of alternatives of a group.
_FULL_GROUP_CHARACTERS = 12

# Kudo 2018 (table 2 and figure 1) finds smoothing by α between 0.1 and 0.5 best.
_SMOOTHING = 0.2
_NUM_ALTERNATIVES = 16


class SegmentationSampler(Protocol):
    """Segments the text of one group at random. `best` has the token ids of its best segmentation."""

    def sample(self, text: str, best: list[int], strength: float, generator: Generator) -> list[int]: ...


class NBestSampler:
    """Subword regularisation for unigram models (Kudo 2018, §3.2), with a strength from 0 to 1.

    With probability `strength`, a group gets a segmentation other than its best segmentation. This other
    segmentation is sampled from the next best segmentations with p(x) ∝ P(x)^α and α = 0.2. In Kudo's
    method, α also determines the probability of the best segmentation, so that the number of changed words
    depends on the corpus. Here a strength of 0.1 changes about one word in ten.
    """

    def __init__(self, n_best: Callable[[str, int], list[list[int]]], scores: Sequence[float]) -> None:
        self._n_best = n_best
        self._scores = scores
        self._alternatives = lru_cache(maxsize=50_000)(self._find_alternatives)

    def sample(self, text: str, best: list[int], strength: float, generator: Generator) -> list[int]:
        if generator.random() >= strength:
            return best
        alternatives, cumulative = self._alternatives(text)
        if not alternatives:
            return best
        drawn = generator.random() * cumulative[-1]
        return alternatives[bisect_right(cumulative, drawn)]

    def _find_alternatives(self, text: str) -> tuple[list[list[int]], list[float]]:
        """Return the segmentations after the best, and the cumulative sums of their unnormalised
        probabilities.
        """
        alternatives = self._n_best(text, 1 + _NUM_ALTERNATIVES)[1:]
        log_probs = [sum(self._scores[token] for token in ids) for ids in alternatives]
        highest = max(log_probs, default=0.0)
        return alternatives, list(accumulate(exp(_SMOOTHING * (log - highest)) for log in log_probs))


class BpeDropout:
    """BPE-dropout (Provilkov, Emelianenko & Voita 2020, algorithm 1).

    A word is built from its characters by merges, which are applied in the order in which they were learned.
    At each step, each possible merge is dropped with probability `strength`.
    """

    def __init__(self, ranks: dict[str, float], ids: dict[str, int]) -> None:
        self._ranks = ranks
        self._ids = ids

    def sample(self, text: str, best: list[int], strength: float, generator: Generator) -> list[int]:
        if len(text) < 2:
            return best
        parts = list(text)
        while True:
            pairs = [left + right for left, right in pairwise(parts)]
            possible = [(self._ranks[pair], i) for i, pair in enumerate(pairs) if pair in self._ranks]
            remaining = [merge for merge in possible if generator.random() >= strength]
            if not remaining:
                return [self._ids[part] for part in parts]
            _, i = min(remaining)
            parts[i : i + 2] = [pairs[i]]


def resample_groups(
    best: list[int],
    texts: Sequence[str | None],
    sampler: SegmentationSampler,
    strength: float,
    generator: Generator,
) -> list[int]:
    """Sample each group of the best segmentation of a sentence again, and return the token ids.

    `texts` has the text of each token in the vocabulary. Tokens with the text None (bytes, tags and special
    tokens) stay.
    """
    ids: list[int] = []
    for group in _groups(best, texts):
        text = "".join(texts[token] or "" for token in group)
        ids.extend(sampler.sample(text, group, strength, generator) if text else group)
    return ids


def _groups(best: list[int], texts: Sequence[str | None]) -> Iterator[list[int]]:
    group: list[int] = []
    length = 0
    for token in best:
        text = texts[token]
        if group and (text is None or text.startswith(" ") or length >= _FULL_GROUP_CHARACTERS):
            yield group
            group, length = [], 0
        if text is None:
            yield [token]
        else:
            group.append(token)
            length += len(text)
    if group:
        yield group
