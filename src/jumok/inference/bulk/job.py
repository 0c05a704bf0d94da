"""A bulk job: find the blocks that have no part yet, send them to workers, join all parts in order."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from jumok.errors import RecipeError, StorageError
from jumok.inference.bulk.parts import PartFolder, blocks
from jumok.storage.folders import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from jumok.inference.bulk.parts import Block, BulkSettings, Part
    from jumok.inference.bulk.processes import BulkWorkers

    OnPart = Callable[["BulkProgress"], None]


class Shard(NamedTuple):
    """The blocks `number`, `number` + `total`, … of a file, counted from 0."""

    number: int = 0
    total: int = 1


def parse_shard(text: str) -> Shard:
    """Parse the value of --shard: `3/64` is the third of 64 shards."""
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    number, total = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= total:
        raise RecipeError(f"--shard takes I/N, such as 3/64 for the third of 64. Received: {text!r}.")
    return Shard(number - 1, total)


@dataclass(slots=True)
class BulkProgress:
    """Counts of lines and parts. Of equal blocks, only the first is counted.

    `lines` and `parts` count what this run has translated so far. `reused_lines` and `reused_parts` count
    what had been translated before.
    """

    lines: int = 0
    reused_lines: int = 0
    parts: int = 0
    reused_parts: int = 0


class BulkJob:
    """The translation of one input to one output, by blocks.

    Call `blocks` first and read it to its end: all other methods use the keys that it collects.
    """

    def __init__(
        self, texts: Iterable[str], out: Path, settings: BulkSettings, shard: Shard | None = None
    ) -> None:
        self.out = out
        self.folder = PartFolder(out)
        self._texts = texts
        self._settings = settings
        self._shard = shard or Shard()
        self._keys: list[str] = []
        self._first_lines: list[int] = []

    def blocks(self) -> Iterator[tuple[Block, bool]]:
        """Yield each block of this shard, and whether its part exists. Equal blocks are yielded once.

        The keys of the parts of all shards are collected meanwhile.
        """
        seen: set[str] = set()
        for block in blocks(self._texts):
            key = self._settings.for_block(block.number).key(block.texts)
            self._keys.append(key)
            self._first_lines.append(block.first_line)
            if block.number % self._shard.total == self._shard.number and key not in seen:
                seen.add(key)
                yield block, self.folder.read(key) is not None

    def write(self, block: Block, part: Part) -> None:
        """Store the part of a block that `blocks` has yielded."""
        self.folder.write(self._keys[block.number], part)

    def num_parts(self) -> tuple[int, int]:
        """Return how many parts of all shards exist, and how many there must be before `join`."""
        keys = set(self._keys)
        return sum(self.folder.read(key) is not None for key in keys), len(keys)

    def parts(self) -> Iterator[tuple[int, Part]]:
        """Yield the parts in order, each with the number of its first line."""
        for first_line, key in zip(self._first_lines, self._keys, strict=True):
            part = self.folder.read(key)
            if part is None:
                raise StorageError(
                    f"A part of {self.out} is damaged or was removed from {self.folder.path}. Run the same "
                    "command again: it translates what is missing."
                )
            yield first_line, part

    def is_written(self) -> bool:
        """Whether the output file has the bytes of all parts.

        The job of another shard may have joined them.
        """
        try:
            with self.out.open("rb") as file:
                return all(file.read(len(part.output)) == part.output for _, part in self.parts()) and (
                    not file.read(1)
                )
        except FileNotFoundError:
            return False

    def join(self) -> None:
        """Write the output: all parts in order."""
        digest = hashlib.sha256()

        def outputs() -> Iterator[bytes]:
            for _, part in self.parts():
                digest.update(part.output)
                yield part.output

        write_file(self.out, outputs())
        self.folder.record_joined(digest.hexdigest(), self._settings)
        self.remove_outdated_parts()

    def remove_outdated_parts(self) -> None:
        """Remove parts of earlier inputs, models and options. If the input is empty, remove nothing."""
        if self._keys:
            self.folder.remove_all_except(set(self._keys))


def run_jobs(jobs: Sequence[BulkJob], workers: BulkWorkers, on_part: OnPart) -> BulkProgress:
    """Translate the blocks that have no part yet, and store their parts.

    `on_part` is called once for every block that a job yields, also for a block whose part exists already.
    """
    progress = BulkProgress()

    def missing_blocks() -> Iterator[Block]:
        for number, job in enumerate(jobs):
            for block, has_part in job.blocks():
                if not has_part:
                    yield replace(block, job=number)
                    continue
                progress.reused_lines += len(block.texts)
                progress.reused_parts += 1
                on_part(progress)

    for block, part in workers.compute(missing_blocks()):
        jobs[block.job].write(block, part)
        progress.lines += part.lines
        progress.parts += 1
        on_part(progress)
    return progress
