"""Scaled dot-product attention: a query attends to the keys that point in its direction.

    Attention(Q, K, V) = softmax(QKᵀ / √d) V                     Vaswani et al. 2017, eq. 1

It takes O(L · S · d) time for L queries and S keys. Torch's fused kernel computes the context without forming
the weights. The kernel is not used if the weights are requested or edited, if there is a bias, or with
attention dropout in training. Then the plain path computes the same formula, and a test compares both paths.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from jumok.attention.contract import Attended, Call, Supports
from jumok.attention.scored import KeyValues, SoftmaxMechanism

# Fewer keys do not fill a vector register, and torch's softmax then computes one key at a time. Padding to
# this number of keys makes the softmax three times as fast.
MIN_VECTOR_KEYS = 16


class ScaledDot(SoftmaxMechanism):
    """The dot product divided by √d, so that the softmax does not saturate as d grows."""

    supports = Supports(products=True)

    def scale(self, width: int) -> float:
        return 1 / math.sqrt(width)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        scaled = query * self.scale(query.shape[-1])
        return scaled @ keys.transpose(-2, -1)  # (batch, head, query, key)

    def attend(self, query: Tensor, memory: KeyValues, call: Call) -> Attended:
        drops_weights = self.training and not isinstance(self.dropout, nn.Identity)
        if call.must_form_weights or drops_weights:
            return super().attend(query, memory, call)
        return Attended(self._fused(query, memory, call))

    def _fused(self, query: Tensor, memory: KeyValues, call: Call) -> Tensor:
        """The context alone, by torch's fused kernel."""
        keys, values = memory.keys, memory.values
        causal_from_start = self.causal and call.query_offset == 0 and query.shape[2] <= memory.length
        mask = None
        if not causal_from_start or call.allowed is not None or memory.allowed is not None:
            mask = self.allowed(query, memory, call)
        missing = MIN_VECTOR_KEYS - memory.length
        if missing > 0 and query.shape[2] > 1:
            keys, values = pad(keys, (0, 0, 0, missing)), pad(values, (0, 0, 0, missing))
            if mask is not None or not causal_from_start:
                mask = _pad_mask(mask, memory, missing)
        # If causal from the start, the added keys come after the last query and are never attended to.
        causal = causal_from_start and mask is None
        return scaled_dot_product_attention(query, keys, values, attn_mask=mask, is_causal=causal)


def _pad_mask(mask: Tensor | None, memory: KeyValues, missing: int) -> Tensor:
    """The mask (None: all allowed) with `missing` more keys that are not allowed."""
    all_keys = torch.ones(1, memory.length, dtype=torch.bool, device=memory.stored_keys.device)
    return pad(all_keys if mask is None else mask & all_keys, (0, missing))
