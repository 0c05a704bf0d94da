"""The things that are drawn: shapes, colours and sizes, their words in both languages, and how they look."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Coordinates = NDArray[np.float64]
    Contains = Callable[[Coordinates, Coordinates], NDArray[np.bool_]]

SIDE = 32  # pixels per side of a picture
MAX_REACH = 1.1  # largest distance of a point of a shape from the centre along x or y, in radii
SUBPIXELS = 4  # per side of a pixel, so that edges are smooth


def _polygon(corners: list[tuple[float, float]]) -> Contains:
    """Return a function that tests whether points are inside a polygon.

    A ray from a point inside crosses an odd number of edges (even-odd rule).
    """

    def inside(x: Coordinates, y: Coordinates) -> NDArray[np.bool_]:
        odd = np.zeros(x.shape, dtype=bool)
        for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
            if y1 != y2:
                crosses = ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
                odd ^= crosses
        return odd

    return inside


def _star_corners() -> list[tuple[float, float]]:
    radii = (1.1, 0.45)
    angles = [math.pi * (corner / 5 - 0.5) for corner in range(10)]
    return [(radii[i % 2] * math.cos(a), radii[i % 2] * math.sin(a)) for i, a in enumerate(angles)]


def _circle(x: Coordinates, y: Coordinates) -> NDArray[np.bool_]:
    return x * x + y * y <= 0.95


def _square(x: Coordinates, y: Coordinates) -> NDArray[np.bool_]:
    return np.maximum(abs(x), abs(y)) <= 0.88


def _cross(x: Coordinates, y: Coordinates) -> NDArray[np.bool_]:
    near, far = np.minimum(abs(x), abs(y)), np.maximum(abs(x), abs(y))
    return (near <= 0.3) & (far <= 1.0)


def _heart(x: Coordinates, y: Coordinates) -> NDArray[np.bool_]:
    u, v = 1.2 * x, -1.2 * y + 0.1
    return (u * u + v * v - 1) ** 3 - u * u * v**3 <= 0


class Shape(NamedTuple):
    """A shape around (0, 0), with y downwards. Along x and y, it extends to about 1, at most to MAX_REACH."""

    english: str
    korean: str
    contains: Contains  # whether points (x, y) are inside


class Colour(NamedTuple):
    english: str
    korean: str  # before a noun
    rgb: tuple[int, int, int]


class Size(NamedTuple):
    english: str
    korean: str  # before a noun
    radius: float  # in pixels


SHAPES = (
    Shape("circle", "원", _circle),
    Shape("square", "사각형", _square),
    Shape("triangle", "삼각형", _polygon([(0.0, -1.0), (1.0, 0.85), (-1.0, 0.85)])),
    Shape("star", "별", _polygon(_star_corners())),
    Shape("heart", "하트", _heart),
    Shape("cross", "십자가", _cross),
)
COLOURS = (
    Colour("red", "빨간", (205, 35, 40)),
    Colour("blue", "파란", (35, 75, 200)),
    Colour("green", "초록색", (30, 145, 60)),
    Colour("yellow", "노란", (240, 215, 40)),
    Colour("purple", "보라색", (125, 45, 160)),
    Colour("white", "하얀", (245, 245, 245)),
)
SIZES = {"small": Size("small", "작은", 4.8), "big": Size("big", "큰", 7.5)}


@dataclass(frozen=True, slots=True)
class Thing:
    """A shape in a colour and a size; its centre (x, y) is in pixels."""

    shape: Shape
    colour: Colour
    size: Size
    x: float
    y: float

    @property
    def reach(self) -> float:
        """An upper bound of the distance of the thing's points from its centre, along x or y, in pixels."""
        return MAX_REACH * self.size.radius


def coverage(thing: Thing) -> NDArray[np.float64]:
    """Return the share of each pixel that the thing covers, (SIDE, SIDE)."""
    shares = np.zeros((SIDE, SIDE))
    reach, radius = thing.reach, thing.size.radius
    left, right = (min(max(int(edge), 0), SIDE) for edge in (thing.x - reach, thing.x + reach + 1))
    top, bottom = (min(max(int(edge), 0), SIDE) for edge in (thing.y - reach, thing.y + reach + 1))
    columns, rows = right - left, bottom - top
    x = (left + (np.arange(columns * SUBPIXELS) + 0.5) / SUBPIXELS - thing.x) / radius
    y = (top + (np.arange(rows * SUBPIXELS) + 0.5) / SUBPIXELS - thing.y) / radius
    inside = thing.shape.contains(*np.broadcast_arrays(x[None, :], y[:, None]))
    shares[top:bottom, left:right] = inside.reshape(rows, SUBPIXELS, columns, SUBPIXELS).mean(axis=(1, 3))
    return shares
