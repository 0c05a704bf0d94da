"""Restricted self-attention: scaled dot product among neighbours, at most r places away.

    softmax(QKᵀ / √d) V, over the keys with |i - j| ≤ r          Vaswani et al. 2017, section 4 and table 1

The queries are cut into blocks, each of which is given the keys that any of it may see: O(r · n · d) time and
O(r · n) memory. A mask laid over all n² scores would give the same and save nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from jumok.attention.contract import Attended, Call, HeadShape, Supports
from jumok.attention.masks import all_allowed, masked_softmax
from jumok.attention.scaled_dot import ScaledDot
from jumok.errors import RecipeError
from jumok.recipe import Settings

if TYPE_CHECKING:
    from jumok.attention.beams import Beams
    from jumok.attention.scored import KeyValues

__all__ = ["Restricted", "RestrictedSettings"]


class RestrictedSettings(Settings):
    neighbours: int = Field(32, ge=1)
    """How many places to either side a query may see."""


class Restricted(ScaledDot):
    """Query i stands at place `first + i` and sees the keys at most `neighbours` places from there.

    What needs weights query by key (to report, to edit, to shift or to mask them) takes the dense path.
    """

    supports = Supports(cross=False, products=True)

    def __init__(
        self,
        shape: HeadShape | None = None,
        *,
        neighbours: int = 32,
        causal: bool = False,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__(shape, causal=causal, dropout=dropout)
        if neighbours < 1:
            raise RecipeError(
                f"Restricted attention sees at least one neighbour. Received: neighbours = {neighbours}."
            )
        self.neighbours = neighbours

    def attend(self, query: Tensor, memory: KeyValues, call: Call) -> Attended:
        if call.needs_weights or call.allowed is not None:
            near = self._near(query.shape[2], memory.length, call.first, query.device)
            return super().attend(query, memory, replace(call, allowed=all_allowed(call.allowed, near)))
        return Attended(self._attend_blocks(query, memory, call.first))

    def _attend_together(self, query: Tensor, memory: KeyValues, beams: Beams, call: Call) -> Attended:
        # Side by side, the rows of a sentence would no longer stand at their own places.
        return self.attend(query, memory.select(beams.sentence).shared(None), call)

    def _attend_blocks(self, query: Tensor, memory: KeyValues, first: int) -> Tensor:
        """The context, from scores (batch, head, block, query, key) of each block against its window of keys.

        A block that begins at place p has the window p - r … p + size - 1 + r; where causal, it ends with the
        block. A step of decoding is one block of one query.
        """
        batch, head, queries, query_width = query.shape
        size = max(1, min(self.neighbours, queries))
        blocks = max(1, -(-queries // size))
        ahead = 0 if self.causal else self.neighbours
        width = self.neighbours + size + ahead
        start, stop = first - self.neighbours, first + blocks * size + ahead

        def windows(rows: Tensor) -> Tensor:
            """(batch, head, key, width) -> (batch, head, block, width, key), with 0 where there is no key."""
            low = max(start, 0)
            high = max(low, min(stop, memory.length))
            return pad(rows[:, :, low:high], (0, 0, low - start, stop - high)).unfold(2, width, size)

        everywhere = torch.ones(1, dtype=torch.bool, device=query.device).expand(1, 1, memory.length, 1)
        exists = windows(everywhere if memory.allowed is None else memory.allowed[:, None, :, None])
        near = self._near(size, width, self.neighbours, query.device)
        padded = pad(query, (0, 0, 0, blocks * size - queries))
        blocked = padded.reshape(batch, head, blocks, size, query_width)
        scores = self.scores(blocked, windows(memory.keys).transpose(-2, -1))
        weights = self.dropout(masked_softmax(scores, near & exists))
        context: Tensor = weights @ windows(memory.values).transpose(-2, -1)
        return context.flatten(2, 3)[:, :, :queries]

    def _near(self, queries: int, keys: int, first: int, device: torch.device) -> Tensor:
        """The band |first + i - j| ≤ r, and where causal its half, (queries, keys)."""
        places = torch.arange(first, first + queries, device=device)
        back = places[:, None] - torch.arange(keys, device=device)
        return (back <= self.neighbours) & (back >= (0 if self.causal else -self.neighbours))
