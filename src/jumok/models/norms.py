"""Norms keep the states of a deep stack in one range. They are called as norm(states, not_padding).

    layer    γ (x - μ) / √(σ² + ε) + β     μ, σ² of one position over its features     Ba et al. 2016, eq. 4
    rms      γ x / √(mean(x²) + ε)         of one position over its features   Zhang & Sennrich 2019, eq. 4
    batch    γ (x - μ) / √(σ² + ε) + β     μ, σ² of one feature over the positions of a batch, without padding
                                           Ioffe & Szegedy 2015, algorithm 1

Layer and RMS norm use one position at a time and ignore `not_padding`. In training, batch norm normalises
every position by statistics over all positions of the batch, including other sentences and later positions:
the mean and the variance of a feature leak past the causal mask of a decoder. In evaluation and in decoding,
batch norm uses the running statistics, which are stored with the weights. So the result for a sentence does
not depend on its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

MakeNorm = Callable[[int], nn.Module]
"""Returns a norm for states of the given width."""

EPSILON = 1e-5
MOMENTUM = 0.1  # weight of the newest batch when it is added to the running statistics


class LayerNorm(nn.LayerNorm):
    """Mean 0 and variance 1 over the features of a position."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=EPSILON)

    def forward(self, states: Tensor, not_padding: Tensor | None = None) -> Tensor:
        """(…, width) -> (…, width)."""
        return super().forward(states)


class RootMeanSquareNorm(nn.RMSNorm):
    """Root mean square 1 over the features of a position: the mean is not subtracted, and there is no β."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=EPSILON)

    def forward(self, states: Tensor, not_padding: Tensor | None = None) -> Tensor:
        """(…, width) -> (…, width)."""
        normed: Tensor = super().forward(states)
        return normed


class BatchNorm(nn.Module):
    """Mean 0 and variance 1 of a feature over the positions of a batch.

    In evaluation, the running mean and variance are used instead of those of the batch. In training, padding
    is set to 0 and does not enter the statistics.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, states: Tensor, not_padding: Tensor | None = None) -> Tensor:
        """(…, width) -> (…, width). `not_padding` (…) is False at padding. None means no padding."""
        if not_padding is None or not self.training:
            return self._normed(states.flatten(0, -2)).view_as(states)
        return torch.zeros_like(states).index_put((not_padding,), self._normed(states[not_padding]))

    def _normed(self, positions: Tensor) -> Tensor:
        """(position, width) -> (position, width)."""
        if self.training and len(positions) == 1:
            # x - μ is 0. torch refuses a single position, whose variance is not defined, so the running
            # statistics stay.
            return self.bias.expand_as(positions)
        return batch_norm(
            positions,
            self.mean,
            self.variance,
            self.weight,
            self.bias,
            training=self.training,
            momentum=MOMENTUM,
            eps=EPSILON,
        )


class NoNorm(nn.Module):
    """The identity: the norm after a stack of post-norm blocks."""

    def forward(self, states: Tensor, not_padding: Tensor | None = None) -> Tensor:
        return states


@dataclass(frozen=True, slots=True)
class NormKind:
    """A row of `NORMS`."""

    make: MakeNorm
    reference: str  # a paper, perhaps with a remark


NORMS: dict[str, NormKind] = {
    "layer": NormKind(LayerNorm, "Ba et al. 2016, Layer normalization"),
    "rms": NormKind(RootMeanSquareNorm, "Zhang & Sennrich 2019, Root mean square layer normalization"),
    "batch": NormKind(
        BatchNorm,
        "Ioffe & Szegedy 2015, Batch normalization, without padding; in training a decoder's statistics "
        "include later positions",
    ),
}
