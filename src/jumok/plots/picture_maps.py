"""Attention over a picture: one copy of the picture per word, bright where the model looks.

After Xu et al. 2015, "Show, attend and tell", figure 2. Each copy is darkened patch by patch: the patch with
the greatest weight stays as it is and has an outline, and a patch whose weight is 0 is almost black. Every
word has a scale of its own: on a common scale, a word that attends to one patch would leave the maps of all
other words almost black.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from jumok.errors import DataError
from jumok.plots.grid import flat_grid
from jumok.plots.heat_map import BACKGROUND, EDGE, FADED, FONTS, GAP, INK, LINK, MARGIN
from jumok.plots.text_width import printable, terminal_columns, width_in_ems, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from jumok.types import AttentionMap, PatchGrid

PANEL = 128  # pixels per side of a copy of the picture
LABEL_SIZE, TITLE_SIZE, SMALL_SIZE = 14, 16, 11  # of fonts
PER_ROW = 5  # copies of the picture
MAX_SHADOW_OPACITY = 0.85  # over a patch without weight
TERMINAL_COLUMNS = 80
PNG_DATA_URL = "data:image/png;base64,"  # how the URL of a PNG begins
# (minimum share of the word's greatest weight, character)
_SHADES = ((0.75, "█"), (0.5, "▓"), (0.25, "▒"), (0.1, "░"))


def draw_picture_maps(
    attention: AttentionMap, pixels: NDArray[np.uint8], grid: PatchGrid, *, title: str = ""
) -> str:
    """Return an SVG document: the picture, then one map per query of `attention`, whose keys are patches.

    `pixels` (height, width, 1 or 3) are the picture as the model sees it.
    """
    maps = _maps(attention, grid)
    labels = [printable(word) for word in flat_grid(attention).queries]
    facts = ", ".join(f"{name}: {value}" for name, value in attention.facts.items())
    caption = f"{attention.site} attention{f' ({facts})' if facts else ''}, each map on a scale of its own"
    drawing = _Drawing(maps, labels, grid, png_data_url(pixels), printable(title), printable(caption))
    return "\n".join(drawing.lines()) + "\n"


def draw_picture_text(attention: AttentionMap, grid: PatchGrid) -> str:
    """Return the maps as blocks of characters, side by side, one block per query.

    A patch is two columns of the terminal wide.
    """
    maps = _maps(attention, grid)
    queries = [printable(word) for word in flat_grid(attention).queries]
    width = max([2 * grid.columns, *(terminal_columns(word) for word in queries)]) + 2
    per_row = max(1, TERMINAL_COLUMNS // width)
    lines: list[str] = []
    for start in range(0, len(maps), per_row):
        group = range(start, min(start + per_row, len(maps)))
        lines.append("".join(_pad(queries[i], width) for i in group).rstrip())
        for row in range(grid.rows):
            map_rows = ("".join(_shade(share) * 2 for share in maps[i][row]) for i in group)
            lines.append("".join(_pad(map_row, width) for map_row in map_rows).rstrip())
        lines.append("")
    legend = "  ".join(f"{shade} ≥ {minimum:.0%}" for minimum, shade in reversed(_SHADES))
    return "\n".join([*lines, f"{legend} of each word's greatest weight"]) + "\n"


def _maps(attention: AttentionMap, grid: PatchGrid) -> NDArray[np.float64]:
    """Return the weights divided by the greatest weight of their query, (query, row, column).

    NaN becomes 0.
    """
    weights = np.nan_to_num(flat_grid(attention).weights)
    if weights.shape[1] != len(grid):
        raise DataError(
            f"A map over a picture needs one weight per patch. Received: {weights.shape[1]} weights, "
            f"{grid.rows} × {grid.columns} patches."
        )
    greatest = weights.max(axis=1, keepdims=True, initial=0.0)
    shares = weights.clip(min=0) / np.where(greatest > 0, greatest, 1.0)
    return np.asarray(shares.reshape(len(weights), grid.rows, grid.columns))


@dataclass(frozen=True)
class _Drawing:
    """The contents of the drawing; `lines` lays them out and yields the SVG."""

    maps: NDArray[np.float64]  # (query, row, column)
    labels: list[str]
    grid: PatchGrid
    picture: str  # as a data: URL
    title: str
    caption: str

    def lines(self) -> Iterator[str]:
        columns = min(PER_ROW, len(self.maps) + 1)
        column_width = max([PANEL, *(math.ceil(width_in_ems(label) * LABEL_SIZE) for label in self.labels)])
        inner_width = columns * (column_width + 2 * GAP) - 2 * GAP
        heading = wrap(self.title, inner_width / TITLE_SIZE)
        footing = wrap(self.caption, inner_width / SMALL_SIZE)
        top = MARGIN + round(TITLE_SIZE * 1.4) * len(heading) + GAP
        row_height = PANEL + LABEL_SIZE + 3 * GAP
        bottom = top + math.ceil((len(self.maps) + 1) / columns) * row_height
        width = inner_width + 2 * MARGIN
        height = bottom + round(SMALL_SIZE * 1.4) * len(footing) + MARGIN - GAP
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" font-family="{FONTS}">'
        )
        yield f"<title>{escape(self.title or 'Attention over a picture')}</title>"
        yield (
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" '
            f'fill="{BACKGROUND}" stroke="{EDGE}"/>'
        )
        yield from _text(heading, MARGIN, TITLE_SIZE, f'font-weight="600" fill="{INK}"')
        for index in range(len(self.maps) + 1):
            row, column = divmod(index, columns)
            x = MARGIN + column * (column_width + 2 * GAP)
            yield from self._panel(index - 1, x, top + row * row_height)
        yield from _text(footing, bottom, SMALL_SIZE, f'fill="{FADED}"')
        yield "</svg>"

    def _panel(self, index: int, x: int, y: int) -> Iterator[str]:
        """Yield the picture (index -1), or the picture darkened by the map of a query, above its word."""
        yield (
            f'<image x="{x}" y="{y}" width="{PANEL}" height="{PANEL}" href="{self.picture}" '
            'image-rendering="optimizeSpeed" style="image-rendering:pixelated"/>'
        )
        if index < 0:
            return
        yield from self._shadow(self.maps[index], self.labels[index], x, y)
        label = escape(self.labels[index])
        yield (
            f'<text x="{x}" y="{y + PANEL + LABEL_SIZE + GAP // 2}" font-size="{LABEL_SIZE}" '
            f'fill="{INK}">{label}</text>'
        )

    def _shadow(self, shares: NDArray[np.float64], label: str, x: int, y: int) -> Iterator[str]:
        """Yield a dark rectangle over each patch, and the outline of the patch with the greatest weight."""
        across, down = PANEL / self.grid.columns, PANEL / self.grid.rows
        best = np.unravel_index(int(shares.argmax()), shares.shape)
        yield '<g fill="#000" shape-rendering="crispEdges">'
        for (row, column), share in np.ndenumerate(shares):
            box = _box(x + column * across, y + row * down, across, down)
            tip = escape(f"{label}: {share:.0%} of its greatest weight at row {row + 1}, column {column + 1}")
            opacity = MAX_SHADOW_OPACITY * (1 - share)
            yield f'<rect {box} fill-opacity="{opacity:.3g}"><title>{tip}</title></rect>'
        yield "</g>"
        if shares.max() > 0:
            outline = _box(x + best[1] * across + 0.75, y + best[0] * down + 0.75, across - 1.5, down - 1.5)
            yield f'<rect {outline} fill="none" stroke="{LINK}" stroke-width="1.5" pointer-events="none"/>'


def _box(x: float, y: float, width: float, height: float) -> str:
    return f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'


def _text(lines: list[str], y: int, size: int, attributes: str) -> Iterator[str]:
    for row, line in enumerate(lines):
        baseline = y + round(size * 1.4) * row + size
        yield f'<text x="{MARGIN}" y="{baseline}" font-size="{size}" {attributes}>{escape(line)}</text>'


def _shade(share: float) -> str:
    return next((shade for minimum, shade in _SHADES if share >= minimum), "·")


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - terminal_columns(text))


def png_data_url(pixels: NDArray[np.uint8]) -> str:
    """Return a picture (height, width, 1 or 3) as a PNG in a data: URL.

    PNG specification, third edition, sections 5 and 9.
    """
    height, width, channels = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # filter 0
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    return PNG_DATA_URL + base64.b64encode(data).decode()
