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

from jumok.attention.contract import Attended, Call, Mechanism, Supports
from jumok.attention.masks import masked_softmax
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from jumok.attention.beams import Beams

__all__ = ["Efficient", "FeatureMaps"]


@dataclass(frozen=True, slots=True)
class FeatureMaps:
    """A map over the positions for each feature of the keys, and the mean value under each map."""

    maps: Tensor  # (batch, head, key width, key): ρ_k(K)ᵀ
    values: Tensor  # (batch, head, key, value width)
    means: Tensor  # (batch, head, key width, value width): ρ_k(K)ᵀ V
    beams: Beams | None = None

    @property
    def length(self) -> int:
        return self.maps.shape[-1]

    def select(self, rows: Tensor) -> Self:
        return replace(
            self,
            maps=self.maps.index_select(0, rows),
            values=self.values.index_select(0, rows),
            means=self.means.index_select(0, rows),
        )

    def shared(self, beams: Beams | None) -> Self:
        return replace(self, beams=beams)


class Efficient(Mechanism[FeatureMaps]):
    """Shen's attention with softmax normalisation.

    Dropout falls on weights, and without a request for them there are none: in training it acts only on calls
    that ask for weights or edit them.
    """

    supports = Supports(causal=False, incremental=False, mask=False, bias=False)

    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> FeatureMaps:
        # Padding is left out before the softmax: afterwards it would have taken its share of every map.
        allowed = None if allowed_keys is None else allowed_keys[:, None, None]  # (batch, 1, 1, key)
        maps = masked_softmax(keys.transpose(-2, -1), allowed)
        return FeatureMaps(maps, values, maps @ values)

    def extend(self, memory: FeatureMaps, keys: Tensor, values: Tensor) -> FeatureMaps:
        raise UnsupportedError(
            "Efficient attention cannot be extended: its softmax runs over all keys at once, so that "
            f"{keys.shape[2]} more would change every one before. Prepare all keys together, or take the "
            'mechanism "linear" or "scaled-dot", which work step by step.'
        )

    def attend(self, query: Tensor, memory: FeatureMaps, call: Call) -> Attended:
        mixture = torch.softmax(query, dim=-1)  # (batch, head, query, key width)
        if not call.needs_weights:
            return Attended(mixture @ memory.means)
        weights = mixture @ memory.maps  # (batch, head, query, key)
        if call.edit is not None:
            weights = call.edit(weights, call.first)
        context = self.dropout(weights) @ memory.values  # (batch, head, query, value width)
        return Attended(context, weights if call.need_weights else None)
