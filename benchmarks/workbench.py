"""What is prepared once for a topic, in a working folder that is thrown away afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.settings import multi30k, training_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Workbench", "begin_run", "write_pieces"]


@dataclass(frozen=True)
class Workbench:
    """Where a topic works, on which data, and how long its contenders may take."""

    data: Path
    work: Path
    quick: bool
    tell: Callable[[str], None]

    def seconds(self, usual: float) -> float:
        return usual / 10 if self.quick else usual


def begin_run(bench: Workbench, family: str) -> Path:
    """A run of jumok just before its first update: everything is decided and stands in its folder."""
    from jumok.training import Started, training_events

    run = bench.work / family
    pairs, valid = multi30k(bench.data)
    settings = training_settings(family, quick=bench.quick)
    events = training_events(pairs, out=run, valid=valid, **settings)
    started = next(event for event in events if isinstance(event, Started))
    events.close()  # type: ignore[attr-defined]
    bench.tell(f"{family}: {started.parameters:,} parameters, {started.recipe.training.processes} processes")
    return run


def write_pieces(run: Path) -> Path:
    """The training pairs of a run as lines of numbered pieces, and their vocabulary, for eole to read."""
    from jumok.corpus import open_store
    from jumok.text import load_subwords
    from jumok.values import END

    store, out = open_store(run / "data"), run.parent / f"{run.name}.pieces"
    out.mkdir()
    names = [f"p{piece}" for piece in range(load_subwords(run / "pieces.model").size)]
    # It has four marks of its own.
    (out / "vocabulary.txt").write_text("\n".join(names[END + 1 :]) + "\n", encoding="utf-8")
    for language, side in (("en", store.source), ("de", store.target)):
        with (out / f"train.{language}").open("w", encoding="utf-8") as file:
            for index in range(len(store)):
                file.write(" ".join(names[piece] for piece in side.sentence_ids(index)) + "\n")
    return out
