"""What every family of models promises to training, search and viewers."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, log_softmax

from jumok.models.probe import Probe, rows_of
from jumok.values import LogProbs

if TYPE_CHECKING:
    from jumok.attention import Edit
    from jumok.values import Batch

__all__ = ["Model", "OutputLayer", "State", "TranslationModel"]

State: TypeAlias = Any
"""What a model remembers between two steps of decoding; search only hands it back."""


class OutputLayer(nn.Module):
    """From states to scores of the pieces. `weight` may be the parameter of an embedding."""

    bias: nn.Parameter | None
    pieces: Tensor | None = None  # (column,) int64: which pieces it knows, None for all

    def __init__(self, weight: nn.Parameter, *, bias: bool = False) -> None:
        super().__init__()
        self.weight = weight  # (pieces, width)
        self.bias = nn.Parameter(torch.zeros(len(weight))) if bias else None  # (pieces,)

    def limited_to(self, pieces: Tensor) -> OutputLayer:
        """A copy that knows these pieces (column,) alone; what it says is normalised over them."""
        few = OutputLayer(nn.Parameter(self.weight[pieces], requires_grad=False))
        if self.bias is not None:
            few.bias = nn.Parameter(self.bias[pieces], requires_grad=False)
        few.pieces = pieces
        return few

    def forward(self, states: Tensor) -> Tensor:
        """(…, width) -> (…, pieces), before the softmax."""
        return linear(states, self.weight, self.bias)

    def log_probs(self, states: Tensor) -> Tensor:
        """(…, width) -> (…, pieces), log-probabilities."""
        return log_softmax(linear(states, self.weight, self.bias), dim=-1)

    def following(self, states: Tensor) -> LogProbs:
        """What states (row, width) say of the next piece."""
        return LogProbs(self.log_probs(states), self.pieces)


class Model(nn.Module, ABC):
    """What training and viewers ask of a model, whatever its task."""

    output: OutputLayer

    def forward(self, batch: Batch, *, edit: Edit | None = None) -> Tensor:
        """States (batch, target - 1, width): state t is what predicts target piece t + 1, teacher forced."""
        return self.states(batch, Probe(rows=rows_of(batch), edit=edit))

    def attention(self, batch: Batch, *, edit: Edit | None = None) -> dict[str, Tensor]:
        """Site -> weights (batch, layer, head, query, key) of one teacher-forced pass; 0 at padded keys."""
        probe = Probe(rows=rows_of(batch), edit=edit, gathers=True)
        self.states(batch, probe)
        return probe.weights()

    @abstractmethod
    def states(self, batch: Batch, probe: Probe) -> Tensor:
        """What `forward` gives; the probe is asked and told on the way."""


class TranslationModel(Model):
    """A model that also writes: step by step, for search."""

    @property
    def looks_at_source(self) -> bool:
        """Whether there is a cross-attention to read alignments from."""
        return True

    def limited_to(self, pieces: Tensor) -> Self:
        """The same model, weights shared, as it writes with these pieces (column,) alone."""
        twin = copy.copy(self)
        twin._modules = {**self._modules, "output": self.output.limited_to(pieces)}
        return twin

    @abstractmethod
    def begin(self, source: Batch, *, edit: Edit | None = None) -> State:
        """The state before the first step, one row a sentence. `edit` holds for this decoding."""

    @abstractmethod
    def step(self, state: State, last: Tensor) -> tuple[LogProbs, State]:
        """What follows the pieces `last` (row,), and the state after them. It consumes the state."""

    @abstractmethod
    def reorder(self, state: State, order: Tensor) -> State:
        """The state whose row r continues row `order[r]`: widened, narrowed or reordered. It consumes it."""
