"""A process a core, one thread each, on the same updates.

The threads of one process wait for each other at the end of every operation, and a training step is hundreds
of small ones. Processes meet three times an update instead (`update.py` says how they share it).

    team = Team(folder, recipe, …, members=2)      # this process is its first member
    update = team.update(step=1, rate=1e-3)

The others are started as programs of their own, told where the run folder is, and then wait for orders on
their standard input. When that is closed, by the end of this process however it came, they leave.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Self

import torch

from jumok.corpus import open_store
from jumok.errors import TrainingError
from jumok.pages import reuse_pages
from jumok.processes import python_command
from jumok.recipe import make_recipe
from jumok.storage import load_module_weights, module_weights
from jumok.training.folder import RunFolder
from jumok.training.prepared import fresh_model, load_vocabularies, make_batches
from jumok.training.update import Member, Update, nobody_to_meet

if TYPE_CHECKING:
    from typing import IO

    from jumok.corpus import Batches
    from jumok.models import Model
    from jumok.recipe import Recipe

__all__ = ["Team", "take_part"]

ORDER = struct.Struct("<qd")  # step, learning rate
HERE = b"."
MEMBER = "from jumok.training.team import take_part; take_part(sys.stdin.buffer, sys.stdout.buffer)"
SECONDS_TO_LEAVE = 5.0


class Team:
    """The processes that make the updates of a run together; with one member, this process by itself."""

    def __init__(
        self, model: Model, batches: Batches, recipe: Recipe, folder: RunFolder, *, members: int
    ) -> None:
        self.members = members
        self._threads = torch.get_num_threads()
        self._member = Member(model, batches, recipe.training, members=members)
        self.model, self.optimiser = model, self._member.optimiser
        self._others = [self._start(folder, recipe, rank) for rank in range(1, members)]
        self._member.board.release()
        self._awaited = bool(self._others)

    @property
    def pids(self) -> list[int]:
        """The processes of the others."""
        return [process.pid for process in self._others]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, step: int, rate: float) -> Update:
        """Update `step`, counted from 1."""
        if not self._others:
            return self._member.update(step, rate, nobody_to_meet)
        self.await_all()
        torch.set_num_threads(1)
        try:
            self._tell_all(ORDER.pack(step, rate))
            return self._member.update(step, rate, self._meet)
        finally:
            torch.set_num_threads(self._threads)

    def await_all(self) -> None:
        """Return when the others are ready for orders; they take a second or two to start."""
        if self._awaited:
            self._hear_from_all()
            self._awaited = False

    def start_over(self, fresh: Model) -> None:
        """Back to before the first update, with the weights of a fresh model."""
        load_module_weights(self.model, module_weights(fresh))
        self._member.board.forget_state()

    def close(self) -> None:
        """Let the others go."""
        for process in self._others:
            with contextlib.suppress(OSError):
                _pipe(process.stdin).close()
        for process in self._others:
            try:
                process.wait(SECONDS_TO_LEAVE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _pipe(process.stdout).close()
        self._others = []

    def _start(self, folder: RunFolder, recipe: Recipe, rank: int) -> subprocess.Popen[bytes]:
        handle = self._member.board.handle
        process = subprocess.Popen(
            python_command(MEMBER),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[handle],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for the first member, which ends an update before it stops
        )
        task = {
            "folder": str(folder.path),
            "recipe": recipe.model_dump(mode="json", exclude_unset=True),
            "rank": rank,
            "members": self.members,
            "handle": handle,
        }
        _pipe(process.stdin).write(json.dumps(task).encode() + b"\n")
        _pipe(process.stdin).flush()
        return process

    def _meet(self) -> None:
        self._hear_from_all()
        self._tell_all(HERE)

    def _tell_all(self, message: bytes) -> None:
        for process in self._others:
            try:
                _pipe(process.stdin).write(message)
                _pipe(process.stdin).flush()
            except OSError:
                raise self._lost(process) from None

    def _hear_from_all(self) -> None:
        for process in self._others:
            if _pipe(process.stdout).read(1) != HERE:
                raise self._lost(process)

    def _lost(self, process: subprocess.Popen[bytes]) -> TrainingError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_LEAVE)
        return TrainingError(
            f"A process that trained with this one has ended (exit code {process.returncode}; -9 often means "
            "that the memory was not enough). What was saved is intact: run the same command again, with "
            "training.processes = 1 if it is a new run."
        )


def take_part(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Be a further member of a team: answer the orders of its first member until there are no more."""
    task = json.loads(orders.readline())
    reuse_pages()
    torch.set_num_threads(1)
    folder, recipe = RunFolder(Path(task["folder"])), make_recipe(task["recipe"])
    vocabularies = load_vocabularies(folder, recipe)
    batches = make_batches(recipe, open_store(folder.data), vocabularies)
    place = {"rank": task["rank"], "members": task["members"], "handle": task["handle"]}
    member = Member(fresh_model(folder, recipe, vocabularies), batches, recipe.training, **place)
    member.board.release()

    def answer() -> None:
        answers.write(HERE)
        answers.flush()

    def meet() -> None:
        answer()
        if orders.read(1) != HERE:
            raise EOFError

    answer()
    with contextlib.suppress(EOFError):  # the first member is gone
        while len(order := orders.read(ORDER.size)) == ORDER.size:
            step, rate = ORDER.unpack(order)
            member.update(step, rate, meet)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("a member of a team is started with both its pipes")
    return pipe
