"""The scores of Keras' layers `Attention` and `AdditiveAttention`, which have no projections.

    dot        g · qᵀk                          Attention(use_scale=…, score_mode="dot")
    concat     c · Σ tanh(g (q + k))            Attention(use_scale=…, score_mode="concat")
    additive   Σ s ⊙ tanh(q + k)                AdditiveAttention(use_scale=…)

g and c are learned numbers that start at 1, s is a learned vector; each head has its own. Without `use_scale`
g is 1, and s is a vector of ones. "concat" is not Luong's concat, and "additive" is not Bahdanau's score:
both add queries to keys without a matrix.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from jumok.attention.additive import compare_in_parts
from jumok.attention.contract import HeadShape, Supports
from jumok.attention.scored import SoftmaxMechanism
from jumok.config.recipe import Settings

if TYPE_CHECKING:
    from collections.abc import Callable


class KerasScaleSettings(Settings):
    use_scale: bool = False
    """Learn one factor per head, initially 1, for the scores in keras-dot and for q + k in keras-concat."""


class KerasAdditiveSettings(Settings):
    use_scale: bool = True
    """Learn a factor for each feature of tanh(q + k)."""


class _KerasScore(SoftmaxMechanism):
    """Queries and keys of the same width, and a learned factor if `use_scale`."""

    factor: nn.Parameter | None

    def __init__(
        self,
        shape: HeadShape,
        *,
        use_scale: bool = False,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        self.factor = nn.Parameter(self.initial_factor(shape)) if use_scale else None  # g or s

    def initial_factor(self, shape: HeadShape) -> Tensor:
        return torch.ones(shape.heads, 1)


class KerasDot(_KerasScore):
    """The dot product, not divided by √d, times a learned factor if `use_scale`."""

    supports = Supports(products=True)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        scaled = query if self.factor is None else query * self.factor[:, None]
        return scaled @ keys.transpose(-2, -1)  # (batch, head, query, key)


class KerasConcat(_KerasScore):
    """A learned number times the sum of tanh(q + k); `use_scale` learns a factor inside the tanh."""

    def __init__(
        self,
        shape: HeadShape,
        *,
        use_scale: bool = False,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, use_scale=use_scale, causal=causal, dropout=dropout)
        self.weight = nn.Parameter(torch.ones(shape.heads))  # c

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        if self.factor is not None:
            query, keys = query * self.factor[:, None], keys * self.factor[:, None]
        return _summed_tanh(query, keys, lambda hidden: hidden.sum(dim=-1)) * self.weight[:, None, None]


class KerasAdditive(_KerasScore):
    """The sum of tanh(q + k), weighted by a learned vector if `use_scale`."""

    def __init__(
        self,
        shape: HeadShape,
        *,
        use_scale: bool = True,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, use_scale=use_scale, causal=causal, dropout=dropout)

    def initial_factor(self, shape: HeadShape) -> Tensor:
        limit = math.sqrt(3 / shape.key)  # Xavier's uniform distribution for a vector, as in Keras
        return torch.empty(shape.heads, shape.key).uniform_(-limit, limit)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        factor = self.factor
        if factor is None:
            return _summed_tanh(query, keys, lambda hidden: hidden.sum(dim=-1))
        return _summed_tanh(query, keys, lambda hidden: (hidden @ factor[:, None, :, None]).squeeze(-1))


def _summed_tanh(query: Tensor, keys: Tensor, add_up: Callable[[Tensor], Tensor]) -> Tensor:
    """The scores (batch, head, query, key): `add_up` sums tanh(q + k) over its last axis, the width."""

    def compare(query: Tensor, keys: Tensor) -> Tensor:
        return add_up((query[:, :, :, None] + keys[:, :, None]).tanh())

    return compare_in_parts(compare, query, keys, elements_per_query=keys.numel())
