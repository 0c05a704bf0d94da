"""A million generated pairs compared with ten thousand: reading, checking, encoding, training.

In its first stage, called reading, `jumok train` reads the file, checks every pair, skips faults and
duplicates, counts words and holds out a validation set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import Comparison, System

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["comparisons", "remarks"]

FEW, MANY, MANY_IF_QUICK = 10_000, 1_000_000, 30_000
SECONDS = 30.0


def comparisons(bench: Workbench) -> list[Comparison]:
    many = MANY_IF_QUICK if bench.quick else MANY
    systems = []
    for count in (many, FEW):
        options = {
            "pairs": write_pairs(bench.work, count),
            "count": count,
            "work": bench.work,
            "seconds": bench.seconds(SECONDS),
        }
        systems.append(System(f"jumok, {count:,} pairs", "train_on_corpus", options))
    return [Comparison("`jumok train` on generated English–Korean pairs", "target tokens/s", systems)]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    return [
        "MB is the peak memory of the main process. A ratio of 1 or more means that training is no slower "
        "with a million pairs."
    ]


def write_pairs(work: Path, count: int) -> Path:
    from jumok.datasets.english_korean import generate

    path = work / f"pairs-{count}.en-ko.tsv"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{pair.source}\t{pair.target}\n" for pair in generate("train", count))
    return path
