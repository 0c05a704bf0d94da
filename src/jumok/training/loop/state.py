"""Where a run stands, as far as it is not weights: what `state.json` of a checkpoint holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.recipe import TrainingSettings

__all__ = ["RunState", "ValidationRecord", "better"]


@dataclass(frozen=True, slots=True)
class ValidationRecord:
    """One validation, as it is remembered."""

    step: int
    loss: float
    training_loss: float
    scores: Mapping[str, float]

    def quality(self, stop_on: str) -> tuple[float, float]:
        """What decides, turned so that more is better: the score, and of equal scores the loss.

        A loss that is not finite is worse than any other, whatever the model happened to say.
        """
        if not math.isfinite(self.loss):
            return (-math.inf, -math.inf)
        return (-self.loss if stop_on == "loss" else self.scores[stop_on], -self.loss)


@dataclass(slots=True)
class RunState:
    """The step, the time spent, the updates left out, every validation so far. It changes as the run goes."""

    step: int = 0
    seconds: float = 0.0
    skipped: int = 0
    skipped_in_a_row: int = 0
    validations: list[ValidationRecord] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    def to_json(self, *, metrics_length: int) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "skipped": self.skipped,
            "skipped_in_a_row": self.skipped_in_a_row,
            "warned": self.warned,
            "metrics_length": metrics_length,
            "validations": [
                {
                    "step": record.step,
                    "loss": record.loss,
                    "training_loss": record.training_loss,
                    "scores": dict(record.scores),
                }
                for record in self.validations
            ],
        }

    @classmethod
    def from_json(cls, step: int, content: Mapping[str, Any]) -> RunState:
        return cls(
            step=step,
            seconds=content["seconds"],
            skipped=content["skipped"],
            skipped_in_a_row=content["skipped_in_a_row"],
            warned=list(content["warned"]),
            validations=[ValidationRecord(**record) for record in content["validations"]],
        )

    def validated(self, step: int) -> bool:
        return any(record.step == step for record in self.validations)

    def best(self, stop_on: str) -> ValidationRecord | None:
        """The best validation; of equal ones, the first."""
        return next(iter(self.ranked(stop_on)), None)

    def ranked(self, stop_on: str) -> list[ValidationRecord]:
        """All validations, the best first."""
        return sorted(self.validations, key=lambda record: record.quality(stop_on), reverse=True)

    def out_of_patience(self, settings: TrainingSettings) -> bool:
        """Whether the last validations, as many as the patience, brought nothing better."""
        best = self.best(settings.stop_on)
        if best is None or settings.patience == 0:
            return False
        return sum(record.step > best.step for record in self.validations) >= settings.patience

    def needed_steps(self, settings: TrainingSettings) -> set[int]:
        """The checkpoints that the end of the run will ask for: the best, and those to be averaged."""
        best = self.best(settings.stop_on)
        last = [record.step for record in self.validations[-settings.average :]]
        return {*last, *([best.step] if best else [])}


def better(one: ValidationRecord, other: ValidationRecord, stop_on: str) -> bool:
    return one.quality(stop_on) > other.quality(stop_on)
