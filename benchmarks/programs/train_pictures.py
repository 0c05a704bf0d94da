"""Train on drawn pictures as `jumok train` does, and score the model on unseen pictures.

`task` is `classes` for a classifier, or the language of the captions: `en` or `ko`. A finished run is not
trained again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.programs.report import parse, report

COUNTS = {"train": 15_000, "valid": 300, "test": 1000}


def main() -> None:
    from jumok.data.corpora import open_corpus
    from jumok.evaluation.class_scores import evaluate_classifier
    from jumok.evaluation.translator_scores import evaluate_translator
    from jumok.inference.loading import load, load_picture_classifier
    from jumok.storage.model_folder import read_stored_model

    options = parse(out=Path, minutes=float, quick=int, task=str, seed=int)
    model = train_on_pictures(
        options.out, options.task, options.seed, minutes=options.minutes, quick=bool(options.quick)
    )
    minutes = float(read_stored_model(model).card.facts["seconds"]) / 60
    tests = list(open_corpus(options.out / "drawn" / f"test{_suffix(options.task)}").pairs())
    if options.task == "classes":
        accuracy = evaluate_classifier(load_picture_classifier(model), tests).accuracy
        report(accuracy=100 * accuracy, minutes=minutes)
        return
    evaluation = evaluate_translator(load(model), tests)
    pointing, overlap = 0.0, 0.0
    if evaluation.pointing:
        pointing, overlap = 100 * evaluation.pointing.accuracy, 100 * evaluation.pointing.overlap
    report(BLEU=evaluation.scores.bleu, pointing=pointing, overlap=overlap, minutes=minutes)


def train_on_pictures(out: Path, task: str, seed: int, *, minutes: float, quick: bool = False) -> Path:
    """Train a model for a task with a seed, and return its folder. Draw the pictures if they are missing."""
    from jumok.datasets.drawn_pictures import write_split
    from jumok.training.run.training_run import train

    folder = out / "drawn"
    if not folder.exists():
        for split, count in COUNTS.items():
            write_split(folder, split, 40 if quick else count)
    settings: dict[str, Any] = {"training.seed": seed}
    settings |= {"training.steps": 3} if quick else {"training.minutes": minutes}
    if task == "classes":
        settings["model.family"] = "encoder-only"
    return train(
        folder / f"train{_suffix(task)}",
        out=out / f"{task}-{seed}",
        valid=folder / f"valid{_suffix(task)}",
        **settings,
    )


def _suffix(task: str) -> str:
    return "-classes" if task == "classes" else f".{task}.tsv"


if __name__ == "__main__":
    main()
