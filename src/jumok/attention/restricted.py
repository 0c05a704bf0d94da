"""Restricted self-attention: scaled dot product among neighbours, at most r positions away.

    softmax(QKᵀ / √d) V, over the keys with |i - j| ≤ r          Vaswani et al. 2017, section 4 and table 1

The queries are split into blocks. Each block is scored only against the keys that its queries may attend to:
O(r · n · d) time, and O(r · n) memory for the scores. If r is much smaller than n, this costs less than
computing all n² scores. A mask over all scores would give the same result, but would save neither time nor
memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from jumok.attention.contract import Attended, Call, HeadShape, Supports
from jumok.attention.masks import combine_masks, masked_softmax
from jumok.attention.scaled_dot import ScaledDot
from jumok.config.recipe import Settings
from jumok.errors import RecipeError

if TYPE_CHECKING:
    from jumok.attention.beams import Beams
    from jumok.attention.scored import KeyValues


class RestrictedSettings(Settings):
    neighbours: int = Field(32, ge=1)
    """How many positions on either side a query may attend to."""


class Restricted(ScaledDot):
    """Query i has position `query_offset + i` and attends to keys at most `neighbours` positions away.

    Calls that need a full matrix of weights (to report or edit them, or with a bias or mask) use the dense
    path.
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
                f"Restricted attention needs at least one neighbour. Received: neighbours = {neighbours}."
            )
        self.neighbours = neighbours

    def attend(self, query: Tensor, memory: KeyValues, call: Call) -> Attended:
        if call.must_form_weights or call.allowed is not None:
            near = self._band_mask(query.shape[2], memory.length, call.query_offset, query.device)
            return super().attend(query, memory, replace(call, allowed=combine_masks(call.allowed, near)))
        return Attended(self._attend_blocks(query, memory, call.query_offset))

    def _attend_grouped(self, query: Tensor, memory: KeyValues, beams: Beams, call: Call) -> Attended:
        # The hypotheses of a sentence stay in rows of their own. In a group they would be consecutive queries
        # with wrong positions.
        return self.attend(query, memory.select(beams.sentence).with_beams(None), call)

    def _attend_blocks(self, query: Tensor, memory: KeyValues, query_offset: int) -> Tensor:
        """The context, from scores (batch, head, block, query, key) of each block with its window of keys.

        A block that starts at position p has the window p - r … p + block_size - 1 + r; if causal, the window
        ends with the block. A decoding step is one block of one query.
        """
        batch, head, queries, query_width = query.shape
        block_size = max(1, min(self.neighbours, queries))
        blocks = max(1, -(-queries // block_size))
        ahead = 0 if self.causal else self.neighbours
        window_size = self.neighbours + block_size + ahead  # keys per block
        start, stop = query_offset - self.neighbours, query_offset + blocks * block_size + ahead

        def windows(rows: Tensor) -> Tensor:
            """(batch, head, key, width) -> (batch, head, block, width, key), 0 beyond the keys."""
            low = max(start, 0)
            high = max(low, min(stop, memory.length))
            padded = pad(rows[:, :, low:high], (0, 0, low - start, stop - high))
            return padded.unfold(2, window_size, block_size)

        all_keys = torch.ones(1, dtype=torch.bool, device=query.device).expand(1, 1, memory.length, 1)
        allowed = windows(all_keys if memory.allowed is None else memory.allowed[:, None, :, None])
        # The first query of a block is r positions after the start of the window.
        near = self._band_mask(block_size, window_size, self.neighbours, query.device)
        padded = pad(query, (0, 0, 0, blocks * block_size - queries))
        blocked = padded.reshape(batch, head, blocks, block_size, query_width)
        scores = self.scores(blocked, windows(memory.keys).transpose(-2, -1))
        weights = self.dropout(masked_softmax(scores, near & allowed))
        context: Tensor = weights @ windows(memory.values).transpose(-2, -1)
        return context.flatten(2, 3)[:, :, :queries]

    def _band_mask(self, queries: int, keys: int, query_offset: int, device: torch.device) -> Tensor:
        """The band |query_offset + i - j| ≤ r, or its lower half if causal, (queries, keys)."""
        positions = torch.arange(query_offset, query_offset + queries, device=device)
        distance = positions[:, None] - torch.arange(keys, device=device)  # > 0: the key is earlier
        return (distance <= self.neighbours) & (distance >= (0 if self.causal else -self.neighbours))
