"""The contenders: each layer that "Attention is all you need" compares (table 1), and two linear ones.

    self-attention              n² · d     torch's fused kernel, and `scaled-dot`, which calls it
    restricted to r neighbours  r · n · d
    efficient, linear           n · d²     in each head, so that d is the width of one
    recurrent                   n · d²     h_t = tanh(W x_t + U h_{t-1})
    convolutional, kernel k     k · n · d²

All map states to states of the same shape, (batch, head, place, width), without projections round them: what
is compared is how places meet. Recurrent and convolutional layers have one head as wide as all the others'.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from jumok.attention import HeadShape, find_entry

__all__ = ["CONTENDERS", "Contender", "Layer", "Shape", "dilated_convolution", "dilated_stack"]

Layer: TypeAlias = Callable[[Tensor], Tensor]
"""States (batch, head, place, width) to states of the same shape."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the layers are. `width` is that of one head."""

    heads: int = 8
    width: int = 64
    neighbours: int = 32  # to either side, of restricted attention
    kernel: int = 3  # places that a convolution sees

    @property
    def whole(self) -> int:
        """The width of all heads together: d of the table."""
        return self.heads * self.width

    def states(self, places: int, *, one_head: bool = False) -> Tensor:
        """Unit normal states of one sequence, (1, head, place, width)."""
        heads, width = (1, self.whole) if one_head else (self.heads, self.width)
        return torch.randn(1, heads, places, width, generator=torch.Generator().manual_seed(places))


@dataclass(frozen=True, slots=True)
class Contender:
    """A row of the table: how to make the layer, and what the paper says of it."""

    make: Callable[[Shape], Layer]
    operations: str
    path: str
    multiply_adds: Callable[[Shape, int], int]
    """Products that the formula asks for, of a shape and so many places."""
    one_head: bool = False
    hop: Callable[[Shape], Layer] | None = None
    """What a signal passes in one go, where that is not the whole layer."""

    def build(self, shape: Shape, *, hop: bool = False) -> Layer:
        """The layer, or one hop of it, with the same parameters every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.hop(shape) if hop and self.hop is not None else self.make(shape)


def _fused(shape: Shape) -> Layer:
    return lambda states: scaled_dot_product_attention(states, states, states)


def _attention(name: str, shape: Shape, **options: Any) -> Layer:
    """The catalogue's mechanism of that name, with the states as queries, keys and values."""
    heads = HeadShape(shape.heads, query=shape.width, key=shape.width)
    mechanism = find_entry(name).mechanism(heads, **options)

    def attend(states: Tensor) -> Tensor:
        context: Tensor = mechanism(states, mechanism.prepare(states, states, None)).context
        return context

    return attend


def _recurrent(shape: Shape) -> Layer:
    network = nn.RNN(shape.whole, shape.whole, batch_first=True)

    def run(states: Tensor) -> Tensor:
        outputs: Tensor = network(states[:, 0])[0]  # (batch, place, width)
        return outputs[:, None]

    return run


def _recurrent_step(shape: Shape) -> Layer:
    """One step of the recurrence at every place at once: from the state before and the input there."""
    cell = nn.RNNCell(shape.whole, shape.whole)

    def step(states: Tensor) -> Tensor:
        before = pad(states, (0, 0, 1, 0))[:, :, :-1]  # (batch, 1, place, width): of the place to the left
        outputs: Tensor = cell(states.flatten(0, 2), before.flatten(0, 2))
        return outputs.view_as(states)

    return step


def dilated_convolution(shape: Shape, dilation: int = 1) -> Layer:
    """A convolution, centred, that sees every `dilation`-th place; with 1, neighbours."""
    reach = dilation * (shape.kernel // 2)
    network = nn.Conv1d(shape.whole, shape.whole, shape.kernel, padding=reach, dilation=dilation)

    def convolve(states: Tensor) -> Tensor:
        outputs: Tensor = network(states[:, 0].transpose(1, 2))  # (batch, width, place)
        return outputs.transpose(1, 2)[:, None]

    return convolve


def dilated_stack(shape: Shape, places: int) -> Iterator[Layer]:
    """Convolutions without end, of dilation 1, k, k² …, and from 1 again before one looks past the end."""
    powers = itertools.takewhile(
        lambda dilation: dilation < places, (shape.kernel**n for n in itertools.count())
    )
    return (dilated_convolution(shape, dilation) for dilation in itertools.cycle(powers))


def _sums(shape: Shape, places: int) -> int:
    """Each place adds its outer product of key and (value, 1) to a sum, and multiplies a sum by its query."""
    return 2 * places * shape.whole * (shape.width + 1)


CONTENDERS: dict[str, Contender] = {
    "self-attention": Contender(_fused, "n²·d", "1", lambda shape, n: 2 * n**2 * shape.whole),
    "scaled-dot": Contender(
        lambda shape: _attention("scaled-dot", shape), "n²·d", "1", lambda shape, n: 2 * n**2 * shape.whole
    ),
    "efficient": Contender(
        lambda shape: _attention("efficient", shape),
        "n·d²",
        "1",
        lambda shape, n: 2 * n * shape.whole * shape.width,
    ),
    "linear": Contender(lambda shape: _attention("linear", shape), "n·d²", "1", _sums),
    "linear causal": Contender(lambda shape: _attention("linear", shape, causal=True), "n·d²", "1", _sums),
    "restricted": Contender(
        lambda shape: _attention("restricted", shape, neighbours=shape.neighbours),
        "r·n·d",
        "n/r",
        lambda shape, n: 2 * n * (2 * shape.neighbours + 1) * shape.whole,
    ),
    "recurrent": Contender(
        _recurrent,
        "n·d²",
        "n",
        lambda shape, n: 2 * n * shape.whole**2,
        one_head=True,
        hop=_recurrent_step,
    ),
    "convolutional": Contender(
        dilated_convolution,
        "k·n·d²",
        "n/k",
        lambda shape, n: shape.kernel * n * shape.whole**2,
        one_head=True,
    ),
}
