"""The contract of every attention.

Models, search and viewers work with every mechanism, because they need only the methods of the contract. Some
features (faster kernels, the steps on the page, exports) exist for certain mechanisms only. The contract has
two levels with the same methods:

    Mechanism   how a head weighs values, given its queries, keys and values    (batch, head, length, width)
    Attention   what a model calls: projections, heads, output projection       (batch, length, width)

    memory   = attention.prepare(keys, values, allowed_keys)      once per sentence, for cross-attention
    memory   = attention.extend(memory, keys, values)             one step of cached self-attention
    attended = attention(query, memory, *, allowed, bias, query_offset, edit, need_weights)

Nothing is stored on a module during a call: a memory is a value that the caller holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from jumok.attention.masks import combine_masks, require_bool
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from jumok.attention.beams import Beams


@dataclass(frozen=True, slots=True)
class Attended:
    """The result of attending. Weights are per head and before dropout; None unless requested."""

    context: Tensor  # (batch, query, width); of a mechanism (batch, head, query, width)
    weights: Tensor | None = None  # (batch, head, query, key)


@dataclass(frozen=True, slots=True)
class Supports:
    """What a mechanism can do, as data that callers check before a call."""

    causal: bool = True
    cross: bool = True  # queries of one sequence with keys of another sequence
    weights: bool = True  # weights are returned on request
    incremental: bool = True  # a memory can be extended
    mask: bool = True  # the argument `allowed` of a call; `prepare` always supports a mask of padding
    bias: bool = True  # a number that is added to the scores
    edit: bool = True  # a function that replaces the weights
    dropout: bool = True  # dropout of weights, which is impossible if no weights are formed
    left_padding: bool = True  # padding may precede the keys: weights do not depend on absolute positions
    products: bool = False  # scores are products qᵀk; rotary positions need such scores
    widths: bool = False  # queries and keys may have different widths

    def missing(self, *needs: str) -> list[str]:
        """Return the names in `needs` that are not supported. A name that is not a field is not supported."""
        known = {field.name for field in fields(self)}
        return [need for need in needs if need not in known or not getattr(self, need)]


class Memory(Protocol):
    """The keys and values of a batch as a mechanism stores them, in some mechanisms with sums over all keys.

    If `beams` is set, several rows of queries read one row of the memory without a copy of that row.
    """

    @property
    def beams(self) -> Beams | None: ...

    @property
    def length(self) -> int:
        """The number of keys, padding included."""
        ...

    def select(self, rows: Tensor) -> Self:
        """Return a memory whose row r is row `rows[r]` of this memory. Rows can be repeated or left out."""
        ...

    def with_beams(self, beams: Beams | None) -> Self:
        """The same memory, for the rows of queries that `beams` describes."""
        ...


@dataclass(frozen=True, slots=True)
class AttentionSite:
    """Where in a model weights were computed, for which sentences and from which position on."""

    name: str  # "encoder", "decoder" or "cross"
    layer: int  # counted from 0
    rows: Tensor  # (row,) int64: the sentence of the batch that each row of the weights belongs to
    query_offset: int  # absolute position of the first query


class Edit(Protocol):
    """Rewrites weights between softmax and dropout: silences a head, paints or pins weights."""

    def __call__(self, weights: Tensor, site: AttentionSite, /) -> Tensor:
        """Return the weights (row, head, query, key) that replace `weights`."""
        ...


WeightEdit: TypeAlias = Callable[[Tensor, int], Tensor]
"""An edit bound to one site, layer and set of rows: takes the weights and the query offset."""


def bind_edit(edit: Edit | None, *, site: str, layer: int, rows: Tensor) -> WeightEdit | None:
    """Bind the edit to one site and layer of a model. An attention does not store its site or its layer."""
    if edit is None:
        return None
    return lambda weights, offset: edit(weights, AttentionSite(site, layer, rows, query_offset=offset))


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one call besides query and memory. The fields are the keywords of `forward`."""

    allowed: Tensor | None = None
    bias: Tensor | None = None
    query_offset: int = 0
    edit: WeightEdit | None = None
    need_weights: bool = False

    @property
    def must_form_weights(self) -> bool:
        """Whether the weights must be formed: to report or edit them, or to add a bias to the scores."""
        return self.need_weights or self.edit is not None or self.bias is not None


@dataclass(frozen=True, slots=True)
class HeadShape:
    """The number of heads and the widths of one head's queries and keys, for mechanisms with parameters."""

    heads: int
    query: int
    key: int


class AttentionBase(nn.Module, ABC):
    """The `forward` of both levels of the contract, which packs its keywords into a `Call`."""

    def forward(
        self,
        query: Tensor,
        memory: Any,
        *,
        allowed: Tensor | None = None,
        bias: Tensor | None = None,
        query_offset: int = 0,
        edit: WeightEdit | None = None,
        need_weights: bool = False,
    ) -> Attended:
        """Attend from `query` to the memory.

        `allowed` (bool) and `bias` (float, added to the scores) broadcast to (batch, head, query, key);
        `query_offset` is the absolute position of the first query. A bias of -∞ masks its key.
        """
        if bias is not None and (hidden := torch.isneginf(bias)).any():
            # The softmax of a row of only -∞ is NaN; a mask that allows no key gives weights of 0.
            allowed, bias = combine_masks(allowed, ~hidden), bias.masked_fill(hidden, 0.0)
        return self.forward_call(query, memory, Call(allowed, bias, query_offset, edit, need_weights))

    @abstractmethod
    def forward_call(self, query: Tensor, memory: Any, call: Call) -> Attended:
        """The same as `forward`, with the keywords in a `Call`."""


