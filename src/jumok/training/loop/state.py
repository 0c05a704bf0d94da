"""What `state.json` of a checkpoint stores: the state of a run without its weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.config.recipe import TrainingSettings

USELESS_RATIO = 4.0
"""The weights are useless if the validation loss is above this multiple of the uniform loss. The ratio is
higher than `DIVERGED_RATIO` (detectors.py), because the loss of a model that overfits a tiny corpus may be
several times the uniform loss: the model is confidently wrong on the validation set."""


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """The numbers of one validation."""

    step: int
    loss: float
    training_loss: float
    scores: Mapping[str, float]
    signatures: Mapping[str, str] = field(default_factory=dict)  # by name of the score; empty if not known

    def quality(self, stop_on: str, uniform_loss: float = math.inf) -> tuple[float, float]:
        """Return a sort key, which is higher for a better validation.

        The score `stop_on` is compared first, and among equal scores the loss. If `stop_on` is "loss", only
        the loss is compared. Two kinds of validations rank below all others, whatever their score: those of
        useless weights (`USELESS_RATIO`) and, at the very end, those whose loss is not finite.
        """
        if not math.isfinite(self.loss):
            return (-math.inf, -math.inf)
        if self.loss > USELESS_RATIO * uniform_loss:
            return (-math.inf, -self.loss)
        return (-self.loss if stop_on == "loss" else self.scores[stop_on], -self.loss)


@dataclass(slots=True)
class RunState:
    """The step, the time spent, the skipped updates and all validations so far. The trainer changes it."""

    step: int = 0
    seconds: float = 0.0
    num_skipped: int = 0
    num_skipped_in_a_row: int = 0
    validations: list[ValidationRecord] = field(default_factory=list)
    warned_kinds: list[str] = field(default_factory=list)  # kinds of reported findings (detectors.py)
    uniform_loss: float = math.inf  # of equal probabilities for all tokens; not stored, the trainer sets it

    def to_json(self, *, metrics_length: int) -> dict[str, Any]:
        """Return the state for a checkpoint, with the length of the metrics file in bytes."""
        return {
            "seconds": self.seconds,
            "skipped": self.num_skipped,
            "skipped_in_a_row": self.num_skipped_in_a_row,
            "warned": self.warned_kinds,
            "metrics_length": metrics_length,
            "validations": [
                {
                    "step": record.step,
                    "loss": record.loss,
                    "training_loss": record.training_loss,
                    "scores": dict(record.scores),
                    "signatures": dict(record.signatures),
                }
                for record in self.validations
            ],
        }

    @classmethod
    def from_json(cls, step: int, content: Mapping[str, Any], *, uniform_loss: float = math.inf) -> RunState:
        return cls(
            step=step,
            uniform_loss=uniform_loss,
            seconds=content["seconds"],
            num_skipped=content["skipped"],
            num_skipped_in_a_row=content["skipped_in_a_row"],
            warned_kinds=list(content["warned"]),
            validations=[ValidationRecord(**record) for record in content["validations"]],
        )

    def has_validation(self, step: int) -> bool:
        return any(record.step == step for record in self.validations)

    def best(self, stop_on: str) -> ValidationRecord | None:
        """Return the best validation; among equals, the first."""
        return next(iter(self.ranked(stop_on)), None)

    def ranked(self, stop_on: str) -> list[ValidationRecord]:
        """Return all validations, best first."""
        return sorted(self.validations, key=lambda record: self._quality(record, stop_on), reverse=True)

    def is_better(self, candidate: ValidationRecord, best: ValidationRecord, stop_on: str) -> bool:
        return self._quality(candidate, stop_on) > self._quality(best, stop_on)

    def _quality(self, record: ValidationRecord, stop_on: str) -> tuple[float, float]:
        return record.quality(stop_on, self.uniform_loss)

    def out_of_patience(self, settings: TrainingSettings, *, since: int = 0) -> bool:
        """Whether the last `patience` validations, all after step `since`, brought no improvement.

        A patience of 0 never runs out.
        """
        best = self.best(settings.stop_on)
        if best is None or settings.patience == 0:
            return False
        start = max(best.step, since)
        return sum(record.step > start for record in self.validations) >= settings.patience

    def needed_steps(self, settings: TrainingSettings) -> set[int]:
        """Return the steps of the checkpoints that the finish needs: the best one, and those to average."""
        best = self.best(settings.stop_on)
        last = [record.step for record in self.validations[-settings.average_checkpoints :]]
        return {*last, *([best.step] if best else [])}
