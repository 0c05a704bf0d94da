"""Linear attention: with a kernel instead of the softmax, all keys and values reduce to a sum of fixed size.

    context_i = φ(q_i) Σ_j φ(k_j) v_jᵀ / φ(q_i) Σ_j φ(k_j)       Katharopoulos et al. 2020, eq. 5
    φ(x) = elu(x) + 1                                            eq. 7

The sums run over all keys, or over j ≤ i if causal (eq. 10–12). O(n · d²) time; one decoding step costs O(d²)
for any number of earlier keys. φ is positive, so no constant is added to the divisor: a constant would
shrink the context towards 0 where the features are small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from jumok.attention.chunks import map_chunks, split_chunks
from jumok.attention.contract import Attended, Call, Mechanism, Supports
from jumok.attention.masks import causal_mask
from jumok.attention.scored import KeyValues

if TYPE_CHECKING:
    from jumok.attention.beams import Beams

# Number of positions per chunk of a causal sum, which is carried from chunk to chunk. Longer chunks store
# fewer sums and compute more products of queries with keys.
CAUSAL_CHUNK = 64


@dataclass(frozen=True, slots=True)
class FeatureSums:
    """The sums over all keys, and the keys and values that they are computed from.

    For the sums a 1 is appended to each value, so that one sum holds the sum of the values and the divisor.
    Keys that are padding are -∞: their features are 0, and they do not enter any sum. After `prepare` of a
    causal mechanism, `cached_sums` is None: causal attention over whole sentences does not use the sums over
    all keys.
    """

    key_values: KeyValues
    cached_sums: Tensor | None = None

    @property
    def sums(self) -> Tensor:
        """Σ φ(k) (v, 1)ᵀ, (batch, head, key width, value width + 1)."""
        if self.cached_sums is None:
            return _sum_in_chunks(self.key_values.keys, self.key_values.values)
        return self.cached_sums

    @property
    def beams(self) -> Beams | None:
        return self.key_values.beams

    @property
    def length(self) -> int:
        return self.key_values.length

    def select(self, rows: Tensor) -> Self:
        sums = None if self.cached_sums is None else self.cached_sums.index_select(0, rows)
        return replace(self, key_values=self.key_values.select(rows), cached_sums=sums)

    def with_beams(self, beams: Beams | None) -> Self:
        return replace(self, key_values=self.key_values.with_beams(beams))


class LinearAttention(Mechanism[FeatureSums]):
    """Katharopoulos' attention, computed from sums."""

    supports = Supports(mask=False, bias=False, dropout=False)

    def build_memory(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> FeatureSums:
        if allowed_keys is not None:
            keys = keys.masked_fill(~allowed_keys[:, None, :, None], -torch.inf)
        memory = FeatureSums(KeyValues(keys, values, length=keys.shape[2]))
        return memory if self.causal else replace(memory, cached_sums=memory.sums)

    def extend(self, memory: FeatureSums, keys: Tensor, values: Tensor) -> FeatureSums:
        sums = memory.sums + _sum_in_chunks(keys, values)
        return FeatureSums(memory.key_values.extend(keys, values), sums)

    def attend(self, query: Tensor, memory: FeatureSums, call: Call) -> Attended:
        if call.must_form_weights:
            return self._attend_by_weights(query, memory, call)
        if self.causal and memory.length > call.query_offset + 1:
            return Attended(_quotient(_causal_sums(_features(query), memory.key_values, call.query_offset)))
        return Attended(map_chunks(lambda chunk: _quotient(_features(chunk) @ memory.sums), query))

    def _attend_by_weights(self, query: Tensor, memory: FeatureSums, call: Call) -> Attended:
        """The same as `attend`, from weights φ(q_i) φ(k_j) / Σ_j φ(q_i) φ(k_j), to report or edit them."""
        products = _features(query) @ _features(memory.key_values.keys).transpose(-2, -1)  # (…, query, key)
        if self.causal:
            queries, keys = products.shape[-2:]
            allowed = causal_mask(queries, keys, query_offset=call.query_offset, device=query.device)
            products = products.masked_fill(~allowed, 0.0)
        weights = _divide(products, products.sum(dim=-1, keepdim=True))
        if call.edit is not None:
            weights = call.edit(weights, call.query_offset)
        return Attended(weights @ memory.key_values.values, weights if call.need_weights else None)


def _features(states: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1, computed as eˣ for x < 0, because elu(x) + 1 rounds to 0 for x < -17."""
    return torch.exp(states.clamp(max=0.0)) + torch.relu(states)


def _append_one(values: Tensor) -> Tensor:
    return pad(values, (0, 1), value=1.0)  # (batch, head, key, value width + 1)


def _sum(features: Tensor, values: Tensor) -> Tensor:
    """Σ φ(k) (v, 1)ᵀ, (…, key width, value width + 1), from features φ(k) and values (v, 1)."""
    return features.transpose(-2, -1) @ values


def _sum_in_chunks(keys: Tensor, values: Tensor) -> Tensor:
    """Σ φ(k) (v, 1)ᵀ from keys k and values v."""
    chunks = zip(split_chunks(keys), split_chunks(values), strict=True)
    sums = [_sum(_features(chunk_keys), _append_one(chunk_values)) for chunk_keys, chunk_values in chunks]
    return torch.stack(sums).sum(dim=0)


def _causal_sums(query_features: Tensor, key_values: KeyValues, offset: int) -> Tensor:
    """φ(q_i) Σ φ(k_j) (v_j, 1)ᵀ over j ≤ offset + i, (batch, head, query, value width + 1).

    The keys before a chunk of queries enter as one sum. The keys within the chunk enter by a causal product.
    """
    all_keys, all_values = key_values.keys, key_values.values
    queries = query_features.shape[2]
    size = max(1, min(CAUSAL_CHUNK, queries))
    before = _sum_in_chunks(all_keys[:, :, :offset], all_values[:, :, :offset])
    # The keys at the queries' own positions; beyond the last key `_chunks` pads with features of 0.
    own_keys, own_values = (part[:, :, offset : offset + queries] for part in (all_keys, all_values))
    parts = (query_features, _features(own_keys), _append_one(own_values))
    query, keys, values = (_chunks(part, queries, size) for part in parts)
    sums = torch.cat([before[:, :, None], _sum(keys, values)[:, :, :-1]], dim=2).cumsum(dim=2)
    within_chunk = (query @ keys.transpose(-2, -1)).tril()  # (batch, head, chunk, query, key)
    return (query @ sums + within_chunk @ values).flatten(2, 3)[:, :, :queries]


def _chunks(rows: Tensor, length: int, size: int) -> Tensor:
    """(batch, head, row, width) -> (batch, head, chunk, size, width), with enough chunks for `length` rows.

    Rows of 0 follow the last row.
    """
    batch, head, num_rows, width = rows.shape
    chunks = -(-length // size)
    return pad(rows, (0, 0, 0, chunks * size - num_rows)).reshape(batch, head, chunks, size, width)


def _quotient(sums: Tensor) -> Tensor:
    """The context from φ(q) Σ φ(k) (v, 1)ᵀ: the sum of the values divided by the sum of the ones."""
    return _divide(sums[..., :-1], sums[..., -1:])


def _divide(numerator: Tensor, total: Tensor) -> Tensor:
    """`numerator / total`; 0, with gradient 0, if the total is 0, e.g. because no key is allowed."""
    return numerator / total.masked_fill(total == 0, 1.0)
