"""How many layers a signal passes on its way from the first place to the last.

Vaswani et al. 2017, section 4: the shorter the paths between places, the easier it is to learn what depends
on something far away. A place influences another where the gradient between them is not 0; after two layers
it influences all that is influenced by what it influenced, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jumok.bench.layers import Layer

__all__ = ["influence", "longest_path"]


def influence(layer: Layer, states: Tensor) -> Tensor:
    """Which inputs change which outputs, (place of the output, place of the input), bool.

    `states` are (1, head, place, width). Each place has a copy of the sequence, of which only the output at
    that place is asked for its gradient.
    """
    places = states.shape[2]
    copies = states.repeat(places, 1, 1, 1).requires_grad_()
    asked = layer(copies).diagonal(dim1=0, dim2=2)  # (head, width, place): of copy i, the output at i
    # Without random factors the gradients of a place's numbers could cancel out.
    factors = torch.randn(asked.shape, generator=torch.Generator().manual_seed(0))
    [gradient] = torch.autograd.grad((asked * factors).sum(), copies)  # (copy, head, place, width)
    return gradient.ne(0).any(dim=3).any(dim=1)


def longest_path(influences: Iterable[Tensor]) -> int | None:
    """How many layers, of these influences from the first on, take the first input to the last output.

    None where the layers come to an end, or are as many as there are places, before it arrives.
    """
    reached: Tensor | None = None  # (place,) bool: what the first input has come to
    for layers, influenced in enumerate(influences, start=1):
        if reached is None:
            reached = torch.arange(len(influenced)) == 0
        reached = (influenced & reached).any(dim=1)
        if reached[-1]:
            return layers
        if layers >= len(influenced):
            break
    return None
