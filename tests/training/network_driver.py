"""Runs the ranks of a cluster as forks of one process. `test_network.py` starts this program.

    python network_driver.py TASK FOLDER WORLD_SIZE > result.json

The process imports everything before it forks, so that the ranks start quickly. Every fork gets the variables
that torchrun would set. TASK is a key of `TASKS`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed

from jumok.config.recipe import make_recipe
from jumok.data.store import open_store
from jumok.errors import JumokError
from jumok.storage.model_folder import read_model_with_weights
from jumok.text.tokenizer_files import read_tokenizers
from jumok.training.events import Saved, Started
from jumok.training.loop.update import Worker, num_summed_values
from jumok.training.parallel import cluster, run_files
from jumok.training.parallel.network import Network
from jumok.training.parallel.shared_memory import SharedMemory
from jumok.training.parallel.single import SingleProcess
from jumok.training.run.factories import fresh_model, make_batches
from jumok.training.run.run_folder import RunFolder
from jumok.training.run.training_run import training_events
from support.digits import TINY, digit_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jumok.training.parallel.protocol import ParallelBackend

SETTINGS: dict[str, Any] = {
    **{name: value for name, value in TINY.items() if name != "training.processes"},
    "training.steps": 12,
    "training.validate_every": 6,
    "training.warmup_steps": 2,
}
NUM_UPDATES = 5  # of tasks that call `Worker.update` themselves; tasks that train have `training.steps`


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run_ranks(world_size: int, run: Callable[[int], object]) -> list[Any]:
    """Run a function in one fork per rank, and return one value per rank, which has been through JSON.

    The value is the result of the function, {"error": message} after a JumokError, {"trace": traceback} after
    another exception, or {"killed": True} if a signal killed the fork.
    """
    port, children = free_port(), {}
    for rank in range(world_size):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size)}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            try:
                result: object = run(rank)
            except JumokError as error:
                result = {"error": str(error)}
            except BaseException:
                result = {"trace": traceback.format_exc()}
            with os.fdopen(writing, "w") as file:
                json.dump(result, file)
            os._exit(0)
        os.close(writing)
        children[child] = reading
    results = []
    for child, reading in children.items():
        with os.fdopen(reading) as file:
            text = file.read()
        os.waitpid(child, 0)
        results.append(json.loads(text) if text else {"killed": True})
    return results


def digest(tensors: list[torch.Tensor]) -> str:
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()


def model_digest(folder: Path) -> str:
    _, weights, _ = read_model_with_weights(folder / "model")
    return digest([weights[name] for name in sorted(weights)])


def backends(folder: Path, world_size: int) -> object:
    """Return losses and digests of every rank after some updates, in shared memory and over a network.

    `folder` is a run folder.
    """
    run_folder = RunFolder(folder)
    record = run_folder.record()
    assert record is not None
    recipe = record.recipe
    tokenizers = read_tokenizers(folder, shared=recipe.text.shared)
    batches = make_batches(recipe, open_store(run_folder.data), tokenizers)
    model = fresh_model(run_folder, recipe, tokenizers)
    block_fd = SharedMemory(model, rank=0, world_size=world_size, barrier=lambda: None).block_fd

    def run_updates(make_backend: Callable[[Any], ParallelBackend]) -> dict[str, Any]:
        model = fresh_model(run_folder, recipe, tokenizers)
        worker = Worker(model, batches, recipe.training, make_backend(model))
        updates = [worker.update(step, 1e-2) for step in range(1, NUM_UPDATES + 1)]
        worker.backend.collect_optimiser()
        state = worker.optimiser.state  # on rank 0, of all parameters
        adam = [state[weight]["exp_avg_sq"] for weight in model.parameters() if weight in state]
        losses = [(update.loss, update.nll, update.gradient_norm) for update in updates]
        return {"weights": digest(list(model.parameters())), "losses": losses, "adam": digest(adam)}

    def run(rank: int) -> object:
        with cluster.joined_cluster():
            options: dict[str, Any] = {"rank": rank, "world_size": world_size, "block_fd": block_fd}
            barrier = torch.distributed.barrier
            shared = run_updates(lambda model: SharedMemory(model, barrier=barrier, **options))
            network = run_updates(Network)
            return {"shared": shared, "network": network}

    return run_ranks(world_size, run)


def run_and_resume(folder: Path, world_size: int) -> object:
    """Abandon a run after its first checkpoint, then resume it on the same number of ranks.

    Ranks 1, 2, … are each alone on a host, and cannot open the files of rank 0.
    """
    has_files = run_files._has_files
    corpus = digit_corpus(300)

    def hide_folder_of_rank_0(path: Path, files: run_files.FileEntries) -> bool:
        return path != folder.absolute() and has_files(path, files)

    def run(rank: int, *, abandon: bool) -> object:
        if rank:
            run_files._has_files = hide_folder_of_rank_0
        os.environ["JUMOK_CACHE"] = str(folder.parent / f"cache-{rank}")
        os.environ["LOCAL_RANK"] = "0"  # every rank is the first of its host
        started = None
        for event in training_events(corpus, out=folder, **SETTINGS):
            if isinstance(event, Saved) and abandon:
                return {"abandoned": event.step}
            if isinstance(event, Started):
                started = event
        copies = list((folder.parent / f"cache-{rank}").glob("runs/*"))
        facts = {"rank": rank, "copies": len(copies)}
        # Only rank 0 yields events.
        return facts if started is None else {**facts, "resumed_from": started.resumed_from}

    first = run_ranks(world_size, lambda rank: run(rank, abandon=True))
    copies = [path.name for path in folder.parent.glob("cache-*/runs/*")]
    second = run_ranks(world_size, lambda rank: run(rank, abandon=False))
    return {"first": first, "copies": copies, "second": second, "digest": model_digest(folder)}


def shares(folder: Path, world_size: int) -> object:
    """Return the losses and the digest of the weights after some updates with `training.shares`.

    One process, ranks in shared memory and ranks over a network make the same updates. `folder` is a run
    folder.
    """
    run_folder = RunFolder(folder)
    record = run_folder.record()
    assert record is not None
    recipe = make_recipe(record.recipe.model_dump(exclude_unset=True), **{"training.shares": 6})
    tokenizers = read_tokenizers(folder, shared=recipe.text.shared)
    batches = make_batches(recipe, open_store(run_folder.data), tokenizers)

    def run_updates(make_backend: Callable[[Any], ParallelBackend]) -> object:
        model = fresh_model(run_folder, recipe, tokenizers)
        worker = Worker(model, batches, recipe.training, make_backend(model))
        updates = [worker.update(step, 1e-2) for step in range(1, NUM_UPDATES + 1)]
        losses = [(update.loss, update.nll, update.gradient_norm) for update in updates]
        return {"weights": digest(list(model.parameters())), "losses": losses}

    model = fresh_model(run_folder, recipe, tokenizers)
    num_values = num_summed_values(model, recipe.training)
    options: dict[str, Any] = {"world_size": world_size, "num_summed_values": num_values}
    block_fd = SharedMemory(model, rank=0, barrier=lambda: None, **options).block_fd

    def run(rank: int) -> object:
        with cluster.joined_cluster():
            barrier = torch.distributed.barrier
            shared = run_updates(
                lambda model: SharedMemory(model, rank=rank, barrier=barrier, block_fd=block_fd, **options)
            )
            return {"shared": shared, "network": run_updates(Network)}

    return {"single": run_updates(SingleProcess), "ranks": run_ranks(world_size, run)}


def fewer_ranks(folder: Path, world_size: int) -> object:
    """Abandon a run with `training.shares` at its first checkpoint, and copy the run folder.

    One rank fewer resumes the run, and a single process resumes the copy. Return the digests of both models,
    and of the model of an uninterrupted run.
    """
    corpus, settings = digit_corpus(300), {**SETTINGS, "training.shares": 6}

    def run(rank: int, abandon: bool) -> object:
        for event in training_events(corpus, out=folder, **settings):
            if isinstance(event, Saved) and abandon and rank == 0:
                return {"abandoned": event.step}
        return {}

    first = run_ranks(world_size, lambda rank: run(rank, True))
    shutil.copytree(folder, folder.with_name("alone"))
    second = run_ranks(world_size - 1, lambda rank: run(rank, False))
    list(training_events(corpus, out=folder.with_name("alone"), **{**settings, "training.processes": 1}))
    list(training_events(corpus, out=folder.with_name("uninterrupted"), **settings))
    return {
        "first": first,
        "second": second,
        "digests": [model_digest(folder.with_name(name)) for name in (folder.name, "alone", "uninterrupted")],
    }


def other_world_size(folder: Path, world_size: int) -> object:
    """Start a run without shares, then continue it on one rank more; return the errors."""
    corpus = digit_corpus(300)

    def run(rank: int) -> object:
        for event in training_events(corpus, out=folder, **SETTINGS):
            if isinstance(event, Saved):
                return {}
        return {}

    run_ranks(world_size, run)
    return run_ranks(world_size + 1, run)


def other_host(folder: Path, world_size: int) -> object:
    """Continue a run whose folder rank 0 cannot open, but the other ranks can; return the errors."""

    def run(rank: int) -> object:
        for _ in training_events(digit_corpus(300), out=folder if rank else folder / "none", **SETTINGS):
            return {}
        return {}

    return run_ranks(world_size, run)


def other_code(folder: Path, world_size: int) -> object:
    """Join a cluster in which one rank runs other code; return the errors."""

    def run(rank: int) -> object:
        if rank == 1:
            cluster._code_digest = lambda: "edited"
        with cluster.joined_cluster():
            return {}

    return run_ranks(world_size, run)


def one_copy(folder: Path, world_size: int) -> object:
    """Train with all ranks except 0 on a second host, where writing the copy of the files takes 2 seconds."""
    has_files, new_folder = run_files._has_files, run_files.new_folder

    @contextmanager
    def slow_folder(*arguments: Any, **options: Any) -> Iterator[Path]:
        with new_folder(*arguments, **options) as temporary:
            yield temporary
            time.sleep(2)

    def run(rank: int) -> object:
        if rank:
            run_files._has_files = lambda path, files: path != folder.absolute() and has_files(path, files)
            run_files.new_folder = slow_folder
            os.environ["LOCAL_RANK"] = str(rank - 1)
        os.environ["JUMOK_CACHE"] = str(folder.parent / f"cache-{min(rank, 1)}")
        list(training_events(digit_corpus(300), out=folder, **SETTINGS))
        return {"rank": rank}

    return run_ranks(world_size, run)


def two_trainings(folder: Path, world_size: int) -> object:
    """Train twice in the same processes."""

    def run(rank: int) -> object:
        for name in ("first", "second"):
            list(training_events(digit_corpus(300), out=folder / name, **SETTINGS))
        return {"rank": rank}

    return {
        "ranks": run_ranks(world_size, run),
        "digests": [model_digest(folder / name) for name in ("first", "second")],
    }


def dead_host(folder: Path, world_size: int) -> object:
    """Stop rank 0, as if its host had died. Send Ctrl-C to rank 1: twice at once, once three seconds later.

    "alive" in the result says whether rank 1 was alive one second after the first two signals.
    """

    def run(rank: int) -> object:
        if rank == 0:
            with cluster.joined_cluster() as joined:
                assert joined is not None
                joined.check_run_is_on_rank_0(has_run=False)
                time.sleep(1)  # until the other ranks have the result of this check too
                (folder / "rank-0").write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)
            return {}
        (folder / f"rank-{rank}").write_text(str(os.getpid()))
        list(training_events(digit_corpus(300), out=folder / "run", **SETTINGS))
        return {}

    folder.mkdir(parents=True, exist_ok=True)
    watcher = os.fork()
    if watcher == 0:
        while len(list(folder.glob("rank-*"))) < world_size:
            time.sleep(0.05)
        time.sleep(2)
        pids = [int((folder / f"rank-{rank}").read_text()) for rank in range(world_size)]
        for _ in range(2):  # a signal and, at once, torchrun's repetition of it
            os.kill(pids[1], signal.SIGINT)
        time.sleep(1)
        (folder / "alive").write_text(str(Path(f"/proc/{pids[1]}/exe").exists()))
        time.sleep(2)
        os.kill(pids[1], signal.SIGINT)
        time.sleep(1)
        os.kill(pids[0], signal.SIGKILL)
        os._exit(0)
    ranks = run_ranks(world_size, run)
    os.waitpid(watcher, 0)
    return {"ranks": ranks, "alive": (folder / "alive").read_text()}


TASKS = {
    "one_copy": one_copy,
    "two_trainings": two_trainings,
    "dead_host": dead_host,
    "backends": backends,
    "run_and_resume": run_and_resume,
    "shares": shares,
    "fewer_ranks": fewer_ranks,
    "other_world_size": other_world_size,
    "other_host": other_host,
    "other_code": other_code,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # imports AdamW's modules once for all forks
    json.dump(TASKS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3])), sys.stdout)
