"""Estimated text widths without a font, and text without control characters."""

from __future__ import annotations

import unicodedata
import xml.etree.ElementTree as ElementTree
from html import escape

import pytest
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
def test_terminal_columns(text: str, expected: int) -> None:
    assert terminal_columns(text) == expected


def test_a_hangul_syllable_is_one_em() -> None:
    assert width_in_ems("나는") == 2.0


# Advance widths of DejaVu Sans, in ems, the widest of the usual fallback fonts.
DEJAVU = {"a": 0.613, "n": 0.634, "m": 0.974, "w": 0.818, "i": 0.278, "t": 0.392, "A": 0.684, "M": 0.863}
DEJAVU |= {"W": 0.989, "N": 0.748, "O": 0.787, "0": 0.636, ".": 0.318, "-": 0.361, "ß": 0.630, "<": 0.838}
DEJAVU |= {"H": 0.752, "U": 0.732, "ü": 0.634, "=": 0.838, "+": 0.838, "_": 0.5, "&": 0.780, "#": 0.838}


@pytest.mark.parametrize("character", sorted(DEJAVU))
def test_the_estimate_is_not_below_a_wide_font(character: str) -> None:
    assert width_in_ems(character) >= DEJAVU[character]


@given(st.text(), st.text())
def test_a_longer_text_is_never_narrower(first: str, second: str) -> None:
    assert width_in_ems(first) <= width_in_ems(first + second) + 1e-9


@given(st.text())
def test_printable_text_is_well_formed_xml(text: str) -> None:
    element = ElementTree.fromstring(f"<text>{escape(printable(text))}</text>")
    assert (element.text or "") == printable(text)


def test_control_characters_are_replaced() -> None:
    assert printable("a\x1b[31m\n\u202e\ud800b") == "a�[31m���b"


def test_ordinary_words_stay_the_same() -> None:
    for word in ("나는", "<polite>", "Müßiggang", FAMILY_EMOJI, "می\u200cروم"):
        assert printable(word) == word


@given(st.text(alphabet="ab 가👍", max_size=80), st.floats(min_value=1, max_value=30))
def test_wrapping_keeps_every_word_and_the_limit(text: str, limit: float) -> None:
    lines = wrap(text, limit)
    assert " ".join(lines).split() == text.split()
    assert all(width_in_ems(line) <= limit or " " not in line for line in lines)
