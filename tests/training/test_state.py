"""Which validation is best, when patience ends, and what the end of a run will need."""

from __future__ import annotations

import math

from jumok.recipe import TrainingSettings
from jumok.training.state import RunState, ValidationRecord


def state(*scores: float) -> RunState:
    records = [
        ValidationRecord(10 * i, 5.0 - i / 10, 5.0, {"chrf": score, "bleu": score / 2})
        for i, score in enumerate(scores, 1)
    ]
    return RunState(step=10 * len(scores), validations=records)


def test_survives_the_disk() -> None:
    before = state(1.0, 3.0)
    before.seconds, before.skipped, before.warned = 12.5, 2, ["stuck"]
    stored = before.to_json(metrics_length=7)
    assert RunState.from_json(before.step, stored) == before
    assert stored["metrics_length"] == 7


def test_best() -> None:
    assert RunState().best("chrf") is None
    best = state(1.0, 3.0, 2.0).best("chrf")
    assert best is not None
    assert best.step == 20
    by_loss = state(1.0, 3.0, 2.0).best("loss")
    assert by_loss is not None
    assert by_loss.step == 30


def test_of_equal_scores_the_smaller_loss_is_best() -> None:
    best = state(1.0, 3.0, 3.0).best("chrf")
    assert best is not None
    assert best.step == 30


def test_a_loss_that_is_not_finite_is_the_worst_wherever_it_stands() -> None:
    sound = ValidationRecord(10, 3.0, 3.0, {"chrf": 1.0})
    broken = ValidationRecord(20, math.nan, 3.0, {"chrf": 9.0})
    for records in ([sound, broken], [broken, sound]):
        for stop_on in ("chrf", "loss"):
            assert RunState(validations=records).best(stop_on) is sound


def test_patience() -> None:
    settings = TrainingSettings(patience=2)
    assert not state(3.0, 2.0).out_of_patience(settings)
    assert state(3.0, 2.0, 2.5).out_of_patience(settings)
    assert not state(3.0, 2.0, 3.5).out_of_patience(settings)
    assert not state(3.0, *[1.0] * 50).out_of_patience(TrainingSettings(patience=0))
    assert not RunState().out_of_patience(settings)


def test_needed_steps_are_the_best_and_the_last() -> None:
    found = state(9.0, 2.0, 3.0, 4.0).needed_steps(TrainingSettings(average=2))
    assert found == {10, 30, 40}
