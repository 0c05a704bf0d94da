"""Run a comparison: one system after the other, each in its own process.

    for event in run_comparison(systems, split, out=Path("runs/compare"), sentence="I go home."):
        ...

The settings that should be equal (`systems.SHARED_SETTINGS`) are decided for the first system and passed to
the others, unless their recipes set them. All systems translate with the search of the first system. A
finished system is skipped; an interrupted one continues.
"""

from __future__ import annotations

import queue
import subprocess
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

from jumok.compare.event_messages import event_from_message
from jumok.compare.system_result import read_system_result
from jumok.compare.systems import with_shared_settings
from jumok.compare.worker import Task
from jumok.errors import (
    DataError,
    JumokError,
    ModelFolderError,
    RecipeError,
    RunFolderError,
    StorageError,
    TrainingError,
    UnsupportedError,
)
from jumok.system.messages import pack_message, read_message
from jumok.system.processes import python_command
from jumok.system.signals import stop_on_signals
from jumok.training.run.more_training import requested_limits
from jumok.training.run.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import IO

    from jumok.compare.split import Split
    from jumok.compare.systems import System
    from jumok.config.recipe import Recipe
    from jumok.system.messages import Message
    from jumok.training.events import Event

WORKER_CODE = "from jumok.compare.worker import worker_main; worker_main()"
POLL_SECONDS = 0.2
ERRORS: dict[str, type[JumokError]] = {
    kind.__name__: kind
    for kind in (
        DataError,
        ModelFolderError,
        RecipeError,
        RunFolderError,
        StorageError,
        TrainingError,
        UnsupportedError,
    )
}


@dataclass(frozen=True, slots=True)
class SystemStarted:
    """The turn of system `number` of `count` begins.

    `already_finished` is true if an earlier call has finished this system, which is then skipped.
    """

    name: str
    number: int
    count: int
    already_finished: bool


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A signal has stopped the comparison. Everything is saved; the same call continues the comparison."""

    name: str


def run_comparison(
    systems: Sequence[System], split: Split, *, out: Path, sentence: str
) -> Iterator[Event | SystemStarted | Interrupted]:
    """Train every system and translate the test set with it. Yield the training events of each system."""
    first_recipe: Recipe | None = None
    with stop_on_signals() as is_interrupted:
        for number, system in enumerate(systems, start=1):
            task = _make_task(system, first_recipe, split, out, sentence)
            finished = _is_finished(task)
            yield SystemStarted(system.name, number, len(systems), finished)
            if not finished and not is_interrupted():
                yield from _run_worker(task, is_interrupted)
                finished = _is_finished(task)
            if is_interrupted() or not finished:
                yield Interrupted(system.name)
                return
            record = RunFolder(task.folder).record()
            first_recipe = first_recipe or (record.recipe if record else None)


def _make_task(system: System, first_recipe: Recipe | None, split: Split, out: Path, sentence: str) -> Task:
    overrides = system.overrides
    if first_recipe is not None:
        overrides = with_shared_settings(overrides, first_recipe)
    languages = {
        "languages.source": split.source_language or None,
        "languages.target": split.target_language or None,
    }
    return Task(
        name=system.name,
        folder=out / system.name,
        overrides=overrides.updated(languages),
        split=split,
        sentence=sentence,
        search=None if first_recipe is None else first_recipe.search,
    )


def _is_finished(task: Task) -> bool:
    """Whether the system is trained and has translated the test set for this task.

    Raise if the run folder holds a run with other settings.
    """
    folder = RunFolder(task.folder)
    record = folder.record() if folder.record_file.exists() else None
    if record is None or not folder.is_finished(record):
        return False
    folder.check_same_settings(task.overrides, record)
    if requested_limits(task.overrides, record) is not None:  # the system is to be trained further
        return False
    result = read_system_result(task.folder)
    return result is not None and result.key == task.key(record.recipe.search)


def _run_worker(task: Task, is_interrupted: Callable[[], bool]) -> Iterator[Event]:
    """Run the task in a new process and yield its events.

    The worker has its own process group, so Ctrl-C reaches only this process. This process then sends one
    SIGTERM, and the worker saves and stops. A second signal would stop the worker before it has saved.
    """
    with subprocess.Popen(
        python_command(WORKER_CODE), stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as process:
        try:
            _send_task(process, task)
            yield from _events(process, task.name, is_interrupted)
            exit_code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
    if exit_code and not is_interrupted():
        raise TrainingError(_describe_exit(task.name, exit_code))


def _send_task(process: subprocess.Popen[bytes], task: Task) -> None:
    if process.stdin is None:
        raise ValueError("the worker was started without a pipe for its task")
    try:
        process.stdin.write(pack_message(task.to_message()))
        process.stdin.close()
    except BrokenPipeError:
        pass  # the worker ended before it read the task; its exit code says why


def _events(
    process: subprocess.Popen[bytes], name: str, is_interrupted: Callable[[], bool]
) -> Iterator[Event]:
    messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
    # A thread reads the pipe, because a read cannot time out, and this loop must notice a signal while the
    # worker sends nothing.
    Thread(target=_read_messages, args=(process.stdout, messages), daemon=True).start()
    is_terminated = False
    while True:
        if is_interrupted() and not is_terminated:
            is_terminated = True
            process.terminate()
        try:
            message = messages.get(timeout=POLL_SECONDS)
        except queue.Empty:
            continue
        if message is None:
            return
        if "error" in message:
            raise _rebuild_error(name, message)
        yield event_from_message(message)


def _read_messages(stream: IO[bytes], messages: queue.SimpleQueue[Message | None]) -> None:
    """Put every message of the worker into the queue, then None."""
    try:
        while (message := read_message(stream)) is not None:
            messages.put(message)
    finally:
        messages.put(None)


def _rebuild_error(name: str, message: Message) -> JumokError:
    kind = ERRORS.get(message["error"], JumokError)
    return kind(f'The system "{name}" failed. {message["message"]}')


def _describe_exit(name: str, exit_code: int) -> str:
    reason = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
    memory_hint = (
        " Often that means that memory ran out: end other programs first, or compare smaller models (--size) "
        "in another folder."
        if exit_code == -9
        else ""
    )
    return (
        f'The process of the system "{name}" {reason}. All checkpoints are intact: the same command '
        f"continues.{memory_hint}"
    )
