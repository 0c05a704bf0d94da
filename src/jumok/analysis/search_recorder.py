"""What a search reports, kept as a tree; and where each of its steps looked."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy

from jumok.decoding.readout import default_read_out
from jumok.explain import Candidate, SearchTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from jumok.decoding.plan import SearchPlan, SearchStep
    from jumok.explain import LiveModel
    from jumok.text import Subwords
    from jumok.values import ReadOut

__all__ = ["Recorder"]


class Recorder:
    """Hears the search of one sentence, and keeps it as a tree.

    `hear` is told the text of the likeliest hypothesis after each step, until that hypothesis is finished.
    """

    def __init__(self, plan: SearchPlan, subwords: Subwords, hear: Callable[[str], None] | None) -> None:
        self._plan = plan
        self._subwords = subwords
        self._hear = hear
        self._steps: list[tuple[Candidate, ...]] = []
        # The place of a candidate in the report before → its index in the tree.
        self._names: dict[int, int] = {}

    def __call__(self, report: SearchStep) -> None:
        columns = (
            report.parents,
            report.tokens,
            report.scores,
            report.log_probs,
            report.ranking,
            report.kept,
            report.finished,
        )
        rows = list(zip(*(column[0].tolist() for column in columns), strict=True))
        alive = [place for place, row in enumerate(rows) if row[2] > -numpy.inf]  # others hold no candidate
        pieces = self._subwords.pieces([rows[place][1] for place in alive])
        candidates = tuple(
            Candidate(
                parent=self._names[parent] if report.step else -1,
                id=token,
                piece=piece,
                score=score,
                log_prob=log_prob,
                kept=kept,
                finished=finished,
                ranking=ranking if finished else None,
            )
            for piece, (parent, token, score, log_prob, ranking, kept, finished) in zip(
                pieces, (rows[place] for place in alive), strict=True
            )
        )
        self._names = {place: index for index, place in enumerate(alive)}
        self._steps.append(candidates)
        self._tell(report.step, candidates)

    def tree(self, live: LiveModel, read_out: ReadOut | None) -> SearchTree:
        """All that was heard, with where each step looked, if the model looks anywhere."""
        return _with_looks(self._tree(), live, read_out) if live.model.looks_at_source else self._tree()

    def _tree(self) -> SearchTree:
        return SearchTree(self._plan.beam, self._plan.length_penalty, tuple(self._steps))

    def _tell(self, step: int, candidates: tuple[Candidate, ...]) -> None:
        """The first candidate is the likeliest; a search that has finished it only looks for worse ones."""
        if self._hear is None or not candidates:
            return
        self._hear(self._subwords.decode(self._tree().ids(step, 0)))
        if candidates[0].finished:
            self._hear = None


def _with_looks(tree: SearchTree, live: LiveModel, read_out: ReadOut | None) -> SearchTree:
    """The tree with where every step of every beam looked, by the read-out's heads.

    A step's look depends on the pieces before it alone. So one pass over the longest beginnings gives the
    looks of all shorter ones.
    """
    begins = {
        (step, index): tree.ids(step - 1, candidate.parent) if step else ()
        for step, candidates in enumerate(tree.steps)
        for index, candidate in enumerate(candidates)
        if candidate.kept or candidate.finished
    }
    ordered = sorted(set(begins.values()))
    # In this order a beginning stands right before one that continues it, if there is any.
    longest = [one for one, after in pairwise([*ordered, ()]) if not after or after[: len(one)] != one]
    looks: list[NDArray[Any]] = []
    numbers: dict[tuple[int, ...], int] = {}
    for ids, weights in zip(longest, live.weights(longest), strict=True):
        heads = (read_out or default_read_out(*weights["cross"].shape[:2])).heads
        rows = numpy.mean([weights["cross"][place] for place in heads], axis=0)  # (step, key)
        for length in range(len(ids) + 1):
            if ids[:length] not in numbers:
                numbers[ids[:length]] = len(looks)
                looks.append(rows[length])
    steps = tuple(
        tuple(
            replace(candidate, looked=numbers[begins[step, index]]) if (step, index) in begins else candidate
            for index, candidate in enumerate(candidates)
        )
        for step, candidates in enumerate(tree.steps)
    )
    rows = numpy.array(looks, dtype=numpy.float32).reshape(-1, len(live.source) + 1)  # there may be none
    return SearchTree(tree.beam, tree.length_penalty, steps, rows)
