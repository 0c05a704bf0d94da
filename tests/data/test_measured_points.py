"""The measured points that `jumok check` quotes are those of docs/quality.md."""

from __future__ import annotations

import re
from pathlib import Path

from jumok.data.measured_points import MEASURED_POINTS, nearest_points

PAGE = Path(__file__).parent.parent.parent / "docs" / "quality.md"


def test_the_page_has_every_point_and_its_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = [
        f"| {point.corpus} | {point.pairs:,} | {point.minutes} | {point.bleu} ({point.tokenizer}) | {n} |"
        for n, point in enumerate(MEASURED_POINTS, start=1)
    ]
    assert [line for line in page.splitlines() if re.search(r"\) \| \d+ \|$", line)] == rows
    runs = re.split(r"^\d+\. ", page, flags=re.MULTILINE)[1:]
    assert len(runs) == len(MEASURED_POINTS)
    assert all(re.search(r"^ {7}jumok (train|demo)", run, re.MULTILINE) for run in runs)


def test_the_points_with_the_nearest_numbers_of_pairs_come_first() -> None:
    assert nearest_points(300)[0].pairs == 1_000
    assert {point.pairs for point in nearest_points(25_000)} == {29_000}
    assert nearest_points(10**9)[0].pairs == 120_000
    assert nearest_points(0)  # an empty corpus also has nearest points, although log(0) does not exist
