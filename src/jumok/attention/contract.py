"""What every attention promises, so that models, search and viewers need to know no mechanism by name.

Two layers share one set of verbs:

    Mechanism   how a head weighs values, given projected queries and keys      (batch, head, length, width)
    Attention   what a model calls: projections, heads, the way back            (batch, length, width)

    memory   = attention.prepare(keys, values, allowed_keys)      once a sentence, for cross-attention
    memory   = attention.extend(memory, keys, values)             a step of cached self-attention
    attended = attention(query, memory, *, allowed, bias, first, edit, need_weights)

Nothing is stored on a module during a call: a memory is a value that the caller holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from jumok.attention.masks import all_allowed, require_bool
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from jumok.attention.beams import Beams

__all__ = [
    "Attended",
    "Attention",
    "Call",
    "Edit",
    "HeadShape",
    "Mechanism",
    "Memory",
    "Place",
    "Supports",
    "WeightEdit",
    "edit_at",
]


@dataclass(frozen=True, slots=True)
class Attended:
    """What came of attending. Weights are per head and before dropout; None where nobody asked for them."""

    context: Tensor  # (batch, query, width); of a mechanism (batch, head, query, width)
    weights: Tensor | None = None  # (batch, head, query, key)


@dataclass(frozen=True, slots=True)
class Supports:
    """What a mechanism can do, as data: callers ask before they call."""

    causal: bool = True
    cross: bool = True
    weights: bool = True
    incremental: bool = True
    mask: bool = True  # a mask that differs from query to query; padding is always taken, by `prepare`
    bias: bool = True
    edit: bool = True
    dropout: bool = True  # of weights: not where none are formed
    left_padding: bool = True  # keys may begin after padding: only distances count, or only contents
    products: bool = False  # scores are products qᵀk, in which turned queries and keys leave their distance

    def missing(self, *needs: str) -> list[str]:
        """Those of `needs` (names of the fields above) that are not supported."""
        known = {field.name for field in fields(self)}
        return [need for need in needs if need not in known or not getattr(self, need)]


class Memory(Protocol):
    """The keys and values of a batch as a mechanism keeps them: whole, or only their sums.

    Where `beams` is set, several rows of queries read one row of the memory, which is not copied for them.
    """

    @property
    def beams(self) -> Beams | None: ...

    @property
    def length(self) -> int:
        """How many keys there are, padding counted."""
        ...

    def select(self, rows: Tensor) -> Self:
        """The memory whose row r is row `rows[r]` of this one: repeated, reordered or left out."""
        ...

    def shared(self, beams: Beams | None) -> Self:
        """The same memory, read by the rows that `beams` describes."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where weights stand: the site ("encoder", "decoder", "cross"), the layer from 0, the rows, the step."""

    site: str
    layer: int
    rows: Tensor  # (row,) int64: the sentence of the batch that each row of the weights belongs to
    first: int  # absolute position of the first query


class Edit(Protocol):
    """Rewrites weights between softmax and dropout: knock-out, forced alignment, freezing."""

    def __call__(self, weights: Tensor, place: Place, /) -> Tensor:
        """New weights (row, head, query, key) in the place of these."""
        ...


WeightEdit: TypeAlias = Callable[[Tensor, int], Tensor]
"""An edit whose site, layer and rows are settled: it is given the weights and the absolute step."""


def edit_at(edit: Edit | None, *, site: str, layer: int, rows: Tensor) -> WeightEdit | None:
    """The edit as one attention of a model sees it, which itself knows neither site nor layer."""
    if edit is None:
        return None
    return lambda weights, first: edit(weights, Place(site=site, layer=layer, rows=rows, first=first))


@dataclass(frozen=True, slots=True)
class Call:
    """What a call asks for beside query and memory; the fields are the keywords of `Attends.forward`."""

    allowed: Tensor | None = None
    bias: Tensor | None = None
    first: int = 0
    edit: WeightEdit | None = None
    need_weights: bool = False

    @property
    def needs_weights(self) -> bool:
        """Whether the weights must be formed, be it to report, to edit or to shift them."""
        return self.need_weights or self.edit is not None or self.bias is not None


@dataclass(frozen=True, slots=True)
class HeadShape:
    """How many heads there are and how wide their queries and keys, for mechanisms that have parameters."""

    heads: int
    query: int
    key: int


