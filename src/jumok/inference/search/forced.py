"""How likely a model finds a given translation: the steps of a search, with nothing to choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch

from jumok.decoding.guards import columns_of
from jumok.errors import DataError
from jumok.values import BEGIN, END, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.decoding.stepper import Stepper
    from jumok.values import Batch

__all__ = ["force"]

State = TypeVar("State")


def force(
    stepper: Stepper[State], batch: Batch, targets: Sequence[Sequence[int]], *, ended: bool = True
) -> Tensor:
    """Log-probability of every piece of the given targets and of their `</s>`: (batch, longest target + 1).

        log p(y | x) = Σₜ log p(yₜ | y₁ … yₜ₋₁, x)

    so that `force(…).sum(1)` is the `log_prob` of a hypothesis. Places after `</s>` are 0. With `ended` False
    the `</s>` is not scored, as for a hypothesis that was cut at its longest length.
    """
    if len(targets) != len(batch):
        raise DataError(
            f"Every sentence needs one target. Received: {len(targets)} targets for {len(batch)} sentences."
        )
    device = batch.source.device
    pieces, scored = _padded(targets, ended=ended)  # (batch, step)
    pieces, scored = pieces.to(device), scored.to(device)
    state = stepper.begin(batch)
    last = torch.full((len(batch),), BEGIN, device=device)
    log_probs: list[Tensor] = []
    for step in range(pieces.shape[1]):
        following, state = stepper.step(state, last)
        last = pieces[:, step]
        columns = columns_of(following, last)
        values = following.values.gather(1, columns.clamp(min=0)[:, None]).squeeze(1)
        log_probs.append(values.masked_fill(columns < 0, float("-inf")))
    return torch.stack(log_probs, dim=1).masked_fill(~scored, 0.0)


def _padded(targets: Sequence[Sequence[int]], *, ended: bool) -> tuple[Tensor, Tensor]:
    """Targets with their `</s>`, padded, and which places count."""
    longest = max(len(target) for target in targets) + 1
    rows = [[*target, END, *[PAD] * (longest - len(target) - 1)] for target in targets]
    lengths = torch.tensor([len(target) + ended for target in targets])
    return torch.tensor(rows), torch.arange(longest) < lengths[:, None]
