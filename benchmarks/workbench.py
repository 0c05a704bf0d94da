"""Data that is prepared once for a topic, which is a group of benchmarks (`TOPICS` in `__main__.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.settings import multi30k, training_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Workbench", "prepare_run", "write_eole_corpus"]


@dataclass(frozen=True)
class Workbench:
    """The data and the working folder of a topic, and whether its measurements are short (`quick`)."""

    data_folder: Path | None  # --data: Multi30k, or Tatoeba for fine-tuning
    work: Path
    quick: bool
    log: Callable[[str], None]

    @property
    def data(self) -> Path:
        if self.data_folder is None:
            raise ValueError("this topic needs --data")
        return self.data_folder

    def seconds(self, full: float) -> float:
        """Return the seconds of a measurement: `full`, or a tenth of it in a quick run."""
        return full / 10 if self.quick else full


def prepare_run(bench: Workbench, family: str) -> Path:
    """Start a run of jumok, and stop it before its first update.

    Return its run folder, which then has the settings and the encoded pairs.
    """
    from jumok.training.events import Started
    from jumok.training.run.training_run import training_events

    run = bench.work / family
    pairs, valid = multi30k(bench.data)
    settings = training_settings(family, quick=bench.quick)
    events = training_events(pairs, out=run, valid=valid, **settings)
    started = next(event for event in events if isinstance(event, Started))
    events.close()  # type: ignore[attr-defined]
    bench.log(f"{family}: {started.parameters:,} parameters, {started.recipe.training.processes} processes")
    return run


def write_eole_corpus(run: Path) -> Path:
    """Write the training pairs of a run as lines of token names, and their vocabulary, for eole."""
    from jumok.data.store import open_store
    from jumok.text.tokenizer import load_tokenizer
    from jumok.types import END

    store, out = open_store(run / "data"), run.parent / f"{run.name}.tokens"
    out.mkdir(exist_ok=True)
    names = [f"p{token}" for token in range(load_tokenizer(run / "pieces.model").vocab_size)]
    # The special tokens are left out, because eole adds its own four special tokens.
    (out / "vocabulary.txt").write_text("\n".join(names[END + 1 :]) + "\n", encoding="utf-8")
    for language, side in (("en", store.source), ("de", store.target)):
        with (out / f"train.{language}").open("w", encoding="utf-8") as file:
            for index in range(len(store)):
                file.write(" ".join(names[token] for token in side.sentence_ids(index)) + "\n")
    return out
