"""The learning rate, by hand."""

from __future__ import annotations

import math

import pytest

from jumok.recipe import TrainingSettings
from jumok.training.schedule import Plan, learning_rate


def settings(schedule: str, warmup: int = 10) -> TrainingSettings:
    return TrainingSettings.model_validate({"schedule": schedule, "warmup": warmup, "learning_rate": 2.0})


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "constant"])
def test_warm_up_is_a_line_to_the_peak(schedule: str) -> None:
    rates = [learning_rate(step, settings(schedule), Plan(((0, 100),))) for step in (1, 5, 10)]
    assert rates == pytest.approx([0.2, 1.0, 2.0])


def test_inverse_sqrt_is_the_papers() -> None:
    width, warmup = 512, 4000
    peak = (width * warmup) ** -0.5
    chosen = TrainingSettings(learning_rate=peak, warmup=warmup, schedule="inverse-sqrt")
    for step in (1, 100, 4000, 4001, 100_000):
        paper = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert learning_rate(step, chosen, Plan(((0, None),))) == pytest.approx(paper)


def test_cosine_is_half_in_the_middle_and_zero_at_the_end() -> None:
    plan = Plan(((0, 110),))
    assert learning_rate(60, settings("cosine"), plan) == pytest.approx(1.0)
    assert learning_rate(110, settings("cosine"), plan) == pytest.approx(0.0)
    assert learning_rate(200, settings("cosine"), plan) == pytest.approx(0.0)


def test_constant_and_no_warm_up() -> None:
    assert learning_rate(1, settings("constant", 0), Plan(((0, None),))) == 2.0
    assert learning_rate(9, settings("inverse-sqrt", 0), Plan(((0, None),))) == pytest.approx(2 / 3)


@pytest.mark.parametrize("total", [80, 105, 300])
def test_a_revised_plan_changes_the_pace_and_not_the_place(total: int) -> None:
    plan = Plan(((0, 110),))
    revised = plan.revised(60, total)
    for step in range(1, 61):  # what has been done stays as it was
        before = learning_rate(step, settings("cosine"), plan)
        assert learning_rate(step, settings("cosine"), revised) == before
    after = [learning_rate(step, settings("cosine"), revised) for step in range(60, total + 1)]
    assert after[0] == pytest.approx(1.0)
    assert after[-1] == pytest.approx(0.0)
    assert after == sorted(after, reverse=True)
    assert revised.steps == total


def test_a_plan_until_a_step_knows_nothing_later() -> None:
    plan = Plan(((0, 100),)).revised(50, 200)
    assert plan.until(49).steps == 100
    assert plan.until(50) == plan


def test_two_revisions() -> None:
    plan = Plan(((0, 100),)).revised(50, 200).revised(125, 150)
    assert plan.progress(50, 0) == pytest.approx(0.5)
    assert plan.progress(125, 0) == pytest.approx(0.75)
    assert plan.progress(150, 0) == pytest.approx(1.0)
    assert math.isclose(plan.progress(137, 0), 0.75 + 0.25 * 12 / 25)
