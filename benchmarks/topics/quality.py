"""What the speed is for: Multi30k in 45 minutes, with nothing set but the size and the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import Contender, Contest
from benchmarks.settings import MINUTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["ROUNDS", "contests", "remarks"]

ROUNDS = 1  # a training from beginning to end


def contests(bench: Workbench) -> list[Contest]:
    arguments = {
        "data": bench.data,
        "out": bench.work / "run",
        "minutes": MINUTES,
        "quick": int(bench.quick),
    }
    title = f"`jumok train --size tiny --minutes {MINUTES:.0f}` on Multi30k English–German, test_2016_flickr"
    return [Contest(title, "BLEU", [Contender("jumok, beam 4", "train_and_score", arguments)])]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    return ["BLEU is sacreBLEU's on the tokens as they are (`--tokenize none`)."]
