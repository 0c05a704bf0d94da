"""Lines that are too long are cut without losing a letter."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.decoding.splitting import join_parts, split_line

LETTERS = st.text(alphabet="abc de.,;!? \t。、，！é́ 가나…", max_size=120)


def letters(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(line=LETTERS, longest=st.integers(1, 40))
def test_no_letter_is_lost_and_every_part_fits(line: str, longest: int) -> None:
    parts = split_line(line, len, longest)
    assert letters("".join(parts)) == letters(line)
    assert all(len(part) <= longest for part in parts)
    cursor = 0
    for part in parts:  # the parts are slices, in order
        cursor = line.index(part, cursor) + len(part)


@given(line=LETTERS, longest=st.integers(1, 40))
def test_bytes_may_count_more_than_letters(line: str, longest: int) -> None:
    def bytes_of(text: str) -> int:
        return len(text.encode())

    parts = split_line(line, bytes_of, longest)
    assert letters("".join(parts)) == letters(line)
    assert all(bytes_of(part) <= longest or len(part) == 1 for part in parts)


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("line", "longest", "parts"),
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
def test_lines_are_cut_where_it_hurts_least(line: str, longest: int, parts: list[str]) -> None:
    assert split_line(line, words, longest) == parts


def test_scripts_without_spaces_are_cut_after_their_marks() -> None:
    assert split_line("今日は天気がいいです。明日は雨が降るでしょう。", len, 14) == [
        "今日は天気がいいです。",
        "明日は雨が降るでしょう。",
    ]


def test_numbers_and_addresses_stay_whole() -> None:
    line = "It costs 3.50 at example.com today and tomorrow. Then it will cost far more than that."
    assert split_line(line, words, 10)[0] == "It costs 3.50 at example.com today and tomorrow."


@pytest.mark.parametrize(
    ("language", "joined"), [("ko", "a b"), ("", "a b"), ("ja", "ab"), ("zh-Hant", "ab")]
)
def test_parts_are_joined_as_the_language_is_written(language: str, joined: str) -> None:
    assert join_parts(["a", "", "b"], language) == joined
