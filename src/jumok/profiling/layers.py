"""The profiled layers: the layers in table 1 of "Attention is all you need", and two linear mechanisms.

    self-attention              n² · d     torch's fused kernel, and `scaled-dot`, which calls it
    restricted to r neighbours  r · n · d
    efficient, linear           n · d · h  (printed as n·d², as their papers write it for one head)
    recurrent                   n · d²     h_t = tanh(W x_t + U h_{t-1})
    convolutional, kernel k     k · n · d²

n is the number of positions, d the width of all heads together and h the width of one head.

All layers map states to states of the same shape, (batch, head, position, width). Attention has no
projections here: the comparison is about how layers mix positions. Recurrent and convolutional layers have
one head, as wide as all heads of the other layers together.
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

Layer: TypeAlias = Callable[[Tensor], Tensor]
"""States (batch, head, position, width) to states of the same shape."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the layers. `width` is the width of one head."""

    heads: int = 8
    width: int = 64
    neighbours: int = 32  # of restricted attention, to either side
    kernel: int = 3  # positions that a convolution reads

    @property
    def total_width(self) -> int:
        """The width of all heads together: d in the table."""
        return self.heads * self.width

    def states(self, length: int, *, one_head: bool = False) -> Tensor:
        """Return unit normal states of one sequence, (1, head, position, width): the same in every call."""
        heads, width = (1, self.total_width) if one_head else (self.heads, self.width)
        return torch.randn(1, heads, length, width, generator=torch.Generator().manual_seed(length))


@dataclass(frozen=True, slots=True)
class ProfiledLayer:
    """A row of the table: how to make the layer, and what its paper says about it."""

    make: Callable[[Shape], Layer]
    operations_order: str  # of the number of operations in a layer, such as "n²·d"
    path_order: str  # of the number of layers between the first position and the last, such as "n/r"
    multiply_adds: Callable[[Shape, int], int]
    """Multiply-adds by the paper's formula, for a shape and a sequence length."""
    one_head: bool = False  # whether the states have one head of the total width
    make_step: Callable[[Shape], Layer] | None = None
    """Makes one step of a layer that runs several steps. Paths are measured through one step."""

    def build(self, shape: Shape, *, one_step: bool = False) -> Layer:
        """Return the layer, or one step of it. The parameters are the same in every call."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.make_step(shape) if one_step and self.make_step is not None else self.make(shape)


def _fused(shape: Shape) -> Layer:
    return lambda states: scaled_dot_product_attention(states, states, states)


def _attention(name: str, shape: Shape, **options: Any) -> Layer:
    """Return the mechanism of this name, with the states as queries, keys and values."""
    heads = HeadShape(shape.heads, query=shape.width, key=shape.width)
    mechanism = find_entry(name).mechanism(heads, **options)

    def attend(states: Tensor) -> Tensor:
        context: Tensor = mechanism(states, mechanism.prepare(states, states, None)).context
        return context

    return attend


def _recurrent(shape: Shape) -> Layer:
    network = nn.RNN(shape.total_width, shape.total_width, batch_first=True)

    def run(states: Tensor) -> Tensor:
        outputs: Tensor = network(states[:, 0])[0]  # (batch, position, width)
        return outputs[:, None]

    return run


def _recurrent_step(shape: Shape) -> Layer:
    """Return a layer that runs one recurrent step at every position in parallel.

    The step at a position reads the input at this position and the state at the previous position.
    """
    cell = nn.RNNCell(shape.total_width, shape.total_width)

    def step(states: Tensor) -> Tensor:
        previous = pad(states, (0, 0, 1, 0))[:, :, :-1]  # (batch, 1, position, width): shifted right by one
        outputs: Tensor = cell(states.flatten(0, 2), previous.flatten(0, 2))
        return outputs.view_as(states)

    return step


def dilated_convolution(shape: Shape, dilation: int = 1) -> Layer:
    """Return a centred convolution that reads every `dilation`-th position."""
    reach = dilation * (shape.kernel // 2)
    network = nn.Conv1d(shape.total_width, shape.total_width, shape.kernel, padding=reach, dilation=dilation)

    def convolve(states: Tensor) -> Tensor:
        outputs: Tensor = network(states[:, 0].transpose(1, 2))  # (batch, width, position)
        return outputs.transpose(1, 2)[:, None]

    return convolve


def dilated_stack(shape: Shape, length: int) -> Iterator[Layer]:
    """Yield convolutions without end. Their dilations are 1, k, k², … below `length`, then 1 again, …

    k is the kernel size.
    """
    powers = itertools.takewhile(
        lambda dilation: dilation < length, (shape.kernel**n for n in itertools.count())
    )
    return (dilated_convolution(shape, dilation) for dilation in itertools.cycle(powers))


def _efficient_multiply_adds(shape: Shape, length: int) -> int:
    """Return the multiply-adds of efficient attention.

    Each position adds the outer product of its key and its value to a sum. Its query is multiplied by
    such a sum.
    """
    return 2 * length * shape.total_width * shape.width


def _linear_multiply_adds(shape: Shape, length: int) -> int:
    """Return the multiply-adds of linear attention.

    Each position adds the outer product of its key and (value, 1) to a sum. Its query is multiplied by
    such a sum.
    """
    return 2 * length * shape.total_width * (shape.width + 1)


PROFILED_LAYERS: dict[str, ProfiledLayer] = {
    "self-attention": ProfiledLayer(_fused, "n²·d", "1", lambda shape, n: 2 * n**2 * shape.total_width),
    "scaled-dot": ProfiledLayer(
        lambda shape: _attention("scaled-dot", shape),
        "n²·d",
        "1",
        lambda shape, n: 2 * n**2 * shape.total_width,
    ),
    "efficient": ProfiledLayer(
        lambda shape: _attention("efficient", shape), "n·d²", "1", _efficient_multiply_adds
    ),
    "efficient causal": ProfiledLayer(
        lambda shape: _attention("efficient", shape, causal=True), "n·d²", "1", _efficient_multiply_adds
    ),
    "linear": ProfiledLayer(lambda shape: _attention("linear", shape), "n·d²", "1", _linear_multiply_adds),
    "linear causal": ProfiledLayer(
        lambda shape: _attention("linear", shape, causal=True), "n·d²", "1", _linear_multiply_adds
    ),
    "restricted": ProfiledLayer(
        lambda shape: _attention("restricted", shape, neighbours=shape.neighbours),
        "r·n·d",
        "n/r",
        lambda shape, n: 2 * n * (2 * shape.neighbours + 1) * shape.total_width,
    ),
    "recurrent": ProfiledLayer(
        _recurrent,
        "n·d²",
        "n",
        lambda shape, n: 2 * n * shape.total_width**2,
        one_head=True,
        make_step=_recurrent_step,
    ),
    "convolutional": ProfiledLayer(
        dilated_convolution,
        "k·n·d²",
        "n/k",
        lambda shape, n: shape.kernel * n * shape.total_width**2,
        one_head=True,
    ),
}
