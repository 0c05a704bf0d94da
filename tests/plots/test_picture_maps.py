"""Attention maps that are drawn over a picture.

A dark rectangle covers each patch. Its opacity is lower if the weight of the patch is larger.
"""

from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from jumok.errors import DataError
from jumok.plots.map_files import render_png
from jumok.plots.picture_maps import draw_picture_maps, draw_picture_text
from jumok.types import AttentionMap, PatchGrid

GRID = PatchGrid(2, 3, 12)
PIXELS = np.random.default_rng(1).integers(0, 256, (4, 6, 3), dtype=np.uint8)
SVG = "{http://www.w3.org/2000/svg}"


def attention(words: tuple[str, ...] = ("원이", "<b>&")) -> AttentionMap:
    """Return a map in which every word attends to patch 4."""
    weights = np.full((len(words), 6), 0.02, np.float32)
    weights[:, 4] = 0.9  # the middle patch of the lower row
    return AttentionMap("cross", weights[None, None], words, tuple(f"{i}" for i in range(6)))


def test_the_drawing_has_one_map_per_word_and_the_picture() -> None:
    root = ElementTree.fromstring(draw_picture_maps(attention(), PIXELS, GRID, title="a <title>"))
    assert len(root.findall(f".//{SVG}image")) == 3  # the picture, and one copy per word
    texts = [
        text.text for text in root.iter(f"{SVG}text")
    ]  # the title, the words of the caption, the line of facts below
    assert texts[1:3] == ["원이", "<b>&"]
    groups = root.findall(f"{SVG}g")
    opacities = [[float(cell.get("fill-opacity", "")) for cell in group] for group in groups]
    assert [row.index(min(row)) for row in opacities] == [4, 4]  # the patch with the weight 0.9
    assert min(opacities[0]) == 0
    outlines = [rectangle for rectangle in root.findall(f"{SVG}rect") if rectangle.get("stroke-width")]
    assert len(outlines) == 2  # one per word, around the patch with its greatest weight


@pytest.mark.parametrize("channels", [1, 3])
def test_the_embedded_picture_has_the_pixels_that_were_passed(channels: int) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow decodes the PNG")
    svg = draw_picture_maps(attention(), PIXELS[:, :, :channels], GRID)
    data = re.search(r"base64,([^\"]+)", svg)
    assert data is not None
    decoded = np.asarray(image.open(io.BytesIO(base64.b64decode(data[1]))))
    assert np.array_equal(decoded.reshape(4, 6, channels), PIXELS[:, :, :channels])


def test_the_terminal_shows_the_patches_in_rows() -> None:
    text = draw_picture_text(attention(("star",)), GRID)
    assert text.splitlines()[:3] == ["star", "······", "··██··"]


def test_a_drawing_has_no_script_and_no_other_host() -> None:
    svg = draw_picture_maps(attention(), PIXELS, GRID, title="<script>")
    assert "<script" not in svg
    assert not re.findall(r"(?:src|href)=\"(?!data:)", svg)


def test_maps_that_do_not_fit_the_grid_are_refused() -> None:
    with pytest.raises(DataError, match=r"Received: 6 weights, 2 × 2 patches"):
        draw_picture_maps(attention(), PIXELS, PatchGrid(2, 2, 12))


def test_an_empty_caption_and_nan_are_drawn() -> None:
    empty = AttentionMap("cross", np.zeros((1, 1, 0, 6), np.float32), (), tuple("abcdef"))
    assert "<svg" in draw_picture_maps(empty, PIXELS, GRID)
    not_a_number = AttentionMap("cross", np.full((1, 1, 1, 6), np.nan, np.float32), ("x",), tuple("abcdef"))
    assert "nan" not in draw_picture_maps(not_a_number, PIXELS, GRID)


def test_the_drawing_is_rendered_as_png() -> None:
    pytest.importorskip("resvg_py")
    assert render_png(draw_picture_maps(attention(), PIXELS, GRID)).startswith(b"\x89PNG")
