"""The parts of a Transformer's blocks.

embedding     √width · E[token] + position                   Vaswani et al. 2017, sections 3.4 and 3.5
feed-forward  max(0, x W₁ + b₁) W₂ + b₂                      eq. 2; `ACTIVATIONS` has others than max(0, ·)
post-norm     norm(x + dropout(sublayer(x)))                 section 5.4, as published
pre-norm      x + dropout(sublayer(norm(x)))                 Xiong et al. 2020; trains without warm-up
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, linear, relu, silu

from jumok.attention import SinusoidalPositions
from jumok.models.kernels.dropout import Dropout
from jumok.models.norms import LayerNorm, MakeNorm, NoNorm

if TYPE_CHECKING:
    from collections.abc import Callable


class Embedding(nn.Module):
    """Token embeddings scaled by √width, plus positions. By default the positions are sinusoids."""

    def __init__(
        self, *, vocab_size: int, width: int, dropout: float, positions: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, width))
        self.scale = math.sqrt(width)
        self.positions = SinusoidalPositions(width) if positions is None else positions
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, tokens: Tensor, *, offset: int = 0) -> Tensor:
        """Token ids (batch, length) at positions `offset`, `offset + 1` … -> (batch, length, width)."""
        positions: Tensor = self.positions(tokens.shape[1], offset=offset)  # (length, width)
        return self._embed(tokens, positions)

    def at_positions(self, tokens: Tensor, positions: Tensor, *, end: int) -> Tensor:
        """Token ids (batch, length) at `positions` (batch, length) -> (batch, length, width).

        All positions must be below `end`. The caller passes `end`, because in training the CPU knows it;
        computing the largest position here would wait for the device.
        """
        table: Tensor = self.positions(end)
        return self._embed(tokens, table[positions])

    def _embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        states: Tensor = self.dropout(torch.add(positions, embedding(tokens, self.weight), alpha=self.scale))
        return states


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda hidden: relu(hidden, inplace=True),
    "swish": silu,  # Ramachandran et al. 2017, with β = 1
    "gelu": gelu,  # Hendrycks & Gimpel 2016
}


class FeedForward(nn.Module):
    """The position-wise network: up-projection, activation, down-projection."""

    def __init__(self, *, width: int, hidden: int, activation: str = "relu") -> None:
        super().__init__()
        self.activation = activation
        # Stored models have the up- and down-projection under these names.
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)
        for projection in (self.widen, self.narrow):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(self, states: Tensor) -> Tensor:
        # In three dimensions `linear` returns a view, which autograd copies when ReLU changes it in place.
        flat = states.flatten(0, -2)  # (batch × length, width)
        hidden = ACTIVATIONS[self.activation](linear(flat, self.widen.weight, self.widen.bias))
        return linear(hidden, self.narrow.weight, self.narrow.bias).view_as(states)


class Residual(nn.Module, ABC):
    """The residual connection, dropout and norm around one sublayer of a block:

        residual.add_output(states, sublayer(residual.sublayer_input(states)))

    `not_padding` (batch, length) is False at padding. Batch norm uses this mask to ignore padding. None means
    that there is no padding.
    """

    def __init__(self, *, width: int, dropout: float, norm: MakeNorm = LayerNorm) -> None:
        super().__init__()
        self.norm = norm(width)
        self.dropout = Dropout(dropout)

    @abstractmethod
    def sublayer_input(self, states: Tensor, not_padding: Tensor | None = None) -> Tensor:
        """Return the input of the sublayer."""

    @abstractmethod
    def add_output(self, states: Tensor, output: Tensor, not_padding: Tensor | None = None) -> Tensor:
        """Return the states plus the output of the sublayer. Post-norm also normalises the sum."""

    @staticmethod
    @abstractmethod
    def final_norm(width: int, norm: MakeNorm = LayerNorm) -> nn.Module:
        """Return the norm after the last block of a stack; the identity if the block ends with a norm."""


class PreNorm(Residual):
    """x + dropout(sublayer(norm(x))), with one more norm after the last block."""

    def sublayer_input(self, states: Tensor, not_padding: Tensor | None = None) -> Tensor:
        normed: Tensor = self.norm(states, not_padding)
        return normed

    def add_output(self, states: Tensor, output: Tensor, not_padding: Tensor | None = None) -> Tensor:
        return self.dropout.add(states, output)

    @staticmethod
    def final_norm(width: int, norm: MakeNorm = LayerNorm) -> nn.Module:
        return norm(width)


class PostNorm(Residual):
    """norm(x + dropout(sublayer(x))), as published."""

    def sublayer_input(self, states: Tensor, not_padding: Tensor | None = None) -> Tensor:
        return states

    def add_output(self, states: Tensor, output: Tensor, not_padding: Tensor | None = None) -> Tensor:
        normed: Tensor = self.norm(self.dropout.add(states, output), not_padding)
        return normed

    @staticmethod
    def final_norm(width: int, norm: MakeNorm = LayerNorm) -> nn.Module:
        return NoNorm()


RESIDUALS: dict[str, type[Residual]] = {"pre": PreNorm, "post": PostNorm}
