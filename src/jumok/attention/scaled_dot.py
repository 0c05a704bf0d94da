"""Scaled dot-product attention: a query goes with the keys that point its way.

    Attention(Q, K, V) = softmax(QKᵀ / √d) V                     Vaswani et al. 2017, eq. 1

O(L · S · d) time. Where neither weights nor edits are wanted, torch's fused kernel never forms the weights;
the plain path beside it is the same formula, and a test holds the two together.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from jumok.attention.contract import Attended, Call, Supports
from jumok.attention.scored import KeyValues, Scored

__all__ = ["ScaledDot"]

# Over fewer keys than fill a vector register, torch's softmax takes one number at a time: padded, it is
# three times as fast.
FULL_VECTOR = 16


class ScaledDot(Scored):
    """The dot product divided by √d, so that the softmax does not saturate as d grows."""

    supports = Supports(products=True)

    def scale(self, width: int) -> float:
        return 1 / math.sqrt(width)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        scaled = query * self.scale(query.shape[-1])
        return scaled @ keys.transpose(-2, -1)  # (batch, head, query, key)

    def attend(self, query: Tensor, memory: KeyValues, call: Call) -> Attended:
        drops = self.training and not isinstance(self.dropout, nn.Identity)
        if call.needs_weights or drops:
            return super().attend(query, memory, call)
        return Attended(self._fused(query, memory, call))

    def _fused(self, query: Tensor, memory: KeyValues, call: Call) -> Tensor:
        """The context alone, by torch's kernel."""
        keys, values = memory.keys, memory.values
        from_start = self.causal and call.first == 0 and query.shape[2] <= memory.length
        mask = None
        if not from_start or call.allowed is not None or memory.allowed is not None:
            mask = self.allowed(query, memory, call)
        missing = FULL_VECTOR - memory.length
        if missing > 0 and query.shape[2] > 1:
            keys, values = pad(keys, (0, 0, 0, missing)), pad(values, (0, 0, 0, missing))
            if mask is not None or not from_start:
                mask = _pad_mask(mask, memory, missing)
        # Causal from the start, what was padded stands after the last query, where nobody looks.
        causal = from_start and mask is None
        return scaled_dot_product_attention(query, keys, values, attn_mask=mask, is_causal=causal)


def _pad_mask(mask: Tensor | None, memory: KeyValues, missing: int) -> Tensor:
    """The mask, where there is one, with `missing` more keys that nobody may see."""
    every = torch.ones(1, memory.length, dtype=torch.bool, device=memory.stored_keys.device)
    return pad(every if mask is None else mask & every, (0, missing))
