"""The learning rate and its plan, compared with values computed by hand."""

from __future__ import annotations

import math

import pytest

from jumok.config.recipe import TrainingSettings
from jumok.training.loop.schedule import Plan, learning_rate


def settings(schedule: str, warmup: int = 10) -> TrainingSettings:
    return TrainingSettings.model_validate(
        {"schedule": schedule, "warmup_steps": warmup, "learning_rate": 2.0}
    )


def plan_of(steps: int | None) -> Plan:
    """Return a plan of this many steps that was never revised; None: a run without a planned end."""
    return Plan(((0, steps),))


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "constant"])
def test_warm_up_rises_linearly_to_the_peak(schedule: str) -> None:
    rates = [learning_rate(step, settings(schedule), plan_of(100)) for step in (1, 5, 10)]
    assert rates == pytest.approx([0.2, 1.0, 2.0])


def test_inverse_sqrt_equals_the_papers_formula() -> None:
    """Vaswani et al. 2017, eq. 3."""
    width, warmup = 512, 4000
    peak = (width * warmup) ** -0.5
    paper_settings = TrainingSettings(learning_rate=peak, warmup_steps=warmup, schedule="inverse-sqrt")
    for step in (1, 100, 4000, 4001, 100_000):
        paper = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert learning_rate(step, paper_settings, plan_of(None)) == pytest.approx(paper)


def test_cosine_is_half_in_the_middle_and_zero_at_the_end() -> None:
    plan = plan_of(110)
    assert learning_rate(60, settings("cosine"), plan) == pytest.approx(1.0)
    assert learning_rate(110, settings("cosine"), plan) == pytest.approx(0.0)
    assert learning_rate(200, settings("cosine"), plan) == pytest.approx(0.0)


def test_schedules_without_warm_up() -> None:
    assert learning_rate(1, settings("constant", warmup=0), plan_of(None)) == 2.0
    assert learning_rate(9, settings("inverse-sqrt", warmup=0), plan_of(None)) == pytest.approx(2 / 3)


@pytest.mark.parametrize("total", [80, 105, 300])
def test_a_revised_plan_changes_the_slope_and_not_the_current_rate(total: int) -> None:
    """The plan of 110 steps is revised at step 60, in the middle of the cosine after 10 steps of warm-up."""
    plan = plan_of(110)
    revised = plan.revised(60, total)
    for step in range(1, 61):  # steps before the revision keep their rate
        before = learning_rate(step, settings("cosine"), plan)
        assert learning_rate(step, settings("cosine"), revised) == before
    after = [learning_rate(step, settings("cosine"), revised) for step in range(60, total + 1)]
    assert after[0] == pytest.approx(1.0)
    assert after[-1] == pytest.approx(0.0)
    assert after == sorted(after, reverse=True)
    assert revised.steps == total


def test_until_drops_later_revisions() -> None:
    plan = plan_of(100).revised(50, 200)
    assert plan.until(49).steps == 100
    assert plan.until(50) == plan


def test_progress_is_continuous_over_two_revisions() -> None:
    plan = plan_of(100).revised(50, 200).revised(125, 150)
    assert plan.progress(50, warmup=0) == pytest.approx(0.5)
    assert plan.progress(125, warmup=0) == pytest.approx(0.75)
    assert plan.progress(150, warmup=0) == pytest.approx(1.0)
    assert math.isclose(plan.progress(137, warmup=0), 0.75 + 0.25 * 12 / 25)
