"""metrics.jsonl: lines are appended. When a run resumes, the lines after its checkpoint are removed."""

from __future__ import annotations

import importlib.util
import json
import math
from typing import TYPE_CHECKING

import pytest

from jumok.errors import RecipeError
from jumok.training.loop.metrics import Metrics
from jumok.training.run.training_run import training_events

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_after_the_checkpoint_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics(path)
    metrics.write("train", 1, {"loss": 3.0})
    length = metrics.length()
    metrics.write("train", 2, {"loss": 2.0})
    metrics.close()
    with path.open("ab") as file:
        file.write(b'{"kind": "train", "st')  # half-written at a crash
    reopened = Metrics(path, length=length)
    reopened.write("train", 2, {"loss": 1.0})
    reopened.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["step"], line["loss"]) for line in lines] == [(1, 3.0), (2, 1.0)]


def test_a_missing_metrics_file_is_created(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.jsonl", length=1000)  # as a checkpoint recorded it
    metrics.write("train", 5, {"loss": 1.0})
    assert metrics.length() < 100  # one line
    metrics.close()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_written_as_null(tmp_path: Path, value: float) -> None:
    metrics = Metrics(tmp_path / "metrics.jsonl")
    metrics.write("validation", 5, {"loss": value, "bleu": 1.5})
    metrics.close()
    text = (tmp_path / "metrics.jsonl").read_text()
    assert text == '{"kind": "validation", "step": 5, "loss": null, "bleu": 1.5}\n'


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is not None, reason="TensorBoard is installed")
def test_a_missing_tensorboard_is_reported_before_anything_is_read_or_written(tmp_path: Path) -> None:
    events = training_events("no.tsv", out=tmp_path / "run", tensorboard=True)
    with pytest.raises(RecipeError, match=r"pip install jumok\[tensorboard\]"):
        next(events)
    assert list(tmp_path.iterdir()) == []


class Curves:
    """A stand-in for TensorBoard's `SummaryWriter`."""

    def __init__(self) -> None:
        self.points: list[tuple[str, float, int]] = []
        self.closed = False

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self.points.append((tag, scalar_value, global_step))

    def close(self) -> None:
        self.closed = True


def test_only_finite_numbers_become_curves(tmp_path: Path) -> None:
    curves = Curves()
    metrics = Metrics(tmp_path / "metrics.jsonl", curves=curves)
    metrics.write("train", 7, {"loss": 2.5, "perplexity": math.nan, "note": "none"})
    metrics.write("validation", 8, {"bleu": 3})
    metrics.close()
    assert curves.points == [("train/loss", 2.5, 7), ("validation/bleu", 3, 8)]
    assert curves.closed
