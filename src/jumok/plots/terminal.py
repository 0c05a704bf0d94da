"""The alignment map in a terminal, drawn with shades of the block character.

Source words come down a staircase, so that each can be as long as it likes:

           I
           │ go
           │ │ home
    나는   ██░░
    집에     ░░▓▓
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jumok.look.grid import flat_grid
from jumok.look.lettering import columns, shown

if TYPE_CHECKING:
    from jumok.values import AttentionMap

__all__ = ["draw_text"]

# From this share of the scale on, this shade.
_SHADES = ((0.75, "█"), (0.5, "▓"), (0.25, "▒"), (0.05, "░"))


def draw_text(attention: AttentionMap, *, layer: int | None = None, head: int | None = None) -> str:
    """The map as lines of text. Hangul and other wide characters are counted as the two columns they take."""
    grid = flat_grid(attention, layer=layer, head=head)
    queries = [shown(word) for word in grid.queries]
    margin = max((columns(word) for word in queries), default=0)
    lines = [" " * (margin + 1) + "│ " * index + shown(word) for index, word in enumerate(grid.keys)]
    for word, row in zip(queries, grid.weights, strict=True):
        cells = "".join(_shade(float(weight) / grid.top) * 2 for weight in row)
        lines.append(f"{word}{' ' * (margin - columns(word))} {cells}".rstrip())
    return "\n".join([*lines, "", " " * (margin + 1) + _legend(grid.top, grid.origin)]) + "\n"


def _shade(share: float) -> str:
    if math.isnan(share):
        return "?"
    return next((shade for least, shade in _SHADES if share >= least), " ")


def _legend(top: float, origin: str) -> str:
    steps = "  ".join(f"{shade} ≥ {least * top:.3g}" for least, shade in reversed(_SHADES))
    return f"{steps}   ({origin})" if origin else steps
