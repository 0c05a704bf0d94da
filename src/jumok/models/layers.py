"""The parts of which a Transformer's blocks are made.

embedding     √width · E[piece] + position                   Vaswani et al. 2017, sections 3.4 and 3.5
feed-forward  max(0, x W₁ + b₁) W₂ + b₂                      eq. 2
post-norm     norm(x + dropout(part(x)))                     section 5.4, as published
pre-norm      x + dropout(part(norm(x)))                     Xiong et al. 2020; trains without care
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, relu

from jumok.attention import SinusoidalPositions
from jumok.models.dropout import Dropout
from jumok.models.norms import LayerNorm, MakeNorm, NoNorm

__all__ = ["RESIDUALS", "Embedding", "FeedForward", "PostNorm", "PreNorm", "Residual"]


class Embedding(nn.Module):
    """Pieces as vectors, scaled by √width, with their positions added: sinusoids unless others are given."""

    def __init__(
        self, *, pieces: int, width: int, dropout: float, positions: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(pieces, width))
        self.scale = math.sqrt(width)
        self.positions = SinusoidalPositions(width) if positions is None else positions
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, pieces: Tensor, *, first: int = 0) -> Tensor:
        """(batch, length) ids of which the first stands at place `first` -> (batch, length, width)."""
        places: Tensor = self.positions(pieces.shape[1], first=first)  # (length, width)
        return self._placed(pieces, places)

    def at(self, pieces: Tensor, places: Tensor) -> Tensor:
        """Ids (batch, length) that stand at `places` (batch, length) -> (batch, length, width)."""
        table: Tensor = self.positions(int(places.max()) + 1 if places.numel() else 0)  # (place, width)
        return self._placed(pieces, table[places])

    def _placed(self, pieces: Tensor, positions: Tensor) -> Tensor:
        states: Tensor = self.dropout(torch.add(positions, embedding(pieces, self.weight), alpha=self.scale))
        return states


class FeedForward(nn.Module):
    """The position-wise network: wide, ReLU, narrow."""

    def __init__(self, *, width: int, hidden: int) -> None:
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.narrow = nn.Linear(hidden, width)
        for projection in (self.widen, self.narrow):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(self, states: Tensor) -> Tensor:
        # In two dimensions the product is no view, and ReLU in place needs no copy for the backward pass.
        flat = states.flatten(0, -2)  # (batch × length, width)
        hidden = relu(linear(flat, self.widen.weight, self.widen.bias), inplace=True)
        return linear(hidden, self.narrow.weight, self.narrow.bias).view_as(states)


class Residual(nn.Module, ABC):
    """What stands round every part of a block: `leave(states, part(enter(states)))`.

    `real` (batch, length) is False at padding, which a norm over the batch must not count; None: no padding.
    """

    def __init__(self, *, width: int, dropout: float, norm: MakeNorm = LayerNorm) -> None:
        super().__init__()
        self.norm = norm(width)
        self.dropout = Dropout(dropout)

    @abstractmethod
    def enter(self, states: Tensor, real: Tensor | None = None) -> Tensor:
        """What the part is given."""

    @abstractmethod
    def leave(self, states: Tensor, change: Tensor, real: Tensor | None = None) -> Tensor:
        """The states after the part, which answered `change`."""

    @staticmethod
    @abstractmethod
    def last(width: int, norm: MakeNorm = LayerNorm) -> nn.Module:
        """What stands after the last block of a stack."""


class PreNorm(Residual):
    """x + dropout(part(norm(x))), with one more norm after the last block."""

    def enter(self, states: Tensor, real: Tensor | None = None) -> Tensor:
        normed: Tensor = self.norm(states, real)
        return normed

    def leave(self, states: Tensor, change: Tensor, real: Tensor | None = None) -> Tensor:
        return self.dropout.add(states, change)

    @staticmethod
    def last(width: int, norm: MakeNorm = LayerNorm) -> nn.Module:
        return norm(width)


class PostNorm(Residual):
    """norm(x + dropout(part(x))), as published."""

    def enter(self, states: Tensor, real: Tensor | None = None) -> Tensor:
        return states

    def leave(self, states: Tensor, change: Tensor, real: Tensor | None = None) -> Tensor:
        normed: Tensor = self.norm(self.dropout.add(states, change), real)
        return normed

    @staticmethod
    def last(width: int, norm: MakeNorm = LayerNorm) -> nn.Module:
        return NoNorm()


RESIDUALS: dict[str, type[Residual]] = {"pre": PreNorm, "post": PostNorm}
