"""Norms: what keeps the states of a deep stack in one range, as (states, which of them are real) -> states.

    layer    γ (x - μ) / √(σ² + ε) + β     μ, σ² of one position over its features     Ba et al. 2016, eq. 4
    rms      γ x / √(mean(x²) + ε)         of one position over its features   Zhang & Sennrich 2019, eq. 4
    batch    γ (x - μ) / √(σ² + ε) + β     μ, σ² of one feature over the positions of a batch, without padding
                                           Ioffe & Szegedy 2015, algorithm 1

Layer and RMS norm look at one position and need not know what is padding. While a model with batch norm
trains, every position is normed by statistics of all others, those of other sentences and those after it
included: two numbers a feature get past the look-ahead mask of a decoder. Evaluated, and so step by step, it
norms by the running statistics, which are stored with the weights: then a sentence alone is as in a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

__all__ = ["NORMS", "BatchNorm", "LayerNorm", "MakeNorm", "NoNorm", "NormKind", "RootMeanSquareNorm"]

MakeNorm = Callable[[int], nn.Module]
"""A norm for states of that width."""

EPSILON = 1e-5
NEWEST = 0.1  # share of the newest batch in the running statistics


class LayerNorm(nn.LayerNorm):
    """Mean 0 and variance 1 over the features of a position."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=EPSILON)

    def forward(self, states: Tensor, real: Tensor | None = None) -> Tensor:
        """(…, width) -> (…, width)."""
        return super().forward(states)


class RootMeanSquareNorm(nn.RMSNorm):
    """A root mean square of 1 over the features of a position: their mean stays, and there is no β."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=EPSILON)

    def forward(self, states: Tensor, real: Tensor | None = None) -> Tensor:
        """(…, width) -> (…, width)."""
        normed: Tensor = super().forward(states)
        return normed


class BatchNorm(nn.Module):
    """Mean 0 and variance 1 of a feature over the real positions of a batch, or by what they were so far.

    Padding is 0 while training, and enters no statistic.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, states: Tensor, real: Tensor | None = None) -> Tensor:
        """(…, width) -> (…, width); `real` (…) is False at padding, None where there is none."""
        if real is None or not self.training:
            return self._normed(states.flatten(0, -2)).view_as(states)
        return torch.zeros_like(states).index_put((real,), self._normed(states[real]))

    def _normed(self, positions: Tensor) -> Tensor:
        """(position, width) -> (position, width)."""
        if self.training and len(positions) == 1:
            return self.bias.expand_as(positions)  # it is its own mean, and torch refuses it
        return batch_norm(
            positions,
            self.mean,
            self.variance,
            self.weight,
            self.bias,
            training=self.training,
            momentum=NEWEST,
            eps=EPSILON,
        )


class NoNorm(nn.Module):
    """Leaves the states as they are."""

    def forward(self, states: Tensor, real: Tensor | None = None) -> Tensor:
        return states


@dataclass(frozen=True, slots=True)
class NormKind:
    """A row of `NORMS`."""

    make: MakeNorm
    paper: str


NORMS: dict[str, NormKind] = {
    "layer": NormKind(LayerNorm, "Ba et al. 2016, Layer normalization"),
    "rms": NormKind(RootMeanSquareNorm, "Zhang & Sennrich 2019, Root mean square layer normalization"),
    "batch": NormKind(
        BatchNorm,
        "Ioffe & Szegedy 2015, Batch normalization, over real positions; in training a decoder's statistics "
        "see later positions",
    ),
}
