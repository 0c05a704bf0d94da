"""Efficient attention: each feature of the keys is a map over the sentence, and each query mixes these maps.

    E(Q, K, V) = ρ_q(Q) (ρ_k(K)ᵀ V)                              Shen et al. 2018, eq. 4
    ρ_q = softmax over the features of a query, ρ_k = softmax over the positions of a feature        eq. 5

With K and V multiplied first, nothing of size query × key is formed: O(n · d²) time, O(n · d + d²) memory.
The implied weights ρ_q(Q) ρ_k(K)ᵀ are not negative and sum to 1 over the keys, since they mix maps that do;
they differ from those of scaled dot product. A new key would change every map at every position, so neither
causal attention nor incremental decoding is possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from jumok.attention.chunks import map_chunks, split_chunks
from jumok.attention.contract import Attended, Call, Mechanism, Supports
from jumok.attention.masks import masked_softmax
from jumok.attention.scored import KeyValues
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from jumok.attention.beams import Beams

__all__ = ["Efficient", "FeatureMaps"]


@dataclass(frozen=True, slots=True)
class FeatureMaps:
    """The mean value under each feature's map, and the keys and values that it was computed from."""

    key_values: KeyValues
    means: Tensor  # (batch, head, key width, value width): ρ_k(K)ᵀ V

    @property
    def beams(self) -> Beams | None:
        return self.key_values.beams

    @property
    def maps(self) -> Tensor:
        """ρ_k(K)ᵀ, (batch, head, key width, key). Padding has weight 0 in every map."""
        allowed = self.key_values.allowed
        mask = None if allowed is None else allowed[:, None, None]  # (batch, 1, 1, key)
        return masked_softmax(self.key_values.keys.transpose(-2, -1), mask)

    @property
    def length(self) -> int:
        return self.key_values.length

    def select(self, rows: Tensor) -> Self:
        return replace(self, key_values=self.key_values.select(rows), means=self.means.index_select(0, rows))

    def with_beams(self, beams: Beams | None) -> Self:
        return replace(self, key_values=self.key_values.with_beams(beams))


class Efficient(Mechanism[FeatureMaps]):
    """Shen's attention with softmax normalisation."""

    supports = Supports(causal=False, incremental=False, mask=False, bias=False, dropout=False)

    def build_memory(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> FeatureMaps:
        key_values = KeyValues(keys, values, length=keys.shape[2], allowed=allowed_keys)
        if allowed_keys is not None:
            # Masked before the softmax: masked afterwards, padding would already have weight in every map.
            keys = keys.masked_fill(~allowed_keys[:, None, :, None], -torch.inf)
        return FeatureMaps(key_values, _means(keys, values))

    def extend(self, memory: FeatureMaps, keys: Tensor, values: Tensor) -> FeatureMaps:
        raise UnsupportedError(
            "Efficient attention cannot be extended: its softmax runs over all keys at once, so "
            f"{keys.shape[2]} more would change the weight of every earlier key. Prepare all keys together, "
            'or use the mechanism "linear" or "scaled-dot", which work step by step.'
        )

    def attend(self, query: Tensor, memory: FeatureMaps, call: Call) -> Attended:
        if not call.needs_weights:
            return Attended(map_chunks(lambda chunk: torch.softmax(chunk, dim=-1) @ memory.means, query))
        weights = torch.softmax(query, dim=-1) @ memory.maps  # (batch, head, query, key)
        if call.edit is not None:
            weights = call.edit(weights, call.query_offset)
        return Attended(weights @ memory.key_values.values, weights if call.need_weights else None)


def _means(keys: Tensor, values: Tensor) -> Tensor:
    """ρ_k(K)ᵀ V, equal to `FeatureMaps.maps @ values`, without forming the maps; keys of -∞ do not count.

    The sums of each chunk c are relative to its largest key h_c, so that no exponential overflows:

        Σ_c e^(h_c - h) Σ_{j∈c} e^(k_j - h_c) v_jᵀ  /  Σ_c e^(h_c - h) Σ_{j∈c} e^(k_j - h_c),   h = max_c h_c
    """
    if keys.shape[2] == 0:  # amax of an empty axis is an error
        return keys.transpose(-2, -1) @ values
    maxima, totals, sums = [], [], []  # per chunk (batch, head, key width, 1 or value width)
    for chunk_keys, chunk_values in zip(split_chunks(keys), split_chunks(values), strict=True):
        # Neither the result nor its gradient depends on h_c.
        largest = chunk_keys.detach().amax(dim=2, keepdim=True).clamp(min=torch.finfo(keys.dtype).min)
        exponentials = torch.exp(chunk_keys - largest)  # (batch, head, position, key width)
        maxima.append(largest.transpose(-2, -1))
        totals.append(exponentials.sum(dim=2)[..., None])
        sums.append(exponentials.transpose(-2, -1) @ chunk_values)
    chunk_maxima = torch.stack(maxima)  # (chunk, batch, head, key width, 1)
    scale = torch.exp(chunk_maxima - chunk_maxima.amax(dim=0))
    total = (torch.stack(totals) * scale).sum(dim=0)
    # If no key is allowed, the total is 0, and so are the means and their gradient.
    return (torch.stack(sums) * (scale / total.masked_fill(total == 0, 1.0))).sum(dim=0)
