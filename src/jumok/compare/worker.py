"""One contender's turn: train, translate the test set, look at one sentence. Runs in a process of its own.

A process of its own has a memory peak of its own, and its speed does not depend on what ran before it. It
talks to its parent through a pipe: a `Task` comes in, events and at most one error go out.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from jumok.compare.outcome import Outcome, outcome_key, peak_memory, write_memory, write_outcome
from jumok.decoding import load
from jumok.errors import JumokError
from jumok.evaluation import align_and_score
from jumok.training import Finished, Stage, Started, training_events

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from jumok.compare.split import Split
    from jumok.recipe import Recipe, SearchSettings
    from jumok.training import Event

__all__ = ["Task", "main", "run_task"]

WARM_UP = 8


@dataclass(frozen=True, slots=True)
class Task:
    """What a contender is to do. Without `search` it translates with the search of its own recipe."""

    name: str
    folder: Path
    recipe: Recipe
    split: Split
    sentence: str
    search: SearchSettings | None = None

    def key(self, own: SearchSettings) -> str:
        return outcome_key(self.split.fingerprint, self.sentence, self.search or own)


def main() -> None:
    """The process: `python -c "from jumok.compare.child import main; main()" DESCRIPTOR`."""
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    with connection:
        task: Task = connection.recv()
        try:
            for event in run_task(task):
                connection.send(event)
        except JumokError as error:
            connection.send(error)
        except BrokenPipeError:
            return  # the parent is gone; what was saved can be continued


def run_task(task: Task) -> Iterator[Event]:
    """Train or continue, and unless that was interrupted, translate."""
    finished = yield from _train(task)
    if finished is not None and finished.model_folder is not None:
        yield _translate(task, finished)


def _train(task: Task) -> Generator[Event, None, Finished | None]:
    finished: Finished | None = None
    processes, split = 1, task.split
    for event in training_events(
        split.training_files(), out=task.folder, valid=[str(split.valid)], recipe=task.recipe
    ):
        yield event
        finished = event if isinstance(event, Finished) else None
        processes = event.recipe.training.processes if isinstance(event, Started) else processes
    if finished is not None and finished.reason != "already finished":
        write_memory(task.folder, peak_memory(processes))
    return finished


def _translate(task: Task, finished: Finished) -> Stage:
    translator = load(task.folder / "model")
    key = task.key(translator.search)
    translator.search = task.search or translator.search
    pairs = task.split.test_pairs()
    sources = [pair.source for pair in pairs]
    translator.translate(sources[:WARM_UP])  # what is set up once is not counted
    started = time.perf_counter()
    translated = translator.translate(sources)
    seconds = time.perf_counter() - started
    [looked_at] = translator.translate([task.sentence])
    attention = None
    if translator.model.looks_at_source:
        attention = translator.word_attention(task.sentence, looked_at.text)
    aligned = align_and_score(translator, pairs)
    outcome = Outcome(
        key=key,
        translations=tuple(translation.text for translation in translated),
        seconds=seconds,
        pieces=sum(len(translation.pieces) for translation in translated),
        alignment_error=None if aligned is None else aligned.error,
        parameters=sum(weight.numel() for weight in translator.model.parameters()),
        steps=finished.steps,
        training_seconds=finished.seconds,
        sentence_translation=looked_at.text,
        attention=attention,
    )
    write_outcome(task.folder, outcome)
    return Stage("translating", f"{len(pairs):,} test sentences, {outcome.pieces:,} pieces", seconds)
