"""Text is normalised to NFC and nothing else; escaping is reversible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jumok.text import normalise
from jumok.text.normalisation import escape, unescape, unescaped_offsets

SPECIAL = st.text(st.sampled_from("ab ▁\ufdd0\ufdd1"))


def test_text_is_composed_to_nfc() -> None:
    assert normalise("e\u0301\u1100\u1161") == "é가"


def test_normalisation_changes_nothing_but_the_normal_form() -> None:
    assert normalise("  ＡＢＣ\u00a0ﬁ Ünïcode \t") == "  ＡＢＣ\u00a0ﬁ Ünïcode \t"


def test_a_lone_surrogate_is_replaced() -> None:
    assert normalise("a\ud800b") == "a\ufffdb"


@given(st.text() | SPECIAL)
def test_escaping_is_reversible_and_leaves_no_bar(text: str) -> None:
    assert "▁" not in escape(text)
    assert unescape(escape(text)) == text


@given(SPECIAL)
def test_unescaped_offsets_match_the_original_text(text: str) -> None:
    escaped = escape(text)
    offsets = unescaped_offsets(escaped)
    assert len(offsets) == len(escaped) + 1
    for position in range(len(text) + 1):
        assert offsets[len(escape(text[:position]))] == position
