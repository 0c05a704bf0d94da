"""From a picture to patches and back: (height, width, channel) ↔ (patch, value).

Patches are numbered along the rows of the picture, from the top.

x ∈ ℝ^(H×W×C)  →  x_p ∈ ℝ^(N×(P²·C)),  N = HW / P²            Dosovitskiy et al. 2021, section 3.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.types import PatchGrid, Region


def cut_patches(picture: NDArray[np.uint8], patch_size: int) -> NDArray[np.uint8]:
    """Return the patches (patch, value) of a picture (height, width, channel).

    The height and the width must be multiples of `patch_size`.
    """
    height, width, channels = picture.shape
    rows, columns = height // patch_size, width // patch_size
    tiles = picture.reshape(rows, patch_size, columns, patch_size, channels)
    return np.ascontiguousarray(tiles.transpose(0, 2, 1, 3, 4)).reshape(rows * columns, -1)


def join_patches(patches: NDArray[np.uint8], grid: PatchGrid, *, channels: int) -> NDArray[np.uint8]:
    """Return the picture (height, width, channel) that was cut into these square patches."""
    side = round((grid.values_per_patch / channels) ** 0.5)
    tiles = patches.reshape(grid.rows, grid.columns, side, side, channels).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(tiles).reshape(grid.rows * side, grid.columns * side, channels)


def patches_in_region(region: Region, grid: PatchGrid, *, overlapping: bool = False) -> NDArray[np.bool_]:
    """Return True for each patch whose centre is in the region, (patch,).

    If `overlapping`, return True for each patch that overlaps the region.
    """
    if overlapping:
        tops, lefts = np.arange(grid.rows) / grid.rows, np.arange(grid.columns) / grid.columns
        rows = (tops < region.bottom) & (tops + 1 / grid.rows > region.top)
        columns = (lefts < region.right) & (lefts + 1 / grid.columns > region.left)
        return (rows[:, None] & columns).ravel()
    row_centres = (np.arange(grid.rows) + 0.5) / grid.rows
    column_centres = (np.arange(grid.columns) + 0.5) / grid.columns
    inside_rows = (region.top <= row_centres) & (row_centres < region.bottom)
    inside_columns = (region.left <= column_centres) & (column_centres < region.right)
    return (inside_rows[:, None] & inside_columns).ravel()
