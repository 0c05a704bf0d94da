"""The learning rate of each step, as pure functions. Steps are counted from 1.

    warm-up         lr(n) = peak · n / w                      n ≤ w
    inverse-sqrt    lr(n) = peak · √(w / n)                   Vaswani et al. 2017, eq. 3
    cosine          lr(n) = peak · ½ (1 + cos(π t(n)))        Loshchilov & Hutter 2017, eq. 5
    constant        lr(n) = peak

The paper writes width^-½ · min(n^-½, n · w^-3/2); its peak, reached at n = w, is (width · w)^-½. Here the
peak is the setting, so that it means the same under every schedule.

t(n) runs from 0 at the end of the warm-up to 1 at the last step. A run limited by minutes may learn on its
way that the machine is slower or faster than measured; the plan is then revised and t runs on from where it
was, at another pace, so that the rate still falls smoothly to zero at the last step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumok.recipe import TrainingSettings

__all__ = ["Plan", "learning_rate"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many steps a run has. A revision (step, total) holds from that step on; None: no end is planned."""

    revisions: tuple[tuple[int, int | None], ...]

    @property
    def steps(self) -> int | None:
        return self.revisions[-1][1]

    def revised(self, step: int, total: int) -> Plan:
        return Plan((*self.revisions, (step, total)))

    def until(self, step: int) -> Plan:
        """The plan as it stood at this step, which a run that goes on from there revises anew."""
        return Plan(tuple(one for one in self.revisions if one[0] <= step))

    def progress(self, step: int, warmup: int) -> float:
        """t(step): the part of the way from the warm-up's end to the last step that has been gone."""
        gone, here = 0.0, warmup
        ends = [begin for begin, _ in self.revisions[1:]] + [step]
        for (_, total), end in zip(self.revisions, ends, strict=True):
            end = min(end, step)
            if total is None or end <= here:
                continue
            gone += (1 - gone) * (end - here) / max(total - here, 1)
            here = end
        return min(gone, 1.0)


def learning_rate(step: int, settings: TrainingSettings, plan: Plan) -> float:
    """The rate of the update that leads to `step`."""
    peak, warmup = settings.learning_rate, settings.warmup
    if step <= warmup:
        return peak * step / warmup
    if settings.schedule == "inverse-sqrt":
        return peak * math.sqrt(max(warmup, 1) / step)
    if settings.schedule == "cosine":
        return peak * 0.5 * (1 + math.cos(math.pi * plan.progress(step, warmup)))
    return peak
