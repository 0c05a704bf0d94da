"""Ranks other than 0 of a cluster: each follows the orders of rank 0 until the run ends.

start       open a run, whose folder, recipe and files the order names; answer whether that has failed
distribute  receive from rank 0 the weights, and Adam's state of the parameters that this rank owns
update      compute this rank's part of an update
collect     send Adam's state to rank 0, which saves a checkpoint
end         the run is over, or rank 0 has failed
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from jumok.config.recipe import make_recipe
from jumok.data.store import open_store
from jumok.errors import JumokError, TrainingError
from jumok.system.memory import reuse_freed_memory
from jumok.text.tokenizer_files import read_tokenizers
from jumok.training.loop.update import Worker
from jumok.training.parallel.network import Network
from jumok.training.parallel.run_files import receive_folder, remove_copy
from jumok.training.run.factories import fresh_model, make_batches
from jumok.training.run.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.models.model import Model
    from jumok.system.messages import Message
    from jumok.training.parallel.cluster import Cluster

SAME_SIGNAL_SECONDS = 2.0  # signals that come so soon after the first signal count as its repetitions


def follow(cluster: Cluster) -> None:
    """Follow the orders of rank 0 until the run ends; raise if rank 0 has ended with an error."""
    reuse_freed_memory()
    torch.set_num_threads(1)
    worker: Worker | None = None
    # `path` is the run folder of rank 0. `folder` is where this rank opens the files, perhaps a copy.
    folder = path = Path()
    with _signals_deferred():
        while (order := cluster.receive_order())["kind"] != "end":
            if order["kind"] == "start":
                path = Path(order["folder"])
                folder = receive_folder(cluster, path, order["files"])
                worker = _make_worker(cluster, folder, order)
            elif worker is None:
                raise ValueError(f"rank 0 ordered {order['kind']!r} before it started a run")
            elif order["kind"] == "update":
                worker.update(order["step"], order["learning_rate"])
            elif order["kind"] == "distribute":
                worker.backend.distribute()
            else:
                worker.backend.collect_optimiser()
    if order["failed"]:
        raise TrainingError("Rank 0 of this training has ended with an error, which its own output shows.")
    remove_copy(cluster, folder, path)


def _make_worker(cluster: Cluster, folder: Path, order: Message) -> Worker:
    """Return this rank's worker. If that fails, all ranks get the error message and end."""
    answer, worker = "", None
    try:
        recipe = make_recipe(order["recipe"])
        tokenizers = read_tokenizers(folder, shared=recipe.text.shared)
        run_folder = RunFolder(folder)
        batches = make_batches(recipe, open_store(run_folder.data), tokenizers)
        model: Model = fresh_model(run_folder, recipe, tokenizers)
        worker = Worker(model, batches, recipe.training, Network(model))
    except JumokError as error:
        answer = str(error)
    cluster.check_answers(answer, "open the files of the run")
    if worker is None:
        raise ValueError("a rank without a worker has answered without an error message")
    return worker


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Within this block, the first Ctrl-C or SIGTERM does not end this rank.

    Every rank gets these signals. Rank 0 finishes its update, saves, and orders the other ranks to end. If
    rank 0 ends without an order, the connection is closed, and `receive_order` raises. If the host of rank 0
    dies without closing the connection, a second signal ends this rank. While this rank waits for an order,
    its main thread runs no Python, so another thread reads the signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    watch = threading.Thread(target=_end_on_second_signal, args=(reading,), daemon=True)
    deferred = (signal.SIGINT, signal.SIGTERM)
    old_handlers = {number: signal.signal(number, _leave_to_rank_0) for number in deferred}
    old_wakeup_fd = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(old_wakeup_fd)
        for number, handler in old_handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        writing.close()
        watch.join()
        reading.close()


def _leave_to_rank_0(number: int, frame: object) -> None:
    """Do nothing: another thread reads the signal from the socket."""


def _end_on_second_signal(signals: socket.socket) -> None:
    """End this process on the second signal. Torchrun repeats Ctrl-C: a repeated signal counts once."""
    first: float | None = None
    while signals.recv(1):
        now = time.monotonic()
        if first is not None and now - first > SAME_SIGNAL_SECONDS:
            os.kill(os.getpid(), signal.SIGKILL)  # SIGINT and SIGTERM are deferred
        first = now if first is None else first
