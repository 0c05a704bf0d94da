"""Training: settings from the corpus, a loop that can be killed at any moment, events to follow it."""

from jumok.training.events import (
    Event,
    Finished,
    Progress,
    Sample,
    Saved,
    Stage,
    StageStarted,
    Started,
    Validated,
    Warned,
)
from jumok.training.run.training_run import finish_events, train, training_events

__all__ = [
    "Event",
    "Finished",
    "Progress",
    "Sample",
    "Saved",
    "Stage",
    "StageStarted",
    "Started",
    "Validated",
    "Warned",
    "finish_events",
    "train",
    "training_events",
]
