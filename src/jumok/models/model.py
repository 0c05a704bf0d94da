"""The interface between model families and training, search and viewers."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, log_softmax

from jumok.models.probe import Probe, batch_rows
from jumok.types import LogProbs

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from jumok.attention import Edit
    from jumok.types import Batch

State: TypeAlias = Any
"""A model's decoding state; search only passes it back to the model."""


class OutputLayer(nn.Module):
    """From states to scores over the vocabulary. `weight` may be the parameter of an embedding."""

    bias: nn.Parameter | None
    tokens: Tensor | None = None  # (column,) int64: the token of each column; None: all tokens, in order

    def __init__(self, weight: nn.Parameter, *, bias: bool = False) -> None:
        super().__init__()
        self.weight = weight  # (vocabulary, width)
        self.bias = nn.Parameter(torch.zeros(len(weight))) if bias else None  # (vocabulary,)

    def restrict_to(self, tokens: Tensor) -> OutputLayer:
        """Return an output layer with copies of the rows of these tokens (column,).

        Its probabilities are normalised over these tokens.
        """
        restricted = OutputLayer(nn.Parameter(self.weight[tokens], requires_grad=False))
        if self.bias is not None:
            restricted.bias = nn.Parameter(self.bias[tokens], requires_grad=False)
        restricted.tokens = tokens
        return restricted

    def forward(self, states: Tensor) -> Tensor:
        """(…, width) -> (…, vocabulary), before the softmax."""
        return linear(states, self.weight, self.bias)

    def log_probs(self, states: Tensor) -> Tensor:
        """(…, width) -> (…, vocabulary), log-probabilities."""
        return log_softmax(linear(states, self.weight, self.bias), dim=-1)

    def next_log_probs(self, states: Tensor) -> LogProbs:
        """Return the log-probabilities of the next token, given states (row, width)."""
        return LogProbs(self.log_probs(states), self.tokens)


class Model(nn.Module, ABC):
    """What training and viewers use of a model."""

    output: OutputLayer
    autocast_dtype: torch.dtype | None = None  # the type of products; None: the type of the weights

    @property
    def device(self) -> torch.device:
        """The device of the weights. The model moves batches from any device to this device."""
        return self.output.weight.device

    def autocast(self) -> AbstractContextManager[object]:
        """Return a context in which products have the type `autocast_dtype`, if there is one."""
        if self.autocast_dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.autocast_dtype)

    def forward(self, batch: Batch, *, edit: Edit | None = None) -> Tensor:
        """States (batch, target - 1, width), teacher forced: state t predicts target token t + 1."""
        batch = batch.to(self.device)
        with self.autocast():
            return self.states(batch, Probe(rows=batch_rows(batch), edit=edit))

    def attention(self, batch: Batch, *, edit: Edit | None = None) -> dict[str, Tensor]:
        """Return site -> weights (batch, layer, head, query, key) of one teacher-forced pass.

        The weights of padded keys are 0.
        """
        batch = batch.to(self.device)
        probe = Probe(rows=batch_rows(batch), edit=edit, collect_weights=True)
        with self.autocast():
            self.states(batch, probe)
        return probe.weights()

    @abstractmethod
    def states(self, batch: Batch, probe: Probe) -> Tensor:
        """Return the result of `forward`. The probe edits and collects the attention weights of the pass."""


def target_inputs(batch: Batch) -> Tensor:
    """Return the target tokens that a teacher-forced pass reads: all columns but the last.

    In rows that are shorter than the longest, the pass also reads `</s>` and padding.
    """
    if batch.target is None:
        raise ValueError("A teacher-forced pass needs the target. Received: a batch without one.")
    return batch.target[:, :-1]


def is_identity_order(order: Tensor, rows: int) -> bool:
    """Whether reordering `rows` rows by `order` changes nothing."""
    return len(order) == rows and torch.equal(order, torch.arange(rows, device=order.device))


class TranslationModel(Model):
    """A model that can also decode step by step, for search."""

    @property
    def has_cross_attention(self) -> bool:
        """Whether the model attends to the source, so that alignments can be read from its weights."""
        return True

    def restrict_to(self, tokens: Tensor) -> Self:
        """Return a copy of the model that can only output these tokens (column,).

        The copy shares all weights except those of the output layer, whose rows are copied.
        """
        restricted = copy.copy(self)
        restricted._modules = {**self._modules, "output": self.output.restrict_to(tokens)}
        return restricted

    @abstractmethod
    def begin(self, source: Batch, *, edit: Edit | None = None) -> State:
        """Return the state before the first step, with one row per sentence. `edit` applies to every step."""

    @abstractmethod
    def step(self, state: State, last_tokens: Tensor) -> tuple[LogProbs, State]:
        """Return the log-probabilities after `last_tokens` (row,), and the next state.

        This may overwrite `state`: do not use `state` afterwards.
        """

    @abstractmethod
    def reorder(self, state: State, order: Tensor) -> State:
        """Return the state whose row r is row `order[r]` of `state`.

        This may overwrite `state`: do not use `state` afterwards.
        """
