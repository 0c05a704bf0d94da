"""The process of one system: it trains, translates the test set, and records the attention of one sentence.

Each system has its own process, so that its memory peak and its speed do not depend on the systems before it.
Standard input brings one message, the task. Standard output carries one message per event and at most one
error (`jumok.system.messages`).
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.compare.event_messages import event_to_message
from jumok.compare.split import Split
from jumok.compare.system_result import (
    SystemResult,
    peak_memory,
    result_key,
    write_peak_memory,
    write_system_result,
)
from jumok.config.recipe import SearchSettings
from jumok.config.resolve import Overrides
from jumok.errors import JumokError
from jumok.evaluation.translator_scores import align_and_score
from jumok.inference.loading import load
from jumok.system.messages import pack_message, read_message
from jumok.training.events import Finished, StageDone, Started
from jumok.training.run.training_run import training_events

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from jumok.system.messages import Message
    from jumok.training.events import Event

WARM_UP_SENTENCES = 8


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a worker: to train one system and to translate the test set with it.

    `search` is the search of the first system, so that all systems search alike. It is None for the first
    system itself, which searches as its own recipe says.
    """

    name: str
    folder: Path
    overrides: Overrides
    split: Split
    sentence: str
    search: SearchSettings | None = None

    def key(self, recipe_search: SearchSettings) -> str:
        """Return the `result_key` of this task.

        `recipe_search`, the search in the recipe of the trained model, counts if the task has no search.
        """
        return result_key(self.split.fingerprint, self.sentence, self.search or recipe_search)

    def to_message(self) -> Message:
        return {
            "name": self.name,
            "folder": str(self.folder),
            "overrides": dict(self.overrides),
            "split": {**asdict(self.split), "folder": str(self.split.folder)},
            "sentence": self.sentence,
            "search": None if self.search is None else self.search.model_dump(mode="json"),
        }

    @classmethod
    def from_message(cls, message: Message) -> Task:
        split, search = message["split"], message["search"]
        train = tuple((name, weight) for name, weight in split["train"])
        return cls(
            name=message["name"],
            folder=Path(message["folder"]),
            overrides=Overrides.from_settings(**message["overrides"]),
            split=Split(**{**split, "folder": Path(split["folder"]), "train": train}),
            sentence=message["sentence"],
            search=None if search is None else SearchSettings(**search),
        )


def worker_main() -> None:
    """Run as a worker of `runner.py`: read a task from standard input, write messages to standard output."""
    # BrokenPipeError: the parent has ended. The next `jumok compare` continues from the last checkpoint.
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # text that libraries print goes to standard error, not between the messages

        def send(message: Message) -> None:
            output.write(pack_message(message))
            output.flush()

        task = read_message(sys.stdin.buffer)
        if task is None:
            return
        try:
            for event in run_task(Task.from_message(task)):
                send(event_to_message(event))
        except JumokError as error:
            send({"error": type(error).__name__, "message": str(error)})


def run_task(task: Task) -> Iterator[Event]:
    """Train or continue training. If the training was not interrupted, translate the test set."""
    finished = yield from _train(task)
    if finished is not None and finished.reason != "interrupted":
        yield _translate(task, finished)


def _train(task: Task) -> Generator[Event, None, Finished | None]:
    finished: Finished | None = None
    num_processes, split = 1, task.split
    for event in training_events(
        split.training_files(), out=task.folder, valid=[str(split.valid)], recipe=task.overrides
    ):
        yield event
        finished = event if isinstance(event, Finished) else None
        if isinstance(event, Started):
            num_processes = event.recipe.training.processes
    if finished is not None and finished.reason != "already finished":
        with suppress(ImportError):  # Windows does not report the peak memory
            write_peak_memory(task.folder, peak_memory(num_processes))
    return finished


def _translate(task: Task, finished: Finished) -> StageDone:
    translator = load(task.folder / "model", engine="torch")
    key = task.key(translator.search)
    translator.search = task.search or translator.search
    pairs = task.split.test_pairs()
    sources = [pair.source for pair in pairs]
    translator.translate(sources[:WARM_UP_SENTENCES])  # excludes one-time set-up from the measured time
    started = time.perf_counter()
    translations = translator.translate(sources, sentences=translator.sentences_for_scores, protect=False)
    seconds = time.perf_counter() - started
    [sentence_translation] = translator.translate([task.sentence])
    attention = None
    if translator.model.has_cross_attention and not translator.reads_pictures:  # the report draws words only
        attention = translator.word_attention(task.sentence, sentence_translation.text)
    alignment_scores = align_and_score(translator, pairs)
    result = SystemResult(
        key=key,
        translations=tuple(translation.text for translation in translations),
        translation_seconds=seconds,
        output_tokens=sum(len(translation.tokens) for translation in translations),
        alignment_error=None if alignment_scores is None else alignment_scores.error,
        parameters=sum(weight.numel() for weight in translator.model.parameters()),
        steps=finished.steps,
        training_seconds=finished.seconds,
        sentence_translation=sentence_translation.text,
        attention=attention,
    )
    write_system_result(task.folder, result)
    return StageDone(
        "translating", f"{len(pairs):,} test sentences, {result.output_tokens:,} tokens", seconds
    )
