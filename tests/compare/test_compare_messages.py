"""Tasks, training events and errors on the pipe between a comparison and its workers."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import get_args

import pytest

from jumok.compare.event_messages import EVENTS, event_from_message, event_to_message
from jumok.compare.runner import ERRORS, _rebuild_error
from jumok.compare.split import Split
from jumok.compare.worker import Task
from jumok.config.recipe import SearchSettings
from jumok.config.resolve import DerivedSetting, Overrides
from jumok.errors import JumokError, UnsupportedError
from jumok.system.messages import pack_message, read_message
from jumok.training.events import (
    Event,
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

OVERRIDES = Overrides.from_settings(
    {
        "model": {"family": "recurrent", "attention": {"kind": "bahdanau", "units": 8}},
        "training": {"steps": 3},
    }
)
RECIPE = OVERRIDES.with_defaults()
DERIVED = (
    DerivedSetting("model.dropout", 0.1, "few pairs"),
    DerivedSetting("text.vocab_size", 4000, "small"),
)
SAMPLES = (Sample("I go.", "나는 간다.", "나는 온다."),)


def started_event(*, derived_settings=(), steps=None, resumed_from=None):
    return Started(
        recipe=RECIPE,
        derived_settings=derived_settings,
        parameters=1234,
        pairs=60,
        validation_pairs=6,
        steps=steps,
        resumed_from=resumed_from,
    )


def through_the_pipe(message):
    return read_message(io.BytesIO(pack_message(message)))


@pytest.mark.parametrize(
    "event",
    [
        StageStarted("reading"),
        StageDone("reading", "60 pairs", 0.5),
        started_event(derived_settings=DERIVED),
        started_event(steps=3, resumed_from=2),
        Progress(
            step=2,
            steps=3,
            loss=1.5,
            perplexity=4.5,
            learning_rate=1e-3,
            tokens_per_second=100.0,
            gradient_norm=0.7,
            seconds_left=None,
        ),
        Validated(step=2, loss=1.5, scores={"bleu": 3.0}, samples=SAMPLES, best=True, seconds=0.25),
        Saved(Path("runs/x/checkpoints/step-2"), 2),
        Warned("the loss is NaN", "lower the learning rate"),
        Finished("done", Path("runs/x/model"), 3, 1.5, {"bleu": 3.0}),
        Finished("interrupted", None, 3, 1.5),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_arrives_unchanged(event):
    assert event_from_message(through_the_pipe(event_to_message(event))) == event


def test_there_is_a_message_for_every_kind_of_event():
    assert set(EVENTS.values()) == set(get_args(Event))


@pytest.mark.parametrize("search", [None, SearchSettings(beam=2, length_penalty=0.6)])
def test_a_task_arrives_unchanged(search):
    split = Split(Path("out/data"), (("train.tsv", 1.0), ("train-2.tsv", 2.5)), "en", "ko", "f00")
    task = Task("recurrent", Path("out/recurrent"), OVERRIDES, split, "나는 간다.", search)
    received_task = Task.from_message(through_the_pipe(task.to_message()))
    assert received_task == task
    assert received_task.key(RECIPE.search) == task.key(RECIPE.search)
    assert dict(received_task.overrides) == dict(OVERRIDES)


def test_a_folder_name_that_is_not_utf8_arrives_unchanged():
    folder = Path(os.fsdecode(b"mod\xe8le"))
    split = Split(folder / "data", (("train.tsv", 1.0),), "en", "ko", "f00")
    task = Task("recurrent", folder / "recurrent", OVERRIDES, split, "I go.")
    assert Task.from_message(through_the_pipe(task.to_message())) == task


def test_an_error_keeps_its_class_and_names_the_system():
    error = _rebuild_error("big", {"error": "UnsupportedError", "message": "no."})
    assert type(error) is UnsupportedError
    assert str(error) == 'The system "big" failed. no.'


def test_every_error_of_jumok_is_known_to_the_runner():
    def subclasses(kind):
        return {kind, *(descendant for child in kind.__subclasses__() for descendant in subclasses(child))}

    public = {kind for kind in subclasses(JumokError) if kind.__module__ == "jumok.errors"}
    assert set(ERRORS.values()) == public - {JumokError}
