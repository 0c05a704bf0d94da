"""How fast this machine trains this model: a few updates that are thrown away.

Batches are taken from the beginning of the first epoch, whose order is random, so that short and long
sentences come in their true proportion. The model that is measured is not the one that is trained: that one
starts over from the seed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jumok.training.derive import Pace

if TYPE_CHECKING:
    from jumok.corpus import Batches
    from jumok.models import Model
    from jumok.recipe import TrainingSettings
    from jumok.training.tasks import Validation
    from jumok.training.team import Team

__all__ = ["measure_pace", "measure_team", "reckon_pace"]

MOST_UPDATES, WARM_UP_UPDATES = 60, 2
SHARE_OF_BUDGET, LONGEST_MEASUREMENT = 0.015, 15.0
FINISH_IN_VALIDATIONS, CONVERTING_SECONDS = 2.5, 1.0


def measure_team(team: Team, settings: TrainingSettings) -> float:
    """Seconds that a team takes for an update. Its model is spoilt by this."""
    longest = LONGEST_MEASUREMENT
    if settings.minutes is not None:
        longest = min(longest, SHARE_OF_BUDGET * 60 * settings.minutes)
    return _seconds_an_update(team, longest)


def measure_pace(
    update: float,
    model: Model,
    batches: Batches,
    validation: Validation,
    settings: TrainingSettings,
    *,
    spent: float,
) -> Pace:
    """The pace of a run whose updates take that many seconds each."""
    started = time.perf_counter()
    check = validation.estimate_seconds(model)
    return Pace(
        batches_per_epoch=batches.per_epoch,
        update=update,
        validation=check,
        finish=(FINISH_IN_VALIDATIONS + (settings.average > 1)) * check + CONVERTING_SECONDS,
        spent=spent + time.perf_counter() - started,
    )


def reckon_pace(batches: Batches, validation: Validation, settings: TrainingSettings) -> Pace:
    """The pace in updates instead of seconds, by counting pieces.

    Where no minutes are set nothing is measured, so that the same command gives the same run on any machine.
    """
    pieces = settings.batch_tokens * settings.accumulate
    return Pace(batches.per_epoch, update=1.0, validation=validation.cost_in_pieces() / pieces)


def _seconds_an_update(team: Team, longest: float) -> float:
    """The mean over a random sample of updates, the first ones left out: they warm caches and allocators."""
    team.await_all()
    seconds: list[float] = []
    while len(seconds) < MOST_UPDATES and sum(seconds) < longest:
        started = time.perf_counter()
        team.update(len(seconds) + 1, rate=1e-6)
        seconds.append(time.perf_counter() - started)
    counted = seconds[WARM_UP_UPDATES:] or seconds[-1:]
    return sum(counted) / len(counted)
