"""How fast this machine trains this model, measured on a few updates that are discarded.

The batches are the first ones of the run. Their order is random, so short and long sentences occur in their
true proportion. The measured model is reset to step 0 before training.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jumok.config.derive import TrainingCosts

if TYPE_CHECKING:
    from jumok.config.recipe import TrainingSettings
    from jumok.data import Batches
    from jumok.models import Model
    from jumok.training.parallel.group import DataParallelGroup
    from jumok.training.validation.protocol import Validation

__all__ = ["estimate_costs", "measure_costs", "measure_update_seconds"]

MAX_UPDATES, WARM_UP_UPDATES = 60, 2
MAX_SHARE_OF_MINUTES, MAX_SECONDS = 0.015, 15.0
# Finishing a run takes as long as this many validations, plus the conversion of the model.
FINISH_IN_VALIDATIONS, CONVERSION_SECONDS = 2.5, 1.0


def measure_update_seconds(group: DataParallelGroup, settings: TrainingSettings) -> float:
    """Return the mean seconds per update. This changes the group's model.

    The first updates do not count: they warm up caches and allocators.
    """
    max_seconds = MAX_SECONDS
    if settings.minutes is not None:
        max_seconds = min(max_seconds, MAX_SHARE_OF_MINUTES * 60 * settings.minutes)
    group.wait_until_ready()
    seconds: list[float] = []
    while len(seconds) < MAX_UPDATES and sum(seconds) < max_seconds:
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
    """Return the costs of a run whose updates take `update_seconds`, after measuring a validation."""
    started = time.perf_counter()
    validation_seconds = validation.estimate_seconds(model)
    num_validations = FINISH_IN_VALIDATIONS + (settings.average_checkpoints > 1)
    return TrainingCosts(
        batches_per_epoch=batches.per_epoch,
        update_seconds=update_seconds,
        validation_seconds=validation_seconds,
        finish_seconds=num_validations * validation_seconds + CONVERSION_SECONDS,
        preparation_seconds=seconds_spent + time.perf_counter() - started,
    )


def estimate_costs(batches: Batches, validation: Validation, settings: TrainingSettings) -> TrainingCosts:
    """Return the costs in updates instead of seconds, by counting tokens.

    Without a time limit nothing is measured, so that the same command gives the same run on any machine.
    """
    tokens = settings.batch_tokens * settings.accumulate
    validation_in_updates = validation.cost_in_tokens() / tokens
    return TrainingCosts(batches.per_epoch, update_seconds=1.0, validation_seconds=validation_in_updates)
