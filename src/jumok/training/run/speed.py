"""How fast this machine trains this model, measured on a few updates that are discarded.

The batches are the first ones of the run. Their order is random, so short and long sentences occur in their
true proportion. The measured model is reset to step 0 before training.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jumok.config.derive import USED_SHARE_OF_MINUTES, TrainingCosts, step_limit
from jumok.training.events import Warned

if TYPE_CHECKING:
    from jumok.config.recipe import TrainingSettings
    from jumok.data.batching import Batches
    from jumok.models.model import Model
    from jumok.training.parallel.group import DataParallelGroup
    from jumok.training.validation.protocol import Validation

MAX_MEASURED_UPDATES, WARM_UP_UPDATES = 60, 2
MAX_SHARE, MAX_SECONDS = 0.015, 15.0  # limits of the measurement: a share of the run, and seconds
# Finishing a run takes as long as this many validations, plus the conversion of the model.
FINISH_IN_VALIDATIONS, CONVERSION_SECONDS = 2.5, 1.0
# A run of fewer updates, or of more epochs, gets a warning.
MIN_UPDATES, MAX_EPOCHS = 100, 1000
SUGGESTED_UPDATES = 1000


def num_measured_updates(planned_steps: int | None) -> int:
    """Return how many updates may be measured before a run of this many steps; 0 if the run is too short."""
    if planned_steps is None:
        return MAX_MEASURED_UPDATES
    updates = min(int(MAX_SHARE * planned_steps), MAX_MEASURED_UPDATES)
    return updates if updates > WARM_UP_UPDATES else 0


def measure_update_seconds(
    group: DataParallelGroup, settings: TrainingSettings, max_updates: int = MAX_MEASURED_UPDATES
) -> float:
    """Return the mean seconds per update. This changes the group's model.

    The first updates do not count, if there are others: they warm up caches and allocators.
    """
    max_seconds = MAX_SECONDS
    if settings.minutes is not None:
        max_seconds = min(max_seconds, MAX_SHARE * 60 * settings.minutes)
    group.wait_until_ready()
    seconds: list[float] = []
    while len(seconds) < max_updates and sum(seconds) < max_seconds:
        started = time.perf_counter()
        group.update(len(seconds) + 1, learning_rate=1e-6)
        seconds.append(time.perf_counter() - started)
    warm = seconds[WARM_UP_UPDATES:] or seconds[-1:]
    return sum(warm) / len(warm)


def measure_costs(
    update_seconds: float,
    model: Model,
    batches: Batches,
    validation: Validation,
    settings: TrainingSettings,
    *,
    seconds_spent: float,
) -> TrainingCosts:
    """Measure a validation, and return the costs of a run whose updates take `update_seconds`.

    `seconds_spent` is how long the preparation has taken so far.
    """
    started = time.perf_counter()
    validation_seconds = validation.estimate_seconds(model)
    return TrainingCosts(
        batches_per_epoch=batches.per_epoch,
        update_seconds=update_seconds,
        validation_seconds=validation_seconds,
        finish_seconds=_finish_in_validations(settings) * validation_seconds + CONVERSION_SECONDS,
        preparation_seconds=seconds_spent + time.perf_counter() - started,
    )


def estimate_costs(batches: Batches, validation: Validation, settings: TrainingSettings) -> TrainingCosts:
    """Return the costs in updates instead of seconds, by counting tokens.

    This is for runs without a time limit, whose steps and validations must not depend on the machine.
    """
    tokens = settings.batch_tokens * settings.accumulate
    validation_in_updates = validation.cost_in_tokens() / tokens
    return TrainingCosts(
        batches.per_epoch,
        update_seconds=1.0,
        validation_seconds=validation_in_updates,
        finish_seconds=_finish_in_validations(settings) * validation_in_updates,
    )


def _finish_in_validations(settings: TrainingSettings) -> float:
    """Return how many validations take as long as the finish, without the conversion of the model.

    The finish also validates an average of checkpoints, if the settings request one.
    """
    return FINISH_IN_VALIDATIONS + (settings.average_checkpoints > 1)


def warn_about_plan(settings: TrainingSettings, steps: int | None, costs: TrainingCosts) -> Warned | None:
    """Return a warning if the minutes are too few to learn anything, or far more than the corpus needs."""
    if settings.minutes is None or steps is None or steps == step_limit(settings, costs.batches_per_epoch):
        return None
    if steps < MIN_UPDATES:
        other_seconds = costs.preparation_seconds + costs.finish_seconds + 2 * costs.validation_seconds
        needed = (other_seconds + SUGGESTED_UPDATES * costs.update_seconds) / 60 / USED_SHARE_OF_MINUTES
        return Warned(
            f"{settings.minutes:g} minutes are enough for only {steps} update{'s' if steps > 1 else ''}: "
            f"reading, measuring, validating and finishing take {other_seconds:.0f} s, and each update "
            f"{costs.update_seconds:.2g} s",
            f"Such a model has learnt next to nothing. {SUGGESTED_UPDATES:,} updates need about "
            f"{max(needed, 0.1):.1f} minutes.",
        )
    epochs = steps * settings.accumulate / costs.batches_per_epoch
    if epochs > MAX_EPOCHS:
        return Warned(
            f"{settings.minutes:g} minutes are enough for {epochs:,.0f} passes over these pairs",
            "A model stops improving long before. Set fewer minutes or training.epochs; or set no limit, and "
            "training stops when the validation score no longer improves.",
        )
    return None
