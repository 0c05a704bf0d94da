"""Additive attention: a small network compares a query with every key.

    score(q, k) = vᵀ tanh(W_q q + W_k k)                   Bahdanau, Cho & Bengio 2015, appendix A.1.2
    normed      = g · (v / ‖v‖)ᵀ tanh(W_q q + W_k k + b)   Salimans & Kingma 2016, eq. 2, for v

The hidden layer is computed for each of L queries with each of S keys, which takes O(L · S · units) time.
With gradients it also takes O(L · S · units) memory: 330 MB per head and layer for 64 sentences of 50 tokens
and 512 units. W_k k does not change while a sentence is decoded: `prepare` computes it once per memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from jumok.attention.contract import Supports
from jumok.attention.scored import SoftmaxMechanism
from jumok.config.recipe import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.attention.contract import HeadShape

# A hidden layer of more elements (128 MiB in float32) is computed for a part of the queries at a time, for at
# least one query. With gradients the limit does not apply, because autograd saves the whole hidden layer.
MAX_HIDDEN_ELEMENTS = 2**25


def head_matrices(heads: int, rows: int, columns: int) -> nn.Parameter:
    """One matrix per head, (head, rows, columns). Each matrix is initialised separately."""
    matrices = torch.empty(heads, rows, columns)
    for matrix in matrices:
        nn.init.xavier_uniform_(matrix)
    return nn.Parameter(matrices)


def head_vectors(heads: int, width: int) -> nn.Parameter:
    """One vector per head, (head, width).

    The standard deviation of its product with a vector of ±1 does not depend on the width.
    """
    bound = 1 / math.sqrt(width)
    return nn.Parameter(torch.empty(heads, width).uniform_(-bound, bound))


def _project(states: Tensor, matrices: Tensor) -> Tensor:
    """States (batch, head, length, width) times the matrix of their head."""
    # With one head a plain product is faster: in a batched product torch forms one gradient per sentence.
    return states @ (matrices[0] if len(matrices) == 1 else matrices)


def compare_in_parts(
    compare: Callable[[Tensor, Tensor], Tensor], query: Tensor, keys: Tensor, *, elements_per_query: int
) -> Tensor:
    """Return the scores `compare(query, keys)`, (batch, head, query, key).

    Without gradients, a part of the queries is compared at a time if the hidden layer would be too large.
    `elements_per_query` is the number of elements of the hidden layer that `compare` forms for one query of
    every head and sentence.
    """
    if torch.is_grad_enabled() or query.shape[2] * elements_per_query <= MAX_HIDDEN_ELEMENTS:
        return compare(query, keys)
    parts = torch.split(query, max(1, MAX_HIDDEN_ELEMENTS // elements_per_query), dim=2)
    return torch.cat([compare(part, keys) for part in parts], dim=2)


class AdditiveSettings(Settings):
    units: int | None = Field(None, ge=1)
    """Width of a head's hidden layer; default: the width of the keys."""
    normed: bool = False
    """Learn the length of v separately from its direction, and add a bias."""


class Additive(SoftmaxMechanism):
    """Bahdanau's score. `units` is the width of a head's hidden layer; default: the width of the keys.

    `normed` learns the length of v (`gain`) separately from its direction and adds a bias to the hidden
    layer. The gain starts at √(1 / units), as in TensorFlow's normed BahdanauAttention.
    """

    supports = Supports(widths=True)

    gain: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(
        self,
        shape: HeadShape,
        *,
        units: int | None = None,
        normed: bool = False,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        units = shape.key if units is None else units
        self.query = head_matrices(shape.heads, shape.query, units)  # W_q, for `query @ W_q`
        self.key = head_matrices(shape.heads, shape.key, units)  # W_k, for `keys @ W_k`
        self.energy = head_vectors(shape.heads, units)  # v; stored models use this name
        self.gain = nn.Parameter(torch.full((shape.heads,), math.sqrt(1 / units))) if normed else None
        self.bias = nn.Parameter(torch.zeros(shape.heads, units)) if normed else None

    def prepare_keys(self, keys: Tensor) -> Tensor:
        projected = _project(keys, self.key)  # (batch, head, key, units)
        return projected if self.bias is None else projected + self.bias[:, None]

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        projected = _project(query, self.query)  # (batch, head, query, units)
        return compare_in_parts(self._compare, projected, keys, elements_per_query=keys.numel())

    def _compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """vᵀ tanh(query + key) for every pair of projected query and key, (batch, head, query, key)."""
        hidden = (query[:, :, :, None] + keys[:, :, None]).tanh_()  # (batch, head, query, key, units)
        return (hidden @ self.score_vectors()[:, None, :, None]).squeeze(-1)

    def score_vectors(self) -> Tensor:
        """v of each head, (head, units); g · v / ‖v‖ if `normed`."""
        if self.gain is None:
            return self.energy
        return self.gain[:, None] * normalize(self.energy, dim=-1)
