"""The scripts that jumok knows, with their code points.

This module does not import numpy, so that importing it is fast.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Script:
    """A script: its code points, and how text in the script is written."""

    ranges: tuple[tuple[int, int], ...]  # ranges of code points, both ends included
    density: float = 1.0  # the number of characters per character of the English translation
    spaced: bool = True  # whether there are spaces between words


SCRIPTS: dict[str, Script] = {
    "Latin": Script(((0x41, 0x24F), (0x250, 0x2AF), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF))),
    "Cyrillic": Script(((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F))),
    "Greek": Script(((0x370, 0x3FF), (0x1F00, 0x1FFF)), 1.1),
    "Armenian": Script(((0x530, 0x58F),)),
    "Hebrew": Script(((0x590, 0x5FF), (0xFB1D, 0xFB4F)), 0.75),
    "Arabic": Script(
        ((0x600, 0x6FF), (0x750, 0x77F), (0x8A0, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC)), 0.8
    ),
    "Devanagari": Script(((0x900, 0x97F), (0xA8E0, 0xA8FF))),
    "Bengali": Script(((0x980, 0x9FF),)),
    "Gurmukhi": Script(((0xA00, 0xA7F),)),
    "Gujarati": Script(((0xA80, 0xAFF),)),
    "Odia": Script(((0xB00, 0xB7F),)),
    "Tamil": Script(((0xB80, 0xBFF),), 1.15),
    "Telugu": Script(((0xC00, 0xC7F),)),
    "Kannada": Script(((0xC80, 0xCFF),)),
    "Malayalam": Script(((0xD00, 0xD7F),), 1.1),
    "Sinhala": Script(((0xD80, 0xDFF),)),
    "Thai": Script(((0xE00, 0xE7F),), 0.9, spaced=False),
    "Lao": Script(((0xE80, 0xEFF),), 0.9, spaced=False),
    "Tibetan": Script(((0xF00, 0xFFF),)),
    "Myanmar": Script(((0x1000, 0x109F), (0xAA60, 0xAA7F)), 1.1, spaced=False),
    "Georgian": Script(((0x10A0, 0x10FF), (0x1C90, 0x1CBF), (0x2D00, 0x2D2F))),
    "Ethiopic": Script(((0x1200, 0x139F), (0x2D80, 0x2DDF)), 0.65),
    "Khmer": Script(((0x1780, 0x17FF),), 1.1, spaced=False),
    "Mongolian": Script(((0x1800, 0x18AF),)),
    "Hangul": Script(((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF)), 0.5),
    "Kana": Script(((0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)), 0.45, spaced=False),
    "Han": Script(
        ((0x3005, 0x3007), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)), 0.32, spaced=False
    ),
}


def character_set(ranges: Iterable[tuple[int, int]]) -> str:
    """Return the ranges for use between [ and ] in a regular expression."""
    return "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in ranges)


@cache
def letter_pattern(scripts: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that matches a letter of one of these scripts."""
    characters = character_set(bounds for script in scripts for bounds in SCRIPTS[script].ranges)
    return re.compile(f"(?=[^\\W\\d_])[{characters}]")
