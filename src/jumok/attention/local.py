"""Luong's local attention: a query attends with the general score to at most 2D + 1 keys around a position p.

    weights(s) = softmax of hᵀ W h̄ₛ over the keys s with |s − p| ≤ D
    local-m      p = the query's own position: source and target are assumed to run in parallel
    local-p      p = S · sigmoid(v_pᵀ tanh(W_p h)), and the weights are multiplied by
                 exp(−(s − p)² / 2σ²), σ = D / 2        Luong, Pham & Manning 2015, section 3.2, eqs. 9 and 10

Positions count from 0, and S is the number of keys without the padding at the end. The window is a mask over
all scores: it limits the keys, but takes as much time as the general score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor, nn

from jumok.attention.additive import head_matrices, head_vectors
from jumok.attention.contract import Attended, Call, Supports
from jumok.attention.luong import LuongGeneral
from jumok.attention.masks import combine_masks, masked_softmax
from jumok.config.recipe import Settings
from jumok.errors import RecipeError

if TYPE_CHECKING:
    from jumok.attention.beams import Beams
    from jumok.attention.contract import HeadShape
    from jumok.attention.scored import KeyValues


class LocalSettings(Settings):
    window: int = Field(10, ge=1)
    """How many keys a query attends to on either side of p; the paper's D."""


class _Local(LuongGeneral):
    """The general score within `window` keys (the paper's D) on either side of p."""

    def __init__(
        self,
        shape: HeadShape,
        *,
        window: int = 10,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        if window < 1:
            raise RecipeError(
                f"The window must be at least 1 key on either side. Received: window = {window}."
            )
        self.window = window

    def _softmax_in_window(self, scores: Tensor, allowed: Tensor | None, distance: Tensor) -> Tensor:
        """The softmax over the allowed keys within the window; `distance` is s − p of each key."""
        return masked_softmax(scores, combine_masks(allowed, distance.abs() <= self.window))


class LuongLocalM(_Local):
    """Monotonic: p is the query's own position.

    A target may be longer than its source. Queries beyond the last key use the window around this key: p is
    at most S − 1. In causal attention every query that is not padding has a key at its own position, so this
    limit changes nothing.
    """

    supports = Supports(left_padding=False, widths=True)

    def normalise(
        self, scores: Tensor, allowed: Tensor | None, *, query: Tensor, memory: KeyValues, query_offset: int
    ) -> Tensor:
        positions = torch.arange(query_offset, query_offset + query.shape[2], device=query.device)
        last_key = memory.unpadded_lengths - 1  # (batch,)
        centre = torch.minimum(positions, last_key[:, None])[:, None, :, None]  # (batch, 1, query, 1)
        keys = torch.arange(memory.length, device=query.device)
        return self._softmax_in_window(scores, allowed, keys - centre)

    def _attend_grouped(self, query: Tensor, memory: KeyValues, beams: Beams, call: Call) -> Attended:
        # In a group, the rows would become consecutive queries, so their positions would be wrong.
        return self.attend(query, memory.select(beams.sentence).with_beams(None), call)


class LuongLocalP(_Local):
    """Predictive: each query predicts p, a real number in [0, S]. Weights fall with the distance to p.

    The Gaussian multiplies weights that sum to 1, so rows sum to 1 at most. p gets its gradient through the
    Gaussian only, because the window has no gradient. p depends on the length of the memory, which therefore
    may not grow: the mechanism is neither causal nor incremental.
    """

    supports = Supports(causal=False, incremental=False, left_padding=False, widths=True)

    def __init__(
        self,
        shape: HeadShape,
        *,
        window: int = 10,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, window=window, causal=causal, dropout=dropout)
        # Stored models have these parameters under these names.
        self.place = head_matrices(shape.heads, shape.query, shape.query)  # W_p, for `query @ W_p`
        self.place_energy = head_vectors(shape.heads, shape.query)  # v_p

    def extend(self, memory: KeyValues, keys: Tensor, values: Tensor) -> KeyValues:
        self._require("incremental")
        return super().extend(memory, keys, values)

    def normalise(
        self, scores: Tensor, allowed: Tensor | None, *, query: Tensor, memory: KeyValues, query_offset: int
    ) -> Tensor:
        logit = torch.tanh(query @ self.place) @ self.place_energy[..., None]  # (batch, head, query, 1)
        centre = memory.unpadded_lengths[:, None, None, None] * torch.sigmoid(logit)
        keys = torch.arange(memory.length, device=query.device)
        distance = keys - centre  # (batch, head, query, key)
        deviation = self.window / 2
        gaussian = torch.exp(-distance.square() / (2 * deviation**2))
        return self._softmax_in_window(scores, allowed, distance) * gaussian
