"""What a search did, step by step: every candidate, whom it continues, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.values import END

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Candidate", "SearchTree"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One continuation that a step of the search looked at.

    `score` is the sum that is searched by, `log_prob` the model's own (a forced prefix is not for free), and
    `ranking` what it is ranked by, where it is finished. Neither kept nor finished, it was pruned. `looked`
    is its row of `SearchTree.looks`: where the step that wrote it looked, −1 for what was pruned.
    """

    parent: int  # index into the candidates of the step before, −1 at the first step
    id: int
    piece: str
    score: float
    log_prob: float
    kept: bool
    finished: bool
    ranking: float | None = None
    looked: int = -1


@dataclass(frozen=True, slots=True)
class SearchTree:
    """All steps of the search of one sentence. `looks` is None where the model has no cross-attention."""

    beam: int
    length_penalty: float
    steps: tuple[tuple[Candidate, ...], ...]
    looks: NDArray[np.float32] | None = None  # (row, source piece and </s>), by the model's own read-out

    def candidate(self, step: int, index: int) -> Candidate:
        if not (0 <= step < len(self.steps) and 0 <= index < len(self.steps[step])):
            raise DataError(
                f"The search has no candidate {index} in step {step}. It took {len(self.steps)} steps; both "
                "are counted from 0."
            )
        return self.steps[step][index]

    def path(self, step: int, index: int) -> tuple[tuple[int, int], ...]:
        """The candidates, as (step, index), from the first step to this one."""
        here, way = index, []
        for at in range(step, -1, -1):
            way.append((at, here))
            here = self.candidate(at, here).parent
        return tuple(reversed(way))

    def ids(self, step: int, index: int) -> tuple[int, ...]:
        """The pieces of the hypothesis that ends with this candidate; `</s>` is not one of them."""
        found = (self.steps[at][place].id for at, place in self.path(step, index))
        return tuple(id_ for id_ in found if id_ != END)

    def finished(self) -> Iterator[tuple[int, int]]:
        """Step and index of every finished hypothesis, best first; of equal ones, the one found first."""
        found = [
            (-candidate.ranking, step, index)
            for step, candidates in enumerate(self.steps)
            for index, candidate in enumerate(candidates)
            if candidate.finished and candidate.ranking is not None
        ]
        for _, step, index in sorted(found):
            yield step, index
