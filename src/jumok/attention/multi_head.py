"""Multi-head attention: several small attentions side by side, each in its own projection of the states.

    MultiHead(Q, K, V) = Concat(head₁ … headₕ) W_O
    headᵢ = Attention(Q W_Qᵢ, K W_Kᵢ, V W_Vᵢ)                    Vaswani et al. 2017, section 3.2.2

How a head attends is a `Mechanism` that is handed in; scaled dot product is the paper's. The projections are
three matrix products also where queries, keys and values are the same states: on a processor one product of
three times the width takes the same time, and its gradients would have to be put together again.

The widths are free but for two: queries and keys share one, and so do the values and what W_O takes. Heads
may share keys and values in groups (Ainslie et al. 2023, "GQA"); one group for all heads is multi-query
attention (Shazeer 2019, "Fast Transformer decoding").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from jumok.attention.contract import Attended, Attention, Call, Mechanism, Memory
from jumok.attention.positions import HeadPositions
from jumok.errors import UnsupportedError

__all__ = ["MultiHead", "Widths", "attend_over_axes"]


@dataclass(frozen=True, slots=True)
class Widths:
    """How wide everything is. `key` and `value` are of one head; queries are as wide as keys."""

    query_states: int
    source_states: int
    key: int
    value: int
    output: int

    @classmethod
    def of(cls, width: int, heads: int) -> Widths:
        """The paper's: one width for all states, which the heads share evenly."""
        if heads < 1:
            raise UnsupportedError(f"Attention has one head or more. Received: heads = {heads}.")
        if width % heads:
            fitting = ", ".join(str(number) for number in range(1, 65) if width % number == 0)
            raise UnsupportedError(
                f"{heads} heads cannot share a width of {width} evenly. Heads that can: {fitting}."
            )
        return cls(width, width, width // heads, width // heads, width)


class MultiHead(Attention):
    """The projections W_Q, W_K, W_V and W_O round a mechanism.

    There are no biases unless asked for, as in the paper: so a query that may see nothing gets a context of
    exactly 0. With a bias it gets that of W_O. `positions` are told to a self-attention: query and key i are
    then those of one place.
    """

    def __init__(
        self,
        *,
        width: int | Widths,
        heads: int,
        mechanism: Mechanism[Any],
        groups: int | None = None,
        bias: bool = False,
        positions: HeadPositions | None = None,
    ) -> None:
        super().__init__()
        widths = Widths.of(width, heads) if isinstance(width, int) else width
        groups = heads if groups is None else groups
        if groups < 1 or heads % groups:
            raise UnsupportedError(
                f"{heads} heads cannot share their keys and values evenly in {groups} groups. "
                f"Choose a number of groups that divides {heads}."
            )
        self.heads, self.groups = heads, groups
        self.supports = mechanism.supports
        self.mechanism = mechanism
        self.positions = HeadPositions() if positions is None else positions
        self.query = nn.Linear(widths.query_states, heads * widths.key, bias=bias)
        self.key = nn.Linear(widths.source_states, groups * widths.key, bias=bias)
        self.value = nn.Linear(widths.source_states, groups * widths.value, bias=bias)
        self.out = nn.Linear(heads * widths.value, widths.output, bias=bias)
        for projection in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(projection.weight)
            if bias:
                nn.init.zeros_(projection.bias)

    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None = None) -> Memory:
        keys, values = self._keys_and_values(keys, values, first=0)
        memory: Memory = self.mechanism.prepare(keys, values, allowed_keys)
        return memory

    def extend(self, memory: Memory, keys: Tensor, values: Tensor) -> Memory:
        keys, values = self._keys_and_values(keys, values, first=memory.length)
        extended: Memory = self.mechanism.extend(memory, keys, values)
        return extended

    def respond(self, query: Tensor, memory: Memory, call: Call) -> Attended:
        queries = self.positions.turn(_split(self.query(query), self.heads), call.first)
        scale = self.mechanism.scale(queries.shape[-1])
        bias = self.positions.bias(queries, memory.length, call.first, scale)
        if bias is not None:
            call = replace(call, bias=bias if call.bias is None else bias + call.bias)
        return self._merge(self.mechanism.respond(queries, memory, call))

    def _keys_and_values(self, keys: Tensor, values: Tensor, *, first: int) -> tuple[Tensor, Tensor]:
        return self.positions.turn(self._shared(self.key(keys)), first), self._shared(self.value(values))

    def _shared(self, states: Tensor) -> Tensor:
        """Keys or values for every head: neighbouring heads read those of their group."""
        split = _split(states, self.groups)
        return (
            split if self.groups == self.heads else split.repeat_interleave(self.heads // self.groups, dim=1)
        )

    def _merge(self, attended: Attended) -> Attended:
        """The heads side by side again, (batch, query, width), through W_O."""
        merged = attended.context.transpose(1, 2).flatten(2)  # (batch, query, head × width of a head)
        return Attended(self.out(merged), attended.weights)


def _split(states: Tensor, heads: int) -> Tensor:
    """(batch, length, width) -> (batch, head, length, width of a head)."""
    batch, length, width = states.shape
    return states.view(batch, length, heads, width // heads).transpose(1, 2)


def attend_over_axes(
    attention: Attention, states: Tensor, axes: tuple[int, ...], *, need_weights: bool = False
) -> Attended:
    """Self-attention over several axes of states (…, width) at once, as over one; all others are batch.

    Axes count the batch as 0. The context has the shape of the states. Weights are (batch …, head, query …,
    key …) with the attended axes in the order given, as in Keras.
    """
    inner = range(1, states.dim() - 1)
    if not axes or len(set(axes)) != len(axes) or any(axis not in inner for axis in axes):
        raise UnsupportedError(
            f"Attention goes over different axes between the batch (0) and the width ({states.dim() - 1}). "
            f"Received: {axes} for states of shape {tuple(states.shape)}."
        )
    outer = [axis for axis in range(states.dim() - 1) if axis not in axes]
    order = [*outer, *axes, states.dim() - 1]
    moved = states.permute(order)  # (outer …, axis …, width)
    batch, lengths = moved.shape[: len(outer)], moved.shape[len(outer) : -1]
    flat = moved.reshape(batch.numel(), lengths.numel(), states.shape[-1])
    attended = attention.attend_self(flat, need_weights=need_weights)
    back = [order.index(axis) for axis in range(states.dim())]
    context = attended.context.view(*batch, *lengths, attended.context.shape[-1]).permute(back)
    weights = attended.weights
    if weights is not None:
        weights = weights.view(*batch, attention.heads, *lengths, *lengths)
    return Attended(context, weights)
