"""Estimated text widths without a font, and text without control characters.

Estimates are rather too wide than too narrow: a label with space around it is readable, a label that is cut
is not. They are made for DejaVu Sans, the widest of the usual fallback fonts. In Noto Sans, a text takes
about four fifths of its estimate.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Characters by width, in ems: see `_glyph_ems`.
_NARROW = frozenset("ijlI|.,:;'·")
_SLIM = frozenset('frt()[]/\\"-! \u00a0')
_CAPITAL = frozenset("#~^&")  # as wide as a capital letter
_BROAD = frozenset("mwMWQOGD@%—…œæŒÆ™ЖМШЩЮжмшщю")

_BREAKING_SPACES = re.compile(r"[^\S\u00a0\u202f]+")
_EMOJI_SELECTOR = "\ufe0f"
_JOINER = "\u200d"
# These could change the order of the characters in the rest of a terminal line.
_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """Return the text with � for characters that a terminal or XML cannot show.

    These are control characters, line breaks, bidirectional controls, lone surrogates and noncharacters.
    XML cannot contain lone surrogates, nor most control characters, even if they are escaped. A terminal
    would execute control characters.
    """
    return "".join(_printable_character(character) for character in text)


def _printable_character(character: str) -> str:
    category = unicodedata.category(character)
    not_a_character = ord(character) & 0xFFFE == 0xFFFE  # U+FFFE and U+FFFF, in every plane of Unicode
    is_control = category in {"Cc", "Cs", "Zl", "Zp"} or character in _BIDI_CONTROLS
    return "\ufffd" if is_control or not_a_character else character


def terminal_columns(text: str) -> int:
    """Return the number of terminal columns of a text.

    Hangul, Han and emoji take two columns, and a combining accent takes none.
    """
    return sum(2 if wide else 1 for _, wide in _glyphs(text))


def width_in_ems(text: str) -> float:
    """Return the estimated width of a text in ems (1 is the font size)."""
    return sum(_glyph_ems(character, wide) for character, wide in _glyphs(text))


def wrap(text: str, limit: float) -> list[str]:
    """Break a text at spaces into lines of at most `limit` ems. A wider word gets a line of its own.

    A text is not broken at no-break spaces.
    """
    lines: list[str] = []
    for word in filter(None, _BREAKING_SPACES.split(text)):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_in_ems(longer) <= limit:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _glyphs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the characters of a text that have a width, each with a flag that says whether it is wide.

    Accents, joiners and the later parts of a composed emoji or Hangul syllable have no width.
    """
    previous, joined = "", False
    for index, character in enumerate(text):
        follows_joiner, joined = joined, character == _JOINER
        if _has_no_width(character) or follows_joiner or (previous and _is_skin_tone(character)):
            continue
        previous = character
        wide = unicodedata.east_asian_width(character) in "WF"
        yield character, wide or text[index + 1 : index + 2] == _EMOJI_SELECTOR


def _has_no_width(character: str) -> bool:
    medial_or_final_jamo = 0x1160 <= ord(character) <= 0x11FF
    return medial_or_final_jamo or unicodedata.category(character) in {"Mn", "Me", "Cf"}


def _is_skin_tone(character: str) -> bool:
    return 0x1F3FB <= ord(character) <= 0x1F3FF


def _glyph_ems(character: str, wide: bool) -> float:
    if wide:  # symbols are emoji; the others are Hangul, Han and kana
        return 1.3 if unicodedata.category(character)[0] == "S" else 1.0
    if character in _NARROW:
        return 0.36
    if character in _SLIM:
        return 0.46
    category = unicodedata.category(character)
    if character in _BROAD or category in {"So", "Lo"}:
        return 1.0
    if character in _CAPITAL or category in {"Lu", "Lt", "Sm"}:
        return 0.84
    return 0.64
