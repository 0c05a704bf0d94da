"""The embedding of a picture: a linear projection of each patch, plus its position.

    z = [x_class; x₁ E; x₂ E; …; x_N E] + E_pos                 Dosovitskiy et al. 2021, eq. 1

A patch x is a vector of pixel values from -1 to 1. The class token is a learned vector in front of the
patches. The encoder's state at the position of the class token predicts the class. A model that writes
captions has no class token, so that its cross-attention can only attend to patches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from jumok.models.kernels.dropout import Dropout

if TYPE_CHECKING:
    from jumok.types import PatchGrid


class PatchEmbedding(nn.Module):
    """The projection of patches, a class token if there is one, and positions.

    `positions` is called with the number of positions and returns one vector for each. The class token has
    the first.
    """

    class_vector: nn.Parameter | None

    def __init__(
        self, grid: PatchGrid, *, width: int, dropout: float, positions: nn.Module, class_token: bool
    ) -> None:
        super().__init__()
        self.grid = grid
        self.weight = nn.Parameter(torch.empty(width, grid.values_per_patch))  # E of the paper, transposed
        self.bias = nn.Parameter(torch.zeros(width))
        self.class_vector = nn.Parameter(torch.empty(width)) if class_token else None
        self.positions = positions
        self.dropout = Dropout(dropout)
        # Pixel values have a root mean square of about ½. With this initialisation, projected patches have a
        # root mean square of about 1, which is close to that of sinusoidal positions.
        nn.init.normal_(self.weight, std=2 * grid.values_per_patch**-0.5)
        if self.class_vector is not None:
            nn.init.normal_(self.class_vector)

    def project(self, patches: Tensor) -> Tensor:
        """Return E · patch + bias, (batch, patch, width), of patches (batch, patch, value) of bytes."""
        values = patches.to(self.weight.dtype) / 127.5 - 1  # bytes to -1 … 1
        return linear(values, self.weight, self.bias)

    def forward(self, patches: Tensor) -> Tensor:
        """Patches (batch, patch, value) of bytes -> (batch, [class token,] patch, width)."""
        states = self.project(patches)
        if self.class_vector is not None:
            states = torch.cat([self.class_vector.expand(len(states), 1, -1), states], dim=1)
        embedded: Tensor = self.dropout(states + self.positions(states.shape[1]))
        return embedded
