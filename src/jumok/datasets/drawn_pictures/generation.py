"""Draw pictures: choose things and places at random, paint them, describe them.

Every picture has its own random numbers, which depend on (scene or thing, split, seed, index). They come from
`random()` of Python's `Random` and from the raw bits of NumPy's PCG64, because these are the same in all
versions of Python and NumPy.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from jumok.datasets.drawn_pictures.captions import (
    NUMBERS,
    PLACES,
    RELATIONS,
    Caption,
    Noun,
    describe_group,
    describe_pair,
    describe_place,
)
from jumok.datasets.drawn_pictures.things import COLOURS, SHAPES, SIDE, SIZES, Size, Thing, coverage
from jumok.errors import DataError, suggest
from jumok.types import Region

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

Item = TypeVar("Item")

SPLITS = ("train", "valid", "test")
MIDDLE = SIDE / 2
# Distances in pixels.
GRID_STEP = 2  # between neighbouring points at which a thing can be put
EDGE = 0.3  # minimum, between a thing and the edge of the picture
GAP = 1.0  # minimum, between two things
# Maximum offset: along x for the relations "above" and "below", along y for "left" and "right".
MAX_ASIDE = 6
# Of all scenes, 35 % have one thing, 30 % several small things of one kind, and the rest a big and a small
# thing, whose shapes and colours may be equal.
ONE_THING, ONE_KIND = 0.35, 0.65  # cumulative


@dataclass(frozen=True, slots=True)
class DrawnPicture:
    """Pixels, captions by language, and the gold regions of each caption's nouns.

    A picture of `draw_things` has neither captions nor regions.
    """

    pixels: NDArray[np.uint8]  # (SIDE, SIDE, 3)
    captions: dict[str, str]
    regions: dict[str, tuple[Region, ...]]
    things: tuple[Thing, ...]

    @property
    def shape(self) -> str:
        """The English name of the first thing's shape, which is the class of a picture of `draw_things`."""
        return self.things[0].shape.english


def draw_scenes(split: str, count: int, *, seed: int = 1) -> Iterator[DrawnPicture]:
    """Draw pictures of one to three things. Raise on an unknown split before the first picture."""
    _check_split(split)
    return (_draw_scene(_Dice(f"scene {split} {seed} {index}")) for index in range(count))


def draw_things(split: str, count: int, *, seed: int = 1) -> Iterator[DrawnPicture]:
    """Draw pictures of one thing at a random place. Raise on an unknown split before the first picture."""
    _check_split(split)
    return (_draw_thing(_Dice(f"thing {split} {seed} {index}")) for index in range(count))


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise DataError(f"There is no split {split!r}.{suggest(split, SPLITS)} Known: {', '.join(SPLITS)}.")


class _Dice:
    """Random choices for one picture, which are the same in every version of Python."""

    def __init__(self, name: str) -> None:
        self._random = random.Random(name)

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self._random.random()

    def choose(self, items: Sequence[Item]) -> Item:
        return items[int(self._random.random() * len(items))]

    def thing(self, size: Size) -> Thing:
        """Return a random thing of this size in the middle of the picture."""
        return Thing(self.choose(SHAPES), self.choose(COLOURS), size, MIDDLE, MIDDLE)

    def seed(self) -> int:
        return int(self._random.random() * 2**53)


def _draw_thing(dice: _Dice) -> DrawnPicture:
    return _paint(dice, _scatter(dice, dice.thing(SIZES[dice.choose(tuple(SIZES))]), 1), {})


def _draw_scene(dice: _Dice) -> DrawnPicture:
    kind = dice.between(0, 1)
    if kind < ONE_THING:
        thing, place = dice.thing(SIZES[dice.choose(tuple(SIZES))]), dice.choose(tuple(PLACES))
        placed = _at_place(dice, thing, place)
        return _paint(dice, (placed,), describe_place(placed, place))
    if kind < ONE_KIND:
        things = _scatter(dice, dice.thing(SIZES["small"]), dice.choose(tuple(NUMBERS)))
        return _paint(dice, things, describe_group(things))
    relation = dice.choose(tuple(RELATIONS))
    subject, other = _in_relation(dice, dice.thing(SIZES["big"]), dice.thing(SIZES["small"]), relation)
    return _paint(dice, (subject, other), describe_pair(subject, other, relation))


