"""The alignment map of a translation as an SVG, after Bahdanau, Cho & Bengio 2015, figure 3.

Source words are along the top, target words down the side. 0 is almost black; white is 1, or the largest
weight if that is more. The drawing has its own background, so that it looks the same on a light and on a dark
page. It has no style sheet, script or id, so that one page can contain several. The same map always gives the
same bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from jumok.plots.grid import flat_grid
from jumok.plots.text_width import printable, width_in_ems, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.plots.grid import Grid
    from jumok.types import Alignment, AttentionMap

FONTS = "'Noto Sans KR','Noto Sans CJK KR','Apple SD Gothic Neo','Malgun Gothic',sans-serif"
BACKGROUND, EDGE, INK, FADED = "#faf9f6", "#dedbd3", "#1c1d21", "#6a6b70"
GRID_LINE, DARKEST, LIGHTEST = "#2c2d33", 0x10, 0xFF
LINK, NOT_A_NUMBER = "#ff7a1a", "#8c2f5b"

# Sizes are in pixels.
MARGIN, GAP = 24, 8
TITLE_SIZE, SMALL_SIZE = 16, 11  # of fonts
MIN_WIDTH = 320
"""Below this width, titles and captions would break into too many lines."""
SLANT = 55
"""Degrees. Steep enough to keep labels apart over the smallest cells, flat enough to read."""
NUM_SWATCHES, SWATCH_WIDTH, LEGEND_HEIGHT = 16, 7, 12


def draw_alignment(
    attention: AttentionMap,
    *,
    title: str = "",
    links: Alignment | None = None,
    layer: int | None = None,
    head: int | None = None,
    min_scale: float = 1.0,
) -> str:
    """Return the map as an SVG document.

    `links` are word links, annotated or read from a model. A sure link is drawn as a ring. A link that is
    only possible is drawn as a dashed ring. If no layer or head is selected, the mean over layers or heads is
    drawn, and the caption says so. The tooltip of a cell shows its two words and its weight. The scale ends
    at `min_scale`, or at the largest weight if that is larger.
    """
    grid = replace(flat_grid(attention, layer=layer, head=head), min_scale=min_scale)
    picture = _Picture.lay_out(grid, title=printable(title), caption=_caption(attention, grid), links=links)
    return "\n".join(picture.lines()) + "\n"


def _caption(attention: AttentionMap, grid: Grid) -> str:
    facts = [f"{name}: {value}" for name, value in attention.facts.items()]
    parts = [f"{attention.site} attention", grid.layer_and_head, *facts]
    return printable(" · ".join(part for part in parts if part))


@dataclass(frozen=True)
class _Picture:
    """The layout in pixels; `lines` yields the SVG."""

    grid: Grid
    links: Alignment | None
    cell: int  # distance from the edge of a cell to the same edge of the next cell
    font_size: int
    left: int  # of the grid
    top: int  # of the grid
    width: int
    height: int
    title: list[str]  # its lines
    caption: list[str]  # its lines

    @classmethod
    def lay_out(cls, grid: Grid, *, title: str, caption: str, links: Alignment | None) -> _Picture:
        cell = _cell_size(max(len(grid.keys), len(grid.queries)))
        font_size = max(11, min(15, round(cell * 0.62)))
        left = MARGIN + _widest(grid.queries, font_size) + GAP
        rise, reach = _slanted_extent(grid.keys, cell, font_size)
        inner_width = max(left - MARGIN + max(len(grid.keys) * cell, reach), _legend_width(links), MIN_WIDTH)
        heading = wrap(title, inner_width / TITLE_SIZE)
        footing = wrap(caption, inner_width / SMALL_SIZE)
        inner_width = max(inner_width, _widest(heading, TITLE_SIZE), _widest(footing, SMALL_SIZE))
        top = MARGIN + _height(heading, TITLE_SIZE) + rise + GAP
        below = 2 * GAP + LEGEND_HEIGHT + GAP + _height(footing, SMALL_SIZE) + MARGIN - GAP
        height = top + len(grid.queries) * cell + below
        return cls(
            grid, links, cell, font_size, left, top, inner_width + 2 * MARGIN, height, heading, footing
        )

    @property
    def bottom(self) -> int:
        """The lower edge of the grid."""
        return self.top + len(self.grid.queries) * self.cell

    def lines(self) -> Iterator[str]:
        rows, columns = self.grid.weights.shape
        name = " ".join(self.title) or f"Attention of {rows} queries to {columns} keys"
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" font-family="{FONTS}">'
        )
        yield f"<title>{escape(name)}</title>"
        yield (
            f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="10" '
            f'fill="{BACKGROUND}" stroke="{EDGE}"/>'
        )
        yield from _text_lines(
            self.title, y=MARGIN, size=TITLE_SIZE, attributes=f'font-weight="600" fill="{INK}"'
        )
        yield from self._source_labels()
        yield from self._target_labels()
        yield from self._cells()
        yield from self._links()
        yield from self._legend(self.bottom + 2 * GAP)
        caption_top = self.bottom + 3 * GAP + LEGEND_HEIGHT
        yield from _text_lines(self.caption, y=caption_top, size=SMALL_SIZE, attributes=f'fill="{FADED}"')
        yield "</svg>"

    def _source_labels(self) -> Iterator[str]:
        yield f'<g class="source" font-size="{self.font_size}" fill="{INK}">'
        y = self.top - GAP
        drop = _number(self.font_size * 0.35)
        for column, word in enumerate(self.grid.keys):
            x = self.left + column * self.cell + self.cell / 2
            transform = f"translate({_number(x)} {y}) rotate(-{SLANT})"
            yield f'<text transform="{transform}" y="{drop}">{escape(printable(word))}</text>'
        yield "</g>"

    def _target_labels(self) -> Iterator[str]:
        yield f'<g class="target" font-size="{self.font_size}" fill="{INK}" text-anchor="end">'
        x = self.left - GAP
        for row, word in enumerate(self.grid.queries):
            y = self.top + row * self.cell + self.cell / 2 + self.font_size * 0.35
            yield f'<text x="{x}" y="{_number(y)}">{escape(printable(word))}</text>'
        yield "</g>"

    def _cells(self) -> Iterator[str]:
        """Yield the cells. A rectangle is one pixel smaller than `cell`, and the gaps are the grid lines."""
        across, down = len(self.grid.keys) * self.cell, len(self.grid.queries) * self.cell
        yield (
            f'<rect x="{self.left - 1}" y="{self.top - 1}" width="{across + 1}" height="{down + 1}" '
            f'fill="{GRID_LINE}" shape-rendering="crispEdges"/>'
        )
        yield '<g class="cells" shape-rendering="crispEdges">'
        size = self.cell - 1
        for row, query in enumerate(self.grid.queries):
            y = self.top + row * self.cell
            for column, key in enumerate(self.grid.keys):
                x = self.left + column * self.cell
                weight = float(self.grid.weights[row, column])
                tip = escape(f"{printable(query)} → {printable(key)}: {weight:.4f}")
                fill = _shade(weight, self.grid.max_weight)
                yield (
                    f'<rect x="{x}" y="{y}" width="{size}" height="{size}" fill="{fill}">'
                    f"<title>{tip}</title></rect>"
                )
        yield "</g>"

    def _links(self) -> Iterator[str]:
        """Yield a ring for each link. The shade and the tooltip of the cell stay accessible inside a ring."""
        if self.links is None:
            return
        yield f'<g class="links" fill="none" stroke="{LINK}" stroke-width="2" pointer-events="none">'
        for source, target in sorted(self.links.possible):
            if source < len(self.grid.keys) and target < len(self.grid.queries):
                x, y = self.left + source * self.cell, self.top + target * self.cell
                yield _ring(x, y, self.cell - 1, sure=(source, target) in self.links.sure)
        yield "</g>"

    def _legend(self, y: int) -> Iterator[str]:
        """Yield the scale from 0 to the maximum, and the meaning of rings if there are any."""
        baseline = y + 10
        yield f'<g class="legend" font-size="{SMALL_SIZE}" fill="{FADED}">'
        yield f'<text x="{MARGIN}" y="{baseline}">0</text>'
        x = MARGIN + 12
        yield '<g shape-rendering="crispEdges">'
        for step in range(NUM_SWATCHES):
            fill = _shade(step / (NUM_SWATCHES - 1), 1.0)
            box = f'x="{x + SWATCH_WIDTH * step}" y="{y}" width="{SWATCH_WIDTH}" height="{LEGEND_HEIGHT}"'
            yield f'<rect {box} fill="{fill}"/>'
        yield "</g>"
        frame = f'width="{SWATCH_WIDTH * NUM_SWATCHES + 1}" height="{LEGEND_HEIGHT + 1}"'
        yield f'<rect x="{x - 0.5}" y="{y - 0.5}" {frame} fill="none" stroke="{FADED}"/>'
        x += SWATCH_WIDTH * NUM_SWATCHES + 6
        yield f'<text x="{x}" y="{baseline}">{self.grid.max_weight:.3g}</text>'
        x += 40
        for name, sure in _ring_names(self.links):
            ring = _ring(x, y, LEGEND_HEIGHT, sure=sure)
            yield f'<g fill="none" stroke="{LINK}" stroke-width="2">{ring}</g>'
            yield f'<text x="{x + 18}" y="{baseline}">{name}</text>'
            x += _ring_name_width(name)
        yield "</g>"


def _cell_size(words: int) -> int:
    """Return the value of `_Picture.cell`: 40 pixels for up to 12 words, 23 for 30, 18 for 60."""
    return max(16, min(40, round(12 + 340 / max(words, 1))))


def _widest(texts: list[str] | tuple[str, ...], size: int) -> int:
    return math.ceil(size * max((width_in_ems(printable(text)) for text in texts), default=0.0))


def _slanted_extent(words: tuple[str, ...], cell: int, font_size: int) -> tuple[int, int]:
    """Return the height of slanted labels above the grid, and their reach to the right of its left edge."""
    sine, cosine = math.sin(math.radians(SLANT)), math.cos(math.radians(SLANT))
    rise = reach = 0.0
    for column, word in enumerate(words):
        length = width_in_ems(printable(word)) * font_size
        rise = max(rise, length * sine + font_size * cosine)
        reach = max(reach, cell * (column + 0.5) + length * cosine + font_size * sine)
    return math.ceil(rise), math.ceil(reach)


def _height(lines: list[str], size: int) -> int:
    """Return the height of a block of text and the gap below it."""
    return round(size * 1.4) * len(lines) + (GAP if lines else 0)


def _text_lines(lines: list[str], *, y: int, size: int, attributes: str) -> Iterator[str]:
    """Yield a block of text at the left margin, with its upper edge at `y`."""
    for row, line in enumerate(lines):
        baseline = y + round(size * 1.4) * row + size
        yield f'<text x="{MARGIN}" y="{baseline}" font-size="{size}" {attributes}>{escape(line)}</text>'


def _shade(weight: float, max_weight: float) -> str:
    """Return almost black for 0 and below, white for `max_weight`, and a colour that is not grey for NaN."""
    if math.isnan(weight):
        return NOT_A_NUMBER
    share = min(1.0, max(0.0, weight / max_weight))
    level = round(DARKEST + share * (LIGHTEST - DARKEST))
    return f"#{level:02x}{level:02x}{level:02x}"


def _ring(x: int, y: int, size: int, *, sure: bool) -> str:
    dashes = "" if sure else ' stroke-dasharray="3 2"'
    return f'<rect x="{x + 1}" y="{y + 1}" width="{size - 2}" height="{size - 2}" rx="2"{dashes}/>'


def _ring_names(links: Alignment | None) -> list[tuple[str, bool]]:
    """Return the name of each kind of link that occurs, and whether links of this kind are sure."""
    if links is None:
        return []
    names = [("link", True)] if links.sure else []
    return [*names, ("possible link", False)] if links.possible - links.sure else names


def _ring_name_width(name: str) -> int:
    return 30 + _widest([name], SMALL_SIZE)


def _legend_width(links: Alignment | None) -> int:
    """Return the width of what `_legend` draws."""
    return (
        12 + SWATCH_WIDTH * NUM_SWATCHES + 46 + sum(_ring_name_width(name) for name, _ in _ring_names(links))
    )


def _number(value: float) -> str:
    """Format a number as `12` or `12.3`: short, and the same on machines that round differently."""
    return f"{value:.1f}".removesuffix(".0")
