"""The grammar generates every sentence of `hand_pairs.txt` with its translation by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.datasets.english_korean import pattern_names
from support.guided import find_pair

PAIRS = Path(__file__).with_name("hand_pairs.txt")


def _rows() -> list[tuple[str, str, str]]:
    lines = PAIRS.read_text(encoding="utf-8").splitlines()[1:]
    rows = [tuple(cell.strip() for cell in line.split(" | ")) for line in lines]
    return [(row[0], row[1], row[2]) for row in rows]


@pytest.mark.parametrize(("pattern", "english", "korean"), _rows())
def test_translations_equal_those_written_by_hand(pattern: str, english: str, korean: str) -> None:
    pair = find_pair(pattern, english)
    assert pair is not None, "the grammar does not generate this"
    assert pair.target == korean


def test_nearly_every_pattern_has_a_sentence_translated_by_hand() -> None:
    covered = {pattern for pattern, _, _ in _rows()}
    assert covered <= set(pattern_names())
    too_long_to_generate = {"three people", "when two people", "person who but person who"}
    assert set(pattern_names()) - covered == too_long_to_generate
