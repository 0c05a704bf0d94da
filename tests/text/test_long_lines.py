"""Lines that are too long are split, and nothing but spaces is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.text.long_lines import sentence_separator, split_line
from jumok.text.normalisation import MAX_MARKS

LINES = st.text(alphabet="abc de.,;!? \t。、，！é́ 가나…", max_size=120)


def without_spaces(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(line=LINES, max_tokens=st.integers(1, 40))
def test_parts_fit_and_keep_every_letter(line: str, max_tokens: int) -> None:
    parts = split_line(line, len, max_tokens)
    assert without_spaces("".join(parts)) == without_spaces(line)
    assert all(len(part) <= max_tokens for part in parts)
    cursor = 0
    for part in parts:  # the parts are slices, in order
        cursor = line.index(part, cursor) + len(part)


@given(line=LINES, max_tokens=st.integers(1, 40))
def test_a_character_may_count_as_several_tokens(line: str, max_tokens: int) -> None:
    def num_bytes(text: str) -> int:
        return len(text.encode())

    parts = split_line(line, num_bytes, max_tokens)
    assert without_spaces("".join(parts)) == without_spaces(line)
    assert all(num_bytes(part) <= max_tokens or len(part) == 1 for part in parts)


def num_words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("line", "max_tokens", "parts"),
    [
        ("It fits as it is. All of it.", 9, ["It fits as it is. All of it."]),
        (
            "The first sentence has seven words here. Is the second one a question now? Yes it is!",
            9,
            ["The first sentence has seven words here.", "Is the second one a question now?", "Yes it is!"],
        ),
        ("Dr. Kim told us to wait for a moment. Then the door opened.", 11,
         ["Dr. Kim told us to wait for a moment.", "Then the door opened."]),
        ("one two three, four five six; seven eight", 6, ["one two three, four five six;", "seven eight"]),
        ("one two three four five six seven", 3, ["one two three", "four five six", "seven"]),
        ('He said "Wait here for me now." Then he left us there.', 7,
         ['He said "Wait here for me now."', "Then he left us there."]),
    ],
)  # fmt: skip
def test_lines_that_are_too_long_are_split_at_sentences_then_commas_then_spaces(
    line: str, max_tokens: int, parts: list[str]
) -> None:
    assert split_line(line, num_words, max_tokens) == parts


def test_scripts_without_spaces_are_split_after_their_punctuation() -> None:
    assert split_line("今日は天気がいいです。明日は雨が降るでしょう。", len, 14) == [
        "今日は天気がいいです。",
        "明日は雨が降るでしょう。",
    ]


def test_numbers_and_addresses_stay_whole() -> None:
    line = "It costs 3.50 at example.com today and tomorrow. Then it will cost far more than that."
    assert split_line(line, num_words, 10)[0] == "It costs 3.50 at example.com today and tomorrow."


@pytest.mark.parametrize("marks", [1, MAX_MARKS - 1, MAX_MARKS])
def test_a_letter_keeps_as_many_marks_as_normalised_text_can_have(marks: int) -> None:
    """The middle of the line, index 40, is the last mark. The line is split before the letter."""
    before, letter, after = "a" * (40 - marks), "e" + "\u0301" * marks, "b" * 39
    line = before + letter + after
    assert split_line(line, len, 79) == [before, letter + after]


@pytest.mark.parametrize(
    ("language", "separator"),
    [
        ("ko", " "),
        ("", " "),
        ("th", " "),
        ("my-MM", " "),
        ("ja", ""),
        ("zh-Hant", ""),
        ("cmn_Hans", ""),
        ("yue_Hant", ""),
    ],
)
def test_only_chinese_and_japanese_write_no_space_between_sentences(language: str, separator: str) -> None:
    assert sentence_separator(language) == separator
