"""More training for a run: another limit of steps, epochs or minutes, counted from the start of the run.

    jumok train pairs.tsv --out runs/x --steps 1000         the first phase
    jumok train pairs.tsv --out runs/x --steps 3000         a second one, from step 1,000 to 3,000

If a process was stopped or killed inside a phase that has a planned end, this phase is first completed and
finished. With limits of steps or epochs, the weights therefore depend on the commands that the user has run,
and not on the moment of the stop.
A run without a limit has no planned end, so its next phase begins at its newest checkpoint. If
`jumok finish` has ended a run, its next phase begins at its newest checkpoint too.

A phase has a schedule of its own, which is stored with the run. If the learning rate has fallen to zero, or
if the previous phase has not gone beyond its warm-up, the phase begins with a warm-up: the learning rate
rises from zero to its peak. The warm-up takes a tenth of the phase, but at most 2,000 steps
(`MAX_WARMUP_STEPS`). The learning rate then falls to zero at the new end. If the previous phase has gone
beyond its warm-up and the learning rate is still above zero, it falls from its current value. If the user has
set a schedule other than cosine, that schedule continues unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jumok.config.derive import USED_SHARE_OF_MINUTES, derive_warmup_steps, step_limit
from jumok.config.recipe import TrainingSettings, make_recipe
from jumok.config.resolve import DerivedSetting
from jumok.errors import RunFolderError
from jumok.training.loop.schedule import Phase, learning_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.config.recipe import Recipe
    from jumok.config.resolve import Overrides
    from jumok.training.loop.checkpoint import Checkpoint
    from jumok.training.run.run_folder import RunRecord

LIMIT_NAMES = ("steps", "epochs", "minutes")
MIN_RATE = 1e-3  # share of the peak; a lower rate counts as zero
Limits = dict[str, float]


def requested_limits(overrides: Overrides, record: RunRecord) -> Limits | None:
    """Return the limits that the user has set if they mean more training, else None.

    They do if they differ from those of the run, or if `jumok finish` has ended the run.
    """
    limits = {name: overrides[f"training.{name}"] for name in LIMIT_NAMES if f"training.{name}" in overrides}
    if not limits or (limits == _limits(record.recipe.training) and record.end_reason != "stopped"):
        return None
    return limits


def _limits(settings: TrainingSettings) -> Limits:
    return {name: value for name in LIMIT_NAMES if (value := getattr(settings, name)) is not None}


def must_complete_first(record: RunRecord) -> bool:
    """Whether the current phase must be completed first: it has a planned end and has not ended."""
    return not record.end_reason and record.plan.steps is not None


def check_limits_are_larger(
    record: RunRecord, limits: Limits, checkpoint: Checkpoint | None, batches_per_epoch: int
) -> None:
    """Raise if the run has reached these limits, or will reach them in its current phase."""
    start, seconds = _steps_and_seconds(checkpoint)
    planned = start if record.end_reason else max(record.plan.steps or 0, start)
    total = _planned_steps(record, _with_limits(record, limits).training, start, seconds, batches_per_epoch)
    if total <= planned:
        plan = f", and {planned:,} are planned" if planned > start else ""
        raise RunFolderError(
            f"This run has done {start:,} steps in {seconds / 60:.1f} minutes{plan}. Received: "
            f"{_describe(limits)}. Limits count from the start of the run: give larger ones to train more; "
            "`jumok finish` ends the run."
        )


def _steps_and_seconds(checkpoint: Checkpoint | None) -> tuple[int, float]:
    """Return the steps and the seconds of a run up to its newest checkpoint."""
    return (0, 0.0) if checkpoint is None else (checkpoint.step, float(checkpoint.state["seconds"]))


def extend_record(
    record: RunRecord, limits: Limits, checkpoint: Checkpoint | None, batches_per_epoch: int
) -> RunRecord:
    """Return the record with a further phase, which begins at the checkpoint.

    If the limits leave no step for it, there is no further phase, only the new limits.
    """
    start, seconds = _steps_and_seconds(checkpoint)
    recipe = _with_limits(record, limits)
    total = _planned_steps(record, recipe.training, start, seconds, batches_per_epoch)
    if total == start:  # the phase that was completed first has used up the minutes
        return replace(record, recipe=recipe)
    phase = _make_phase(record, recipe.training, start, total)
    why = f"more training from step {start:,}: {_describe_schedule(phase)}"
    derived = [setting for setting in record.derived_settings if setting.name != "training.steps"]
    return replace(
        record,
        recipe=recipe,
        derived_settings=(*derived, DerivedSetting("training.steps", total, why)),
        plan=record.plan.extended(phase, total),
        end_reason="",
    )


def _with_limits(record: RunRecord, limits: Limits) -> Recipe:
    """Return the recipe with these limits only.

    The default patience is meant for runs without a planned end. If this run had no planned end, its default
    patience is replaced by 0.
    """
    nested = record.recipe.model_dump()
    nested["training"] |= {**dict.fromkeys(LIMIT_NAMES), **limits}
    if record.recipe.training.patience == TrainingSettings().patience and record.plan.steps is None:
        nested["training"]["patience"] = 0
    return make_recipe(nested)


def _planned_steps(
    record: RunRecord, settings: TrainingSettings, start: int, seconds: float, batches_per_epoch: int
) -> int:
    """Return the step at which the first limit is reached.

    Minutes are converted to steps by the speed of the run so far.
    """
    max_steps = step_limit(settings, batches_per_epoch)
    totals = [] if max_steps is None else [max_steps]
    if settings.minutes is not None:
        seconds_per_step = seconds / start if start else record.update_seconds
        finish_seconds = record.finish_seconds / record.update_seconds * seconds_per_step
        seconds_left = 60 * settings.minutes * USED_SHARE_OF_MINUTES - seconds - finish_seconds
        totals.append(start + int(seconds_left / max(seconds_per_step, 1e-9)))
    return max(min(totals), start)


def _make_phase(record: RunRecord, settings: TrainingSettings, start: int, total: int) -> Phase:
    is_derived = any(setting.name == "training.schedule" for setting in record.derived_settings)
    if settings.schedule != "cosine" and not is_derived:
        return Phase(start, settings.schedule, 0, settings.learning_rate)
    current = record.plan.phase_of(start)
    warmup_end = settings.warmup_steps if current is None else current.warmup_end
    rate = learning_rate(start, settings, record.plan) if start > warmup_end else 0.0
    if rate > MIN_RATE * settings.learning_rate:
        return Phase(start, "cosine", 0, rate)
    return Phase(start, "cosine", derive_warmup_steps(total - start), settings.learning_rate)


def _describe_schedule(phase: Phase) -> str:
    if phase.schedule != "cosine":
        return f"the schedule {phase.schedule} continues"
    end = "cosine to zero at the end"
    if not phase.warmup_steps:
        return f"from the learning rate {phase.peak:.2g} by {end}"
    return f"warm-up over {phase.warmup_steps:,} steps to {phase.peak:.2g}, then {end}"


def _describe(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:,.10g}" for name, value in limits.items())
