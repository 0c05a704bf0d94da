"""Two small charts as inline SVG: lines over time, and groups of bars.

Colours are classes of the page's style sheet (`series-0` and so on), so that a chart follows the page from
light to dark. Every mark carries its numbers in a tooltip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from jumok.look.lettering import ems, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["COLOURS", "Series", "bar_chart", "line_chart"]

COLOURS = 8
WIDTH, HEIGHT = 540, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 44
FONT, TICKS = 12, 5


@dataclass(frozen=True, slots=True)
class Series:
    """A named row of points (x, y), or of values at the places of a bar chart (x counts from 0)."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class _Axis:
    """From a value to a pixel."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def line_chart(series: Sequence[Series], *, title: str, across: str) -> str:
    """A line a series; `across` says what the horizontal axis counts."""
    points = [point for one in series for point in one.points]
    across_ticks = _ticks(0.0, max((x for x, _ in points), default=1.0))
    up_ticks = _ticks(min((y for _, y in points), default=0.0), max((y for _, y in points), default=1.0))
    horizontal = _Axis(across_ticks[0], across_ticks[-1], LEFT, WIDTH - RIGHT)
    vertical = _Axis(up_ticks[0], up_ticks[-1], HEIGHT - BOTTOM, TOP)
    below = HEIGHT - BOTTOM + 16
    lines = [
        *_frame(vertical, up_ticks),
        *(_text(_number(tick), horizontal.place(tick), below, "middle") for tick in across_ticks),
    ]
    lines.append(_text(across, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle"))
    for number, one in enumerate(series):
        lines.extend(_line(one, number, horizontal, vertical))
    return _document(lines, title, series)


def bar_chart(series: Sequence[Series], labels: Sequence[str], *, title: str) -> str:
    """A group of bars at each label, a bar a series."""
    up_ticks = _ticks(0.0, max((y for one in series for _, y in one.points), default=1.0))
    vertical = _Axis(up_ticks[0], up_ticks[-1], HEIGHT - BOTTOM, TOP)
    group = (WIDTH - LEFT - RIGHT) / max(len(labels), 1)
    width = 0.8 * group / max(len(series), 1)
    middles = [LEFT + (place + 0.5) * group for place in range(len(labels))]
    below = HEIGHT - BOTTOM + 16
    lines = [
        *_frame(vertical, up_ticks),
        *(_text(label, middle, below, "middle") for label, middle in zip(labels, middles, strict=True)),
    ]
    for number, one in enumerate(series):
        for place, value in one.points:
            x, y = LEFT + (place + 0.1) * group + number * width, vertical.place(value)
            height = HEIGHT - BOTTOM - y
            tip = escape(f"{shown(one.name)}, {labels[int(place)]}: {value:.1f}")
            lines.append(
                f'<rect class="bar series-{number % COLOURS}" x="{x:.1f}" y="{y:.1f}" '
                f'width="{max(width - 1, 1):.1f}" height="{height:.1f}"><title>{tip}</title></rect>'
            )
    return _document(lines, title, series)


def _line(series: Series, number: int, horizontal: _Axis, vertical: _Axis) -> Iterator[str]:
    colour = f"series-{number % COLOURS}"
    dashes = "" if number < COLOURS else ' stroke-dasharray="5 3"'
    placed = [(horizontal.place(x), vertical.place(y)) for x, y in series.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    yield f'<polyline class="line {colour}" points="{path}"{dashes}/>'
    for (x, y), (left, top) in zip(series.points, placed, strict=True):
        tip = escape(f"{shown(series.name)}: {_number(y)} at {_number(x)}")
        yield (
            f'<circle class="dot {colour}" cx="{left:.1f}" cy="{top:.1f}" r="3"><title>{tip}</title></circle>'
        )


def _frame(vertical: _Axis, ticks: Sequence[float]) -> Iterator[str]:
    for tick in ticks:
        y = vertical.place(tick)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(_number(tick), LEFT - 6, y + 4, "end")


def _document(lines: Sequence[str], title: str, series: Sequence[Series]) -> str:
    """The chart with its legend below, in as many lines as the names need."""
    legend, x, y = [], float(LEFT), float(HEIGHT + 12)
    for number, one in enumerate(series):
        name = shown(one.name)
        needed = 24 + FONT * ems(name) + 16
        if x > LEFT and x + needed > WIDTH - RIGHT:
            x, y = float(LEFT), y + 20
        legend.append(
            f'<rect class="bar series-{number % COLOURS}" x="{x:.1f}" y="{y - 10:.1f}" '
            'width="16" height="10"/>'
        )
        legend.append(_text(name, x + 22, y, "start"))
        x += needed
    height = round(y + 12)
    head = (
        f'<svg class="chart" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-size="{FONT}">'
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", *lines, *legend, "</svg>"])


def _text(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers that span the values: steps of 1, 2 or 5 times a power of ten."""
    span = high - low if high > low else max(abs(high), 1.0)
    rough = span / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.floor(low / step), math.ceil((low + span) / step)
    return [number * step for number in range(first, last + 1)]


def _number(value: float) -> str:
    """`1,200`, `3.5`, `0.02`: as short as it can be without losing what a chart shows."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
