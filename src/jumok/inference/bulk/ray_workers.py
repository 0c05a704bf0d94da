"""Workers of a Ray cluster: actors with one model each. Only this module imports Ray.

Ray pickles its messages, but this module sends only bytes and values that JSON has (texts, numbers, lists …).
The order of the output and the reuse of parts do not depend on Ray: this process writes the parts that actors
return (`parts.py`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError, JumokError, StorageError, UnsupportedError
from jumok.inference.bulk.parts import Part
from jumok.inference.bulk.worker import BlockTranslator
from jumok.system.processes import available_cores
from jumok.system.worker_processes import MAX_ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.inference.bulk.parts import Block, BulkSettings

LOCAL = "local"
"""The address that starts Ray on this machine alone."""
BLOCKS_PER_ACTOR = 2
"""The number of blocks that an actor has at a time: its current block and its next block."""


class RayActor:
    """Translates blocks in an actor's process. Its errors are returned as text."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._translator: BlockTranslator | None = None
        self._failure = ""
        try:
            self._translator = BlockTranslator(settings, cores=1)
        except JumokError as error:
            self._failure = str(error)

    def translate(self, number: int, texts: list[str]) -> tuple[bytes, str, str]:
        """Return the part as bytes, the fallback message of the engine, and an error message or ""."""
        if self._translator is None:
            return b"", "", self._failure
        try:
            return self._translator.translate(number, texts), self._translator.fallback_message(), ""
        except JumokError as error:
            return b"", "", str(error)


class RayWorkers:
    """`count` actors of one core each in the cluster at `address`. A `count` of 0: one per free core."""

    def __init__(self, settings: BulkSettings, address: str, count: int) -> None:
        self._ray = _connect(address, count)
        try:
            cores = self._ray.available_resources().get("CPU", 0)
            self.count = count_actors(count, int(cores), address)
        except UnsupportedError:
            self._ray.shutdown()
            raise
        self.fallback_message = ""
        self._settings = asdict(settings)

    def compute(self, todo: Iterator[Block]) -> Iterator[tuple[Block, Part]]:
        ray = self._ray
        actor_class = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=MAX_ATTEMPTS - 1)(RayActor)
        actors = [actor_class.remote(self._settings) for _ in range(self.count)]
        pending: dict[Any, tuple[Block, Any]] = {}

        def submit(actor: Any) -> None:
            if (block := next(todo, None)) is not None:
                pending[actor.translate.remote(block.number, list(block.texts))] = (block, actor)

        try:
            for _ in range(BLOCKS_PER_ACTOR):
                for actor in actors:
                    submit(actor)
            while pending:
                [answer], _ = ray.wait(list(pending))
                block, actor = pending.pop(answer)
                submit(actor)
                yield block, self._part(answer, block)
        finally:
            for actor in actors:
                ray.kill(actor)
            ray.shutdown()

    def _part(self, answer: Any, block: Block) -> Part:
        """Return the part in an answer. `answer` is Ray's reference to what `RayActor.translate` returned."""
        try:
            data, self.fallback_message, failure = self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            raise StorageError(
                f"Ray could not translate {block} in {MAX_ATTEMPTS} attempts: {_first_line(error)}. "
                "Finished parts are kept. Run the same command again."
            ) from error
        if failure:
            raise DataError(failure)
        return Part.from_bytes(data)


def count_actors(requested: int, free_cores: int, address: str) -> int:
    """Return how many actors to start: `requested`, or as many as there are free cores if it is 0.

    Raise an UnsupportedError if the cluster has fewer free cores, because Ray would wait for ever.
    """
    if max(1, requested) <= free_cores:
        return requested or free_cores
    workers = f"with --workers {requested}" if requested else "without --workers"
    advice = f"Take --workers {free_cores} or fewer" if free_cores else "Wait until some are free"
    raise UnsupportedError(
        f"Each worker needs a free core of the Ray cluster. Received: --ray {address} {workers}; free cores "
        f"of that cluster: {free_cores}. {advice}, or add machines with `ray start --address`; `ray status` "
        "shows what uses the cores."
    )


def _connect(address: str, count: int) -> Any:
    """Return the package ray, connected to a cluster or started on this machine."""
    try:
        import ray  # optional
    except ImportError:
        raise UnsupportedError(
            "--ray needs the package ray, which is not installed. Install it on every machine: "
            'pip install "jumok[ray]"; or use --workers on one machine, --shard on several.'
        ) from None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        options |= {"address": "local", "num_cpus": count or available_cores(), "include_dashboard": False}
    else:
        options["address"] = address
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UnsupportedError(
            f"There is no Ray cluster at this address. Received: --ray {address}: {_first_line(error)}. "
            f"Start one with `ray start --head`, or use --ray {LOCAL} for this machine alone."
        ) from error
    return ray


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
