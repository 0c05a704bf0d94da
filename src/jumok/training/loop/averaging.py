"""Averages of weights: over checkpoints, and over the steps of a run.

    checkpoints     w̄ = 1/k Σ wᵢ                              Vaswani et al. 2017, section 6.1
    moving (EMA)    w̄ₙ = d w̄ₙ₋₁ + (1 - d) wₙ                  Polyak & Juditsky 1992
                    d = min(decay, (1 + n) / (10 + n))

Running statistics of batch norms are averaged like weights. Of checkpoints near each other their mean is
close to what the averaged weights would bring about; the finish keeps an average only if it validates better.

The moving average starts from random weights; the smaller d of the first steps forgets them quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import Tensor

__all__ = ["average_weights", "update_moving_average"]


def average_weights(weights: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, summed in float64 in the order given."""
    total: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    count = 0
    for count, one in enumerate(weights, 1):  # noqa: B007
        for name, tensor in one.items():
            kinds[name] = tensor.dtype
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / count).to(kinds[name]) for name, tensor in total.items()}


def update_moving_average(
    average: Mapping[str, Tensor], weights: Mapping[str, Tensor], decay: float, step: int
) -> None:
    """Move the average towards the weights after step `step` (counted from 1), in place."""
    decay = min(decay, (1 + step) / (10 + step))
    names = [name for name, tensor in average.items() if tensor.is_floating_point()]
    torch._foreach_lerp_([average[name] for name in names], [weights[name] for name in names], 1 - decay)
