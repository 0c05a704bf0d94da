"""The learning rate of each step, as pure functions. Steps count from 1.

    warm-up         lr(n) = peak · n / w                      n ≤ w
    inverse-sqrt    lr(n) = peak · √(w / n)                   Vaswani et al. 2017, eq. 3
    cosine          lr(n) = peak · ½ (1 + cos(π t(n)))        Loshchilov & Hutter 2017, eq. 5
    constant        lr(n) = peak

Vaswani et al. write width^-½ · min(n^-½, n · w^-3/2). The peak of this formula, reached at n = w, is
(width · w)^-½. Here the peak is the setting, so that the setting means the same under every schedule.

t(n) rises from 0 at the end of the warm-up to 1 at the last step. A run limited by minutes may find that the
machine is slower or faster than measured. The plan is then revised: t continues from its current value with
another slope, so that the rate still falls smoothly to zero at the last step.

A run that is given more steps gets a further phase. A cosine phase has a warm-up and a peak of its own, and n
counts from the start of the phase (warm restarts: Loshchilov & Hutter 2017, section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumok.config.recipe import TrainingSettings


@dataclass(frozen=True, slots=True)
class Phase:
    """A further phase of a run, which begins after step `start`.

    If its schedule is not cosine, the learning rate continues as in the first phase.
    """

    start: int
    schedule: str
    warmup_steps: int
    peak: float

    @property
    def warmup_end(self) -> int:
        return self.start + self.warmup_steps


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned number of steps of a run, how it was revised, and the phases of the run.

    A revision (step, total) sets the planned number of steps to `total` from `step` on. The first revision
    begins at step 0. A total of None means that no end is planned. `phases` has all phases except the first.
    Each of them begins with a revision.
    """

    revisions: tuple[tuple[int, int | None], ...]
    phases: tuple[Phase, ...] = ()

    @property
    def steps(self) -> int | None:
        """The last step that is planned now; None if no end is planned."""
        return self.revisions[-1][1]

    def revised(self, step: int, total: int) -> Plan:
        return Plan((*self.revisions, (step, total)), self.phases)

    def extended(self, phase: Phase, total: int) -> Plan:
        """Return the plan with a further phase, up to step `total`."""
        return Plan((*self.revisions, (phase.start, total)), (*self.phases, phase))

    def until(self, step: int) -> Plan:
        """Return the plan for a run that is resumed from this step.

        Revisions after this step are dropped, since the resumed run may revise the plan differently. Later
        phases stay, with the revisions that begin them, since the user has requested them.
        """
        starts = {phase.start for phase in self.phases}
        revisions = (revision for revision in self.revisions if revision[0] <= step or revision[0] in starts)
        return Plan(tuple(revisions), self.phases)

    def phase_of(self, step: int) -> Phase | None:
        """Return the phase that update `step` belongs to. The result is None in the first phase."""
        return next((phase for phase in reversed(self.phases) if phase.start < step), None)

    def progress(self, step: int, warmup: int) -> float:
        """Return t(step) in the phase of the step. Each step adds the slope that was planned for it."""
        phase = self.phase_of(step)
        # `t` is computed up to the step `previous_end`. Revisions before the step `first` do not count.
        t, previous_end, first = 0.0, warmup, 0
        if phase is not None:
            previous_end, first = phase.warmup_end, phase.start
        revisions = [revision for revision in self.revisions if revision[0] >= first]
        ends = [start for start, _ in revisions[1:]] + [step]
        for (_, total), end in zip(revisions, ends, strict=True):
            end = min(end, step)
            if total is None or end <= previous_end:
                continue
            t += (1 - t) * (end - previous_end) / max(total - previous_end, 1)
            previous_end = end
        return min(t, 1.0)


def learning_rate(step: int, settings: TrainingSettings, plan: Plan) -> float:
    """Return the learning rate of update `step`."""
    peak, warmup = settings.learning_rate, settings.warmup_steps
    phase = plan.phase_of(step)
    if phase is not None and phase.schedule == "cosine":
        if step <= phase.warmup_end:
            return phase.peak * (step - phase.start) / phase.warmup_steps
        return phase.peak * 0.5 * (1 + math.cos(math.pi * plan.progress(step, warmup)))
    if step <= warmup:
        return peak * step / warmup
    if settings.schedule == "inverse-sqrt":
        return peak * math.sqrt(max(warmup, 1) / step)
    if settings.schedule == "cosine":
        return peak * 0.5 * (1 + math.cos(math.pi * plan.progress(step, warmup)))
    return peak
