"""How much room a word takes, without a font at hand, and how it can be shown safely.

Pictures are drawn where no font is loaded, so widths are estimates that err on the wide side: a label with
air around it is readable, a label that is cut is not. They hold for DejaVu Sans, the widest of the usual
fallback fonts; in Noto Sans a label takes about four fifths of them.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["columns", "ems", "shown", "wrap"]

_NARROW = frozenset("ijlI|!.,:;'`·")
_SLIM = frozenset('frt()[]{}/\\"-* \u00a0')
_CAPITAL = frozenset("#~^&")
_BROAD = frozenset("mwMWQOGD@%—…œæŒÆ™ЖМШЩЮжмшщю")

_EMOJI_MARK = "\ufe0f"
_JOINER = "\u200d"
# They would turn the rest of a terminal line around.
_TURNERS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def shown(text: str) -> str:
    """The text with � for everything that would act rather than show: controls, line ends, turned text.

    XML cannot carry most control characters even when escaped, and a terminal would obey them.
    """
    return "".join(_shown_character(character) for character in text)


def _shown_character(character: str) -> str:
    category = unicodedata.category(character)
    not_a_character = ord(character) & 0xFFFE == 0xFFFE
    acts = category in {"Cc", "Cs", "Zl", "Zp"} or character in _TURNERS
    return "\ufffd" if acts or not_a_character else character


def columns(text: str) -> int:
    """Terminal columns of a text: two for Hangul, Han and emoji, none for a combining accent."""
    return sum(2 if wide else 1 for _, wide in _signs(text))


def ems(text: str) -> float:
    """Width of a text in ems (1 is the font size), estimated a little wide."""
    return sum(_sign_ems(character, wide) for character, wide in _signs(text))


def wrap(text: str, limit: float) -> list[str]:
    """The text in lines of at most `limit` ems, broken at spaces; a single longer word keeps its own line."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and ems(longer) <= limit:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _signs(text: str) -> Iterator[tuple[str, bool]]:
    """What takes up room, one by one, each with whether it is wide.

    Accents, joiners and the later parts of a composed emoji or Hangul syllable take none.
    """
    previous, joined = "", False
    for index, character in enumerate(text):
        follows_joiner, joined = joined, character == _JOINER
        if _adds_nothing(character) or follows_joiner or (previous and _is_skin_tone(character)):
            continue
        previous = character
        wide = unicodedata.east_asian_width(character) in "WF"
        yield character, wide or text[index + 1 : index + 2] == _EMOJI_MARK


def _adds_nothing(character: str) -> bool:
    medial_or_final_jamo = 0x1160 <= ord(character) <= 0x11FF
    return medial_or_final_jamo or unicodedata.category(character) in {"Mn", "Me", "Cf"}


def _is_skin_tone(character: str) -> bool:
    return 0x1F3FB <= ord(character) <= 0x1F3FF


def _sign_ems(character: str, wide: bool) -> float:
    if wide:
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
