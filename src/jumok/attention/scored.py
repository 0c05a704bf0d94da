"""From scores to context: the part that every softmax mechanism shares.

    weights = softmax(scores + bias), over the allowed keys
    context = dropout(edit(weights)) · values

A new score is one short override: `scores(query, keys)`, and `prepare_keys` where a part of the score depends
on the keys alone. What turns scores into weights otherwise than by softmax overrides `normalise`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from jumok.attention.contract import Attended, Call, Mechanism
from jumok.attention.masks import all_allowed, look_ahead, masked_softmax

if TYPE_CHECKING:
    from jumok.attention.beams import Beams

__all__ = ["KeyValues", "Scored"]


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Every key and value of a batch. The tensors may have room for more: only `length` keys count."""

    stored_keys: Tensor  # (batch, head, room, width)
    stored_values: Tensor  # (batch, head, room, width)
    length: int
    allowed: Tensor | None = None  # (batch, length) bool
    beams: Beams | None = None

    @property
    def keys(self) -> Tensor:
        return self.stored_keys[:, :, : self.length]  # (batch, head, key, width)

    @property
    def true_lengths(self) -> Tensor:
        """How many keys of each row are no padding, (batch,)."""
        if self.allowed is None:
            return torch.full((len(self.stored_keys),), self.length, device=self.stored_keys.device)
        return self.allowed.sum(dim=1)

    @property
    def values(self) -> Tensor:
        return self.stored_values[:, :, : self.length]  # (batch, head, key, width)

    def select(self, rows: Tensor) -> Self:
        return replace(
            self,
            stored_keys=self.stored_keys.index_select(0, rows),
            stored_values=self.stored_values.index_select(0, rows),
            allowed=None if self.allowed is None else self.allowed.index_select(0, rows),
        )

    def shared(self, beams: Beams | None) -> Self:
        return replace(self, beams=beams)

    def extend(self, keys: Tensor, values: Tensor) -> Self:
        """Add keys and values (batch, head, added, width) at the end."""
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
    """`added` after the first `used` places of `stored`; the room doubles, so that n steps copy O(n)."""
    if added.requires_grad or stored.requires_grad:
        return torch.cat([stored[:, :, :used], added], dim=2)
    length = used + added.shape[2]
    if length > stored.shape[2]:
        batch, head, _, width = added.shape
        roomier = added.new_empty(batch, head, max(8, 2 * length), width)
        roomier[:, :, :used] = stored[:, :, :used]
        stored = roomier
    stored[:, :, used:length] = added
    return stored


class Scored(Mechanism[KeyValues]):
    """A softmax over scores of queries against keys."""

    @abstractmethod
    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """How well each query goes with each (prepared) key, (batch, head, query, key)."""

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """The part of the score that depends on the keys alone; the keys themselves unless overridden."""
        return keys

    def remember(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> KeyValues:
        return KeyValues(self.prepare_keys(keys), values, length=keys.shape[2], allowed=allowed_keys)

    def extend(self, memory: KeyValues, keys: Tensor, values: Tensor) -> KeyValues:
        return memory.extend(self.prepare_keys(keys), values)

    def normalise(
        self, scores: Tensor, allowed: Tensor | None, *, query: Tensor, memory: KeyValues, first: int
    ) -> Tensor:
        """Weights from scores (batch, head, query, key): the softmax over the allowed keys."""
        return masked_softmax(scores, allowed)

    def attend(self, query: Tensor, memory: KeyValues, call: Call) -> Attended:
        allowed = self.allowed(query, memory, call)
        scores = self.scores(query, memory.keys)  # (batch, head, query, key)
        scores = scores if call.bias is None else scores + call.bias
        weights = self.normalise(scores, allowed, query=query, memory=memory, first=call.first)
        if call.edit is not None:
            weights = call.edit(weights, call.first)
        context = self.dropout(weights) @ memory.values  # (batch, head, query, width)
        return Attended(context, weights if call.need_weights else None)

    def allowed(self, query: Tensor, memory: KeyValues, call: Call) -> Tensor | None:
        """The masks of the call, of the memory's padding and of causality in one."""
        padded = None if memory.allowed is None else memory.allowed[:, None, None]  # (batch, 1, 1, key)
        causal = None
        if self.causal and memory.length > call.first + 1:
            causal = look_ahead(query.shape[2], memory.length, first=call.first, device=query.device)
        every = all_allowed(padded, causal, call.allowed)
        return every[None] if every is not None and every.dim() < 2 else every
