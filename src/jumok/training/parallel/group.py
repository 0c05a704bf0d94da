"""The processes that train one model together: one per core with one thread each, or one per accelerator.

The threads of one process wait for each other at the end of every operation, and an update is hundreds of
small operations. Processes wait for each other three times per update (`protocol.py` says where), with
`training.shares` sometimes more often.

    with DataParallelGroup(model, batches, recipe, folder, world_size=2) as group:  # this process is rank 0
        update = group.update(step=1, learning_rate=1e-3)

Every other rank is a worker: a new Python process. Its standard input brings a task (its rank, the run
folder), then orders (`system/messages.py`). When rank 0 ends, for whatever reason, the input is closed and
the worker exits. If torchrun has started the ranks, they get the same orders over the network
(`cluster.py`, `follower.py`).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Self

import torch

from jumok.config.recipe import make_recipe
from jumok.data.store import open_store
from jumok.errors import TrainingError, UnsupportedError
from jumok.storage.tensors import load_module_weights, module_weights
from jumok.system.memory import reuse_freed_memory
from jumok.system.messages import pack_message, read_message
from jumok.system.processes import python_command
from jumok.text.tokenizer_files import read_tokenizers
from jumok.training.loop.optimiser import optimiser_tensors, reset_optimiser, restore_optimiser
from jumok.training.loop.update import Update, Worker, num_summed_values
from jumok.training.parallel.cluster import check_world_size, current_cluster
from jumok.training.parallel.network import Network
from jumok.training.parallel.run_files import list_files, send_folder
from jumok.training.parallel.shared_memory import SharedMemory
from jumok.training.parallel.single import SingleProcess
from jumok.training.run.factories import fresh_model, make_batches
from jumok.training.run.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO, Any

    from torch import Tensor

    from jumok.config.recipe import Recipe, TrainingSettings
    from jumok.data.batching import Batches
    from jumok.models.model import Model
    from jumok.training.parallel.cluster import Cluster
    from jumok.training.parallel.protocol import ParallelBackend

WORKER_CODE = (
    "from jumok.training.parallel.group import worker_main; worker_main(sys.stdin.buffer, sys.stdout.buffer)"
)
READY = {"kind": "ready"}  # from a worker: it has started, or has reached a barrier
PROCEED = {"kind": "proceed"}  # to the workers: all ranks have reached the barrier
EXIT_SECONDS = 5.0  # how long a worker may take to exit


class DataParallelGroup:
    """All ranks of a run, driven from rank 0; with `world_size=1`, this process alone."""

    def __init__(
        self, model: Model, batches: Batches, recipe: Recipe, folder: RunFolder, *, world_size: int
    ) -> None:
        self.world_size = world_size
        self._num_threads = torch.get_num_threads()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._cluster = current_cluster() if world_size > 1 else None
        _check_num_processes(recipe.training, world_size, self._cluster)
        backend: ParallelBackend
        if world_size == 1:
            backend = SingleProcess(model)
        elif self._cluster is not None:
            _start_followers(self._cluster, folder, recipe)
            backend = Network(model)
            self._cluster.check_answers("", "open the files of the run")
        else:
            backend = memory = SharedMemory(
                model,
                rank=0,
                world_size=world_size,
                barrier=self._barrier,
                num_summed_values=num_summed_values(model, recipe.training),
            )
            tasks = [_task(folder, recipe, memory, rank) for rank in range(1, world_size)]
            self._processes = [_start_worker(task) for task in tasks]
            memory.close_block_fd()
        self._rank_0 = Worker(model, batches, recipe.training, backend)
        self.model, self.optimiser = model, self._rank_0.optimiser
        self._is_ready = not self._processes
        self._is_distributed = self._cluster is None  # whether all ranks have the state of rank 0
        # Sums depend on the number of threads, and every process of a group computes with one thread.
        self._one_thread = world_size > 1 or recipe.training.shares > 0

    @property
    def pids(self) -> list[int]:
        """The process ids of ranks 1, 2, …"""
        return [process.pid for process in self._processes]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, step: int, learning_rate: float) -> Update:
        """Compute update `step`, counted from 1, on all ranks."""
        if not self._one_thread:
            return self._rank_0.update(step, learning_rate)
        self.wait_until_ready()
        torch.set_num_threads(1)
        try:
            if not self._is_distributed:
                self._send_all({"kind": "distribute"})
                self._rank_0.backend.distribute()
                self._is_distributed = True
            self._send_all({"kind": "update", "step": step, "learning_rate": learning_rate})
            return self._rank_0.update(step, learning_rate)
        finally:
            torch.set_num_threads(self._num_threads)

    def wait_until_ready(self) -> None:
        """Wait until all workers are ready for orders; they take some seconds to start."""
        if not self._is_ready:
            self._wait_for_all()
            self._is_ready = True

    def reset(self, model: Model) -> None:
        """Return to step 0 with the weights of `model`, a fresh model."""
        load_module_weights(self.model, module_weights(model))
        reset_optimiser(self.optimiser)
        self._is_distributed = self._cluster is None

    def restore(self, weights: Mapping[str, Tensor], optimiser: Mapping[str, Tensor]) -> None:
        """Continue with the weights and the optimiser's state of a checkpoint."""
        load_module_weights(self.model, weights)
        restore_optimiser(self.optimiser, self.model, optimiser)
        self._is_distributed = self._cluster is None

    def optimiser_tensors(self) -> dict[str, Tensor]:
        """Return Adam's state of all parameters by name, for a checkpoint."""
        if self._cluster is not None and self._is_distributed:
            self._send_all({"kind": "collect"})
            self._rank_0.backend.collect_optimiser()
        return optimiser_tensors(self.optimiser, self.model)

    def close(self) -> None:
        """End the workers; this process keeps the weights and Adam's state."""
        for process in self._processes:
            with contextlib.suppress(OSError):
                _pipe(process.stdin).close()
        for process in self._processes:
            try:
                process.wait(EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _pipe(process.stdout).close()
        self._processes = []

    def _barrier(self) -> None:
        self._wait_for_all()
        self._send_all(PROCEED)

    def _send_all(self, message: dict[str, Any]) -> None:
        if self._cluster is not None:
            self._cluster.send_order(message)
            return
        data = pack_message(message)
        for process in self._processes:
            try:
                _pipe(process.stdin).write(data)
                _pipe(process.stdin).flush()
            except OSError:
                raise _worker_ended(process) from None

    def _wait_for_all(self) -> None:
        for process in self._processes:
            if read_message(_pipe(process.stdout)) != READY:
                raise _worker_ended(process)


def worker_main(orders: IO[bytes], replies: IO[bytes]) -> None:
    """Run a rank other than 0: compute its part of every update that rank 0 orders, until `orders` ends."""
    task = read_message(orders)
    if task is None:
        return
    reuse_freed_memory()
    torch.set_num_threads(1)
    folder, recipe = RunFolder(Path(task["folder"])), make_recipe(task["recipe"])
    tokenizers = read_tokenizers(folder.path, shared=recipe.text.shared)
    batches = make_batches(recipe, open_store(folder.data), tokenizers)

    def send_ready() -> None:
        replies.write(pack_message(READY))
        replies.flush()

    def barrier() -> None:
        send_ready()
        if read_message(orders) != PROCEED:
            raise EOFError

    model = fresh_model(folder, recipe, tokenizers)
    task_options = {name: task[name] for name in ("rank", "world_size", "block_fd")}
    num_values = num_summed_values(model, recipe.training)
    memory = SharedMemory(model, **task_options, barrier=barrier, num_summed_values=num_values)
    memory.close_block_fd()
    worker = Worker(model, batches, recipe.training, memory)
    send_ready()
    with contextlib.suppress(EOFError):  # rank 0 has ended
        while (order := read_message(orders)) is not None:
            worker.update(order["step"], order["learning_rate"])


def _check_num_processes(settings: TrainingSettings, world_size: int, cluster: Cluster | None) -> None:
    """Raise if the run cannot be computed by this many processes."""
    if cluster is not None:
        check_world_size(world_size, cluster.world_size)
    if settings.shares and world_size > settings.shares:
        raise UnsupportedError(
            f"Each process needs a share of every update. Received: {world_size} processes and "
            f"training.shares = {settings.shares}. Start fewer processes, or a new run with more shares."
        )
    if settings.device != "cpu" and world_size > 1 and cluster is None:
        raise UnsupportedError(
            f"Several processes of one command share the memory of the CPU. Received: training.processes = "
            f"{world_size} on {settings.device}. Start one process per accelerator: `torchrun "
            f"--nproc-per-node {world_size} -m jumok train …`."
        )


def _start_followers(cluster: Cluster, folder: RunFolder, recipe: Recipe) -> None:
    """Give all other ranks of a cluster the run, and its files if they do not have them."""
    files = list_files(folder)
    cluster.send_order(
        {
            "kind": "start",
            "folder": str(folder.path.absolute()),
            "recipe": recipe.model_dump(mode="json"),
            "files": files,
        }
    )
    send_folder(cluster, folder, files)


def _task(folder: RunFolder, recipe: Recipe, memory: SharedMemory, rank: int) -> dict[str, Any]:
    """Return the first message to a worker."""
    return {
        "folder": str(folder.path),
        "recipe": recipe.model_dump(mode="json"),
        "rank": rank,
        "world_size": memory.world_size,
        "block_fd": memory.block_fd,
    }


def _start_worker(task: dict[str, Any]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        python_command(WORKER_CODE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[task["block_fd"]],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,  # Ctrl-C is for rank 0, which finishes an update before it stops
    )
    _pipe(process.stdin).write(pack_message(task))
    _pipe(process.stdin).flush()
    return process


def _worker_ended(process: subprocess.Popen[bytes]) -> TrainingError:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(EXIT_SECONDS)
    return TrainingError(
        f"A worker process of this training has ended (exit code {process.returncode}; -9 often means that "
        "memory ran out). All checkpoints are intact: run the same command again. A new run needs less "
        "memory with training.processes = 1."
    )


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the worker was started without this pipe")
    return pipe
