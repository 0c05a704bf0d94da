"""Averages of weights: over checkpoints, and over the steps of a run.

    checkpoints     w̄ = 1/k Σ wᵢ                              Vaswani et al. 2017, section 6.1
    moving (EMA)    w̄ₙ = d w̄ₙ₋₁ + (1 - d) wₙ                  Polyak & Juditsky 1992
                    d = min(decay, (1 + n) / (10 + n))

Running statistics of batch norms are averaged like weights. If the checkpoints are near each other, the mean
of their statistics is close to the statistics of a model with the averaged weights. The finish of a run uses
the average of checkpoints only if it validates better than the best checkpoint. A moving average is always
used: validations and the finish load it instead of the weights.

The moving average starts from the initial weights. Because d is smaller in the first steps, the initial
weights soon have almost no effect on the average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import Tensor


def average_weights(weights: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several sets of weights, summed in float64 in the given order."""
    total: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for count, tensors in enumerate(weights, 1):  # noqa: B007
        for name, tensor in tensors.items():
            dtypes[name] = tensor.dtype
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / count).to(dtypes[name]) for name, tensor in total.items()}


def update_moving_average(
    average: Mapping[str, Tensor], weights: Mapping[str, Tensor], decay: float, step: int
) -> None:
    """Move the average towards the weights after step `step` (counted from 1), in place."""
    decay = min(decay, (1 + step) / (10 + step))
    names = [name for name, tensor in average.items() if tensor.is_floating_point()]
    torch._foreach_lerp_([average[name] for name in names], [weights[name] for name in names], 1 - decay)
