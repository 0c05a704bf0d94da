"""What a training run tells whoever drives it.

    Stage*  Started  (Progress | Validated | Saved | Warned)*  Finished

A terminal, a notebook and a test iterate over the same events. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jumok.recipe import Recipe
    from jumok.training.derive import Reason

__all__ = ["Event", "Finished", "Progress", "Sample", "Saved", "Stage", "Started", "Validated", "Warned"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the preparation is done: reading, learning pieces, encoding, measuring."""

    name: str
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Started:
    """Everything is decided: the first update comes next. `reasons` say why for each derived setting."""

    recipe: Recipe
    reasons: tuple[Reason, ...]
    parameters: int
    pairs: int
    validation_pairs: int
    steps: int | None
    resumed_from: int | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How it goes. `loss` is the smoothed training loss a piece, `perplexity` that of the right pieces.

    Both, and the norm of the last gradient, are NaN where every update since the last report was left out.
    """

    step: int
    steps: int | None
    loss: float
    perplexity: float
    learning_rate: float
    tokens_per_second: float
    gradient_norm: float
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class Sample:
    """A validation sentence, its reference and what the model says now."""

    source: str
    reference: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class Validated:
    """What the validation set says. `loss` is the negative log-likelihood a piece; `scores` is by name."""

    step: int
    loss: float
    scores: Mapping[str, float]
    samples: tuple[Sample, ...]
    best: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint is on the disk."""

    path: Path
    step: int


@dataclass(frozen=True, slots=True)
class Warned:
    """Something goes wrong or is odd: what was seen, and what to do about it."""

    message: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The end. `model_folder` is None when the run was interrupted; the same command continues it."""

    reason: Literal["done", "patience", "interrupted", "already finished"]
    model_folder: Path | None
    steps: int
    seconds: float
    scores: Mapping[str, float] = field(default_factory=dict)


Event = Stage | Started | Progress | Validated | Saved | Warned | Finished
