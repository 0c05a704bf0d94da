"""Efficient attention: each feature of the keys is a map over the sentence, and each query mixes these maps.

    E(Q, K, V) = ρ_q(Q) (ρ_k(K)ᵀ V)                              Shen et al. 2018, eq. 4
    ρ_q = softmax over the features of a query, ρ_k = softmax over the positions of a feature        eq. 5

With K and V multiplied first, nothing of size query × key is formed: O(n · d²) time, O(n · d + d²) memory.
The implied weights ρ_q(Q) ρ_k(K)ᵀ are not negative and sum to 1 over the keys, because each row is a weighted
mean of maps, and each map is not negative and sums to 1. They differ from the weights of scaled dot product.
Without allowed keys, all weights are 0.

The paper has no causal version. A causal map ends at the position of its query:

    context_i = Σ_f ρ_q(q_i)_f · Σ_{j≤i} e^k_jf v_j / Σ_{j≤i} e^k_jf

so two running sums per feature are enough, as in linear attention. A new key adds one term to each sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from jumok.attention.chunks import map_chunks, split_chunks
from jumok.attention.contract import Attended, Call, Mechanism, Supports
from jumok.attention.masks import masked_softmax
from jumok.attention.scored import KeyValues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.attention.beams import Beams

# Number of positions whose causal sums are computed together. Longer chunks store fewer sums and compute more
# products of queries with keys.
CAUSAL_CHUNK = 64
# In each feature, all exponentials of a chunk are relative to the largest key up to the end of the chunk. The
# gradient divides by the square of a position's sum of exponentials. The square of this limit is e^-80, near
# the lower end of the range of float32 (e^-87).
SMALLEST_TOTAL = math.exp(-40)


@dataclass(frozen=True, slots=True)
class MapSums:
    """Two sums over the keys for each feature. Their quotient is the mean value under the feature's map.

    A key of -∞, which is padding, adds nothing to the sums. Exponentials are relative to the feature's
    largest key h, so that none overflows. Neither the means nor their gradient depend on h.
    """

    largest: Tensor  # h, (batch, head, key width, 1), without gradient
    totals: Tensor  # Σ e^(k - h), (batch, head, key width, 1)
    value_sums: Tensor  # Σ e^(k - h) vᵀ, (batch, head, key width, value width)

    @property
    def means(self) -> Tensor:
        """ρ_k(K)ᵀ V, (batch, head, key width, value width); 0, with gradient 0, if all keys are padding."""
        return self.value_sums * (1 / self.totals.masked_fill(self.totals == 0, 1.0))

    def relative_to(self, largest: Tensor) -> MapSums:
        """The same sums, relative to another h."""
        scale = torch.exp(self.largest - largest)
        return MapSums(largest, self.totals * scale, self.value_sums * scale)

    def select(self, rows: Tensor) -> MapSums:
        parts = (self.largest, self.totals, self.value_sums)
        return MapSums(*(part.index_select(0, rows) for part in parts))


@dataclass(frozen=True, slots=True)
class FeatureMaps:
    """The sums of each feature's map, and the keys and values that they are computed from.

    Keys that are padding are -∞ in every feature. After `prepare` of a causal mechanism, `cached_sums` is
    None: causal attention over whole sentences does not use the sums over all keys.
    """

    key_values: KeyValues
    cached_sums: MapSums | None = None

    @property
    def sums(self) -> MapSums:
        if self.cached_sums is None:
            return _sum_in_chunks(self.key_values.keys, self.key_values.values)
        return self.cached_sums

    @property
    def means(self) -> Tensor:
        """The mean value under each map, (batch, head, key width, value width)."""
        return self.sums.means

    @property
    def beams(self) -> Beams | None:
        return self.key_values.beams

    @property
    def length(self) -> int:
        return self.key_values.length

    def maps(self, visible: int | None = None) -> Tensor:
        """ρ_k(K)ᵀ over the first `visible` keys (None: all), (batch, head, key width, key); 0 elsewhere."""
        keys = self.key_values.keys.transpose(-2, -1)
        allowed = keys > -torch.inf
        if visible is not None:
            allowed = allowed & (torch.arange(self.length, device=keys.device) < visible)
        return masked_softmax(keys, allowed)

    def select(self, rows: Tensor) -> Self:
        sums = None if self.cached_sums is None else self.cached_sums.select(rows)
        return replace(self, key_values=self.key_values.select(rows), cached_sums=sums)

    def with_beams(self, beams: Beams | None) -> Self:
        return replace(self, key_values=self.key_values.with_beams(beams))


class Efficient(Mechanism[FeatureMaps]):
    """Shen's attention with softmax normalisation; if causal, a query's maps end at its position."""

    supports = Supports(mask=False, bias=False, dropout=False)

    def build_memory(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> FeatureMaps:
        if allowed_keys is not None:
            # A mask after the softmax would be too late: padding would already have weight in every map.
            keys = keys.masked_fill(~allowed_keys[:, None, :, None], -torch.inf)
        memory = FeatureMaps(KeyValues(keys, values, length=keys.shape[2]))
        return memory if self.causal else replace(memory, cached_sums=memory.sums)

    def extend(self, memory: FeatureMaps, keys: Tensor, values: Tensor) -> FeatureMaps:
        sums = _merge([memory.sums, _sum_in_chunks(keys, values)])
        return FeatureMaps(memory.key_values.extend(keys, values), sums)

    def attend(self, query: Tensor, memory: FeatureMaps, call: Call) -> Attended:
        # If the first query is at or after the last key, as in a decoding step, all queries see all keys.
        causal = self.causal and memory.length > call.query_offset + 1 and query.shape[2] > 0
        if call.must_form_weights:
            return self._attend_by_weights(query, memory, call, causal=causal)
        if causal:
            key_values = memory.key_values
            return Attended(_causal_context(query, key_values.keys, key_values.values, call.query_offset))
        means = memory.means
        return Attended(map_chunks(lambda chunk: torch.softmax(chunk, dim=-1) @ means, query))

    def _attend_by_weights(self, query: Tensor, memory: FeatureMaps, call: Call, *, causal: bool) -> Attended:
        """The same as `attend`, from the implied weights, for callers that report or edit them."""
        keys, values = memory.key_values.keys, memory.key_values.values
        if causal:
            # If the values form the identity matrix, the context of a query is its row of weights.
            identity = torch.eye(memory.length, dtype=keys.dtype, device=keys.device)
            weights = _causal_context(
                query, keys, identity.expand(*keys.shape[:2], -1, -1), call.query_offset
            )
        else:
            weights = torch.softmax(query, dim=-1) @ memory.maps()  # (batch, head, query, key)
        if call.edit is not None:
            weights = call.edit(weights, call.query_offset)
        return Attended(weights @ values, weights if call.need_weights else None)


def _sum_in_chunks(keys: Tensor, values: Tensor) -> MapSums:
    chunks = zip(split_chunks(keys), split_chunks(values), strict=True)
    return _merge([_sum(chunk_keys, chunk_values) for chunk_keys, chunk_values in chunks])


def _sum(keys: Tensor, values: Tensor) -> MapSums:
    largest = _largest(keys)
    exponentials = torch.exp(keys - largest)  # (batch, head, position, key width)
    value_sums = exponentials.transpose(-2, -1) @ values
    return MapSums(largest.transpose(-2, -1), exponentials.sum(dim=2)[..., None], value_sums)


def _largest(keys: Tensor) -> Tensor:
    """The largest key of each feature, (batch, head, 1, key width): finite even if all keys are padding."""
    lowest = torch.finfo(keys.dtype).min
    if keys.shape[2] == 0:  # amax of an empty axis is an error
        return keys.new_full((*keys.shape[:2], 1, keys.shape[3]), lowest)
    return keys.detach().amax(dim=2, keepdim=True).clamp(min=lowest)


def _merge(parts: Sequence[MapSums]) -> MapSums:
    """The sums over the keys of all parts."""
    if len(parts) == 1:
        return parts[0]
    largest = torch.stack([part.largest for part in parts]).amax(dim=0)
    rescaled = [part.relative_to(largest) for part in parts]
    totals = torch.stack([part.totals for part in rescaled]).sum(dim=0)
    return MapSums(largest, totals, torch.stack([part.value_sums for part in rescaled]).sum(dim=0))


def _causal_context(query: Tensor, keys: Tensor, values: Tensor, offset: int) -> Tensor:
    """The context of query i from the keys j ≤ offset + i, (batch, head, query, value width)."""
    queries = query.shape[2]
    query_positions = slice(offset, offset + queries)
    before = _sum_in_chunks(keys[:, :, :offset], values[:, :, :offset])
    # A query beyond the last key has no key at its own position, so keys and values are padded.
    padding = (0, 0, 0, queries - keys[:, :, query_positions].shape[2])
    rows = (
        query.softmax(dim=-1),
        pad(keys[:, :, query_positions], padding, value=-torch.inf),
        pad(values[:, :, query_positions], padding),
    )
    contexts = []
    for start in range(0, queries, CAUSAL_CHUNK):
        features, own_keys, own_values = (part[:, :, start : start + CAUSAL_CHUNK] for part in rows)
        context, before = _chunk_context(features, own_keys, own_values, before)
        contexts.append(context)
    return contexts[0] if len(contexts) == 1 else torch.cat(contexts, dim=2)


def _chunk_context(features: Tensor, keys: Tensor, values: Tensor, before: MapSums) -> tuple[Tensor, MapSums]:
    """The contexts of one chunk of positions, and the sums up to its end.

    The keys before the chunk enter as one sum. The keys within the chunk enter by a causal product.
    """
    largest = torch.maximum(before.largest, _largest(keys).transpose(-2, -1))
    carried = before.relative_to(largest)
    exponentials = torch.exp(keys - largest.transpose(-2, -1))  # (batch, head, position, key width)
    totals = carried.totals.transpose(-2, -1) + exponentials.cumsum(dim=2)  # up to each position
    if keys.shape[2] > 1 and _too_small(totals, keys, before):
        # Each half has its own largest key. The sum of a single position that sees a key is at least 1.
        half = keys.shape[2] // 2
        first, before = _chunk_context(features[:, :, :half], keys[:, :, :half], values[:, :, :half], before)
        second, after = _chunk_context(features[:, :, half:], keys[:, :, half:], values[:, :, half:], before)
        return torch.cat([first, second], dim=2), after
    coefficients = features / totals.masked_fill(totals == 0, 1.0)  # of e^(k - h), (…, query, key width)
    within_chunk = (coefficients @ exponentials.transpose(-2, -1)).tril()  # (batch, head, query, key)
    context = coefficients @ carried.value_sums + within_chunk @ values
    value_sums = carried.value_sums + exponentials.transpose(-2, -1) @ values
    return context, MapSums(largest, totals[:, :, -1:].transpose(-2, -1), value_sums)


def _too_small(totals: Tensor, keys: Tensor, before: MapSums) -> bool:
    """Whether the sum of some position is too small to divide by, although the position sees a key."""
    small = totals < SMALLEST_TOTAL
    if not small.any():
        return False
    seen = (keys > -torch.inf).cumsum(dim=2) > 0
    return bool((small & (seen | (before.totals > 0).transpose(-2, -1))).any())
