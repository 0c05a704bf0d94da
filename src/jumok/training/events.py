"""The events of a training run. They come in the order of this pattern, which leaves out `StageStarted`:

    StageDone*  Warned*  Started  (Progress | Validated | Saved | Warned)*  StageDone*  Finished

A `StageStarted` comes when a validation begins, or a stage that may take a while. A `StageDone` comes when a
stage is done. The last stage is the finish. A run that is interrupted before the finish sends no event of the
finish. A run that is interrupted during the finish sends the `StageStarted` of the finish, but not its
`StageDone`. A warning may come during the finish too.

- `jumok finish` trains no further: there is no `Started`.
- A run that was interrupted may continue with a larger limit. If the old plan has an end, the run first
  completes this plan; then a second `Started` begins the next phase.
- For a run that was finished before and gets no larger limit, `Finished` is the only event.

A terminal, a notebook and a test iterate over the same events. This module does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jumok.config.recipe import Recipe
    from jumok.config.resolve import DerivedSetting


@dataclass(frozen=True, slots=True)
class StageStarted:
    """A stage that may take a while begins, such as reading, encoding, validating or finishing."""

    name: str


@dataclass(frozen=True, slots=True)
class StageDone:
    """A stage is done, such as reading, learning vocabulary, encoding, measuring or finishing."""

    name: str
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Started:
    """All settings are decided, and training begins or continues. Each derived setting has its reason.

    `resumed_from` is the step of the checkpoint from which this session continues. It is 0 if earlier
    sessions have prepared the run but written no checkpoint, and None if this session has prepared it.
    `steps` is None if no end is planned. `pairs` counts the pairs to train on, replayed ones included.
    """

    recipe: Recipe
    derived_settings: tuple[DerivedSetting, ...]
    parameters: int
    pairs: int
    validation_pairs: int
    steps: int | None
    resumed_from: int | None


@dataclass(frozen=True, slots=True)
class Progress:
    """A report on the updates since the last report.

    `loss` is the loss per token with label smoothing. `perplexity` is computed without label smoothing.

    `gradient_norm` is that of the last update that was not skipped. `loss`, `perplexity` and `gradient_norm`
    are NaN if every update since the last report was skipped.
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
    """A validation sentence, its reference, and the model's current translation."""

    source: str
    reference: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class Validated:
    """The result of a validation. `loss` is the negative log-likelihood per token.

    `best` is true if this is the best validation so far and the model is not worse than guessing.
    """

    step: int
    loss: float
    scores: Mapping[str, float]
    samples: tuple[Sample, ...]
    best: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint was written."""

    path: Path
    step: int


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning: what looks wrong, and what the user can do about it."""

    message: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The run has ended or was interrupted. The same command continues an interrupted run.

    `model_folder` is the folder of the finished model. If the run was interrupted, it is the folder of the
    best model so far, or None before the first validation. The reason "stopped" means that `jumok finish`
    ended the run before its planned end.
    """

    reason: Literal["done", "patience", "stopped", "interrupted", "already finished"]
    model_folder: Path | None
    steps: int
    seconds: float
    scores: Mapping[str, float] = field(default_factory=dict)


Event = StageStarted | StageDone | Started | Progress | Validated | Saved | Warned | Finished
