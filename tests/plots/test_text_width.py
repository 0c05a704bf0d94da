"""Estimated text widths without a font, and text without control characters."""

from __future__ import annotations

import unicodedata
import xml.etree.ElementTree as ElementTree
from functools import cache
from html import escape
from pathlib import Path

import matplotlib
import pytest
from fontTools.ttLib import TTFont
from hypothesis import given
from hypothesis import strategies as st

from jumok.plots.text_width import printable, terminal_columns, width_in_ems, wrap

FAMILY_EMOJI = "👩\u200d👩\u200d👧\u200d👦"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("home", 4),
        ("나는", 4),
        ("日本", 4),
        ("é", 1),
        (unicodedata.normalize("NFD", "é"), 1),
        (unicodedata.normalize("NFD", "집"), 2),
        ("👍", 2),
        ("👍🏽", 2),
        ("❤\ufe0f", 2),
        ("🇰🇷", 2),
        (FAMILY_EMOJI, 2),
        ("ＡＢ", 4),
        ("a\u200bb", 2),
    ],
)
def test_terminal_columns_count_wide_characters_twice_and_accents_not_at_all(
    text: str, expected: int
) -> None:
    assert terminal_columns(text) == expected


def test_a_hangul_syllable_is_one_em() -> None:
    assert width_in_ems("나는") == 2.0


@pytest.mark.parametrize("character", [*map(chr, range(32, 127)), "ß", "ü", "·", "…"])
def test_the_estimate_is_not_below_the_width_in_dejavu_sans(character: str) -> None:
    assert width_in_ems(character) >= dejavu_sans_widths()[ord(character)]


@cache
def dejavu_sans_widths() -> dict[int, float]:
    """Return the advance width of each character of DejaVu Sans, in ems. matplotlib contains this font."""
    with TTFont(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf") as font:
        units_per_em = font["head"].unitsPerEm
        return {code: font["hmtx"][name][0] / units_per_em for code, name in font.getBestCmap().items()}


@given(st.text(), st.text())
def test_a_longer_text_is_never_narrower(first: str, second: str) -> None:
    assert width_in_ems(first) <= width_in_ems(first + second) + 1e-9


@given(st.text())
def test_printable_text_is_well_formed_xml(text: str) -> None:
    element = ElementTree.fromstring(f"<text>{escape(printable(text))}</text>")
    assert (element.text or "") == printable(text)


def test_control_characters_are_replaced() -> None:
    assert printable("a\x1b[31m\n\u202e\ud800b") == "a�[31m���b"
    # Every character with the Unicode property Bidi_Control, which Python does not know.
    bidi_controls = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    assert printable(bidi_controls) == "�" * len(bidi_controls)


def test_ordinary_words_stay_the_same() -> None:
    for word in ("나는", "<polite>", "Müßiggang", FAMILY_EMOJI, "می\u200cروم"):
        assert printable(word) == word


@given(st.text(alphabet="ab 가👍", max_size=80), st.floats(min_value=1, max_value=30))
def test_wrapping_drops_no_word_and_only_a_single_word_exceeds_the_limit(text: str, limit: float) -> None:
    lines = wrap(text, limit)
    assert " ".join(lines).split() == text.split()
    assert all(width_in_ems(line) <= limit or " " not in line for line in lines)
