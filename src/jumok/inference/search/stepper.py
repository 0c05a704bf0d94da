"""All that search knows of a model: it begins, it steps, its rows can be put in another order.

A state has one row for each hypothesis that is being continued. What a state is, only the stepper knows;
search holds it and hands it back. So a Transformer, an ensemble and the table of a test are searched by the
same code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from torch import Tensor

    from jumok.values import Batch, LogProbs

__all__ = ["AttendingStepper", "Stepper", "advance"]

State = TypeVar("State")


class Stepper(Protocol[State]):
    """A model that says, piece by piece, what may come next.

    `step` and `reorder` consume the state they are given: use only the one they return. The log-probabilities
    of a step belong to the caller, who may write into them.
    """

    def begin(self, source: Batch) -> State:
        """The state before the first piece: one row a sentence."""
        ...

    def step(self, state: State, last: Tensor) -> tuple[LogProbs, State]:
        """Read the last piece of every row (row,) and say what may follow it."""
        ...

    def reorder(self, state: State, order: Tensor) -> State:
        """A state whose row r continues the old row order[r]. Rows may be repeated and left out."""
        ...


@runtime_checkable
class AttendingStepper(Stepper[State], Protocol[State]):
    """A stepper that can also tell where it looked, which the coverage penalty asks for."""

    def step_with_attention(self, state: State, last: Tensor) -> tuple[LogProbs, State, Tensor]:
        """As `step`, and the weight of every source piece in this step: (row, source), padding 0."""
        ...


def advance(
    stepper: Stepper[State], state: State, last: Tensor, *, attend: bool
) -> tuple[LogProbs, State, Tensor | None]:
    """One step, with the attention weights where they are wanted."""
    if not attend:
        log_probs, state = stepper.step(state, last)
        return log_probs, state, None
    if not isinstance(stepper, AttendingStepper):
        raise UnsupportedError(
            "The coverage penalty needs the attention of every step, which this model does not offer. "
            f"Received: {type(stepper).__name__}, which has no `step_with_attention`. "
            "Set search.coverage_penalty to 0, or use a model with cross-attention."
        )
    return stepper.step_with_attention(state, last)