MemoryT = TypeVar("MemoryT", bound=Memory)


class Mechanism(AttentionBase, Generic[MemoryT]):
    """How each head weighs values. A new mechanism defines `supports`, `build_memory`, `extend` and `attend`.

    In a `causal` mechanism a query attends to keys up to its own position and to none after it. `dropout` is
    applied to the weights after edits; the reported weights are the edited weights before dropout.
    Mechanisms with parameters need `shape`.
    """

    supports: ClassVar[Supports] = Supports()

    def __init__(
        self, shape: HeadShape | None = None, *, causal: bool = False, dropout: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.shape = shape
        if shape is not None and shape.query != shape.key and not self.supports.widths:
            raise UnsupportedError(
                f"{type(self).__name__} needs queries and keys of the same width. Received: queries of width "
                f'{shape.query} and keys of width {shape.key}. "luong-general" allows different widths.'
            )
        requested = {"causal": causal, "dropout": dropout is not None}
        self._require(*(need for need, wanted in requested.items() if wanted))
        self.causal = causal
        self.dropout = dropout if dropout is not None else nn.Identity()

    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> MemoryT:
        """The memory of keys and values (batch, head, key, width); `allowed_keys` is a mask (batch, key)."""
        if allowed_keys is not None:
            require_bool(allowed_keys)
        return self.build_memory(keys, values, allowed_keys)

    @abstractmethod
    def build_memory(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> MemoryT:
        """Build the memory for `prepare`, which has checked that `allowed_keys` is bool."""

    def scale(self, width: int) -> float:
        """The factor that turns products of queries and keys of this width into scores; 1 by default."""
        return 1.0

    @abstractmethod
    def extend(self, memory: MemoryT, keys: Tensor, values: Tensor) -> MemoryT:
        """The memory with keys and values appended. Consumes `memory`: do not use it afterwards."""

    @abstractmethod
    def attend(self, query: Tensor, memory: MemoryT, call: Call) -> Attended:
        """The mechanism itself, with one row of memory for each row of queries."""

    def forward_call(self, query: Tensor, memory: MemoryT, call: Call) -> Attended:
        """Check that the mechanism supports the call, and attend.

        Rows of queries that read the same row of memory are grouped, or this row is copied for each of them.
        """
        requested = {
            "mask": call.allowed is not None,
            "bias": call.bias is not None,
            "edit": call.edit is not None,
            "weights": call.need_weights,
        }
        self._require(*(need for need, wanted in requested.items() if wanted))
        beams = memory.beams
        if beams is None:
            return self.attend(query, memory, call)
        if not self.causal and call.allowed is None and call.bias is None and call.edit is None:
            return self._attend_grouped(query, memory, beams, call)
        # A mask, bias or edit may differ between rows, so each row needs its own row of memory. If causal,
        # queries in one row would count as consecutive positions.
        return self.attend(query, memory.select(beams.sentence).with_beams(None), call)

    def _attend_grouped(self, query: Tensor, memory: MemoryT, beams: Beams, call: Call) -> Attended:
        """Group the rows of queries that read the same memory row, attend, and split the result again."""
        attended = self.attend(beams.group(query), memory, call)
        num_queries = query.shape[2]
        weights = None if attended.weights is None else beams.ungroup(attended.weights, num_queries)
        return Attended(beams.ungroup(attended.context, num_queries), weights)

    def _require(self, *needs: str) -> None:
        missing = self.supports.missing(*needs)
        if missing:
            raise UnsupportedError(
                f"{type(self).__name__} does not support {' and '.join(missing)}. "
                'The mechanism "scaled-dot" does.'
            )


class Attention(AttentionBase):
    """What a model calls. Queries, keys, values and the context are (batch, length, width)."""

    supports: Supports
    heads: int

    @abstractmethod
    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None = None) -> Memory:
        """The memory of these keys and values; `allowed_keys` (batch, key) is False at padding."""

    @abstractmethod
    def extend(self, memory: Memory, keys: Tensor, values: Tensor) -> Memory:
        """The memory with keys and values appended. Consumes `memory`: do not use it afterwards."""

    def attend_self(
        self,
        states: Tensor,
        *,
        allowed_keys: Tensor | None = None,
        edit: WeightEdit | None = None,
        need_weights: bool = False,
    ) -> Attended:
        """Self-attention over whole sentences: `states` are the queries, the keys and the values."""
        memory = self.prepare(states, states, allowed_keys)
        attended: Attended = self(states, memory, edit=edit, need_weights=need_weights)
        return attended
