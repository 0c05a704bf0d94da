"""The loop: update, validate, save, until there is a reason to stop.

Step n reads batches (n-1)·k … n·k - 1 (k = accumulate) and draws all that is random from (seed, n). What a
run does is therefore a function of its record and its data; killed and continued, it ends in the same bits.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from jumok.errors import TrainingError
from jumok.storage import load_module_weights, module_weights
from jumok.training.average import update_moving_average
from jumok.training.checkpoint import Checkpoint, remove_old, save_checkpoint, saved_steps
from jumok.training.detectors import Evidence, inspect
from jumok.training.events import Event, Progress, Saved, Validated, Warned
from jumok.training.exhibits import exhibits_to_json
from jumok.training.optimiser import optimiser_tensors, restore_optimiser
from jumok.training.schedule import Plan, learning_rate
from jumok.training.state import RunState, ValidationRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from jumok.recipe import TrainingSettings
    from jumok.training.metrics import Metrics
    from jumok.training.tasks import Validation
    from jumok.training.team import Team
    from jumok.training.update import Update
    from jumok.training.validation import ValidationResult
    from jumok.values import AttentionMap

__all__ = ["Budget", "Trainer"]

STEPS_BETWEEN_REPORTS = 20
SECONDS_BETWEEN_REPORTS = 2.0
SECONDS_BETWEEN_SAVES = 120.0
MOST_SKIPPED_IN_A_ROW = 10
WORTH_REVISING = 0.03  # of the steps that remain
REVISED_AFTER, FEWEST_TIMED = 0.04, 5  # of the planned steps; updates

Reason = Literal["done", "patience", "interrupted"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The seconds a run may take, and what a validation and the finish are expected to take of them."""

    total: float | None = None
    validation: float = 0.0
    finish: float = 0.0
    most_steps: int | None = None


@dataclass(slots=True)
class Tally:
    """Sums since the last report."""

    started: float = field(default_factory=time.perf_counter)
    loss: float = 0.0
    nll: float = 0.0
    tokens: int = 0
    updates: int = 0
    gradient_norm: float = math.nan

    def add(self, update: Update) -> None:
        self.updates += 1
        if update.applied:
            self.loss, self.nll = self.loss + update.loss, self.nll + update.nll
            self.tokens += update.tokens
            self.gradient_norm = update.gradient_norm

    def due(self) -> bool:
        waited = time.perf_counter() - self.started
        return self.updates >= STEPS_BETWEEN_REPORTS or waited > SECONDS_BETWEEN_REPORTS


