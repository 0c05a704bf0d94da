"""The interface between search and a model: begin, step, and reorder the rows of a state.

A state has one row per hypothesis that is being continued. Search does not look into a state. It only passes
the state back to the stepper. So the same code searches with a Transformer or a recurrent model, and tests
search with a table of probabilities.
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

    `step` and `reorder` may overwrite the state that they receive: use only the state that they return. The
    caller may overwrite the log-probabilities that `step` returns.
    """

    def begin(self, source: Batch) -> State:
        """Return the state before the first token, with one row per sentence."""
        ...

    def step(self, state: State, last_tokens: Tensor) -> tuple[LogProbs, State]:
        """Read the last token of every row, (row,), and return the log-probabilities of the next token."""
        ...

    def reorder(self, state: State, order: Tensor) -> State:
        """Return a state whose row r is the old row order[r]. Old rows may be repeated or left out."""
        ...


@runtime_checkable
class AttendingStepper(Stepper[State], Protocol[State]):
    """A stepper that also returns its attention to the source, which the coverage penalty needs."""

    def step_with_attention(self, state: State, last_tokens: Tensor) -> tuple[LogProbs, State, Tensor]:
        """Do the same as `step`, and return the weight of each source token: (row, source), 0 at padding."""
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
