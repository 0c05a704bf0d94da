"""An attention map in a terminal, drawn with block characters.

Source words form a staircase, so that each word can have any length, although a column of the map is two
characters wide:

         I
         │ go
         │ │ home
    나는 ██░░
    집에   ░░▓▓

Below the map, a legend explains the shades.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jumok.plots.grid import flat_grid
from jumok.plots.text_width import printable, terminal_columns

if TYPE_CHECKING:
    from jumok.types import AttentionMap

# (minimum share of the scale, character)
_SHADES = ((0.75, "█"), (0.5, "▓"), (0.25, "▒"), (0.05, "░"))


def draw_text(attention: AttentionMap, *, layer: int | None = None, head: int | None = None) -> str:
    """Return the map as lines of text. Hangul and other wide characters count as two columns."""
    grid = flat_grid(attention, layer=layer, head=head)
    queries = [printable(word) for word in grid.queries]
    margin = max((terminal_columns(word) for word in queries), default=0)
    lines = [" " * (margin + 1) + "│ " * index + printable(word) for index, word in enumerate(grid.keys)]
    for word, row in zip(queries, grid.weights, strict=True):
        cells = "".join(_shade(float(weight) / grid.max_weight) * 2 for weight in row)
        lines.append(f"{word}{' ' * (margin - terminal_columns(word))} {cells}".rstrip())
    return "\n".join([*lines, "", " " * (margin + 1) + _legend(grid.max_weight, grid.layer_and_head)]) + "\n"


def _shade(share: float) -> str:
    if math.isnan(share):
        return "?"
    return next((shade for minimum, shade in _SHADES if share >= minimum), " ")


def _legend(max_weight: float, layer_and_head: str) -> str:
    scale = "  ".join(f"{shade} ≥ {minimum * max_weight:.3g}" for minimum, shade in reversed(_SHADES))
    return f"{scale}   ({layer_and_head})" if layer_and_head else scale
