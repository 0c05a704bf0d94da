"""Small picture files for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jumok.pictures.reading import write_picture

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SIZE = 8


def half_bright(side: str, brightness: int) -> NDArray[np.uint8]:
    """Return a grey picture of 8 × 8 pixels, one half of which is bright.

    Different values of `brightness` below 100 give different pictures.
    """
    pixels = np.full((SIZE, SIZE, 1), 20 + brightness % 20, np.uint8)
    half = slice(0, SIZE // 2) if side in ("left", "top") else slice(SIZE // 2, SIZE)
    if side in ("left", "right"):
        pixels[:, half] = 150 + brightness % 100
    else:
        pixels[half] = 150 + brightness % 100
    return pixels


def write_classes(folder: Path, count: int, *, sides: tuple[str, ...] = ("left", "right")) -> Path:
    """Write `count` different pictures (at most 100) per side into a subfolder with the name of the side."""
    for side in sides:
        (folder / side).mkdir(parents=True)
        for index in range(count):
            write_picture(folder / side / f"{index:03}.png", half_bright(side, index))
    return folder


def write_captions(folder: Path, count: int) -> Path:
    """Write pictures and a table of captions such as `the left half is bright`. Return the table's path.

    Each row of the table has the region of the caption's second word.
    """
    boxes = {"left": "0,0,0.5,1", "right": "0.5,0,1,1", "top": "0,0,1,0.5", "bottom": "0,0.5,1,1"}
    lines = ["picture\ten\tregions\n"]
    write_classes(folder / "halves", count, sides=tuple(boxes))
    for side, box in boxes.items():
        lines += [
            f"halves/{side}/{index:03}.png\tthe {side} half is bright\t1:{box}\n" for index in range(count)
        ]
    (folder / "captions.tsv").write_text("".join(lines))
    return folder / "captions.tsv"
