"""The training loop: update, validate, save, until there is a reason to stop.

Step n reads batches (n-1)·k … n·k - 1 (k = accumulate) and seeds all random generators (`update.py`). On a
CPU, a run that is killed and resumed therefore ends with the same weights, bit for bit, as an uninterrupted
run. The exception is a limit of minutes: the plan then depends on the measured speed.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from jumok.errors import TrainingError
from jumok.storage.folders import remove_leftovers
from jumok.storage.tensors import load_module_weights, module_weights
from jumok.training.events import Event, Progress, Saved, StageStarted, Validated, Warned
from jumok.training.loop.averaging import update_moving_average
from jumok.training.loop.checkpoint import Checkpoint, remove_old_checkpoints, save_checkpoint, saved_steps
from jumok.training.loop.detectors import Evidence, Finding, run_detectors, training_diverged
from jumok.training.loop.schedule import Plan, learning_rate
from jumok.training.loop.state import RunState, ValidationRecord
from jumok.training.validation.snapshots import snapshot_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from torch import Tensor

    from jumok.config.recipe import TrainingSettings
    from jumok.training.loop.metrics import Metrics
    from jumok.training.loop.update import Update
    from jumok.training.parallel.group import DataParallelGroup
    from jumok.training.validation.protocol import Validation, ValidationResult
    from jumok.types import AttentionMap

# A report is due after this many steps or seconds, whichever comes first.
STEPS_BETWEEN_REPORTS, SECONDS_BETWEEN_REPORTS = 20, 2.0
SECONDS_BETWEEN_SAVES = 120.0
MAX_SKIPPED_IN_A_ROW = 10
MIN_REVISION = 0.03  # share of the remaining steps; the plan ignores smaller changes
MIN_SHARE_BEFORE_REVISION = 0.04  # steps since the last revision, as a share of the planned steps
MIN_UPDATES_BEFORE_REVISION = 5  # updates that this process has timed

StopReason = Literal["done", "patience", "stopped", "interrupted"]  # stopped: by `jumok finish`


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a run, and the costs of an update, a validation and the finish.

    The unit of the costs is one second, or one update if the first limit of the run was not in minutes
    (`config.derive.TrainingCosts`).
    """

    total_seconds: float | None = None
    update_seconds: float = 1.0
    validation_seconds: float = 0.0
    finish_seconds: float = 0.0
    max_steps: int | None = None


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files that a run writes while it trains."""

    checkpoints: Path
    metrics: Metrics
    write_plan: Callable[[Plan], None]  # a revised plan is stored before it takes effect


@dataclass(slots=True)
class Tally:
    """Sums since the last report."""

    started: float = field(default_factory=time.perf_counter)  # a validation moves this by its duration
    loss: float = 0.0
    nll: float = 0.0
    tokens: int = 0  # of updates that were applied
    updates: int = 0  # skipped ones included
    gradient_norm: float = math.nan  # of the last update that was applied

    def add(self, update: Update) -> None:
        self.updates += 1
        if update.applied:
            self.loss, self.nll = self.loss + update.loss, self.nll + update.nll
            self.tokens += update.tokens
            self.gradient_norm = update.gradient_norm

    def is_due(self) -> bool:
        elapsed = time.perf_counter() - self.started
        return self.updates >= STEPS_BETWEEN_REPORTS or elapsed > SECONDS_BETWEEN_REPORTS


class Trainer:
    """One run. Iterating over `events()` trains; when they end, `stop_reason` says why."""

    def __init__(
        self,
        *,
        group: DataParallelGroup,
        validation: Validation,
        settings: TrainingSettings,
        plan: Plan,
        budget: Budget,
        files: RunFiles,
        should_stop: Callable[[], bool],
        seconds_spent: float = 0.0,
    ) -> None:
        self.group, self.validation = group, validation
        self.model, self.optimiser = group.model, group.optimiser
        self.settings, self.plan, self.budget = settings, plan, budget
        self.files, self.should_stop = files, should_stop
        self.state = RunState(uniform_loss=validation.uniform_loss)
        self.moving_average = _copy(module_weights(self.model)) if settings.ema_decay else None
        self.stop_reason: StopReason | None = None
        self._started_at = time.perf_counter() - seconds_spent
        self._saved_at = time.perf_counter()
        self._tally = Tally()
        self._training_loss = math.nan
        self._update_seconds = self._validation_seconds = 0.0
        self._num_updates = self._num_validations = 0

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint. The time of earlier sessions counts as time of the run."""
        self.group.restore(checkpoint.weights, checkpoint.optimiser)
        if self.moving_average is not None and checkpoint.moving_average is not None:
            for name, tensor in self.moving_average.items():
                tensor.copy_(checkpoint.moving_average[name])
        self.state = RunState.from_json(
            checkpoint.step, checkpoint.state, uniform_loss=self.validation.uniform_loss
        )
        self._started_at -= self.state.seconds

    @property
    def seconds(self) -> float:
        """The time that the run has taken, earlier sessions included."""
        return time.perf_counter() - self._started_at

    def events(self) -> Iterator[Event]:
        """Train until there is a reason to stop."""
        while True:
            if self._validation_is_due():
                yield from self._validate()
            self.stop_reason = self._reason_to_stop()
            if self.stop_reason is not None:
                break
            yield from self._train_step()
            if time.perf_counter() - self._saved_at > SECONDS_BETWEEN_SAVES:
                yield self._save()
        if self.stop_reason == "interrupted" and self.state.step > 0:
            yield self._save()

    def _reason_to_stop(self) -> StopReason | None:
        if self.should_stop():
            return "interrupted"
        if self.plan.steps is not None and self.state.step >= self.plan.steps:
            return "done"
        phases = self.plan.phases
        since = phases[-1].start if phases else 0
        return "patience" if self.state.out_of_patience(self.settings, since=since) else None

    # --- a step ---

    def _train_step(self) -> Iterator[Event]:
        started = time.perf_counter()
        step = self.state.step + 1
        rate = learning_rate(step, self.settings, self.plan)
        update = self.group.update(step, rate)
        self.state.step = step
        if update.applied:
            self.state.num_skipped_in_a_row = 0
            if self.moving_average is not None:
                weights = module_weights(self.model)
                update_moving_average(self.moving_average, weights, self.settings.ema_decay, step)
        else:
            yield self._record_skipped(update)
        self._tally.add(update)
        self._num_updates += 1
        self._update_seconds += time.perf_counter() - started
        if self._tally.is_due():
            yield self._report(rate)
            if step > self.settings.warmup_steps:
                yield from self._warn(training_diverged(self._training_loss, self.validation.uniform_loss))
            self._revise_plan()

    def _warn(self, *findings: Finding | None) -> Iterator[Warned]:
        """Yield a warning for each finding of a kind that the run has not reported yet."""
        for finding in findings:
            if finding is not None and finding.kind not in self.state.warned_kinds:
                self.state.warned_kinds.append(finding.kind)
                yield Warned(f"step {self.state.step}: {finding.message}", finding.advice)

    def _record_skipped(self, update: Update) -> Warned:
        """Count a skipped update and return the warning; raise if too many were skipped in a row."""
        self.state.num_skipped += 1
        self.state.num_skipped_in_a_row += 1
        if self.state.num_skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            stored_steps = saved_steps(self.files.checkpoints)
            finite_steps = [record.step for record in self.state.validations if math.isfinite(record.loss)]
            usable_steps = [step for step in finite_steps if step in stored_steps]
            checkpoint_note = (
                f"The checkpoint of step {usable_steps[-1]} is intact."
                if usable_steps
                else "No checkpoint has a validation with a finite loss."
            )
            raise TrainingError(
                f"The loss or its gradient was not finite in {MAX_SKIPPED_IN_A_ROW} updates in a row, up to "
                f"step {self.state.step}; none of them changed the weights. {checkpoint_note} Start a "
                "new run with a lower training.learning_rate or more training.warmup_steps."
            )
        return Warned(
            f"step {self.state.step}: the gradient is {update.gradient_norm} at a loss of "
            f"{update.loss / update.tokens:.2f}, so this update was skipped",
            "A skipped update now and then does no harm. If it happens often, lower training.learning_rate.",
        )

    def _report(self, rate: float) -> Progress:
        tally, self._tally = self._tally, Tally()
        tokens = tally.tokens or math.nan  # if every update was skipped, there is no loss to report
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
        self.files.metrics.write(
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

    def _seconds_per_step(self) -> float:
        """Return the mean seconds per step, including the step's share of a validation."""
        return self._seconds_per_update() + self._seconds_per_validation() / self.settings.validate_every

    def _seconds_per_update(self) -> float:
        return self._update_seconds / max(self._num_updates, 1)

    def _seconds_per_validation(self) -> float:
        """Return the mean seconds of this session's validations.

        Before the session's first validation, return an estimate from the planned costs.
        """
        if self._num_validations:
            return self._validation_seconds / self._num_validations
        return (
            self._seconds_per_update()
            * self.budget.validation_seconds
            / max(self.budget.update_seconds, 1e-9)
        )

    def _seconds_left(self) -> float | None:
        """Return the seconds until the run is finished: updates, validations and the finish."""
        if self.plan.steps is None:
            return None
        steps = max(self.plan.steps - self.state.step, 0)
        finish_in_validations = self.budget.finish_seconds / max(self.budget.validation_seconds, 1e-9)
        validations = math.ceil(steps / self.settings.validate_every) + finish_in_validations
        return steps * self._seconds_per_update() + validations * self._seconds_per_validation()

    def _revise_plan(self) -> None:
        """Fit the remaining steps to the remaining time if updates are slower or faster than planned.

        The revision is written to the run's record before it takes effect, so that a resumed run reads it.
        """
        step, planned = self.state.step, self.plan.steps
        if self.budget.total_seconds is None or planned is None:
            return
        phase = self.plan.phase_of(step)
        warmup_end = self.settings.warmup_steps if phase is None else phase.warmup_end
        if step <= warmup_end or step >= planned:
            return
        steps_since_revision = step - self.plan.revisions[-1][0]
        if steps_since_revision < MIN_SHARE_BEFORE_REVISION * planned:
            return
        if self._num_updates < MIN_UPDATES_BEFORE_REVISION:
            return
        # The costs are in updates if the first limit of the run was not in minutes.
        seconds_per_unit = self._seconds_per_update() / max(self.budget.update_seconds, 1e-9)
        finish_seconds = self.budget.finish_seconds * seconds_per_unit
        seconds_left = self.budget.total_seconds - self.seconds - finish_seconds
        possible_steps = step + max(int(seconds_left / self._seconds_per_step()), 1)
        possible_steps = min(possible_steps, self.budget.max_steps or possible_steps)
        if abs(possible_steps - planned) > MIN_REVISION * (planned - step):
            self.plan = self.plan.revised(step, possible_steps)
            self.files.write_plan(self.plan)

    # --- validation ---

    def _validation_is_due(self) -> bool:
        step = self.state.step
        is_last = self.plan.steps is not None and step >= self.plan.steps
        due = step > 0 and (step % self.settings.validate_every == 0 or is_last)
        return due and not self.state.has_validation(step) and not self.should_stop()

    def _validate(self) -> Iterator[Event]:
        yield StageStarted("validating")
        started = time.perf_counter()
        try:
            with self._moving_average_loaded():
                result = self.validation.validate(self.model, beam=1, should_stop=self.should_stop)
                if result is None:
                    return
                evidence = self._evidence(result)
                attention = self.validation.attention_snapshot(self.model)
        except Exception:
            self._save()  # a failing validation must not lose the steps
            raise
        seconds = time.perf_counter() - started
        self._num_validations += 1
        self._validation_seconds += seconds
        yield self._record_validation(result, attention, seconds)
        yield from self._warn(*run_detectors(evidence))
        yield self._save()
        self._tally.started += time.perf_counter() - started  # so that tokens per second covers updates only

    def _record_validation(
        self, result: ValidationResult, attention: AttentionMap | None, seconds: float
    ) -> Validated:
        record = ValidationRecord(
            self.state.step, result.loss, self._training_loss, result.score_values(), result.signatures()
        )
        self.state.validations.append(record)
        # A model that is worse than guessing is not called the best, even if there is no better one yet.
        is_best = (
            self.state.best(self.settings.stop_on) is record and record.loss <= self.validation.uniform_loss
        )
        numbers = {"loss": result.loss, **result.score_values(), "seconds": round(seconds, 2)}
        snapshot = snapshot_to_json(result.samples, attention)
        self.files.metrics.write("validation", self.state.step, {**numbers, **snapshot})
        return Validated(
            self.state.step, result.loss, result.score_values(), result.samples, is_best, seconds
        )

    def _evidence(self, result: ValidationResult) -> Evidence:
        evidence = Evidence(
            step=self.state.step,
            steps=self.plan.steps,
            warmup_steps=self.settings.warmup_steps,
            validations=tuple(self.state.validations),
            validation_loss=result.loss,
            training_loss=self._training_loss,
            hypotheses=result.hypotheses,
            references=result.references,
            uniform_loss=self.validation.uniform_loss,
            unigram_entropy=self.validation.unigram_entropy,
            byte_token_share=self.validation.byte_token_share,
        )
        return (
            replace(evidence, flatness=self.validation.flatness(self.model)) if evidence.is_late else evidence
        )

    @contextmanager
    def _moving_average_loaded(self) -> Iterator[None]:
        """Within this block the model has the moving average as its weights, if there is one."""
        if self.moving_average is None:
            yield
            return
        weights = _copy(module_weights(self.model))
        load_module_weights(self.model, self.moving_average)
        try:
            yield
        finally:
            load_module_weights(self.model, weights)

    # --- saving ---

    def _save(self) -> Saved:
        self.state.seconds = self.seconds
        self._saved_at = time.perf_counter()
        path = save_checkpoint(
            self.files.checkpoints,
            Checkpoint(
                step=self.state.step,
                weights=module_weights(self.model),
                optimiser=self.group.optimiser_tensors(),
                moving_average=self.moving_average,
                state=self.state.to_json(metrics_length=self.files.metrics.length()),
            ),
        )
        self.remove_old_checkpoints()
        return Saved(path, self.state.step)

    def remove_old_checkpoints(self) -> None:
        """Remove checkpoints that are no longer needed, and temporary files that a killed process left."""
        remove_old_checkpoints(self.files.checkpoints, needed=self.state.needed_steps(self.settings))
        remove_leftovers(self.files.checkpoints)


def _copy(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in weights.items()}
