"""Time of the first translation in a new process and of the next sentences, with a model like the demo's.

The time of `jumok --help` is measured, too.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from benchmarks.measure import Comparison, System, module_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["comparisons", "remarks"]

SENTENCE = "I go home.\n"
SECONDS_PER_COMMAND = 8.0
NUM_NEXT_SENTENCES = 100
TRAINING_MINUTES = 1.0
TRAINING_PAIRS, TRAINING_PAIRS_IF_QUICK = 10_000, 500


def comparisons(bench: Workbench) -> list[Comparison]:
    model, source = train_model(bench)

    def wall(name: str, *command: str) -> System:
        options = {"command": shlex.join([sys.executable, *command]), "input": SENTENCE}
        return System(name, "wall", {**options, "seconds": bench.seconds(SECONDS_PER_COMMAND)})

    def next_sentence(engine: str) -> System:
        options = {"model": model, "source": source, "engine": engine}
        return System(f"jumok, engine {engine}", "next_sentence", options)

    translate = ("-m", "jumok", "translate", str(model))
    marianmt = {"size": "tiny", "tokens": bench.work / "one.json", "sentences": 1, "beam": 4, "length": 8}
    (bench.work / "one.json").write_text("[[10, 11, 12, 13]]", encoding="utf-8")
    _, *hugging_face = module_command("decode_marianmt", {**marianmt, "batch": 1, "seconds": 0})
    return [
        Comparison(
            "one sentence, cold: `echo … | jumok translate`",
            "seconds",
            [
                wall("jumok translate", *translate),
                wall("jumok translate --engine torch", *translate, "--engine", "torch"),
                wall("Hugging Face, random weights", *hugging_face),
                wall("import torch", "-c", "import torch"),
                wall("import ctranslate2, sentencepiece", "-c", "import ctranslate2, sentencepiece"),
                wall("Python itself", "-c", ""),
            ],
            lower_is_better=True,
        ),
        Comparison("help", "seconds", [wall("jumok --help", "-m", "jumok", "--help")], lower_is_better=True),
        Comparison(
            "the next sentence in the same process",
            "ms",
            [next_sentence("ctranslate2"), next_sentence("torch")],
            lower_is_better=True,
        ),
    ]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    return []


def train_model(bench: Workbench) -> tuple[Path, Path]:
    """Train on the built-in corpus for a minute; return the model folder and a file of test sentences."""
    from jumok.datasets.english_korean import generate
    from jumok.inference.loading import load
    from jumok.training.run.training_run import train

    pairs, source = bench.work / "pairs.en-ko.tsv", bench.work / "sentences.en"
    lines = [
        f"{pair.source}\t{pair.target}\n"
        for pair in generate("train", TRAINING_PAIRS_IF_QUICK if bench.quick else TRAINING_PAIRS)
    ]
    pairs.write_text("".join(lines), encoding="utf-8")
    sentences = [f"{pair.source}\n" for pair in generate("test", 1 + NUM_NEXT_SENTENCES)]
    source.write_text("".join(sentences), encoding="utf-8")
    budget = {"steps": 2} if bench.quick else {"minutes": TRAINING_MINUTES}
    model = train(pairs, out=bench.work / "run", **budget)
    load(model)  # converts the model for CTranslate2, so that no measured command converts it
    return model, source
