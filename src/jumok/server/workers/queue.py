"""The one queue: sentences of all requests wait in it, and leave it in batches of like length.

A worker that is free takes a batch at once. Only where more requests are open than there are workers, and few
sentences wait, does it give the others a moment (`GATHER_SECONDS`) to arrive: a batch of many costs little
more than one of few.
The sentence that has waited longest is always in the next batch, so that nobody starves.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from jumok.errors import JumokError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jumok.serve.limits import Limits

__all__ = ["BusyError", "Kind", "SentenceQueue", "Waiting", "Wish"]

GATHER_SECONDS = 0.003
FEW_SENTENCES = 16
BATCH_SENTENCES = 128
BATCH_CHARACTERS = 12_000


class BusyError(JumokError):
    """The server cannot take or answer this now; `seconds` is when it makes sense to try again."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = max(1, round(seconds))


class Wish(NamedTuple):
    """What is asked for with a sentence."""

    n_best: int = 1
    align: bool = False
    greedy: bool = False
    """The likeliest piece at every step, in place of the model's own search."""
    watched: bool = False
    """Whether somebody wants to hear the pieces while they are found."""
    view: str = ""
    """What a page about attention asks for, in place of a translation; the text is then its question."""


class Kind(NamedTuple):
    """What sentences must share to be translated together."""

    model: int
    wish: Wish = Wish()


@dataclass(eq=False, slots=True)
class Waiting:
    """A sentence in the queue, and where its candidates are awaited."""

    kind: Kind
    text: str
    candidates: asyncio.Future[list[dict[str, Any]]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    tried: bool = False
    """Whether a worker failed with it; twice is enough."""
    so_far: str = ""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """What has been said of a translation that is watched, and that there is more of it."""

    def hear(self, text: str) -> None:
        self.so_far = text
        self.news.set()


class SentenceQueue:
    """Bounded by sentences and characters. `open_requests` counts those that are being answered."""

    def __init__(self, limits: Limits, *, workers: int) -> None:
        self._limits = limits
        self._workers = workers
        self._waiting: dict[Waiting, None] = {}
        self._characters = 0
        self._held: dict[Waiting, None] = {}  # what workers have taken and not yet answered
        self._free_workers = 0
        self._idle: list[asyncio.Future[None]] = []  # workers that wait; the last one has worked last
        self._pace = 0.0  # characters a second of one worker, as soon as one was seen
        self.open_requests = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def seconds_behind(self) -> float:
        """How long what waits and what workers hold will take, by the pace so far; 0 before there is any."""
        characters = self._characters + _count_characters(self._held)
        return characters / (self._pace * self._workers) if self._pace else 0.0

    def add(self, sentences: Sequence[Waiting], *, accepted: bool = False) -> None:
        """All of them or none: what is accepted will be answered, and is not refused half way."""
        characters = _count_characters(sentences)
        limits = self._limits
        full = bool(self._waiting) and (
            len(self._waiting) + len(sentences) > limits.waiting_sentences
            or self._characters + characters > limits.waiting_characters
        )
        late = self.seconds_behind > limits.answer_seconds / 2
        if (full or late) and not accepted:
            raise BusyError("The server is busy. Try again later.", self.seconds_behind / 2)
        self._waiting.update(dict.fromkeys(sentences))
        self._characters += characters
        self._call()

    def put_back(self, sentences: Sequence[Waiting]) -> None:
        """At the head: they have waited before."""
        self._let_go(sentences)
        awaited = [sentence for sentence in sentences if not sentence.candidates.done()]
        self._waiting = {**dict.fromkeys(awaited), **self._waiting}
        self._characters += _count_characters(awaited)
        self._call()

    def withdraw(self, sentences: Sequence[Waiting]) -> None:
        """Nobody waits for these any more."""
        for sentence in sentences:
            self._remove(sentence)
            if not sentence.candidates.cancel() and not sentence.candidates.cancelled():
                sentence.candidates.exception()  # or asyncio reports each that nobody came to hear of

    async def take(self) -> list[Waiting]:
        """The next batch for a worker that is free, as soon as there is one."""
        self._free_workers += 1
        try:
            while True:
                if not self._waiting:
                    self._idle.append(asyncio.get_running_loop().create_future())
                    await self._idle[-1]
                    continue
                if len(self._waiting) < FEW_SENTENCES and self.open_requests > self._workers:
                    await asyncio.sleep(GATHER_SECONDS)
                if batch := self._next_batch():
                    return batch
        finally:
            self._free_workers -= 1

    def note_done(self, batch: Sequence[Waiting], seconds: float) -> None:
        """A worker is free again. Batches that are large enough tell how fast it is."""
        self._let_go(batch)
        characters = _count_characters(batch)
        if len(batch) >= FEW_SENTENCES or characters >= BATCH_CHARACTERS // 2:
            pace = characters / max(seconds, 1e-3)
            self._pace += (0.2 if self._pace else 1.0) * (pace - self._pace)

    def _call(self) -> None:
        """Wake the workers, the one that has worked last first: a single sentence finds its caches warm."""
        while self._idle:
            worker = self._idle.pop()
            if not worker.done():
                worker.set_result(None)

    def _next_batch(self) -> list[Waiting]:
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return []
        # What was in a batch that came to nothing stays apart, in small batches: if one of these sentences
        # was the reason, it takes few others with it the next time.
        sort = (oldest.kind, oldest.tried)
        alike = [sentence for sentence in self._waiting if (sentence.kind, sentence.tried) == sort]
        share = -(-len(alike) // max(1, self._free_workers))  # what two can do at once, they share
        length = len(oldest.text)
        alike.sort(key=lambda sentence: abs(len(sentence.text) - length))  # stable: the older come first
        alike.remove(oldest)
        batch, characters = [oldest], length
        # An explanation takes as long as many translations: it is alone in its batch.
        most = FEW_SENTENCES // 2 if oldest.tried else min(BATCH_SENTENCES, max(share, FEW_SENTENCES // 2))
        most = 1 if oldest.kind.wish.view else most
        for sentence in alike[: most - 1]:
            characters += len(sentence.text)
            if characters > BATCH_CHARACTERS:
                break
            batch.append(sentence)
        for sentence in batch:
            self._remove(sentence)
        self._held.update(dict.fromkeys(batch))
        return batch

    def _let_go(self, batch: Sequence[Waiting]) -> None:
        for sentence in batch:
            self._held.pop(sentence, None)

    def _remove(self, sentence: Waiting) -> None:
        if sentence in self._waiting:
            del self._waiting[sentence]
            self._characters -= len(sentence.text)


def _count_characters(sentences: Iterable[Waiting]) -> int:
    return sum(len(sentence.text) for sentence in sentences)
