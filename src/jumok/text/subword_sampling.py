"""Other ways to cut the same text, drawn with the caller's generator.

SentencePiece samples too, but its random state can be neither set for one call nor stored, so a run could
not be repeated. Here a draw is a function of the text, the strength and the generator.

Pieces never reach across a space, so the best cut falls into independent groups, each the pieces of a word
(or of a stretch of a script without spaces), and a group is cut anew without looking at the others.
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

__all__ = ["Cutter", "MergeDropout", "NBest", "cut_anew"]

# Long enough for most words; keeps the alternatives of a group few where there are no spaces.
_LONGEST_GROUP = 12

# Kudo 2018 (table 2 and figure 1) finds smoothing by α between 0.1 and 0.5 best.
_SMOOTHING = 0.2
_ALTERNATIVES = 16


class Cutter(Protocol):
    """Cuts one group's text at random."""

    def cut(self, text: str, best: list[int], strength: float, generator: Generator) -> list[int]: ...


class NBest:
    """Subword regularisation for unigram models (Kudo 2018, §3.2), with a dial that starts at 0.

    With probability `strength` a group gets another cut than its best, drawn from the next best with
    p(cut) ∝ P(cut)^0.2. Kudo's single dial α cannot say "rarely": it weighs the best cut together with the
    others, so that how much changes depends on the corpus. Here a strength of 0.1 changes one word in ten.
    """

    def __init__(self, n_best: Callable[[str, int], list[list[int]]], scores: Sequence[float]) -> None:
        self._n_best = n_best
        self._scores = scores
        self._others = lru_cache(maxsize=50_000)(self._find_others)

    def cut(self, text: str, best: list[int], strength: float, generator: Generator) -> list[int]:
        if generator.random() >= strength:
            return best
        cuts, cumulative = self._others(text)
        if not cuts:
            return best
        drawn = generator.random() * cumulative[-1]
        return cuts[bisect_right(cumulative, drawn)]

    def _find_others(self, text: str) -> tuple[list[list[int]], list[float]]:
        """The cuts after the best one, and the running sum of their unnormalised probabilities."""
        cuts = self._n_best(text, 1 + _ALTERNATIVES)[1:]
        logs = [sum(self._scores[piece] for piece in cut) for cut in cuts]
        best = max(logs, default=0.0)
        return cuts, list(accumulate(exp(_SMOOTHING * (log - best)) for log in logs))


class MergeDropout:
    """BPE-dropout (Provilkov, Emelianenko & Voita 2020, algorithm 1).

    A word is built up from its characters by the learnt merges, the earliest learnt first; at each step every
    merge that could be made is left out with probability `strength`.
    """

    def __init__(self, ranks: dict[str, float], ids: dict[str, int]) -> None:
        self._ranks = ranks
        self._ids = ids

    def cut(self, text: str, best: list[int], strength: float, generator: Generator) -> list[int]:
        if len(text) < 2:
            return best
        parts = list(text)
        while True:
            pairs = [left + right for left, right in pairwise(parts)]
            known = [(self._ranks[pair], i) for i, pair in enumerate(pairs) if pair in self._ranks]
            kept = [merge for merge in known if generator.random() >= strength]
            if not kept:
                return [self._ids[part] for part in parts]
            _, i = min(kept)
            parts[i : i + 2] = [pairs[i]]


def cut_anew(
    best: list[int], texts: Sequence[str | None], cutter: Cutter, strength: float, generator: Generator
) -> list[int]:
    """The best cut of a sentence with its groups cut again.

    `texts` gives the text of each piece; a piece without one (a byte, a tag) has no other cut and stays.
    """
    ids: list[int] = []
    for group in _groups(best, texts):
        text = "".join(texts[piece] or "" for piece in group)
        ids.extend(cutter.cut(text, group, strength, generator) if text else group)
    return ids


def _groups(best: list[int], texts: Sequence[str | None]) -> Iterator[list[int]]:
    group: list[int] = []
    length = 0
    for piece in best:
        text = texts[piece]
        if group and (text is None or text.startswith(" ") or length >= _LONGEST_GROUP):
            yield group
            group, length = [], 0
        if text is None:
            yield [piece]
        else:
            group.append(piece)
            length += len(text)
    if group:
        yield group