def _put(thing: Thing, x: float, y: float) -> Thing:
    """Put a thing at the nearest point of the grid at which all of the thing is in the picture."""
    low = math.ceil((thing.reach + EDGE) / GRID_STEP)
    high = math.floor((SIDE - thing.reach - EDGE) / GRID_STEP)
    column, row = (min(max(round(coordinate / GRID_STEP), low), high) for coordinate in (x, y))
    return replace(thing, x=float(GRID_STEP * column), y=float(GRID_STEP * row))


def _at_place(dice: _Dice, thing: Thing, place: str) -> Thing:
    """Put a thing near one edge of the picture, or into the middle."""
    near, along = dice.between(0, thing.reach + 3), dice.between(MIDDLE - 3, MIDDLE + 3)
    places = {
        "left": (near, along),
        "right": (SIDE - near, along),
        "top": (along, near),
        "bottom": (along, SIDE - near),
        "middle": (dice.between(MIDDLE - 2, MIDDLE + 2), dice.between(MIDDLE - 2, MIDDLE + 2)),
    }
    return _put(thing, *places[place])


def _scatter(dice: _Dice, thing: Thing, count: int) -> tuple[Thing, ...]:
    """Put copies of a thing at random points, so that no two touch."""
    while True:
        things = tuple(_put(thing, dice.between(0, SIDE), dice.between(0, SIDE)) for _ in range(count))
        pairs = [(a, b) for index, a in enumerate(things) for b in things[:index]]
        if all(max(abs(a.x - b.x), abs(a.y - b.y)) >= 2 * thing.reach + GAP for a, b in pairs):
            return things


def _in_relation(dice: _Dice, subject: Thing, other: Thing, relation: str) -> tuple[Thing, Thing]:
    """Put the subject in this relation to the other thing, so that no other relation is true.

    `along` and `apart` are along the axis of the relation: y for "above" and "below", x for "left" and
    "right". `across` and `aside` are along the other axis.
    """
    while True:
        along, across = dice.between(0, SIDE), dice.between(0, SIDE)
        distance, offset = dice.between(12, 18), dice.between(-2, 2)
        if relation in ("above", "left"):
            distance = -distance  # the subject has the lower coordinate
        if relation in ("above", "below"):
            first, second = _put(subject, across, along + distance), _put(other, across + offset, along)
            apart, aside = abs(first.y - second.y), abs(first.x - second.x)
        else:
            first, second = _put(subject, along + distance, across), _put(other, along, across + offset)
            apart, aside = abs(first.x - second.x), abs(first.y - second.y)
        if apart >= subject.reach + other.reach + GAP and aside <= MAX_ASIDE:
            return first, second


def _paint(dice: _Dice, things: tuple[Thing, ...], captions: dict[str, Caption]) -> DrawnPicture:
    canvas = _background(dice)
    for thing in things:
        shade = np.array([channel + dice.between(-12, 12) for channel in thing.colour.rgb])
        share = coverage(thing)[:, :, None]
        canvas = canvas * (1 - share) + shade * share
    regions = {
        language: tuple(_region(noun, thing) for noun in caption.nouns for thing in noun.things)
        for language, caption in captions.items()
    }
    texts = {language: caption.text for language, caption in captions.items()}
    return DrawnPicture(np.rint(canvas.clip(0, 255)).astype(np.uint8), texts, regions, things)


def _background(dice: _Dice) -> NDArray[np.float64]:
    """Return a greyish background with a little noise, darker than a white thing."""
    level = dice.between(95, 165)
    colour = np.array([level + dice.between(-14, 14) for _ in range(3)])
    bits = np.random.PCG64(dice.seed()).random_raw(SIDE * SIDE)
    noise = (bits >> np.uint64(11)) * 2.0**-53 * 16 - 8
    background: NDArray[np.float64] = colour + noise.reshape(SIDE, SIDE, 1)
    return background


def _region(noun: Noun, thing: Thing) -> Region:
    """Return the box around the pixels that a thing touches, as the region of a noun."""
    rows, columns = np.nonzero(coverage(thing))
    left, right = int(columns.min()), int(columns.max()) + 1
    top, bottom = int(rows.min()), int(rows.max()) + 1
    return Region(noun.word, left / SIDE, top / SIDE, right / SIDE, bottom / SIDE, noun.letters)
