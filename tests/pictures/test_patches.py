"""Patches are cut as plain loops cut them, can be joined again, and are found in regions."""

from __future__ import annotations

import numpy as np
import pytest

from jumok.pictures.patches import cut_patches, join_patches, patches_in_region
from jumok.types import PatchGrid, Region


@pytest.mark.parametrize(("size", "patch_size", "channels"), [(8, 2, 3), (6, 3, 1), (4, 1, 1), (5, 5, 3)])
def test_patches_are_the_tiles_of_the_picture_row_by_row(size: int, patch_size: int, channels: int) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (size, size, channels), dtype=np.uint8)
    expected = [
        [
            picture[row + y, column + x, channel]
            for y in range(patch_size)
            for x in range(patch_size)
            for channel in range(channels)
        ]
        for row in range(0, size, patch_size)
        for column in range(0, size, patch_size)
    ]
    patches = cut_patches(picture, patch_size)
    assert patches.tolist() == np.array(expected).tolist()
    side = size // patch_size
    grid = PatchGrid(side, side, patch_size * patch_size * channels)
    assert np.array_equal(join_patches(patches, grid, channels=channels), picture)


def test_patches_in_a_region_have_their_centre_in_the_region() -> None:
    region = Region(0, left=0.125, top=0.0, right=0.6, bottom=0.5)
    inside = patches_in_region(region, PatchGrid(2, 4, 1)).reshape(2, 4)
    # The centres of the columns are at 1/8, which is the left edge of the region, 3/8, 5/8 and 7/8, those of
    # the rows at 1/4 and 3/4.
    assert inside.tolist() == [[True, True, False, False], [False] * 4]


def test_with_the_option_overlapping_a_region_has_all_patches_that_it_touches() -> None:
    region = Region(0, left=0.3, top=0.45, right=0.6, bottom=0.55)
    touched = patches_in_region(region, PatchGrid(2, 4, 1), overlapping=True).reshape(2, 4)
    assert touched.tolist() == [[False, True, True, False]] * 2
