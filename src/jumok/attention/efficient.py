"""Efficient attention: the keys' features are maps over the sentence, of which each query takes a mixture.

    E(Q, K, V) = ρ_q(Q) (ρ_k(K)ᵀ V)                              Shen et al. 2018, eq. 4
    ρ_q = softmax over the features of a query, ρ_k = softmax over the positions of a feature        eq. 5

Multiplied from the right, nothing of the size query × key exists: O(n · d²) time, O(n · d + d²) memory. The
implied weights ρ_q(Q) ρ_k(K)ᵀ are not negative and sum to 1 over the keys, as a mixture of maps that do; they
are not those of scaled dot product. A new key would change the whole of every map, hence neither causal
attention nor steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from jumok.attention.chunks import chunks_of, map_chunks
from jumok.attention.contract import Attended, Call, Mechanism, Supports
from jumok.attention.masks import masked_softmax
from jumok.attention.scored import KeyValues
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from jumok.attention.beams import Beams

__all__ = ["Efficient", "FeatureMaps"]


@dataclass(frozen=True, slots=True)
class FeatureMaps:
    """The mean value under the map of each feature, and the keys and values that the maps are made of."""

    seen: KeyValues
    means: Tensor  # (batch, head, key width, value width): ρ_k(K)ᵀ V

    @property
    def beams(self) -> Beams | None:
        return self.seen.beams

    @property
    def maps(self) -> Tensor:
        """ρ_k(K)ᵀ, (batch, head, key width, key). Padding has no share in any map."""
        allowed = (
            None if self.seen.allowed is None else self.seen.allowed[:, None, None]
        )  # (batch, 1, 1, key)
        return masked_softmax(self.seen.keys.transpose(-2, -1), allowed)

    @property
    def length(self) -> int:
        return self.seen.length

    def select(self, rows: Tensor) -> Self:
        return replace(self, seen=self.seen.select(rows), means=self.means.index_select(0, rows))

    def shared(self, beams: Beams | None) -> Self:
        return replace(self, seen=self.seen.shared(beams))


class Efficient(Mechanism[FeatureMaps]):
    """Shen's attention with softmax normalisation."""

    supports = Supports(causal=False, incremental=False, mask=False, bias=False, dropout=False)

    def remember(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> FeatureMaps:
        seen = KeyValues(keys, values, length=keys.shape[2], allowed=allowed_keys)
        if allowed_keys is not None:
            # Left out before the softmax: afterwards padding would have taken its share of every map.
            keys = keys.masked_fill(~allowed_keys[:, None, :, None], -torch.inf)
        return FeatureMaps(seen, _means(keys, values))

    def extend(self, memory: FeatureMaps, keys: Tensor, values: Tensor) -> FeatureMaps:
        raise UnsupportedError(
            "Efficient attention cannot be extended: its softmax runs over all keys at once, so that "
            f"{keys.shape[2]} more would change every one before. Prepare all keys together, or take the "
            'mechanism "linear" or "scaled-dot", which work step by step.'
        )

    def attend(self, query: Tensor, memory: FeatureMaps, call: Call) -> Attended:
        if not call.needs_weights:
            return Attended(map_chunks(lambda some: torch.softmax(some, dim=-1) @ memory.means, query))
        weights = torch.softmax(query, dim=-1) @ memory.maps  # (batch, head, query, key)
        if call.edit is not None:
            weights = call.edit(weights, call.first)
        return Attended(weights @ memory.seen.values, weights if call.need_weights else None)


def _means(keys: Tensor, values: Tensor) -> Tensor:
    """ρ_k(K)ᵀ V as `FeatureMaps.maps @ values` would be, without the maps; keys of -∞ are missing from it.

    The sums of each chunk c are taken relative to its highest key h_c, so that no exponential overflows:

        Σ_c e^(h_c - h) Σ_{j∈c} e^(k_j - h_c) v_jᵀ  /  Σ_c e^(h_c - h) Σ_{j∈c} e^(k_j - h_c),   h = max_c h_c
    """
    if keys.shape[2] == 0:  # of no places there is no highest
        return keys.transpose(-2, -1) @ values
    highest, totals, sums = [], [], []  # of each chunk (batch, head, key width, 1 or value width)
    for some_keys, some_values in zip(chunks_of(keys), chunks_of(values), strict=True):
        # The result does not depend on h_c, nor does its gradient.
        top = some_keys.detach().amax(dim=2, keepdim=True).clamp(min=torch.finfo(keys.dtype).min)
        shares = torch.exp(some_keys - top)  # (batch, head, place, key width)
        highest.append(top.transpose(-2, -1))
        totals.append(shares.sum(dim=2)[..., None])
        sums.append(shares.transpose(-2, -1) @ some_values)
    tops = torch.stack(highest)  # (chunk, batch, head, key width, 1)
    scale = torch.exp(tops - tops.amax(dim=0))
    total = (torch.stack(totals) * scale).sum(dim=0)
    # Where there was nothing to see, the total is 0, and so are the means and their gradient.
    return (torch.stack(sums) * (scale / total.masked_fill(total == 0, 1.0))).sum(dim=0)
