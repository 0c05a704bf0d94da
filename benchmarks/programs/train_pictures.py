"""Train on drawn pictures as `jumok train` does, and score on unseen ones.

`task` is `classes` for a classifier, or the language of the captions: `en` or `ko`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.programs.report import parse, report

COUNTS = {"train": 15_000, "valid": 300, "test": 1000}


def main() -> None:
    from jumok.data.corpora import open_corpus
    from jumok.datasets.drawn_pictures import write_split
    from jumok.evaluation.class_scores import evaluate_classifier
    from jumok.evaluation.translator_scores import evaluate_translator
    from jumok.inference.loading import load, load_picture_classifier
    from jumok.training.run.training_run import train

    options = parse(out=Path, minutes=float, quick=int, task=str, seed=int)
    folder = options.out / "drawn"
    if not folder.exists():
        for split, count in COUNTS.items():
            write_split(folder, split, 40 if options.quick else count)
    suffix = "-classes" if options.task == "classes" else f".{options.task}.tsv"
    settings: dict[str, Any] = {"training.minutes": options.minutes, "training.seed": options.seed}
    if options.quick:
        settings = {"training.steps": 3, "training.seed": options.seed}
    if options.task == "classes":
        settings["model.family"] = "encoder-only"
    started = time.perf_counter()
    model = train(
        folder / f"train{suffix}",
        out=options.out / f"{options.task}-{options.seed}",
        valid=folder / f"valid{suffix}",
        **settings,
    )
    minutes = (time.perf_counter() - started) / 60
    tests = list(open_corpus(folder / f"test{suffix}").pairs())
    if options.task == "classes":
        accuracy = evaluate_classifier(load_picture_classifier(model), tests).accuracy
        report(accuracy=100 * accuracy, minutes=minutes)
        return
    evaluation = evaluate_translator(load(model), tests)
    pointing, overlap = 0.0, 0.0
    if evaluation.pointing:
        pointing, overlap = 100 * evaluation.pointing.accuracy, 100 * evaluation.pointing.overlap
    report(BLEU=evaluation.scores.bleu, pointing=pointing, overlap=overlap, minutes=minutes)


if __name__ == "__main__":
    main()
