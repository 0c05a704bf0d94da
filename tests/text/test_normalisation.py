"""Normalisation: NFC, bounded runs of combining marks, no lone surrogates. Escaping is reversible."""

from __future__ import annotations

import sys
import time
import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumok.data.hold_out import sentence_key
from jumok.text.long_lines import split_line
from jumok.text.normalisation import (
    MAX_MARKS,
    bound_marks,
    escape,
    is_composed,
    normalise,
    unescape,
    unescaped_offsets,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.text.tokenizer import Tokenizer

SPECIAL = st.text(st.sampled_from("ab ▁\ufdd0\ufdd1"))


def test_text_is_composed_to_nfc() -> None:
    assert normalise("e\u0301\u1100\u1161") == "é가"


def test_normalisation_changes_nothing_but_the_normal_form() -> None:
    assert normalise("  ＡＢＣ\u00a0ﬁ Ünïcode \t") == "  ＡＢＣ\u00a0ﬁ Ünïcode \t"


def test_a_lone_surrogate_is_replaced() -> None:
    assert normalise("a\ud800b") == "a\ufffdb"


# --- runs of combining marks ---

# Marks of several classes. The decomposition of U+0344 is two marks. The decomposition of ᾂ is a letter and
# three marks. The decomposition of U+0958 is a letter and a mark, which NFC does not compose again.
MARKED = st.text(st.sampled_from("aᾂ\u0958가 -\u0300\u0316\u0344\u0f73\u05b0\u20d0"), max_size=200)


def longest_run(text: str) -> int:
    longest = count = 0
    for character in unicodedata.normalize("NFD", text):
        count = count + 1 if unicodedata.combining(character) else 0
        longest = max(longest, count)
    return longest


@given(MARKED)
@example("a" + "\u0344" * 16)
@example("\u0958" + "\u0316" * 30)
@example("ᾂ" + "\u0344" * 13 + "\u0316" * 3)
def test_runs_of_marks_are_bounded_and_nothing_is_lost(text: str) -> None:
    normal = normalise(text)
    assert longest_run(normal) <= MAX_MARKS
    assert normalise(normal) == normal
    assert unicodedata.is_normalized("NFC", normal)
    assert bound_marks(text).replace("\u034f", "") == text
    if longest_run(text) <= MAX_MARKS:
        assert normal == unicodedata.normalize("NFC", text)


def test_the_assumptions_of_the_search_for_runs_hold_for_all_of_unicode() -> None:
    """The comment on `_POSSIBLE_RUN` states these assumptions."""
    for character in map(chr, range(sys.maxunicode + 1)):
        classes = [*map(unicodedata.combining, unicodedata.normalize("NFD", character))]
        if all(classes):
            assert len(classes) <= 2
            assert not character.isalnum()
            assert not character.isspace()
        else:
            assert classes[0] == 0
            assert len(classes) <= 4  # so at most three marks after the last letter


@given(MARKED)
def test_a_tokenizer_decodes_runs_of_marks_exactly(unigram: Tokenizer, text: str) -> None:
    assert unigram.decode(unigram.encode(text)) == normalise(text)


def assert_linear_time(function: Callable[[str], object], text: str) -> None:
    """Check that eight times the text takes less than 24 times as long. Quadratic time would be 64 times."""

    def seconds(text: str) -> float:
        times = []
        for _ in range(3):
            started = time.thread_time()
            function(text)
            times.append(time.thread_time() - started)
        return min(times)

    assert seconds(8 * text) < 24 * seconds(text)


@pytest.mark.parametrize("function", [normalise, sentence_key, is_composed], ids=lambda f: f.__name__)
def test_time_is_linear_in_the_number_of_marks(function: Callable[[str], object]) -> None:
    assert_linear_time(function, "\u0300\u0316" * 5_000)


def test_a_line_of_marks_is_split_in_few_steps() -> None:
    calls = 0

    def count_tokens(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text)

    line = "a" + "\u0300\u0316" * 20_000
    parts = split_line(line, count_tokens, 200)
    assert "".join(parts) == line
    assert calls < 1000  # an earlier version made 40,000 calls, and each call normalised the rest of the line


@given(st.text() | SPECIAL)
def test_escaping_is_reversible_and_leaves_no_bar(text: str) -> None:
    """The bar is "▁" (U+2581), with which SentencePiece writes a space."""
    assert "▁" not in escape(text)
    assert unescape(escape(text)) == text


@given(SPECIAL)
def test_unescaped_offsets_match_the_original_text(text: str) -> None:
    escaped = escape(text)
    offsets = unescaped_offsets(escaped)
    assert len(offsets) == len(escaped) + 1
    for position in range(len(text) + 1):
        assert offsets[len(escape(text[:position]))] == position


def test_time_is_linear_in_the_number_of_escaped_characters() -> None:
    assert_linear_time(unescaped_offsets, escape("\ufdd0" * 1_000))
