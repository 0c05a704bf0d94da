"""All that search knows about a model: how to begin, to step, and to reorder the rows of its state.

A state has one row per hypothesis that is being continued. Only the stepper knows what a state is; search
passes it back. So the same code searches with a Transformer, an ensemble or the table of a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from torch import Tensor

    from jumok.types import Batch, LogProbs

State = TypeVar("State")


class Stepper(Protocol[State]):
    """A model that gives the log-probabilities of the next token, step by step.

    `step` and `reorder` consume the state they receive: use only the one they return. The log-probabilities
    of a step belong to the caller, who may overwrite them.
    """

    def begin(self, source: Batch) -> State:
        """Return the state before the first token, with one row per sentence."""
        ...

    def step(self, state: State, last_tokens: Tensor) -> tuple[LogProbs, State]:
        """Read the last token of every row, (row,); return the log-probabilities of the next token."""
        ...

    def reorder(self, state: State, order: Tensor) -> State:
        """Return a state whose row r continues the old row order[r]. Rows may be repeated and left out."""
        ...


@runtime_checkable
class AttendingStepper(Stepper[State], Protocol[State]):
    """A stepper that also returns its attention to the source, which the coverage penalty needs."""

    def step_with_attention(self, state: State, last_tokens: Tensor) -> tuple[LogProbs, State, Tensor]:
        """Like `step`; also return the weight of every source token: (row, source), padding 0."""
        ...


def advance(
    stepper: Stepper[State], state: State, last_tokens: Tensor, *, need_attention: bool
) -> tuple[LogProbs, State, Tensor | None]:
    """Make one step, with the attention weights if they are needed."""
    if not need_attention:
        log_probs, state = stepper.step(state, last_tokens)
        return log_probs, state, None
    if not isinstance(stepper, AttendingStepper):
        raise UnsupportedError(
            "The coverage penalty needs the attention of every step, which this model does not have. "
            f"Received: {type(stepper).__name__}, which has no `step_with_attention`. "
            "Set search.coverage_penalty to 0, or use a model with cross-attention."
        )
    return stepper.step_with_attention(state, last_tokens)
