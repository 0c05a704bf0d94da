"""Luong's local attention: a query looks at 2D + 1 keys round a place p, with the general score.

    weights(s) = softmax of hᵀ W h̄ₛ over the keys s with |s − p| ≤ D
    local-m      p = the query's own place: source and target are taken to run in parallel
    local-p      p = S · sigmoid(v_pᵀ tanh(W_p h)), and the weights are multiplied by
                 exp(−(s − p)² / 2σ²), σ = D / 2        Luong, Pham & Manning 2015, section 3.2, eqs. 9 and 10

Places count from 0, and S is the number of keys without the padding, which stands at the end. The window is a
mask over all scores: it says where to look and saves no time over the general score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor, nn

from jumok.attention.additive import head_matrices, head_vectors
from jumok.attention.contract import Attended, Call, Supports
from jumok.attention.luong import LuongGeneral
from jumok.attention.masks import all_allowed, masked_softmax
from jumok.errors import RecipeError
from jumok.recipe import Settings

if TYPE_CHECKING:
    from jumok.attention.beams import Beams
    from jumok.attention.contract import HeadShape
    from jumok.attention.scored import KeyValues

__all__ = ["LocalSettings", "LuongLocalM", "LuongLocalP"]


class LocalSettings(Settings):
    window: int = Field(10, ge=1)
    """How many keys a query sees on either side of its place; the paper's D."""


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
            raise RecipeError(f"A window must reach at least 1 key to either side, and was given {window}.")
        self.window = window

    def _in_window(self, scores: Tensor, allowed: Tensor | None, distance: Tensor) -> Tensor:
        """The softmax over the allowed keys within the window; `distance` of each key from p, s − p."""
        return masked_softmax(scores, all_allowed(allowed, distance.abs() <= self.window))


class LuongLocalM(_Local):
    """Monotonic: p is the query's own place.

    A target may be longer than its source. Its last queries, whose window would lie beyond the source, look
    round the last key instead: p is at most S − 1. A causal query's own key is there, so nothing changes.
    """

    supports = Supports(left_padding=False)

    def normalise(
        self, scores: Tensor, allowed: Tensor | None, *, query: Tensor, memory: KeyValues, first: int
    ) -> Tensor:
        own = torch.arange(first, first + query.shape[2], device=query.device)
        last = memory.true_lengths - 1  # (batch,)
        place = torch.minimum(own, last[:, None])[:, None, :, None]  # (batch, 1, query, 1)
        keys = torch.arange(memory.length, device=query.device)
        return self._in_window(scores, allowed, keys - place)

    def _attend_together(self, query: Tensor, memory: KeyValues, beams: Beams, call: Call) -> Attended:
        # As queries of one memory, rows would stand one after the other and lose their own places.
        return self.attend(query, memory.select(beams.sentence).shared(None), call)


class LuongLocalP(_Local):
    """Predictive: each query names its place p, a real number in [0, S], and sees less the farther from it.

    The Gaussian multiplies weights that sum to 1, so that the rows sum to less than 1. It is also what p is
    learned by: the window has no gradient. p depends on the length of the whole memory, so that one that
    still grows cannot be attended to: neither causal nor incremental.
    """

    supports = Supports(causal=False, incremental=False, left_padding=False)

    def __init__(
        self,
        shape: HeadShape,
        *,
        window: int = 10,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, window=window, causal=causal, dropout=dropout)
        self.place = head_matrices(shape.heads, shape.query, shape.query)  # W_p, the query from the left
        self.place_energy = head_vectors(shape.heads, shape.query)  # v_p

    def extend(self, memory: KeyValues, keys: Tensor, values: Tensor) -> KeyValues:
        self._require("incremental")
        return super().extend(memory, keys, values)

    def normalise(
        self, scores: Tensor, allowed: Tensor | None, *, query: Tensor, memory: KeyValues, first: int
    ) -> Tensor:
        energy = torch.tanh(query @ self.place) @ self.place_energy[..., None]  # (batch, head, query, 1)
        place = memory.true_lengths[:, None, None, None] * torch.sigmoid(energy)
        keys = torch.arange(memory.length, device=query.device)
        distance = keys - place  # (batch, head, query, key)
        deviation = self.window / 2
        gaussian = torch.exp(-distance.square() / (2 * deviation**2))
        return self._in_window(scores, allowed, distance) * gaussian
