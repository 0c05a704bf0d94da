"""From scores to context: the part that every softmax mechanism shares.

    weights = softmax(scores + bias), over the allowed keys
    context = dropout(edit(weights)) · values

A new score overrides `scores(query, keys)`, and `prepare_keys` if a part of the score depends on the keys
alone. A mechanism whose weights are not the softmax of its scores overrides `normalise`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from jumok.attention.contract import Attended, Call, Mechanism
from jumok.attention.masks import causal_mask, combine_masks, masked_softmax

if TYPE_CHECKING:
    from jumok.attention.beams import Beams


@dataclass(frozen=True, slots=True)
class KeyValues:
    """All keys and values of a batch. The tensors may have spare capacity after `length` keys.

    `extend` writes into the spare capacity, so a memory may be extended only once.
    """

    stored_keys: Tensor  # (batch, head, capacity, width)
    stored_values: Tensor  # (batch, head, capacity, width)
    length: int
    allowed: Tensor | None = None  # (batch, length) bool
    beams: Beams | None = None  # which row of keys each row of queries reads; None: row r reads row r

    @property
    def keys(self) -> Tensor:
        return self.stored_keys[:, :, : self.length]  # (batch, head, key, width)

    @property
    def values(self) -> Tensor:
        return self.stored_values[:, :, : self.length]  # (batch, head, key, width)

    @property
    def unpadded_lengths(self) -> Tensor:
        """The number of keys of each row that are not padding, (batch,)."""
        if self.allowed is None:
            return torch.full((len(self.stored_keys),), self.length, device=self.stored_keys.device)
        return self.allowed.sum(dim=1)

    def select(self, rows: Tensor) -> Self:
        return replace(
            self,
            stored_keys=self.stored_keys.index_select(0, rows),
            stored_values=self.stored_values.index_select(0, rows),
            allowed=None if self.allowed is None else self.allowed.index_select(0, rows),
        )

    def with_beams(self, beams: Beams | None) -> Self:
        return replace(self, beams=beams)

    def extend(self, keys: Tensor, values: Tensor) -> Self:
        """Append keys and values (batch, head, added, width). All of them are allowed."""
        length = self.length + keys.shape[2]
        allowed = self.allowed
        if allowed is not None:
            allowed = torch.cat([allowed, allowed.new_ones(len(allowed), keys.shape[2])], dim=1)
        return replace(
            self,
            stored_keys=_append(self.stored_keys, self.length, keys),
            stored_values=_append(self.stored_values, self.length, values),
            length=length,
            allowed=allowed,
        )


def _append(stored: Tensor, used: int, added: Tensor) -> Tensor:
    """Write `added` after the first `used` positions.

    If the capacity is too small, it becomes twice the new length, so n steps copy O(n) positions in total.
    With gradients there is no spare capacity, and every step copies all positions.
    """
    if added.requires_grad or stored.requires_grad:
        return torch.cat([stored[:, :, :used], added], dim=2)
    length = used + added.shape[2]
    if length > stored.shape[2]:
        batch, head, _, width = added.shape
        larger = added.new_empty(batch, head, max(8, 2 * length), width)
        larger[:, :, :used] = stored[:, :, :used]
        stored = larger
    stored[:, :, used:length] = added
    return stored


class SoftmaxMechanism(Mechanism[KeyValues]):
    """A softmax over scores of queries against keys."""

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """The score of each query with each (prepared) key, (batch, head, query, key)."""

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """The part of the score that depends on the keys alone; the keys themselves unless overridden."""
        return keys

    def build_memory(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> KeyValues:
        return KeyValues(self.prepare_keys(keys), values, length=keys.shape[2], allowed=allowed_keys)

    def extend(self, memory: KeyValues, keys: Tensor, values: Tensor) -> KeyValues:
        return memory.extend(self.prepare_keys(keys), values)

    def normalise(
        self, scores: Tensor, allowed: Tensor | None, *, query: Tensor, memory: KeyValues, query_offset: int
    ) -> Tensor:
        """Weights from scores (batch, head, query, key): the softmax over the allowed keys."""
        return masked_softmax(scores, allowed)

    def attend(self, query: Tensor, memory: KeyValues, call: Call) -> Attended:
        allowed = self.allowed(query, memory, call)
        scores = self.scores(query, memory.keys)  # (batch, head, query, key)
        scores = scores if call.bias is None else scores + call.bias
        weights = self.normalise(scores, allowed, query=query, memory=memory, query_offset=call.query_offset)
        if call.edit is not None:
            weights = call.edit(weights, call.query_offset)
        context = self.dropout(weights) @ memory.values  # (batch, head, query, width)
        return Attended(context, weights if call.need_weights else None)

    def allowed(self, query: Tensor, memory: KeyValues, call: Call) -> Tensor | None:
        """The call's mask, the padding mask of the memory and the causal mask, combined."""
        padding = None if memory.allowed is None else memory.allowed[:, None, None]  # (batch, 1, 1, key)
        causal = None
        if self.causal and memory.length > call.query_offset + 1:
            causal = causal_mask(
                query.shape[2], memory.length, query_offset=call.query_offset, device=query.device
            )
        combined = combine_masks(padding, causal, call.allowed)
        # A mask (key,) gets an axis of queries, which torch's fused kernel needs.
        return combined[None] if combined is not None and combined.dim() < 2 else combined
