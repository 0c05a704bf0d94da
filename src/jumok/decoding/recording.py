"""What a search reports, kept as a tree; and where each of its steps looked."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy

from jumok.decoding.readout import default_read_out
from jumok.explain import Candidate, SearchTree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from jumok.decoding.plan import SearchPlan, SearchStep
    from jumok.explain import LiveModel
    from jumok.text import Subwords
    from jumok.values import ReadOut

__all__ = ["recorded_tree"]


def recorded_tree(
    told: Sequence[SearchStep],
    plan: SearchPlan,
    subwords: Subwords,
    live: LiveModel,
    read_out: ReadOut | None,
) -> SearchTree:
    """The tree of the one sentence that was searched, from what its listener was told."""
    tree = SearchTree(plan.beam, plan.length_penalty, tuple(_candidates(subwords, told)))
    return _with_looks(tree, live, read_out) if live.model.looks_at_source else tree


def _candidates(subwords: Subwords, told: Sequence[SearchStep]) -> Iterator[tuple[Candidate, ...]]:
    """The candidates of each step of the one sentence; places that hold none are left out."""
    names: dict[int, int] = {}  # the place of a candidate in the report before → its index in the tree
    for report in told:
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
        alive = [place for place, row in enumerate(rows) if row[2] > -numpy.inf]
        pieces = subwords.pieces([rows[place][1] for place in alive])
        yield tuple(
            Candidate(
                parent=names[parent] if report.step else -1,
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
        names = {place: index for index, place in enumerate(alive)}


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
