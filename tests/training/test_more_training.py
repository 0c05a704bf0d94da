"""More training for a run that is finished, stopped or interrupted."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from jumok.config.recipe import TrainingSettings
from jumok.errors import DataError, RunFolderError
from jumok.storage.model_folder import read_model_with_weights
from jumok.training.events import Finished, Started, Validated, Warned
from jumok.training.loop.schedule import Phase, Plan, learning_rate
from jumok.training.run.phase_average import read_average, store_average
from jumok.training.run.training_run import finish_events, training_events
from support.digits import TINY, digit_corpus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jumok.training.events import Event

SETTINGS = {**TINY, "training.validate_every": 5, "training.warmup_steps": 2}


def train(out: Path, **settings: Any) -> list[Event]:
    return list(training_events(digit_corpus(200), out=out, **{**SETTINGS, **settings}))


def abandon_after(events: Iterator[Event], step: int) -> None:
    """Run up to the checkpoint of this step, then abandon the run, as if its process were killed."""
    assert any(isinstance(event, Validated) and event.step == step for event in events)
    assert next(events)  # the event `Saved`
    events.close()  # type: ignore[attr-defined]


def only(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def record(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "run.json").read_text())
    return content


@pytest.fixture
def finished_run(tmp_path: Path) -> Path:
    train(tmp_path / "run", steps=10)
    return tmp_path / "run"


class TestPhases:
    # 100 steps, then a phase up to step 210: a warm-up of 10 steps to the peak 2.0, then a cosine.
    plan = Plan(((0, 100),)).extended(Phase(100, "cosine", 10, 2.0), 210)
    settings = TrainingSettings(schedule="cosine", warmup_steps=10, learning_rate=4.0)

    def test_a_second_phase_does_not_change_the_rates_of_the_first(self) -> None:
        for step in range(1, 101):
            before = learning_rate(step, self.settings, Plan(((0, 100),)))
            assert learning_rate(step, self.settings, self.plan) == before

    def test_a_phase_rises_to_its_peak_and_falls_to_zero_at_the_new_end(self) -> None:
        rates = {step: learning_rate(step, self.settings, self.plan) for step in (101, 110, 160, 210)}
        assert rates == pytest.approx({101: 0.2, 110: 2.0, 160: 1.0, 210: 0.0})

    def test_a_phase_without_a_warm_up_continues_from_its_peak(self) -> None:
        plan = Plan(((0, None),)).extended(Phase(50, "cosine", 0, 1.5), 150)
        rates = [learning_rate(step, self.settings, plan) for step in range(51, 151)]
        assert rates[0] == pytest.approx(1.5, rel=1e-3)
        assert rates == sorted(rates, reverse=True)
        assert rates[-1] == pytest.approx(0.0)

    def test_a_phase_with_a_new_end_continues_from_its_rate_and_falls_to_zero_at_the_end(self) -> None:
        revised = self.plan.revised(160, 310)
        assert learning_rate(160, self.settings, revised) == pytest.approx(1.0)
        assert learning_rate(310, self.settings, revised) == pytest.approx(0.0)
        assert learning_rate(50, self.settings, revised) == learning_rate(50, self.settings, self.plan)

    def test_a_run_resumed_before_a_later_phase_keeps_the_phase(self) -> None:
        assert self.plan.until(90) == self.plan
        assert self.plan.revised(160, 310).until(90) == self.plan

    def test_a_constant_rate_continues(self) -> None:
        settings = TrainingSettings(schedule="constant", warmup_steps=0, learning_rate=4.0)
        plan = Plan(((0, 100),)).extended(Phase(100, "constant", 0, 4.0), 200)
        assert learning_rate(150, settings, plan) == 4.0


class TestMoreTraining:
    def test_more_training_of_a_finished_run_has_a_schedule_of_its_own(self, finished_run: Path) -> None:
        before, _, _ = read_model_with_weights(finished_run)
        events = train(finished_run, steps=30)
        [started] = only(events, Started)
        assert (started.resumed_from, started.steps) == (10, 30)
        [reason] = [one.reason for one in started.derived_settings if one.name == "training.steps"]
        assert (
            reason
            == "more training from step 10: warm-up over 2 steps to 0.01, then cosine to zero at the end"
        )
        assert [event.step for event in only(events, Validated)] == [15, 20, 25, 30]
        assert events[-1].reason == "done"  # type: ignore[union-attr]
        content = record(finished_run)
        assert content["plan"] == [[0, 10], [10, 30]]
        assert content["phases"] == [{"start": 10, "schedule": "cosine", "warmup_steps": 2, "peak": 0.01}]
        assert content["recipe"]["training"]["steps"] == 30
        card, _, _ = read_model_with_weights(finished_run)
        assert (before.facts["steps"], card.facts["steps"], card.facts["phases"]) == (10, 30, 2)

    def test_the_same_command_again_does_nothing(self, finished_run: Path) -> None:
        train(finished_run, steps=30)
        assert [type(event) for event in train(finished_run, steps=30)] == [Finished]
        assert [type(event) for event in train(finished_run)] == [Finished]

    def test_the_pairs_need_not_be_given_again(self, finished_run: Path) -> None:
        events = list(training_events(out=finished_run, steps=15))
        assert events[-1].steps == 15  # type: ignore[union-attr]
        assert [type(event) for event in training_events(out=finished_run)] == [Finished]

    def test_without_a_run_the_pairs_are_needed(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="Name the sentence pairs"):
            list(training_events(out=tmp_path / "run", steps=15))

    def test_a_run_continues_to_a_limit_of_epochs_or_minutes(self, finished_run: Path) -> None:
        events = train(finished_run, epochs=3)
        steps = events[-1].steps  # type: ignore[union-attr]
        assert steps > 10
        # Four seconds more than the run has taken so far.
        events = train(finished_run, minutes=(trained_seconds(finished_run) + 4) / 60)
        assert events[-1].steps > steps  # type: ignore[union-attr]
        assert "epochs" not in record(finished_run)["recipe"]["training"]

    @pytest.mark.parametrize("limit", [{"steps": 9}, {"epochs": 0.1}, {"minutes": 0.001}], ids=str)
    def test_a_limit_that_the_run_has_passed_is_refused(
        self, limit: dict[str, Any], finished_run: Path
    ) -> None:
        with pytest.raises(RunFolderError, match=r"This run has done 10 steps in .*give larger ones"):
            train(finished_run, **limit)
        assert record(finished_run)["plan"] == [[0, 10]]

    def test_a_limit_below_the_planned_steps_is_refused(self, tmp_path: Path) -> None:
        abandon_after(training_events(digit_corpus(200), out=tmp_path, **SETTINGS, steps=20), 5)
        with pytest.raises(RunFolderError, match=r"has done 5 steps in .* minutes, and 20 are planned"):
            train(tmp_path, steps=15)

    def test_the_planned_phase_is_completed_first(self, finished_run: Path, tmp_path: Path) -> None:
        killed_run = tmp_path / "killed"
        abandon_after(training_events(digit_corpus(200), out=killed_run, **SETTINGS, steps=10), 5)
        events = train(killed_run, steps=30)
        assert [event.resumed_from for event in only(events, Started)] == [5, 10]
        train(finished_run, steps=30)
        first, second = (out / "model" / "weights.safetensors" for out in (killed_run, finished_run))
        assert first.read_bytes() == second.read_bytes()

    def test_a_run_without_a_limit_can_be_given_a_limit(self, tmp_path: Path) -> None:
        abandon_after(training_events(digit_corpus(200), out=tmp_path, **SETTINGS), 10)
        events = train(tmp_path, steps=20)
        [started] = only(events, Started)
        [reason] = [one.reason for one in started.derived_settings if one.name == "training.steps"]
        assert reason.startswith(
            "more training from step 10: from the learning rate 0.0045 by cosine to zero"
        )
        assert started.recipe.training.patience == 0
        assert events[-1].steps == 20  # type: ignore[union-attr]

    def test_a_run_that_finish_ended_continues_with_the_same_command(self, tmp_path: Path) -> None:
        abandon_after(training_events(digit_corpus(200), out=tmp_path, **SETTINGS, steps=20), 10)
        assert list(finish_events(tmp_path))[-1].reason == "stopped"  # type: ignore[union-attr]
        assert [type(event) for event in train(tmp_path)] == [Finished]  # no limit: no more training
        events = train(tmp_path, steps=20)
        assert events[-1].steps == 20  # type: ignore[union-attr]
        assert record(tmp_path)["plan"] == [[0, 20], [10, 20]]

    def test_patience_starts_again_with_more_training(self, tmp_path: Path) -> None:
        patience = {"training.patience": 1, "training.learning_rate": 1e-12}
        early = train(tmp_path, steps=100, **patience)
        assert (early[-1].reason, early[-1].steps) == ("patience", 10)  # type: ignore[union-attr]
        assert [type(event) for event in train(tmp_path, steps=100, **patience)] == [Finished]
        more = train(tmp_path, steps=110, **patience)
        assert (more[-1].reason, more[-1].steps) == ("patience", 15)  # type: ignore[union-attr]

    def test_the_model_stays_while_more_training_has_no_better_one(self, finished_run: Path) -> None:
        before = (finished_run / "model" / "weights.safetensors").read_bytes()
        events = training_events(digit_corpus(200), out=finished_run, **SETTINGS, steps=30)
        assert any(isinstance(event, Started) for event in events)
        events.close()  # type: ignore[attr-defined]
        assert (finished_run / "model" / "weights.safetensors").read_bytes() == before

    def test_other_settings_are_still_refused(self, finished_run: Path) -> None:
        with pytest.raises(RunFolderError, match="received 9, the run has 1"):
            train(finished_run, steps=30, seed=9)


class TestTheAverageOfAnEarlierPhase:
    """The finish of a phase may choose an average of checkpoints as the model.

    In later phases, only a checkpoint that is better than this average replaces the model.
    """

    # A constant learning rate that is too high: the average is far better than each checkpoint.
    noisy: ClassVar[dict[str, Any]] = {
        "training.average_checkpoints": 4,
        "training.schedule": "constant",
        "training.learning_rate": 0.03,
        "training.stop_on": "loss",
    }

    @pytest.fixture(scope="class")
    @classmethod
    def finished_run(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        out = tmp_path_factory.mktemp("averaged") / "run"
        train(out, steps=40, **cls.noisy)
        return out

    @pytest.fixture
    def averaged_run(self, finished_run: Path, tmp_path: Path) -> Path:
        return shutil.copytree(finished_run, tmp_path / "run")

    @staticmethod
    def pretend_validation(folder: Path, **validation: Any) -> bytes:
        """Give the stored average another validation; return the bytes of its weights."""
        average = read_average(folder / "average")
        assert average is not None
        store_average(
            average.folder, average.weights(), "a stored average", replace(average.validation, **validation)
        )
        return (folder / "average" / "weights.safetensors").read_bytes()

    def test_the_chosen_average_is_stored_with_its_validation(self, averaged_run: Path) -> None:
        card, _, _ = read_model_with_weights(averaged_run)
        assert card.facts["weights"] == "the average of the last 4 checkpoints up to step 40"
        average = read_average(averaged_run / "average")
        assert average is not None
        assert average.description == card.facts["weights"]
        assert average.validation.loss == pytest.approx(card.facts["validation_loss"])
        files = (averaged_run / name / "weights.safetensors" for name in ("average", "model"))
        assert len({file.read_bytes() for file in files}) == 1

    def test_a_worse_checkpoint_does_not_replace_the_average(self, averaged_run: Path) -> None:
        before = self.pretend_validation(averaged_run, loss=0.0)  # no checkpoint is better
        more = {**SETTINGS, **self.noisy, "steps": 60}
        for event in training_events(digit_corpus(200), out=averaged_run, **more):
            model = averaged_run / "model" / "weights.safetensors"
            assert model.read_bytes() == before, event
        card, _, _ = read_model_with_weights(averaged_run)
        assert (card.facts["weights"], card.facts["steps"], card.facts["phases"]) == (
            "a stored average",
            60,
            2,
        )

    def test_a_better_checkpoint_replaces_the_average(self, averaged_run: Path) -> None:
        before = self.pretend_validation(averaged_run, loss=100.0)  # every checkpoint is better
        train(averaged_run, steps=60, **self.noisy)
        assert (averaged_run / "model" / "weights.safetensors").read_bytes() != before

    def test_a_damaged_average_is_reported(self, averaged_run: Path) -> None:
        self.pretend_validation(averaged_run, loss=0.0)
        (averaged_run / "average" / "weights.safetensors").write_bytes(b"")
        events = train(averaged_run, steps=50, **self.noisy)
        assert any("average" in event.message for event in only(events, Warned))
        assert events[-1].reason == "done"  # type: ignore[union-attr]
        (averaged_run / "average" / "manifest.json").write_bytes(b"{}")
        assert train(averaged_run, steps=60, **self.noisy)[-1].reason == "done"  # type: ignore[union-attr]

    def test_a_kill_before_the_finish_does_not_change_the_weights(
        self, averaged_run: Path, tmp_path: Path
    ) -> None:
        """A run is killed after the last step and before the finish, and then given more steps."""
        killed_run = tmp_path / "killed"
        abandon_after(
            training_events(digit_corpus(200), out=killed_run, **{**SETTINGS, **self.noisy, "steps": 40}), 40
        )
        assert not (killed_run / "average").exists()
        for out in (averaged_run, killed_run):
            train(out, steps=45, **self.noisy)
        first, second = (out / "model" / "weights.safetensors" for out in (killed_run, averaged_run))
        assert first.read_bytes() == second.read_bytes()


def trained_seconds(out: Path) -> float:
    card, _, _ = read_model_with_weights(out)
    return float(card.facts["seconds"])
