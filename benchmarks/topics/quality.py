"""Quality after 45 minutes of training on Multi30k. Only the size and the time are set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import Comparison, System
from benchmarks.settings import MINUTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["ROUNDS", "comparisons", "remarks"]

ROUNDS = 1  # because each round is a complete training


def comparisons(bench: Workbench) -> list[Comparison]:
    options = {
        "data": bench.data,
        "out": bench.work / "run",
        "minutes": MINUTES,
        "quick": int(bench.quick),
    }
    title = f"`jumok train --size tiny --minutes {MINUTES:.0f}` on Multi30k English–German, test_2016_flickr"
    system = System("jumok, beam 4", "train_and_score", options)
    return [Comparison(title, "BLEU", [system], has_ratios=False)]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    return ["BLEU is sacreBLEU's on the words of the lowercased, tokenized test files (`--tokenize none`)."]
