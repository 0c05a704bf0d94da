"""How many layers a signal needs from the first position to the last.

Vaswani et al. 2017, section 4: the shorter the paths between positions, the easier it is to learn long-range
dependencies. A position influences another if the gradient between them is not 0; over several layers
influence is transitive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jumok.profiling.layers import Layer


def influence(layer: Layer, states: Tensor) -> Tensor:
    """Return which inputs change which outputs: a boolean tensor (output position, input position).

    `states` are (1, head, position, width). The sequence is copied once per position: of copy i, only the
    output at position i is differentiated.
    """
    length = states.shape[2]
    copies = states.repeat(length, 1, 1, 1).requires_grad_()
    outputs = layer(copies).diagonal(dim1=0, dim2=2)  # (head, width, position): of copy i, the output at i
    # Without random factors the gradients of one position's features could cancel out.
    factors = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0))
    [gradient] = torch.autograd.grad((outputs * factors).sum(), copies)  # (copy, head, position, width)
    return gradient.ne(0).any(dim=3).any(dim=1)


def path_length(influences: Iterable[Tensor]) -> int | None:
    """Return the number of layers after which the first input reaches the last output.

    `influences` has the influence of each layer, from the first layer on. The result is None if the input
    does not reach the output through these layers, or through as many layers as there are positions.
    """
    reached: Tensor | None = None  # (position,) bool: the positions that the first input influences
    for layers, layer_influence in enumerate(influences, start=1):
        if reached is None:
            reached = torch.arange(len(layer_influence)) == 0
        reached = (layer_influence & reached).any(dim=1)
        if reached[-1]:
            return layers
        if layers >= len(layer_influence):
            break
    return None
