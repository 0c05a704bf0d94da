"""Train a classifier on four fifths of scikit-learn's 1,797 handwritten digits, and score it on the rest.

A digit has 8 × 8 pixels. The number of steps is fixed, so the option `minutes`, which all programs of the
benchmark topic `pictures` get, is not used.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.programs.report import parse, report

SEEDS = (1, 2, 3)
STEPS = 1000


def main() -> None:
    from jumok.data.corpora import open_corpus
    from jumok.evaluation.class_scores import evaluate_classifier
    from jumok.inference.loading import load_picture_classifier
    from jumok.training.run.training_run import train

    options = parse(out=Path, minutes=float, quick=int)
    accuracies, started = [], time.perf_counter()
    for seed in SEEDS[: 1 if options.quick else None]:
        folder = options.out / f"digits-{seed}"
        write_digits(folder, seed)
        settings: dict[str, Any] = {
            "model.family": "encoder-only",
            "training.steps": 3 if options.quick else STEPS,
            "training.seed": seed,
        }
        model = train(folder / "train", out=folder / "run", **settings)
        tests = list(open_corpus(folder / "test").pairs())
        accuracies.append(100 * evaluate_classifier(load_picture_classifier(model), tests).accuracy)
    minutes = (time.perf_counter() - started) / 60 / len(accuracies)
    report(accuracy=mean(accuracies), lowest=min(accuracies), minutes=minutes)


def write_digits(folder: Path, seed: int) -> None:
    """Write the digits as one folder per class. The seed selects the fifth that is the test set."""
    import numpy as np
    from sklearn.datasets import load_digits

    from jumok.pictures.reading import write_picture

    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.images))
    for count, index in enumerate(order.tolist()):
        split = "test" if count < len(order) // 5 else "train"
        target = folder / split / str(digits.target[index])
        target.mkdir(parents=True, exist_ok=True)
        pixels = np.rint(digits.images[index] * (255 / 16)).astype(np.uint8)[:, :, None]
        write_picture(target / f"{index:04}.png", pixels)


if __name__ == "__main__":
    main()
