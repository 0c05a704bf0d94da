"""Which validation is best, when patience runs out, and which checkpoints the end of a run needs."""

from __future__ import annotations

import math

from jumok.config.recipe import TrainingSettings
from jumok.training.loop.state import RunState, ValidationRecord


def state(*scores: float) -> RunState:
    """Return a run's state with a validation every 10 steps: with these chrF scores, and falling losses."""
    records = [
        ValidationRecord(
            step=10 * i, loss=5.0 - i / 10, training_loss=5.0, scores={"chrf": score, "bleu": score / 2}
        )
        for i, score in enumerate(scores, 1)
    ]
    return RunState(step=10 * len(scores), validations=records)


def test_a_state_is_the_same_after_a_json_round_trip() -> None:
    before = state(1.0, 3.0)
    before.seconds, before.num_skipped, before.warned_kinds = 12.5, 2, ["stuck"]
    stored = before.to_json(metrics_length=7)
    assert RunState.from_json(before.step, stored) == before
    assert stored["metrics_length"] == 7


def test_the_best_validation_is_found_by_score_and_by_loss() -> None:
    assert RunState().best("chrf") is None
    best = state(1.0, 3.0, 2.0).best("chrf")
    assert best is not None
    assert best.step == 20
    by_loss = state(1.0, 3.0, 2.0).best("loss")
    assert by_loss is not None
    assert by_loss.step == 30


def test_among_equal_scores_the_smaller_loss_is_best() -> None:
    best = state(1.0, 3.0, 3.0).best("chrf")
    assert best is not None
    assert best.step == 30


def test_a_loss_that_is_not_finite_ranks_last_in_any_order() -> None:
    finite = ValidationRecord(step=10, loss=3.0, training_loss=3.0, scores={"chrf": 1.0})
    broken = ValidationRecord(step=20, loss=math.nan, training_loss=3.0, scores={"chrf": 9.0})
    for records in ([finite, broken], [broken, finite]):
        for stop_on in ("chrf", "loss"):
            assert RunState(validations=records).best(stop_on) is finite


def test_diverged_weights_are_never_best_whatever_their_score() -> None:
    # Above the uniform loss of 6.0, but not above `USELESS_RATIO` times 6.0: overconfident, not diverged.
    good = ValidationRecord(step=10, loss=7.0, training_loss=3.0, scores={"chrf": 1.0})
    bad = ValidationRecord(step=20, loss=87_300_121.0, training_loss=3.0, scores={"chrf": 9.0})
    worse = ValidationRecord(step=30, loss=1e9, training_loss=3.0, scores={"chrf": 10.0})
    broken = ValidationRecord(step=40, loss=math.nan, training_loss=3.0, scores={"chrf": 11.0})
    state = RunState(validations=[broken, worse, bad, good], uniform_loss=6.0)
    assert state.ranked("chrf") == [good, bad, worse, broken]
    assert state.is_better(good, bad, "chrf")
    assert not state.is_better(bad, good, "chrf")


def test_a_patience_of_two_runs_out_after_two_validations_without_improvement() -> None:
    settings = TrainingSettings(patience=2)
    assert not state(3.0, 2.0).out_of_patience(settings)
    assert state(3.0, 2.0, 2.5).out_of_patience(settings)
    assert not state(3.0, 2.0, 3.5).out_of_patience(settings)
    assert not state(3.0, *[1.0] * 50).out_of_patience(TrainingSettings(patience=0))
    assert not RunState().out_of_patience(settings)


def test_the_end_of_a_run_needs_the_best_checkpoint_and_the_last_checkpoints_to_average() -> None:
    steps = state(9.0, 2.0, 3.0, 4.0).needed_steps(TrainingSettings(average_checkpoints=2))
    assert steps == {10, 30, 40}  # the best; the last two
