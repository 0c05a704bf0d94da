"""The learning rate of each step, as pure functions. Steps count from 1.

    warm-up         lr(n) = peak · n / w                      n ≤ w
    inverse-sqrt    lr(n) = peak · √(w / n)                   Vaswani et al. 2017, eq. 3
    cosine          lr(n) = peak · ½ (1 + cos(π t(n)))        Loshchilov & Hutter 2017, eq. 5
    constant        lr(n) = peak

The paper writes width^-½ · min(n^-½, n · w^-3/2); its peak, reached at n = w, is (width · w)^-½. Here the
peak is the setting, so that it means the same under every schedule.

t(n) rises from 0 at the end of the warm-up to 1 at the last step. A run limited by minutes may find that the
machine is slower or faster than measured. The plan is then revised: t continues from its current value with
another slope, so that the rate still falls smoothly to zero at the last step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumok.config.recipe import TrainingSettings

__all__ = ["Plan", "learning_rate"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned number of steps. A revision (step, total) applies from that step on; None: no end."""

    revisions: tuple[tuple[int, int | None], ...]

    @property
    def steps(self) -> int | None:
        return self.revisions[-1][1]

    def revised(self, step: int, total: int) -> Plan:
        return Plan((*self.revisions, (step, total)))

    def until(self, step: int) -> Plan:
        """Return the plan as it was at this step: a run that is resumed there may revise it otherwise."""
        return Plan(tuple(revision for revision in self.revisions if revision[0] <= step))

    def progress(self, step: int, warmup: int) -> float:
        """Return t(step). Every step counts with the slope that the plan had at that step."""
        share, previous_end = 0.0, warmup
        ends = [start for start, _ in self.revisions[1:]] + [step]
        for (_, total), end in zip(self.revisions, ends, strict=True):
            end = min(end, step)
            if total is None or end <= previous_end:
                continue
            share += (1 - share) * (end - previous_end) / max(total - previous_end, 1)
            previous_end = end
        return min(share, 1.0)


def learning_rate(step: int, settings: TrainingSettings, plan: Plan) -> float:
    """Return the learning rate of update `step`."""
    peak, warmup = settings.learning_rate, settings.warmup_steps
    if step <= warmup:
        return peak * step / warmup
    if settings.schedule == "inverse-sqrt":
        return peak * math.sqrt(max(warmup, 1) / step)
    if settings.schedule == "cosine":
        return peak * 0.5 * (1 + math.cos(math.pi * plan.progress(step, warmup)))
    return peak
