"""Sinusoidal positions: each place in a sentence is a point on circles of growing wavelength.

PE(p, 2i)   = sin(p / 10000^(2i/d))
PE(p, 2i+1) = cos(p / 10000^(2i/d))                          Vaswani et al. 2017, section 3.5
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["SinusoidalPositions", "sinusoids"]


def sinusoids(places: int, width: int, *, first: int = 0) -> Tensor:
    """The paper's table for the places `first` … `first + places - 1`, (places, width)."""
    place = torch.arange(first, first + places, dtype=torch.float64)[:, None]  # (places, 1)
    exponent = torch.arange(0, width, 2, dtype=torch.float64) / width  # (⌈width / 2⌉,)
    angle = place / 10000.0**exponent  # (places, ⌈width / 2⌉)
    both = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (places, ⌈width / 2⌉, 2)
    return both.flatten(1)[:, :width].to(torch.float32)


class SinusoidalPositions(nn.Module):
    """A table of sinusoids that covers `longest` places; beyond it they are computed on demand.

    The table is a function of its formula, so it is not part of the stored weights.
    """

    table: Tensor

    def __init__(self, width: int, *, longest: int = 512) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoids(longest, width), persistent=False)

    def forward(self, places: int, *, first: int = 0) -> Tensor:
        """The positions `first` … `first + places - 1`, (places, width)."""
        if first + places <= len(self.table):
            return self.table[first : first + places]
        return sinusoids(places, self.width, first=first).to(self.table)