class Trainer:
    """One run on its way. `events` drives it; `reason` says, when they end, why."""

    def __init__(
        self,
        *,
        team: Team,
        validation: Validation,
        settings: TrainingSettings,
        plan: Plan,
        checkpoints: Path,
        metrics: Metrics,
        interrupted: Callable[[], bool],
        revise: Callable[[Plan], None],
        budget: Budget,
        spent: float = 0.0,
    ) -> None:
        self.team, self.validation = team, validation
        self.model, self.optimiser = team.model, team.optimiser
        self.settings, self.plan = settings, plan
        self.checkpoints, self.metrics = checkpoints, metrics
        self.interrupted, self.revise, self.budget = interrupted, revise, budget
        self.state = RunState()
        self.average = (
            {name: w.clone() for name, w in module_weights(self.model).items()} if settings.ema else None
        )
        self.reason: Reason | None = None
        self._clock = time.perf_counter() - spent
        self._saved_at = time.perf_counter()
        self._tally = Tally()
        self._training_loss = math.nan
        self._update_seconds = self._validation_seconds = 0.0
        self._updates = self._validations = 0

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint; the time that the run has taken so far counts."""
        load_module_weights(self.model, checkpoint.weights)
        restore_optimiser(self.optimiser, self.model, checkpoint.optimiser)
        if self.average is not None and checkpoint.moving_average is not None:
            self.average = {name: tensor.clone() for name, tensor in checkpoint.moving_average.items()}
        self.state = RunState.from_json(checkpoint.step, checkpoint.state)
        self._clock -= self.state.seconds

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._clock

    def events(self) -> Iterator[Event]:
        """Train until there is a reason to stop."""
        while True:
            if self._validation_is_due():
                yield from self._validate()
            self.reason = self._reason_to_stop()
            if self.reason is not None:
                break
            yield from self._advance()
            if time.perf_counter() - self._saved_at > SECONDS_BETWEEN_SAVES:
                yield self._save()
        if self.reason == "interrupted" and self.state.step > 0:
            yield self._save()

    def _reason_to_stop(self) -> Reason | None:
        if self.interrupted():
            return "interrupted"
        if self.plan.steps is not None and self.state.step >= self.plan.steps:
            return "done"
        return "patience" if self.state.out_of_patience(self.settings) else None

    # --- a step ---

    def _advance(self) -> Iterator[Event]:
        started = time.perf_counter()
        step = self.state.step + 1
        rate = learning_rate(step, self.settings, self.plan)
        update = self.team.update(step, rate)
        self.state.step = step
        if update.applied:
            self.state.skipped_in_a_row = 0
            if self.average is not None:
                update_moving_average(self.average, module_weights(self.model), self.settings.ema, step)
        else:
            yield self._note_skipped(update)
        self._tally.add(update)
        self._updates += 1
        self._update_seconds += time.perf_counter() - started
        if self._tally.due():
            yield self._report(rate)
            self._revise_plan()

    def _note_skipped(self, update: Update) -> Warned:
        """An update left out; too many in a row and there is nothing to hope for."""
        self.state.skipped += 1
        self.state.skipped_in_a_row += 1
        if self.state.skipped_in_a_row >= MOST_SKIPPED_IN_A_ROW:
            stored = saved_steps(self.checkpoints)
            sound = [one.step for one in self.state.validations if math.isfinite(one.loss)]
            good = [step for step in sound if step in stored]
            kept = f"The checkpoint of step {good[-1]} is intact." if good else "No checkpoint is good."
            raise TrainingError(
                f"The loss or its gradient was not finite in {MOST_SKIPPED_IN_A_ROW} updates in a row, up to "
                f"step {self.state.step}; none of them touched the weights. {kept} Start a new run with a "
                "lower training.learning_rate or a longer training.warmup."
            )
        return Warned(
            f"step {self.state.step}: the gradient is {update.gradient_norm} at a loss of "
            f"{update.loss / update.tokens:.2f}, so this update was left out",
            "One in a while does no harm. If it comes often, lower training.learning_rate.",
        )

    def _report(self, rate: float) -> Progress:
        tally, self._tally = self._tally, Tally()
        tokens = tally.tokens or math.nan  # where every update was left out, there is no loss to tell
        nll = tally.nll / tokens
        self._training_loss = nll if tally.tokens else self._training_loss
        progress = Progress(
            step=self.state.step,
            steps=self.plan.steps,
            loss=tally.loss / tokens,
            perplexity=math.exp(min(nll, 700)),
            learning_rate=rate,
            tokens_per_second=tally.tokens / max(time.perf_counter() - tally.started, 1e-9),
            gradient_norm=tally.gradient_norm,
            seconds_left=self._seconds_left(),
        )
        self.metrics.write(
            "train",
            progress.step,
            {
                "loss": progress.loss,
                "perplexity": progress.perplexity,
                "learning_rate": rate,
                "tokens_per_second": round(progress.tokens_per_second, 1),
                "gradient_norm": progress.gradient_norm,
                "seconds": round(self.seconds, 2),
            },
        )
        return progress

    # --- time ---

    def _pace(self) -> float:
        """Seconds a step takes, its share of a validation included."""
        update = self._update_seconds / max(self._updates, 1)
        expected = self.budget.validation if self.budget.total is not None else 0.0
        validation = self._validation_seconds / self._validations if self._validations else expected
        return update + validation / self.settings.validate_every

    def _seconds_left(self) -> float | None:
        if self.plan.steps is None:
            return None
        return (self.plan.steps - self.state.step) * self._pace() + self.budget.finish

    def _revise_plan(self) -> None:
        """Fit the remaining steps to the remaining time, where the measured pace did not hold.

        The revision is written to the run's record before it takes effect, where a resumed run finds it.
        """
        step, planned = self.state.step, self.plan.steps
        if self.budget.total is None or planned is None or step <= self.settings.warmup or step >= planned:
            return
        since = step - self.plan.revisions[-1][0]
        if since < REVISED_AFTER * planned or self._updates < FEWEST_TIMED:
            return
        left = self.budget.total - self.seconds - self.budget.finish
        possible = step + max(int(left / self._pace()), 1)
        possible = min(possible, self.budget.most_steps or possible)
        if abs(possible - planned) > WORTH_REVISING * (planned - step):
            self.plan = self.plan.revised(step, possible)
            self.revise(self.plan)

    # --- validation ---

    def _validation_is_due(self) -> bool:
        step = self.state.step
        at_the_end = self.plan.steps is not None and step >= self.plan.steps
        due = step > 0 and (step % self.settings.validate_every == 0 or at_the_end)
        return due and not self.state.validated(step) and not self.interrupted()

    def _validate(self) -> Iterator[Event]:
        started = time.perf_counter()
        try:
            with self._evaluated_weights():
                result = self.validation.validate(self.model, beam=1, stop=self.interrupted)
                if result is None:
                    return
                evidence = self._evidence(result)
                attention = self.validation.look(self.model)
        except Exception:
            self._save()  # whatever is wrong with the validation, the steps are not lost
            raise
        seconds = time.perf_counter() - started
        self._validations, self._validation_seconds = (
            self._validations + 1,
            self._validation_seconds + seconds,
        )
        yield self._remember(result, attention, seconds)
        for warning in inspect(evidence):
            if warning.kind not in self.state.warned:
                self.state.warned.append(warning.kind)
                yield Warned(f"step {self.state.step}: {warning.message}", warning.advice)
        yield self._save()
        self._tally.started += time.perf_counter() - started  # not the updates' time

    def _remember(
        self, result: ValidationResult, attention: AttentionMap | None, seconds: float
    ) -> Validated:
        record = ValidationRecord(self.state.step, result.loss, self._training_loss, result.values())
        self.state.validations.append(record)
        best = self.state.best(self.settings.stop_on) is record
        numbers = {"loss": result.loss, **result.values(), "seconds": round(seconds, 2)}
        exhibits = exhibits_to_json(result.samples, attention)
        self.metrics.write("validation", self.state.step, {**numbers, **exhibits})
        return Validated(self.state.step, result.loss, result.values(), result.samples, best, seconds)

    def _evidence(self, result: ValidationResult) -> Evidence:
        evidence = Evidence(
            step=self.state.step,
            steps=self.plan.steps,
            warmup=self.settings.warmup,
            validations=tuple(self.state.validations),
            loss=result.loss,
            training_loss=self._training_loss,
            hypotheses=result.hypotheses,
            references=result.references,
            unigram_entropy=self.validation.unigram_entropy,
            odd_pieces=self.validation.odd_pieces,
        )
        return replace(evidence, flatness=self.validation.flatness(self.model)) if evidence.late else evidence

    @contextmanager
    def _evaluated_weights(self) -> Iterator[None]:
        """The moving average in the model's place, where there is one."""
        if self.average is None:
            yield
            return
        own = {name: tensor.clone() for name, tensor in module_weights(self.model).items()}
        load_module_weights(self.model, self.average)
        try:
            yield
        finally:
            load_module_weights(self.model, own)

    # --- saving ---

    def _save(self) -> Saved:
        self.state.seconds = self.seconds
        self._saved_at = time.perf_counter()
        path = save_checkpoint(
            self.checkpoints,
            Checkpoint(
                step=self.state.step,
                weights=module_weights(self.model),
                optimiser=optimiser_tensors(self.optimiser, self.model),
                moving_average=self.average,
                state=self.state.to_json(metrics_length=self.metrics.length()),
            ),
        )
        remove_old(self.checkpoints, self.state.needed_steps(self.settings))
        return Saved(path, self.state.step)
