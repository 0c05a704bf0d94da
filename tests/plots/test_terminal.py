"""Attention maps as text. Each column of cells is under its word, even if words differ in width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.plots.terminal import draw_text
from jumok.plots.text_width import terminal_columns
from jumok.types import AttentionMap
from support.attention_maps import alignment_map


def column_of(line: str, character: str) -> int:
    return terminal_columns(line[: line.index(character)])


def test_a_small_map_is_drawn_completely() -> None:
    attention = alignment_map(
        [[0.9, 0.05, 0.04], [0.01, 0.3, 0.69], [0, 1, 0]],
        source=("I", "go", "home"),
        target=("나는", "집에", "go"),
    )
    assert draw_text(attention) == (
        "     I\n"
        "     │ go\n"
        "     │ │ home\n"
        "나는 ██░░\n"
        "집에   ▒▒▓▓\n"
        "go     ██\n"
        "\n"
        "     ░ ≥ 0.05  ▒ ≥ 0.25  ▓ ≥ 0.5  █ ≥ 0.75\n"
    )


WORDS = st.sampled_from(["I", "나는", "日本", "👍🏽", "é", "e\u0301", "Schifffahrt", "<polite>", "ㅋㅋ"])


@given(st.lists(WORDS, min_size=1, max_size=8))
def test_each_full_cell_is_under_its_word(words: list[str]) -> None:
    count = len(words)
    lines = draw_text(alignment_map(np.eye(count), source=words, target=words)).splitlines()
    starts = {column_of(line, "█") for line in lines[count : 2 * count]}
    margin = max(terminal_columns(word) for word in words) + 1
    assert starts == {margin + 2 * index for index in range(count)}
    for index, line in enumerate(lines[:count]):
        assert line == " " * margin + "│ " * index + words[index]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in draw_text(alignment_map([[1.0]], source=["\x1b[2J"], target=["\x1b]0;x\x07"]))


def test_a_map_without_target_words_is_drawn() -> None:
    attention = AttentionMap("cross", np.zeros((1, 1, 0, 2)), (), ("a", "b"))
    assert draw_text(attention).splitlines()[:3] == [" a", " │ b", ""]


def test_nan_is_a_question_mark() -> None:
    assert "c ??██" in draw_text(alignment_map([[np.nan, 1]], source="ab", target="c"))


def test_the_legend_follows_the_largest_weight() -> None:
    assert "█ ≥ 1.5" in draw_text(alignment_map([[2.0, 0.1]], source="ab", target="c"))


@pytest.mark.parametrize(("head", "name"), [(None, "(mean of 2 heads)"), (1, "(head 1)")])
def test_the_legend_names_the_head(head: int | None, name: str) -> None:
    attention = AttentionMap("cross", np.ones((1, 2, 1, 1)), ("a",), ("b",))
    assert name in draw_text(attention, head=head)
