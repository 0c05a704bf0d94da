"""The work queue: sentences of all requests wait in it, and leave it in batches of similar length.

A free worker takes a batch at once, with one exception: if there are more open requests than workers and few
waiting sentences, it waits a moment (`GATHER_SECONDS`) for more, because a large batch costs little more than
a small one. The sentence that has waited longest is always in the next batch, so none starves. Explanations
wait in the same queue; a worker takes one at a time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from jumok.errors import JumokError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jumok.server.limits import Limits

__all__ = [
    "BatchKey",
    "BusyError",
    "PendingExplanation",
    "PendingSentence",
    "TranslateOptions",
    "Work",
    "WorkQueue",
    "pending_items",
]

GATHER_SECONDS = 0.003
FEW_SENTENCES = 16
"""A free worker waits for more if fewer are waiting; batches of at least this many measure its speed."""
MAX_BATCH_SENTENCES = 128
MAX_BATCH_CHARACTERS = 12_000


class BusyError(JumokError):
    """The server cannot accept or answer a request now; the client may retry after `retry_seconds`."""

    def __init__(self, message: str, retry_seconds: float) -> None:
        super().__init__(message)
        self.retry_seconds = max(1, round(retry_seconds))


class TranslateOptions(NamedTuple):
    """How a sentence is translated."""

    n_best: int = 1
    align: bool = False
    greedy: bool = False
    """Take the most likely token at each step, instead of the model's own search."""
    stream: bool = False
    """Report the translation while it is being generated."""


class BatchKey(NamedTuple):
    """What sentences must have in common to be translated in one batch."""

    model_index: int
    options: TranslateOptions = TranslateOptions()


