"""A beam search as a tree: the candidates of every step, their parents, and which were kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import DataError
from jumok.types import END

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Candidate:
    """One continuation that a step considered. It was pruned if `kept` and `finished` are false."""

    parent: int  # index into the candidates of the step before, −1 at the first step
    id: int
    token: str
    constrained_log_prob: float  # sum by which a step compares candidates; tokens of a given prefix add 0
    log_prob: float  # sum of the model's own log-probabilities, the prefix included
    kept: bool  # in the beam of the next step
    finished: bool
    score: float | None = None  # `Hypothesis.score` of a finished hypothesis, else None
    attention_row: int = -1  # row of `SearchTree.attention` for its step; −1 if pruned or if there is none


@dataclass(frozen=True, slots=True)
class SearchTree:
    """All steps of the search for one sentence."""

    beam: int
    length_penalty: float
    steps: tuple[tuple[Candidate, ...], ...]
    attention: NDArray[np.float32] | None = None
    """(row, source token and </s>): the cross-attention of the steps, averaged over the read-out's heads.

    None if the model has no cross-attention.
    """

    def candidate(self, step: int, index: int) -> Candidate:
        if not (0 <= step < len(self.steps) and 0 <= index < len(self.steps[step])):
            raise DataError(
                f"The search has no candidate {index} in step {step}. It took {len(self.steps)} steps; both "
                "are counted from 0."
            )
        return self.steps[step][index]

    def path(self, step: int, index: int) -> tuple[tuple[int, int], ...]:
        """Return (step, index) of this candidate and of its ancestors, the first step first."""
        path = []
        for depth in range(step, -1, -1):
            path.append((depth, index))
            index = self.candidate(depth, index).parent
        return tuple(reversed(path))

    def ids(self, step: int, index: int) -> tuple[int, ...]:
        """Return the token ids of the hypothesis that ends with this candidate, without `</s>`."""
        ids = (self.candidate(*node).id for node in self.path(step, index))
        return tuple(id_ for id_ in ids if id_ != END)

    def finished(self) -> Iterator[tuple[int, int]]:
        """Yield (step, index) of every finished hypothesis, best first.

        If scores are equal, the earlier candidate comes first.
        """
        ranked = [
            (-candidate.score, step, index)
            for step, candidates in enumerate(self.steps)
            for index, candidate in enumerate(candidates)
            if candidate.finished and candidate.score is not None
        ]
        for _, step, index in sorted(ranked):
            yield step, index
