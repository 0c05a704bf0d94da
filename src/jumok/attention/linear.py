"""Linear attention: with a kernel in the place of the softmax, all that was seen is a sum of fixed size.

    context_i = φ(q_i) Σ_j φ(k_j) v_jᵀ / φ(q_i) Σ_j φ(k_j)       Katharopoulos et al. 2020, eq. 5
    φ(x) = elu(x) + 1                                            eq. 7

The sums run over all keys, or where causal over j ≤ i (eq. 10–12). O(n · d²) time; a step of decoding costs
O(d²), however much was read before. φ is positive, so no constant is added to the divisor: it would pull
short sentences towards 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from jumok.attention.chunks import chunks_of, map_chunks
from jumok.attention.contract import Attended, Call, Mechanism, Supports
from jumok.attention.masks import look_ahead
from jumok.attention.scored import KeyValues

if TYPE_CHECKING:
    from jumok.attention.beams import Beams

__all__ = ["FeatureSums", "LinearAttention"]

# Causal sums are carried from chunk to chunk. Longer chunks have fewer sums to store, and more products of
# queries with keys.
CHUNK = 64


@dataclass(frozen=True, slots=True)
class FeatureSums:
    """The sums over all keys, and what they were summed from.

    A value has a 1 at its end, so that one sum holds both that of the values and the divisor. Keys that are
    padding are -∞: they have features of 0, and are missing from every sum.
    """

    seen: KeyValues
    summed: Tensor | None = None  # None where only steps would read the sums, and none was taken yet

    @property
    def sums(self) -> Tensor:
        """Σ φ(k) (v, 1)ᵀ, (batch, head, key width, value width + 1)."""
        return _sum_in_chunks(self.seen.keys, self.seen.values) if self.summed is None else self.summed

    @property
    def beams(self) -> Beams | None:
        return self.seen.beams

    @property
    def length(self) -> int:
        return self.seen.length

    def select(self, rows: Tensor) -> Self:
        summed = None if self.summed is None else self.summed.index_select(0, rows)
        return replace(self, seen=self.seen.select(rows), summed=summed)

    def shared(self, beams: Beams | None) -> Self:
        return replace(self, seen=self.seen.shared(beams))


class LinearAttention(Mechanism[FeatureSums]):
    """Katharopoulos' attention, by sums."""

    supports = Supports(mask=False, bias=False, dropout=False)

    def remember(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> FeatureSums:
        if allowed_keys is not None:
            keys = keys.masked_fill(~allowed_keys[:, None, :, None], -torch.inf)
        memory = FeatureSums(KeyValues(keys, values, length=keys.shape[2]))
        return memory if self.causal else replace(memory, summed=memory.sums)

    def extend(self, memory: FeatureSums, keys: Tensor, values: Tensor) -> FeatureSums:
        summed = memory.sums + _sum_in_chunks(keys, values)
        return FeatureSums(memory.seen.extend(keys, values), summed)

    def attend(self, query: Tensor, memory: FeatureSums, call: Call) -> Attended:
        if call.needs_weights:
            return self._attend_weighed(query, memory, call)
        if self.causal and memory.seen.length > call.first + 1:
            return Attended(_quotient(_causal_sums(_features(query), memory.seen, call.first)))
        return Attended(map_chunks(lambda some: _quotient(_features(some) @ memory.sums), query))

    def _attend_weighed(self, query: Tensor, memory: FeatureSums, call: Call) -> Attended:
        """The same by weights φ(q_i) φ(k_j) / Σ_j, for those who want to see or change them."""
        products = _features(query) @ _features(memory.seen.keys).transpose(-2, -1)  # (…, query, key)
        if self.causal:
            queries, keys = products.shape[-2:]
            seen = look_ahead(queries, keys, first=call.first, device=query.device)
            products = products.masked_fill(~seen, 0.0)
        weights = _divide(products, products.sum(dim=-1, keepdim=True))
        if call.edit is not None:
            weights = call.edit(weights, call.first)
        return Attended(weights @ memory.seen.values, weights if call.need_weights else None)


def _features(states: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1, which below 0 is eˣ: as a sum with 1 it would round to 0 where x < -17."""
    return torch.exp(states.clamp(max=0.0)) + torch.relu(states)


def _with_one(values: Tensor) -> Tensor:
    return pad(values, (0, 1), value=1.0)  # (batch, head, key, value width + 1)


def _sum(features: Tensor, values: Tensor) -> Tensor:
    """Σ φ(k) (v, 1)ᵀ, (…, key width, value width + 1), of features φ(k) and values (v, 1)."""
    return features.transpose(-2, -1) @ values


def _sum_in_chunks(keys: Tensor, values: Tensor) -> Tensor:
    """The same of keys and values as they were given."""
    parts = zip(chunks_of(keys), chunks_of(values), strict=True)
    return torch.stack([_sum(_features(some), _with_one(their)) for some, their in parts]).sum(dim=0)


def _causal_sums(query: Tensor, seen: KeyValues, first: int) -> Tensor:
    """φ(q_i) Σ φ(k_j) (v_j, 1)ᵀ over j ≤ first + i, (batch, head, query, value width + 1).

    A chunk of queries sees what stands before it as one sum, and of its own keys those up to each query.
    """
    queries = query.shape[2]
    size = max(1, min(CHUNK, queries))
    before = _sum_in_chunks(seen.keys[:, :, :first], seen.values[:, :, :first])
    # Keys of the queries' own places; features of 0 stand where there are none.
    own_keys, own_values = (part[:, :, first : first + queries] for part in (seen.keys, seen.values))
    parts = (query, _features(own_keys), _with_one(own_values))
    query, keys, values = (_chunks(part, queries, size) for part in parts)
    sums = torch.cat([before[:, :, None], _sum(keys, values)[:, :, :-1]], dim=2).cumsum(dim=2)
    own = (query @ keys.transpose(-2, -1)).tril()  # (batch, head, chunk, query, key)
    return (query @ sums + own @ values).flatten(2, 3)[:, :, :queries]


def _chunks(rows: Tensor, length: int, size: int) -> Tensor:
    """(batch, head, row, width) -> (batch, head, chunk, size, width), with 0 after the last row."""
    batch, head, present, width = rows.shape
    chunks = -(-length // size)
    return pad(rows, (0, 0, 0, chunks * size - present)).reshape(batch, head, chunks, size, width)


def _quotient(sums: Tensor) -> Tensor:
    """The context from φ(q) Σ φ(k) (v, 1)ᵀ: the sum of the values divided by that of the ones."""
    return _divide(sums[..., :-1], sums[..., -1:])


def _divide(shares: Tensor, total: Tensor) -> Tensor:
    """`shares / total`; 0, with a gradient of 0, where the total is 0 since there was nothing to see."""
    return shares / total.masked_fill(total == 0, 1.0)
