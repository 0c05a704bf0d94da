"""One update: k batches forward and backward, one step of the optimiser.

Everything random in update n follows from (seed, n), so a resumed run needs no stored random state. A
gradient that is not finite never reaches the weights: the update is left out and reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy
import torch

from jumok.models.dropout import seed_dropout
from jumok.training.loss import sequence_loss
from jumok.training.optimiser import clip_gradients, gradient_norm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.models import TranslationModel
    from jumok.recipe import TrainingSettings
    from jumok.values import Batch

__all__ = ["Update", "make_update", "seed_step"]


@dataclass(frozen=True, slots=True)
class Update:
    """What an update was like. The sums stay tensors: reading them is left to whoever reports."""

    loss: Tensor  # () sum of the smoothed loss
    nll: Tensor  # () sum without smoothing
    tokens: int
    gradient_norm: float
    applied: bool


def make_update(
    model: TranslationModel,
    optimiser: torch.optim.Optimizer,
    batches: Sequence[Batch],
    settings: TrainingSettings,
    *,
    step: int,
    rate: float,
) -> Update:
    """Update `step` (counted from 1). Gradients are divided by the pieces of all its batches together."""
    optimiser.zero_grad(set_to_none=True)
    tokens = sum(_pieces(batch) for batch in batches)
    loss, nll = torch.zeros(()), torch.zeros(())
    with seed_dropout(settings.seed, step):
        seed_step(settings.seed, step)
        for batch in batches:
            sums = _backward(model, batch, settings.label_smoothing, tokens)
            loss, nll = loss + sums[0], nll + sums[1]
    parameters = list(model.parameters())
    norm = gradient_norm(parameters)
    applied = math.isfinite(norm)
    if applied:
        clip_gradients(parameters, norm, settings.clip)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
    return Update(loss, nll, tokens, norm, applied)


def seed_step(seed: int, step: int) -> None:
    """Make torch's own generator a function of (seed, step) as well."""
    torch.manual_seed(int(numpy.random.SeedSequence([seed, step]).generate_state(1, numpy.uint64)[0] >> 1))


def _backward(model: TranslationModel, batch: Batch, smoothing: float, tokens: int) -> tuple[Tensor, Tensor]:
    if batch.target is None:
        raise ValueError("a batch for training needs its target side")
    sums = sequence_loss(model(batch), batch.target[:, 1:], model.output, smoothing=smoothing)
    (sums.total / tokens).backward()  # type: ignore[no-untyped-call]
    return sums.total.detach(), sums.nll


def _pieces(batch: Batch) -> int:
    """The pieces that a batch asks for: all of the target but `<s>`."""
    if batch.target_lengths is None:
        raise ValueError("a batch for training needs its target side")
    return int(batch.target_lengths.sum()) - len(batch)
