"""From nothing to the first translation, and from there to the next, with a model like the demo's."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from benchmarks.measure import Contender, Contest, module_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measure import Result
    from benchmarks.workbench import Workbench

__all__ = ["contests", "remarks"]

SENTENCE = "I go home.\n"
SECONDS, SENTENCES, MINUTES = 8.0, 100, 1.0
PAIRS, PAIRS_IF_QUICK = 10_000, 500


def contests(bench: Workbench) -> list[Contest]:
    model, source = train(bench)

    def wall(name: str, *command: str) -> Contender:
        words = {"command": shlex.join([sys.executable, *command]), "input": SENTENCE}
        return Contender(name, "wall", {**words, "seconds": bench.seconds(SECONDS)})

    def next_sentence(engine: str) -> Contender:
        arguments = {"model": model, "source": source, "engine": engine}
        return Contender(f"jumok, engine {engine}", "next_sentence", arguments)

    translate = ("-m", "jumok", "translate", str(model))
    marian = {"size": "tiny", "pieces": bench.work / "one.json", "sentences": 1, "beam": 4, "length": 8}
    (bench.work / "one.json").write_text("[[10, 11, 12, 13]]", encoding="utf-8")
    _, *hugging_face = module_command("decode_marian", {**marian, "batch": 1, "seconds": 0})
    return [
        Contest(
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
            fewer_is_better=True,
        ),
        Contest("help", "seconds", [wall("jumok --help", "-m", "jumok", "--help")], fewer_is_better=True),
        Contest(
            "the next sentence in the same process",
            "ms",
            [next_sentence("ctranslate2"), next_sentence("torch")],
            fewer_is_better=True,
        ),
    ]


def remarks(bench: Workbench, results: Sequence[Result]) -> list[str]:
    return []


def train(bench: Workbench) -> tuple[Path, Path]:
    """A model of the built-in corpus, trained for a minute, and sentences that it has not seen."""
    from jumok.corpus.english_korean import generate
    from jumok.engines import load
    from jumok.training import train

    pairs, source = bench.work / "pairs.en-ko.tsv", bench.work / "sentences.en"
    lines = [
        f"{pair.source}\t{pair.target}\n"
        for pair in generate("train", PAIRS_IF_QUICK if bench.quick else PAIRS)
    ]
    pairs.write_text("".join(lines), encoding="utf-8")
    tests = [f"{pair.source}\n" for pair in generate("test", SENTENCES + 1)]
    source.write_text("".join(tests), encoding="utf-8")
    length = {"steps": 2} if bench.quick else {"minutes": MINUTES}
    model = train(pairs, out=bench.work / "run", **length)
    load(model)  # which converts it
    return model, source
