"""Frames, labels, boxes and arrows of pictures, and a function that writes pictures in both languages."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from korean_labels import in_korean

from jumok.plots.heat_map import BACKGROUND, EDGE, FONTS, INK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Pictures: TypeAlias = "Iterator[tuple[str, str]]"
"""Name and SVG of each picture, with English labels."""

PICTURES = Path(__file__).with_name("pictures")
COLOURS = ("#1c1d21", "#d9480f", "#1971c2", "#2f9e44", "#9c36b5", "#a06a00")
YELLOW, BLUE, GREEN = "#fff3bf", "#d0ebff", "#d3f9d8"
WORDS = ("I", "go", "home")
SUBSCRIPT = re.compile(r"\b([A-Za-z])_([A-Za-z](?:−1)?)")


def framed_svg(title: str, width: int, height: int, elements: list[str]) -> str:
    """An SVG of this size with a title, a frame and these elements."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" font-family="{FONTS}" font-size="12">',
            f"<title>{escape(title)}</title>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" '
            f'fill="{BACKGROUND}" stroke="{EDGE}"/>',
            f'<text x="24" y="30" font-size="16" font-weight="600" fill="{INK}">{escape(title)}</text>',
            *elements,
            "</svg>\n",
        ]
    )


def label(x: float, y: float, text: str, *, colour: str = INK, anchor: str = "middle") -> str:
    """A text at a point. In `s_t−1`, the part `t−1` becomes a subscript."""
    markup = SUBSCRIPT.sub(r'\1<tspan dy="4" font-size="9">\2</tspan>', escape(text))
    markup = re.sub(r"</tspan>(.+)", r'</tspan><tspan dy="-4">\1</tspan>', markup)
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}" fill="{colour}">{markup}</text>'


def line(path: str, *, colour: str = INK) -> str:
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def arrow(path: str, *, colour: str = INK) -> str:
    """A path with an arrowhead at its end."""
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5" marker-end="url(#head)"/>'


def box(middle: float, y: float, text: str, *, width: int = 168, fill: str = "white") -> str:
    """A box with a text, around the point (middle, y)."""
    shape = f'x="{middle - width / 2:g}" y="{y - 14:g}" width="{width}" height="28" rx="6"'
    return f'<rect {shape} fill="{fill}" stroke="{INK}"/>' + label(middle, y, text)


def circle(x: float, y: float, text: str, *, fill: str = "white") -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="13" fill="{fill}" stroke="{INK}"/>' + label(x, y, text)


ARROWHEAD = (
    '<defs><marker id="head" viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="6" markerHeight="6" '
    f'orient="auto"><path d="M0 0L6 3L0 6z" fill="{INK}"/></marker></defs>'
)


def write_pictures(pictures: Iterable[tuple[str, str]], folder: Path) -> None:
    """Write every picture into the folder: `<name>.svg` in English, `<name>.ko.svg` in Korean."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures:
        (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
        (folder / f"{name}.ko.svg").write_text(in_korean(picture), encoding="utf-8")
