"""The race: one contender after the other, each in a process of its own, and each only as far as is left.

    for event in race(contenders, split, out=Path("runs/compare"), sentence="I go home."):
        ...

What must be equal (`contenders.EQUAL`) is derived for the first contender and handed to the others. A
contender that is finished is passed over, one that was interrupted continues.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any

from jumok.compare.child import Task
from jumok.compare.contenders import equalised
from jumok.compare.outcome import read_outcome
from jumok.errors import JumokError, TrainingError
from jumok.processes import python_command
from jumok.recipe import make_recipe
from jumok.training.folder import RunFolder
from jumok.training.signals import watch_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

    from jumok.compare.contenders import Contender
    from jumok.compare.split import Split
    from jumok.recipe import Recipe
    from jumok.training import Event

__all__ = ["Entered", "Interrupted", "race"]

CHILD = "from jumok.compare.child import main; main()"
SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True, slots=True)
class Entered:
    """A contender's turn has come. `finished`: an earlier call has left nothing to do."""

    name: str
    number: int
    count: int
    finished: bool


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Somebody asked to stop, and everything is saved; the same call continues."""

    name: str


def race(
    contenders: Sequence[Contender], split: Split, *, out: Path, sentence: str
) -> Iterator[Event | Entered | Interrupted]:
    """Train every contender and translate the test set. The events of training come between."""
    first: Recipe | None = None
    with watch_signals() as interrupted:
        for number, contender in enumerate(contenders, start=1):
            task = _task(contender, first, split, out, sentence)
            finished = _is_finished(task)
            yield Entered(contender.name, number, len(contenders), finished)
            if not finished and not interrupted():
                yield from _events(task, interrupted)
                finished = _is_finished(task)
            if interrupted() or not finished:
                yield Interrupted(contender.name)
                return
            record = RunFolder(task.folder).record()
            first = first or (record.recipe if record else None)


def _task(contender: Contender, first: Recipe | None, split: Split, out: Path, sentence: str) -> Task:
    recipe = contender.recipe if first is None else equalised(contender.recipe, first)
    languages = {
        "languages.source": split.source_language or None,
        "languages.target": split.target_language or None,
    }
    return Task(
        name=contender.name,
        folder=out / contender.name,
        recipe=make_recipe(recipe.model_dump(exclude_unset=True), **languages),
        split=split,
        sentence=sentence,
        search=None if first is None else first.search,
    )


def _is_finished(task: Task) -> bool:
    """Whether the model is there, with the settings that are asked for, and has translated all this."""
    folder = RunFolder(task.folder)
    record = folder.record() if folder.record_file.exists() else None
    if record is None or not folder.model.exists():
        return False
    folder.refuse_other_settings(task.recipe, record)
    outcome = read_outcome(task.folder)
    return outcome is not None and outcome.key == task.key(record.recipe.search)


def _events(task: Task, interrupted: Callable[[], bool]) -> Iterator[Event]:
    """Start the process and hand on what it says.

    It gets a process group of its own: Ctrl-C then reaches this process alone, which asks the child once to
    save and leave. Asked by both, the child would take the second time as an order to leave at once.
    """
    ours, theirs = Pipe()
    with ours:
        with theirs:
            process = subprocess.Popen(
                python_command(CHILD, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,
            )
        try:
            ours.send(task)
            yield from _received(ours, process, task.name, interrupted)
            code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    if code and not interrupted():
        raise TrainingError(_ended(task.name, code))


def _received(
    connection: Connection[Any, Any],
    process: subprocess.Popen[bytes],
    name: str,
    interrupted: Callable[[], bool],
) -> Iterator[Event]:
    asked = False
    while True:
        if interrupted() and not asked:
            asked = True
            process.terminate()
        try:
            message = connection.recv() if connection.poll(SECONDS_BETWEEN_LOOKS) else None
        except (EOFError, ConnectionResetError):
            return
        if isinstance(message, JumokError):
            raise type(message)(f'The contender "{name}" could not go on. {message}')
        if message is not None:
            yield message


def _ended(name: str, code: int) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    memory = " That is often a lack of memory: choose a smaller --size." if code == -9 else ""
    return (
        f'The process of the contender "{name}" {how}.{memory} What was saved is intact: the same command '
        "continues."
    )
