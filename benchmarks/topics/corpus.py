"""A million generated pairs beside ten thousand: read, checked, encoded, and trained on.

Reading is what `jumok train` does first: read the file, check every pair, leave out the faulty and the
doubled, count words, hold out a validation set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import Contender, Contest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["contests", "remarks"]

FEW, MANY, MANY_IF_QUICK = 10_000, 1_000_000, 30_000
SECONDS = 30.0


def contests(bench: Workbench) -> list[Contest]:
    many = MANY_IF_QUICK if bench.quick else MANY
    contenders = []
    for count in (many, FEW):
        arguments = {
            "pairs": write_pairs(bench.work, count),
            "count": count,
            "work": bench.work,
            "seconds": bench.seconds(SECONDS),
        }
        contenders.append(Contender(f"jumok, {count:,} pairs", "prepare_corpus", arguments))
    return [Contest("`jumok train` on generated English–Korean pairs", "target tokens/s", contenders)]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    return [
        "The memory is that of the main process at its peak. Where the ratio is 1 or more, a step is no "
        "slower with the many pairs."
    ]


def write_pairs(work: Path, count: int) -> Path:
    from jumok.corpus.english_korean import generate

    path = work / f"pairs-{count}.en-ko.tsv"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{pair.source}\t{pair.target}\n" for pair in generate("train", count))
    return path