class Attends(nn.Module, ABC):
    """The one call of the contract, for both of its layers: keywords become a `Call` for `respond`."""

    def forward(
        self,
        query: Tensor,
        memory: Any,
        *,
        allowed: Tensor | None = None,
        bias: Tensor | None = None,
        first: int = 0,
        edit: WeightEdit | None = None,
        need_weights: bool = False,
    ) -> Attended:
        """Attend with `query` to the memory.

        `allowed` (bool) and `bias` (float, added to the scores) broadcast to (batch, head, query, key);
        `first` is the absolute position of the first query. Where the bias is -∞ nothing is allowed.
        """
        if bias is not None and (hidden := torch.isneginf(bias)).any():
            # A row of nothing but -∞ has no softmax; a mask of it is understood everywhere.
            allowed, bias = all_allowed(allowed, ~hidden), bias.masked_fill(hidden, 0.0)
        return self.respond(query, memory, Call(allowed, bias, first, edit, need_weights))

    @abstractmethod
    def respond(self, query: Tensor, memory: Any, call: Call) -> Attended:
        """The answer to a call."""


MemoryT = TypeVar("MemoryT", bound=Memory)


class Mechanism(Attends, Generic[MemoryT]):
    """How each head weighs values. A new mechanism is `supports`, `remember`, `extend` and `attend`.

    `causal` mechanisms let a query see the keys up to its own place and none after it. `dropout` is applied
    to the weights, after they were edited and reported. Mechanisms that have parameters need the `shape`.
    """

    supports: ClassVar[Supports] = Supports()

    def __init__(
        self, shape: HeadShape | None = None, *, causal: bool = False, dropout: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.shape = shape
        asked = {"causal": causal, "dropout": dropout is not None}
        self._require(*(need for need, wanted in asked.items() if wanted))
        self.causal = causal
        self.dropout = dropout if dropout is not None else nn.Identity()

    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> MemoryT:
        """The memory of these keys and values, (batch, head, key, width); `allowed_keys` is (batch, key)."""
        if allowed_keys is not None:
            require_bool(allowed_keys)
        return self.remember(keys, values, allowed_keys)

    @abstractmethod
    def remember(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None) -> MemoryT:
        """The memory itself; `allowed_keys` is a mask and nothing else."""

    def scale(self, width: int) -> float:
        """What products of queries and keys of that width are multiplied by to be scores."""
        return 1.0

    @abstractmethod
    def extend(self, memory: MemoryT, keys: Tensor, values: Tensor) -> MemoryT:
        """The memory with keys and values added at the end. It consumes the memory it is given."""

    @abstractmethod
    def attend(self, query: Tensor, memory: MemoryT, call: Call) -> Attended:
        """The mechanism itself, with one row of memory for each row of queries."""

    def respond(self, query: Tensor, memory: MemoryT, call: Call) -> Attended:
        """What is asked is supported, and rows that share a memory are taken care of; then `attend`."""
        asked = {
            "mask": call.allowed is not None,
            "bias": call.bias is not None,
            "edit": call.edit is not None,
            "weights": call.need_weights,
        }
        self._require(*(need for need, wanted in asked.items() if wanted))
        beams = memory.beams
        if beams is None:
            return self.attend(query, memory, call)
        if not self.causal and call.allowed is None and call.bias is None and call.edit is None:
            return self._attend_together(query, memory, beams, call)
        # What differs from row to row needs a row of memory each.
        return self.attend(query, memory.select(beams.sentence).shared(None), call)

    def _attend_together(self, query: Tensor, memory: MemoryT, beams: Beams, call: Call) -> Attended:
        """The rows that read one memory as so many queries of it."""
        attended = self.attend(beams.gather(query), memory, call)
        queries = query.shape[2]
        weights = None if attended.weights is None else beams.spread(attended.weights, queries)
        return Attended(beams.spread(attended.context, queries), weights)

    def _require(self, *needs: str) -> None:
        missing = self.supports.missing(*needs)
        if missing:
            raise UnsupportedError(
                f"{type(self).__name__} does not support {' and '.join(missing)}. "
                'The mechanism "scaled-dot" does.'
            )


class Attention(Attends):
    """What a model calls. Queries, keys, values and the context are (batch, length, width)."""

    supports: Supports
    heads: int

    @abstractmethod
    def prepare(self, keys: Tensor, values: Tensor, allowed_keys: Tensor | None = None) -> Memory:
        """The memory of these keys and values; `allowed_keys` (batch, key) is False at padding."""

    @abstractmethod
    def extend(self, memory: Memory, keys: Tensor, values: Tensor) -> Memory:
        """The memory with keys and values added at the end. It consumes the memory it is given."""

    def attend_self(
        self,
        states: Tensor,
        *,
        allowed_keys: Tensor | None = None,
        edit: WeightEdit | None = None,
        need_weights: bool = False,
    ) -> Attended:
        """Self-attention of whole sentences: `states` are the queries, the keys and the values."""
        memory = self.prepare(states, states, allowed_keys)
        attended: Attended = self(states, memory, edit=edit, need_weights=need_weights)
        return attended
