"""Two charts as inline SVG: lines, and groups of bars.

Colours are classes (`series-0`, …) of the style sheet of the page that contains the chart, so that the chart
follows the light or dark theme of the page. Every point and bar has its numbers in a tooltip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from jumok.plots.text_width import printable, width_in_ems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NUM_COLOURS = 8
WIDTH, HEIGHT = 540, 300  # of a chart in pixels, without the legend below it
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 44  # margins around the axes in pixels
FONT_SIZE, NUM_TICKS = 12, 5


@dataclass(frozen=True, slots=True)
class Series:
    """Named points (x, y); in a bar chart, x is the index of a label."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class _Axis:
    """A linear scale from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def pixel(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def line_chart(series: Sequence[Series], *, title: str, x_label: str) -> str:
    """Draw one line per series. `x_label` names the horizontal axis, which begins at 0."""
    points = [point for entry in series for point in entry.points]
    x_ticks = _ticks(0.0, max((x for x, _ in points), default=1.0))
    y_ticks = _ticks(min((y for _, y in points), default=0.0), max((y for _, y in points), default=1.0))
    horizontal = _Axis(x_ticks[0], x_ticks[-1], LEFT, WIDTH - RIGHT)
    vertical = _Axis(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    label_y = HEIGHT - BOTTOM + 16
    elements = [
        *_vertical_axis(vertical, y_ticks),
        *(_text(_number(tick), horizontal.pixel(tick), label_y, "middle") for tick in x_ticks),
    ]
    elements.append(_text(x_label, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle"))
    for series_index, entry in enumerate(series):
        elements.extend(_line(entry, series_index, horizontal, vertical))
    return _document(elements, title, series)


def bar_chart(series: Sequence[Series], labels: Sequence[str], *, title: str) -> str:
    """Draw one group of bars per label, with one bar per series. No value is below 0."""
    y_ticks = _ticks(0.0, max((y for entry in series for _, y in entry.points), default=1.0))
    vertical = _Axis(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    group_width = (WIDTH - LEFT - RIGHT) / max(len(labels), 1)
    bar_width = 0.8 * group_width / max(len(series), 1)
    middles = [LEFT + (index + 0.5) * group_width for index in range(len(labels))]
    label_y = HEIGHT - BOTTOM + 16
    elements = [
        *_vertical_axis(vertical, y_ticks),
        *(_text(label, middle, label_y, "middle") for label, middle in zip(labels, middles, strict=True)),
    ]
    for series_index, entry in enumerate(series):
        for index, value in entry.points:
            x, y = LEFT + (index + 0.1) * group_width + series_index * bar_width, vertical.pixel(value)
            height = HEIGHT - BOTTOM - y
            tip = escape(f"{printable(entry.name)}, {labels[int(index)]}: {value:.1f}")
            elements.append(
                f'<rect class="bar series-{series_index % NUM_COLOURS}" x="{x:.1f}" y="{y:.1f}" '
                f'width="{max(bar_width - 1, 1):.1f}" height="{height:.1f}"><title>{tip}</title></rect>'
            )
    return _document(elements, title, series)


def _line(series: Series, series_index: int, horizontal: _Axis, vertical: _Axis) -> Iterator[str]:
    colour = f"series-{series_index % NUM_COLOURS}"
    # After the last colour, colours repeat, and lines are dashed.
    dashes = "" if series_index < NUM_COLOURS else ' stroke-dasharray="5 3"'
    pixels = [(horizontal.pixel(x), vertical.pixel(y)) for x, y in series.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in pixels)
    yield f'<polyline class="line {colour}" points="{path}"{dashes}/>'
    for (x, y), (left, top) in zip(series.points, pixels, strict=True):
        tip = escape(f"{printable(series.name)}: {_number(y)} at {_number(x)}")
        yield (
            f'<circle class="dot {colour}" cx="{left:.1f}" cy="{top:.1f}" r="3"><title>{tip}</title></circle>'
        )


def _vertical_axis(vertical: _Axis, ticks: Sequence[float]) -> Iterator[str]:
    """Yield a grid line and a label for each tick of the vertical axis."""
    for tick in ticks:
        y = vertical.pixel(tick)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(_number(tick), LEFT - 6, y + 4, "end")


def _document(elements: Sequence[str], title: str, series: Sequence[Series]) -> str:
    """Return the chart as an SVG element. The legend below the chart has as many lines as it needs."""
    legend, x, y = [], float(LEFT), float(HEIGHT + 12)
    for series_index, entry in enumerate(series):
        name = printable(entry.name)
        needed = 24 + FONT_SIZE * width_in_ems(name) + 16
        if x > LEFT and x + needed > WIDTH - RIGHT:
            x, y = float(LEFT), y + 20
        legend.append(
            f'<rect class="bar series-{series_index % NUM_COLOURS}" x="{x:.1f}" y="{y - 10:.1f}" '
            'width="16" height="10"/>'
        )
        legend.append(_text(name, x + 22, y, "start"))
        x += needed
    height = round(y + 12)
    opening = (
        f'<svg class="chart" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-size="{FONT_SIZE}">'
    )
    return "\n".join([opening, f"<title>{escape(title)}</title>", *elements, *legend, "</svg>"])


def _text(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers that span the values, in steps of 1, 2 or 5 times a power of ten."""
    span = high - low if high > low else max(abs(high), 1.0)
    rough = span / NUM_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.floor(low / step), math.ceil((low + span) / step)
    return [multiple * step for multiple in range(first, last + 1)]


def _number(value: float) -> str:
    """Format a number briefly: `1,200`, `3.5`, `0.02`."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