@dataclass(eq=False, slots=True)
class PendingSentence:
    """A sentence that waits for its translation: a future of candidates, best first."""

    key: BatchKey
    text: str
    future: asyncio.Future[list[dict[str, Any]]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    failed: bool = False
    """Whether a worker has failed with it once; the second time it is given up."""
    partial: str = ""
    updated: asyncio.Event = field(default_factory=asyncio.Event)
    """The translation so far, and an event that is set when it grows, if it is streamed."""

    def update(self, partial: str) -> None:
        self.partial = partial
        self.updated.set()


@dataclass(eq=False, slots=True)
class PendingExplanation:
    """A request about a model's attention that waits for its answer, both as JSON."""

    model_index: int
    operation: str
    text: str
    future: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    failed: bool = False


Pending = PendingSentence | PendingExplanation
Work = list[PendingSentence] | PendingExplanation
"""What a worker takes at a time: a batch of sentences with one key, or one explanation."""


def pending_items(work: Work) -> Sequence[Pending]:
    return [work] if isinstance(work, PendingExplanation) else work


class WorkQueue:
    """A queue bounded by sentences and characters. `open_requests` counts the requests being answered."""

    def __init__(self, limits: Limits, *, workers: int) -> None:
        self._limits = limits
        self._num_workers = workers
        self._waiting: dict[Pending, None] = {}  # an ordered set
        self._waiting_characters = 0
        self._in_progress: dict[Pending, None] = {}  # taken by workers and not answered yet
        self._num_free_workers = 0
        self._idle: list[asyncio.Future[None]] = []  # one per free worker; the last has worked most recently
        self._speed = 0.0  # characters per second of one worker; 0 until measured
        self.open_requests = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def seconds_behind(self) -> float:
        """Seconds that everything waiting or in progress will take; 0 until the speed has been measured."""
        characters = self._waiting_characters + _count_characters(self._in_progress)
        return characters / (self._speed * self._num_workers) if self._speed else 0.0

    def add(self, pending: Sequence[Pending], *, accepted: bool = False) -> None:
        """Add all items or none; a request `accepted` at its first model is not refused at the next."""
        characters = _count_characters(pending)
        limits = self._limits
        is_full = bool(self._waiting) and (
            len(self._waiting) + len(pending) > limits.max_queued_sentences
            or self._waiting_characters + characters > limits.max_queued_characters
        )
        is_late = self.seconds_behind > limits.request_timeout / 2
        if (is_full or is_late) and not accepted:
            raise BusyError("The server is busy. Try again later.", self.seconds_behind / 2)
        self._waiting.update(dict.fromkeys(pending))
        self._waiting_characters += characters
        self._wake_workers()

    def requeue(self, pending: Sequence[Pending]) -> None:
        """Put items back at the head of the queue, except those that no request waits for any more."""
        self._remove_in_progress(pending)
        awaited = [item for item in pending if not item.future.done()]
        self._waiting = {**dict.fromkeys(awaited), **self._waiting}
        self._waiting_characters += _count_characters(awaited)
        self._wake_workers()

    def withdraw(self, pending: Sequence[Pending]) -> None:
        """Remove items that no request waits for any more."""
        for item in pending:
            self._remove(item)
            if not item.future.cancel() and not item.future.cancelled():
                item.future.exception()  # retrieve it, or asyncio logs that nobody did

    async def take(self) -> Work:
        """Wait for the next work for a free worker."""
        self._num_free_workers += 1
        try:
            while True:
                if not self._waiting:
                    self._idle.append(asyncio.get_running_loop().create_future())
                    await self._idle[-1]
                    continue
                if len(self._waiting) < FEW_SENTENCES and self.open_requests > self._num_workers:
                    await asyncio.sleep(GATHER_SECONDS)
                if work := self._next_work():
                    return work
        finally:
            self._num_free_workers -= 1

    def complete(self, work: Work, seconds: float) -> None:
        """Record that a worker has finished. Batches that are large enough measure its speed."""
        self._remove_in_progress(pending_items(work))
        if isinstance(work, PendingExplanation):
            return
        characters = _count_characters(work)
        if len(work) >= FEW_SENTENCES or characters >= MAX_BATCH_CHARACTERS // 2:
            speed = characters / max(seconds, 1e-3)
            self._speed += (0.2 if self._speed else 1.0) * (speed - self._speed)

    def _wake_workers(self) -> None:
        """Wake idle workers, the most recently used first: a single sentence then finds warm caches."""
        while self._idle:
            worker = self._idle.pop()
            if not worker.done():
                worker.set_result(None)

    def _next_work(self) -> Work | None:
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return None
        if isinstance(oldest, PendingExplanation):
            work: Work = oldest
        else:
            work = self._next_batch(oldest)
        for item in pending_items(work):
            self._remove(item)
            self._in_progress[item] = None
        return work

    def _next_batch(self, oldest: PendingSentence) -> list[PendingSentence]:
        # Sentences of a failed batch are retried apart from others and in small batches: if one of them is
        # the cause, it takes few others with it.
        candidates = [
            item
            for item in self._waiting
            if isinstance(item, PendingSentence) and item.key == oldest.key and item.failed == oldest.failed
        ]
        share = -(-len(candidates) // max(1, self._num_free_workers))  # free workers share the queue
        length = len(oldest.text)
        candidates.sort(key=lambda item: abs(len(item.text) - length))  # stable: older ones come first
        candidates.remove(oldest)
        max_sentences = min(MAX_BATCH_SENTENCES, max(share, FEW_SENTENCES // 2))
        if oldest.failed:
            max_sentences = FEW_SENTENCES // 2
        batch, characters = [oldest], length
        for item in candidates[: max_sentences - 1]:
            characters += len(item.text)
            if characters > MAX_BATCH_CHARACTERS:
                break
            batch.append(item)
        return batch

    def _remove_in_progress(self, pending: Sequence[Pending]) -> None:
        for item in pending:
            self._in_progress.pop(item, None)

    def _remove(self, item: Pending) -> None:
        if item in self._waiting:
            del self._waiting[item]
            self._waiting_characters -= len(item.text)


def _count_characters(pending: Iterable[Pending]) -> int:
    return sum(len(item.text) for item in pending)
