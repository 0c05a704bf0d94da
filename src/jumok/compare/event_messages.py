"""Training events as JSON messages, for the pipe between a comparison and its workers."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.config.recipe import make_recipe
from jumok.config.resolve import DerivedSetting
from jumok.training.events import (
    Finished,
    Progress,
    Sample,
    Saved,
    StageDone,
    StageStarted,
    Started,
    Validated,
    Warned,
)

if TYPE_CHECKING:
    from jumok.system.messages import Message
    from jumok.training.events import Event

EVENTS: dict[str, type[Event]] = {
    event.__name__: event
    for event in (StageStarted, StageDone, Started, Progress, Validated, Saved, Warned, Finished)
}


def event_to_message(event: Event) -> Message:
    """Return the name of the event's class as "event", and the fields of the event as JSON values."""
    values: dict[str, Any] = {field.name: getattr(event, field.name) for field in fields(event)}
    match event:
        case Started():
            values["recipe"] = event.recipe.model_dump(mode="json")
            values["derived_settings"] = [asdict(setting) for setting in event.derived_settings]
        case Validated():
            values["samples"] = [asdict(sample) for sample in event.samples]
            values["scores"] = dict(event.scores)
        case Saved():
            values["path"] = str(event.path)
        case Finished():
            values["model_folder"] = None if event.model_folder is None else str(event.model_folder)
            values["scores"] = dict(event.scores)
    return {"event": type(event).__name__, **values}


def event_from_message(message: Message) -> Event:
    """Return the event that `event_to_message` has turned into this message."""
    values = {name: value for name, value in message.items() if name != "event"}
    match message["event"]:
        case "Started":
            values["recipe"] = make_recipe(values["recipe"])
            settings = values["derived_settings"]
            values["derived_settings"] = tuple(DerivedSetting(**setting) for setting in settings)
        case "Validated":
            values["samples"] = tuple(Sample(**sample) for sample in values["samples"])
        case "Saved":
            values["path"] = Path(values["path"])
        case "Finished":
            values["model_folder"] = None if values["model_folder"] is None else Path(values["model_folder"])
    return EVENTS[message["event"]](**values)
