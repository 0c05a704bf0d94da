"""Models of drawn pictures (classes, captions), each trained for five minutes, and of 1,797 real digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import Comparison, System

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["ROUNDS", "comparisons", "remarks"]

ROUNDS = 1  # because each round is a complete training
MINUTES = 5.0
CAPTIONS = (("en", 1), ("ko", 1), ("ko", 2))
"""Languages and seeds. Korean has two seeds, because the attention of a word depends on the seed."""


def comparisons(bench: Workbench) -> list[Comparison]:
    common = {"out": bench.work, "minutes": MINUTES, "quick": int(bench.quick)}
    classes = System("jumok, encoder-only", "train_pictures", {**common, "task": "classes", "seed": 1})
    captions = [
        System(
            f"jumok, transformer, {language}, seed {seed}",
            "train_pictures",
            {**common, "task": language, "seed": seed},
        )
        for language, seed in CAPTIONS
    ]
    digits = System("jumok, encoder-only, mean of 3 seeds", "train_digits", common)
    return [
        Comparison(
            f"Drawn pictures, classes, {MINUTES:.0f} minutes", "accuracy", [classes], has_ratios=False
        ),
        *(
            Comparison(f"Drawn pictures, captions, {MINUTES:.0f} minutes", "BLEU", [system], has_ratios=False)
            for system in captions
        ),
        Comparison("scikit-learn's digits, a fifth held out", "accuracy", [digits], has_ratios=False),
    ]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    return [
        "All test pictures are unseen. Pointing: the share of written nouns whose greatest attention (the "
        "mean over the heads of the last layer) is on a patch with its centre in the gold region; overlap: "
        "on a patch that overlaps it. Accuracy, pointing and overlap are in per cent."
    ]
