"""One update: forward, backward and a step of the optimiser, by one process or by several together.

Everything random in update n follows from (seed, n) and the member's rank, so a resumed run needs no stored
random state. A loss or gradient that is not finite never reaches the weights: the update is left out and
reported.

Several members share an update so: each takes every so-manieth row of the batches; when all have their
gradients, the owner of a parameter adds them up; all agree on the norm; each owner steps Adam for what it
owns. They meet three times. What comes out is a function of (seed, step, number of members).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy
import torch

from jumok.models import BatchNorm
from jumok.models.dropout import seed_dropout
from jumok.training.board import Board
from jumok.training.loss import sequence_loss
from jumok.training.optimiser import clip_gradients, make_optimiser, squared_norm
from jumok.values import PAD, Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from jumok.corpus import Batches
    from jumok.models import Model
    from jumok.recipe import TrainingSettings

__all__ = ["Member", "Update", "seed_step"]


@dataclass(frozen=True, slots=True)
class Update:
    """What an update was like."""

    loss: float  # sum of the smoothed loss
    nll: float  # sum without smoothing
    tokens: int
    gradient_norm: float

    @property
    def applied(self) -> bool:
        return math.isfinite(self.gradient_norm) and math.isfinite(self.loss)


def nobody_to_meet() -> None:
    """For a member that works alone."""


class Member:
    """One process that takes part in the updates, or the only one."""

    def __init__(
        self,
        model: Model,
        batches: Batches,
        settings: TrainingSettings,
        *,
        rank: int = 0,
        members: int = 1,
        handle: int | None = None,
    ) -> None:
        self.model, self.batches, self.settings = model, batches, settings
        self.rank, self.members = rank, members
        self.board = Board(model, members, handle)
        self.optimiser = make_optimiser(model, settings)
        self.board.hold_state(self.optimiser)

    def update(self, step: int, rate: float, meet: Callable[[], None] = nobody_to_meet) -> Update:
        """This member's part of update `step` (counted from 1). `meet` returns when all have called it."""
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        statistics = [(tensor, tensor.clone()) for tensor in _running_statistics(self.model)]
        notes = self.board.notes  # (member, loss · nll · squared norm)
        tokens, notes[self.rank, 0], notes[self.rank, 1] = self._find_gradients(step)
        self._post()
        meet()
        notes[self.rank, 2] = self._collect()
        meet()
        loss, nll, square = notes.sum(axis=0).tolist()
        update = Update(loss, nll, tokens, math.sqrt(square))
        if update.applied:
            clip_gradients(self.board.parameters, update.gradient_norm, self.settings.clip)
            for group in self.optimiser.param_groups:
                group["lr"] = rate
            self.optimiser.step()
        else:
            for tensor, before in statistics:
                tensor.copy_(before)
        meet()
        return update

    def _find_gradients(self, step: int) -> tuple[int, float, float]:
        """Forward and backward. Gradients are divided by the pieces of all members' rows together."""
        first = (step - 1) * self.settings.accumulate
        batches = [self.batches.batch(first + i) for i in range(self.settings.accumulate)]
        tokens = sum(_pieces(batch) for batch in batches)
        loss, nll = torch.zeros(()), torch.zeros(())
        with seed_dropout(self.settings.seed, step, self.rank):
            seed_step(self.settings.seed, step, self.rank)
            for batch in batches:
                rows = _share(batch, self.rank, self.members)
                if len(rows):
                    sums = _backward(self.model, rows, self.settings.label_smoothing, tokens)
                    loss, nll = loss + sums[0], nll + sums[1]
        return tokens, float(loss), float(nll)

    def _post(self) -> None:
        """Put the gradients of the others' parameters where their owners find them."""
        places, gradients = [], []
        for number, owner in enumerate(self.board.owners):
            parameter = self.board.parameters[number]
            if owner != self.rank:
                places.append(self.board.gradients[self.rank][number])
                gradients.append(_gradient(parameter))
                parameter.grad = None  # so that Adam passes it by
        if places:
            torch._foreach_copy_(places, gradients)

    def _collect(self) -> float:
        """Add what the others found for this member's parameters; the squared norm of the sums."""
        own = [number for number, owner in enumerate(self.board.owners) if owner == self.rank]
        sums = []
        for number in own:
            parameter = self.board.parameters[number]
            parameter.grad = _gradient(parameter)
            sums.append(parameter.grad)
        for rank in range(self.members):
            if rank != self.rank and own:
                torch._foreach_add_(sums, [self.board.gradients[rank][number] for number in own])
        return squared_norm(sums)


def seed_step(seed: int, step: int, rank: int = 0) -> None:
    """Make torch's own generator a function of (seed, step, rank) as well."""
    entropy = [seed, step, rank] if rank else [seed, step]
    torch.manual_seed(int(numpy.random.SeedSequence(entropy).generate_state(1, numpy.uint64)[0] >> 1))


def _running_statistics(model: Model) -> list[Tensor]:
    """What a forward pass alone changes in a model, which an update that is left out must not.

    A batch norm knows the rows of its own member. Stored are the statistics of the first one, and no other's
    are ever read.
    """
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    return [statistic for norm in norms for statistic in (norm.mean, norm.variance)]


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _backward(model: Model, batch: Batch, smoothing: float, tokens: int) -> tuple[Tensor, Tensor]:
    if batch.target is None:
        raise ValueError("a batch for training needs its target side")
    sums = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=smoothing)
    (sums.total / tokens).backward()  # type: ignore[no-untyped-call]
    return sums.total.detach(), sums.nll


def _pieces(batch: Batch) -> int:
    """The pieces that a batch asks for: all of the target but `<s>` and padding."""
    if batch.target is None:
        raise ValueError("a batch for training needs its target side")
    return int((batch.target[:, 1:] != PAD).sum())


def _share(batch: Batch, rank: int, members: int) -> Batch:
    """A member's rows, with no more padding than they need. Rows of a batch are alike, so shares are too."""
    if members == 1 or batch.target is None or batch.target_lengths is None:
        return batch
    sources, targets = batch.source_lengths[rank::members], batch.target_lengths[rank::members]
    return Batch(
        batch.source[rank::members, : int(sources.max()) if len(sources) else 0].contiguous(),
        sources,
        batch.target[rank::members, : int(targets.max()) if len(targets) else 0].contiguous(),
        targets,
    )
