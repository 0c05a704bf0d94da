"""Real pictures: 1,797 handwritten digits, of which a fifth is the test set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.programs.train_digits import STEPS, write_digits
from jumok.data.corpora import open_corpus
from jumok.evaluation.class_scores import evaluate_classifier
from jumok.inference.loading import load_picture_classifier
from jumok.training.run.training_run import train

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_a_classifier_reads_handwritten_digits(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn has the digits; it is not a dependency")
    write_digits(tmp_path, seed=1)
    settings = {"model.family": "encoder-only", "training.steps": STEPS}
    model = train(tmp_path / "train", out=tmp_path / "run", **settings)
    scores = evaluate_classifier(load_picture_classifier(model), list(open_corpus(tmp_path / "test").pairs()))
    assert scores.pictures == 359
    assert scores.accuracy >= 0.95
