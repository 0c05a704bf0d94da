"""Patches: cutting compared with plain loops, joining, and which patches lie in a region."""

from __future__ import annotations

import numpy as np
import pytest

from jumok.pictures.patches import cut_patches, join_patches, patches_in_region
from jumok.types import PatchGrid, Region


@pytest.mark.parametrize(("size", "patch", "channels"), [(8, 2, 3), (6, 3, 1), (4, 1, 1), (5, 5, 3)])
def test_patches_are_the_tiles_of_the_picture_row_by_row(size: int, patch: int, channels: int) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (size, size, channels), dtype=np.uint8)
    expected = [
        [
            picture[row + y, column + x, channel]
            for y in range(patch)
            for x in range(patch)
            for channel in range(channels)
        ]
        for row in range(0, size, patch)
        for column in range(0, size, patch)
    ]
    patches = cut_patches(picture, patch)
    assert patches.tolist() == np.array(expected).tolist()
    grid = PatchGrid(size // patch, size // patch, patch * patch * channels)
    assert np.array_equal(join_patches(patches, grid, channels=channels), picture)


def test_a_region_contains_patches_by_their_centre_or_with_overlapping_by_any_part() -> None:
    grid = PatchGrid(2, 4, 1)
    inside = patches_in_region(Region(0, left=0.125, top=0.0, right=0.6, bottom=0.5), grid).reshape(2, 4)
    assert inside.tolist() == [[True, True, False, False], [False] * 4]  # centres at 1/8, 3/8, 5/8, 7/8
    touched = patches_in_region(Region(0, 0.3, 0.45, 0.6, 0.55), grid, overlapping=True).reshape(2, 4)
    assert touched.tolist() == [[False, True, True, False]] * 2
