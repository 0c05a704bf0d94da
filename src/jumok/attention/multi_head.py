"""Multi-head attention: several small attentions in parallel, each with its own projection of the states.

    MultiHead(Q, K, V) = Concat(head₁ … headₕ) W_O
    headᵢ = Attention(Q W_Qᵢ, K W_Kᵢ, V W_Vᵢ)                    Vaswani et al. 2017, section 3.2.2

A `Mechanism` decides how a head attends; the paper's is scaled dot product. The projections are three
matrix products even if queries, keys and values are the same states: on a CPU one product of three times the
width takes the same time, and its gradients would have to be concatenated again.

The widths are free, except that the queries of a head are as wide as its keys, and that the input of W_O is
as wide as the values of all heads. Heads may share keys and values in groups (Ainslie et al. 2023, "GQA");
one group for all heads is multi-query attention (Shazeer 2019, "Fast Transformer decoding").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from torch import Tensor, nn

from jumok.attention.contract import Attended, Attention, Call, Mechanism, Memory
from jumok.attention.initialisers import find_initialiser
from jumok.attention.positions import HeadPositions
from jumok.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Widths:
    """The widths of states and heads. `key` and `value` are per head; queries are as wide as keys.

    `output` may be a shape: contexts are then (batch, query, *output).
    """

    query_states: int
    source_states: int
    key: int
    value: int
    output: int | tuple[int, ...]

    @classmethod
    def of(cls, width: int, heads: int, *, key: int | None = None, value: int | None = None) -> Widths:
        """One width for all states, shared evenly by the heads. `key` and `value` replace the even share."""
        if heads < 1:
            raise UnsupportedError(f"Attention needs at least one head. Received: heads = {heads}.")
        if width % heads and (key is None or value is None):
            divisors = ", ".join(str(number) for number in range(1, 65) if width % number == 0)
            raise UnsupportedError(
                f"{heads} heads cannot share a width of {width} evenly. Possible numbers of heads up to 64: "
                f"{divisors}. Other numbers need a key width and a value width of their own."
            )
        share = width // heads
        return cls(width, width, share if key is None else key, share if value is None else value, width)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.output,) if isinstance(self.output, int) else self.output


class ProjectionOptions(TypedDict, total=False):
    """The keywords of `MultiHead` that concern its projections only."""

    groups: int | None
    bias: bool
    initialiser: str
    bias_initialiser: str


class MultiHead(Attention):
    """The projections W_Q, W_K, W_V and W_O around a mechanism.

    There are no biases by default, as in the paper, so a query that has no allowed key gets a context of
    exactly 0. With `bias` its context is the bias of W_O. `positions` are for self-attention, where query i
    and key i have the same position. `initialiser` is a name of `INITIALISERS`, for the four matrices;
    `bias_initialiser` is one for their biases.
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
        initialiser: str = "xavier-uniform",
        bias_initialiser: str = "zeros",
    ) -> None:
        super().__init__()
        widths = Widths.of(width, heads) if isinstance(width, int) else width
        groups = heads if groups is None else groups
        if groups < 1 or heads % groups:
            raise UnsupportedError(
                f"{heads} heads cannot share their keys and values evenly in {groups} groups. "
                f"Choose a number of groups that divides {heads}."
            )
        if min(widths.key, widths.value, len(widths.output_shape), *widths.output_shape) < 1:
            raise UnsupportedError(f"Every width of attention must be at least 1. Received: {widths}.")
        self.heads, self.groups = heads, groups
        self.output_shape = widths.output_shape
        self.supports = mechanism.supports
        self.mechanism = mechanism
        self.positions = HeadPositions() if positions is None else positions
        self.query = nn.Linear(widths.query_states, heads * widths.key, bias=bias)
        self.key = nn.Linear(widths.source_states, groups * widths.key, bias=bias)
        self.value = nn.Linear(widths.source_states, groups * widths.value, bias=bias)
        self.out = nn.Linear(heads * widths.value, math.prod(widths.output_shape), bias=bias)
        initialise, initialise_bias = find_initialiser(initialiser), find_initialiser(bias_initialiser)
        for projection in (self.query, self.key, self.value, self.out):
            initialise(projection.weight)
            if bias:
                initialise_bias(projection.bias)

    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None = None) -> Memory:
        keys, values = self._project_keys_and_values(keys, values, offset=0)
        memory: Memory = self.mechanism.prepare(keys, values, allowed_keys)
        return memory

    def extend(self, memory: Memory, keys: Tensor, values: Tensor) -> Memory:
        keys, values = self._project_keys_and_values(keys, values, offset=memory.length)
        extended: Memory = self.mechanism.extend(memory, keys, values)
        return extended

    def forward_call(self, query: Tensor, memory: Memory, call: Call) -> Attended:
        queries = self.positions.rotate(_split_heads(self.query(query), self.heads), call.query_offset)
        scale = self.mechanism.scale(queries.shape[-1])
        bias = self.positions.bias(queries, memory.length, call.query_offset, scale)
        if bias is not None:
            call = replace(call, bias=bias if call.bias is None else bias + call.bias)
        return self._merge_heads(self.mechanism.forward_call(queries, memory, call))

    def _project_keys_and_values(self, keys: Tensor, values: Tensor, *, offset: int) -> tuple[Tensor, Tensor]:
        keys = self.positions.rotate(self._split_groups(self.key(keys)), offset)
        return keys, self._split_groups(self.value(values))

    def _split_groups(self, states: Tensor) -> Tensor:
        """Keys or values for every head. Heads of a group are adjacent and have the same keys and values."""
        split = _split_heads(states, self.groups)
        return (
            split if self.groups == self.heads else split.repeat_interleave(self.heads // self.groups, dim=1)
        )

    def _merge_heads(self, attended: Attended) -> Attended:
        """Concatenate the heads and apply W_O: (batch, query, width), or (batch, query, *output shape)."""
        merged = attended.context.transpose(1, 2).flatten(2)  # (batch, query, head × width of a head)
        output: Tensor = self.out(merged)
        if len(self.output_shape) > 1:
            output = output.view(*output.shape[:-1], *self.output_shape)
        return Attended(output, attended.weights)


def _split_heads(states: Tensor, heads: int) -> Tensor:
    """(batch, length, width) -> (batch, head, length, width of a head)."""
    batch, length, width = states.shape
    return states.view(batch, length, heads, width // heads).transpose(1, 2)
