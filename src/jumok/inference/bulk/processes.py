"""Workers on this machine. Each worker is a process with a model, and the workers share the cores."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

from jumok.inference.bulk.parts import Part
from jumok.system.processes import available_cores
from jumok.system.worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.inference.bulk.parts import Block, BulkSettings

WORKER_CODE = "from jumok.inference.bulk.worker import main; main()"


class BulkWorkers(Protocol):
    """Workers that translate blocks, in any order."""

    count: int
    """The number of workers."""

    @property
    def fallback_message(self) -> str:
        """The name of the engine of a worker, and why the preferred engine does not run.

        "" if the preferred engine runs, or if no worker has answered yet.
        """
        ...

    def compute(self, todo: Iterator[Block]) -> Iterator[tuple[Block, Part]]:
        """Yield each block with its part as soon as the part is computed. `todo` is read lazily."""
        ...


class ProcessWorkers:
    """`count` processes. If a worker dies, another worker translates its block.

    A block on which `MAX_ATTEMPTS` workers have died ends the translation with an error.
    """

    def __init__(self, settings: BulkSettings, count: int) -> None:
        self.count = count
        cores = max(1, available_cores() // count)
        first_message = {"settings": asdict(settings), "cores": cores}
        self._processes: WorkerProcesses[Block] = WorkerProcesses(
            WORKER_CODE,
            count=count,
            first=first_message,
            advice="If memory is short, use fewer workers. Finished parts are kept. Run the command again.",
            cores=cores,
        )

    @property
    def fallback_message(self) -> str:
        return str(self._processes.first_answer.get("fallback_message", ""))

    def compute(self, todo: Iterator[Block]) -> Iterator[tuple[Block, Part]]:
        messages = ((block, {"number": block.number, "texts": block.texts}) for block in todo)
        for block, answer in self._processes.map(messages):
            yield block, Part.from_bytes(answer["part"].encode("utf-8", "surrogateescape"))
