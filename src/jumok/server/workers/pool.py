"""The workers: a process a core, each fed from the queue, and started again when it dies.

    pool = Pool(queue, first, workers=2, …)      # `first` names the models; every worker is told it first
    await pool.start()          # raises a ModelFolderError if a model cannot be loaded
    await pool.reload()         # fresh workers take over; the old ones finish what they hold
    await pool.stop()

What a worker failed with, or died with, goes back to the head of the queue once; then it is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError
from jumok.processes import python_command
from jumok.serve.frames import pack, receive_frame
from jumok.serve.queueing import BusyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.serve.queueing import SentenceQueue, Waiting

    Order = dict[str, Any]
    Report = Callable[..., None]

__all__ = ["Pool"]

WORKER = "from jumok.serve.worker import main; main()"
SECONDS_TO_START = 120.0
SECONDS_FOR_A_BATCH = 60.0
SECONDS_TO_LEAVE = 5.0
SECONDS_BETWEEN_STARTS = (1.0, 30.0)
"""Before a second start without a batch in between, and at most: each takes a second of a core or more."""


class Pool:
    """The workers of a server. `report(event, **facts)` is told of starts, deaths and batches."""

    def __init__(self, queue: SentenceQueue, first: Order, *, workers: int, report: Report) -> None:
        self._queue = queue
        self._first = first
        self._size = workers
        self._report = report
        self._posts: list[Post] = []

    @property
    def pids(self) -> list[int]:
        """The processes that are ready for work."""
        return [post.pid for post in self._posts if post.pid]

    async def start(self) -> None:
        """Return when every worker has loaded every model."""
        self._posts = await self._make_posts()

    async def reload(self) -> None:
        """Read the models anew. If one cannot be loaded, all stays as it was."""
        fresh = await self._make_posts()
        old, self._posts = self._posts, fresh
        await asyncio.gather(*(post.leave() for post in old))

    async def stop(self) -> None:
        """Let the workers go, after what they hold."""
        posts, self._posts = self._posts, []
        await asyncio.gather(*(post.leave() for post in posts))

    async def _make_posts(self) -> list[Post]:
        posts = [Post(self._queue, self._first, self._report) for _ in range(self._size)]
        try:
            results = await asyncio.gather(*(post.enter() for post in posts), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
        except BaseException:  # one has failed, or a signal has ended all
            await asyncio.gather(*(post.leave() for post in posts))
            raise
        return posts


class Post:
    """A worker's place: the process that holds it now, and its successor if it dies."""

    def __init__(self, queue: SentenceQueue, first: Order, report: Report) -> None:
        self._queue = queue
        self._first = first
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._death: asyncio.Task[int] | None = None
        self._busy = False
        self._idle = False
        self._leaving = False
        self._pause = 0.0
        self.pid = 0

    async def enter(self) -> None:
        """Start a process, wait until it has its models, and let it work."""
        await self._start()
        self._task = asyncio.create_task(self._run())

    async def leave(self) -> None:
        """Finish the batch that is being translated, then end the process."""
        self._leaving = True
        if self._task is not None:
            if not self._busy:
                self._task.cancel()
            await asyncio.wait([self._task])
        await self._end()

    async def _run(self) -> None:
        while not self._leaving:
            batch = await self._next_batch()
            self._busy = True
            try:
                await self._translate(batch)
            except (OSError, EOFError, ValueError, TimeoutError) as error:
                self._report("worker_lost", pid=self.pid, reason=type(error).__name__)
                self._give_back(batch)
                self._busy = False
                await self._restart()
            self._busy = False

    async def _next_batch(self) -> list[Waiting]:
        """What to do next; nothing, if the process dies while it waits."""
        if self._death is None or self._death.done():
            return []
        self._idle = True
        try:
            return await self._queue.take()
        except asyncio.CancelledError:
            if self._leaving or self._task is None or not self._death.done():
                raise
            self._task.uncancel()
            return []
        finally:
            self._idle = False

    def _note_death(self, death: asyncio.Task[int]) -> None:
        if self._idle and self._task is not None and death is self._death:
            self._task.cancel()

    async def _translate(self, batch: list[Waiting]) -> None:
        if not batch:
            raise EOFError
        kind = batch[0].kind
        order = {"model": kind.model, **kind.wish._asdict(), "texts": [sentence.text for sentence in batch]}
        begin = time.monotonic()
        async with asyncio.timeout(SECONDS_FOR_A_BATCH):
            answer = await self._ask(order)
            while "said" in answer:
                number, text = answer["said"]
                batch[number].hear(text)
                await asyncio.sleep(0)  # a listener is told before there is more
                answer = await self._hear()
        seconds = time.monotonic() - begin
        if "failed" in answer:
            self._report("batch_failed", sentences=len(batch), reason=answer["failed"])
            self._give_back(batch)
            return
        self._pause = 0.0
        self._queue.note_done(batch, seconds)
        self._report("batch", sentences=len(batch), seconds=seconds)
        for sentence, candidates in zip(batch, answer["candidates"], strict=True):
            if not sentence.candidates.done():
                sentence.candidates.set_result(candidates)

    def _give_back(self, batch: list[Waiting]) -> None:
        for sentence in batch:
            if sentence.tried and not sentence.candidates.done():
                sentence.candidates.set_exception(
                    BusyError("The translation failed twice. Try again later.", 5)
                )
            sentence.tried = True
        self._queue.put_back(batch)

    async def _restart(self) -> None:
        while not self._leaving:
            await self._end()
            await asyncio.sleep(self._pause)
            least, most = SECONDS_BETWEEN_STARTS
            self._pause = min(most, max(least, 2 * self._pause))
            try:
                await self._start()
            except (ModelFolderError, OSError, EOFError) as error:
                self._report("worker_not_started", reason=type(error).__name__)
            else:
                return

    async def _start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *python_command(WORKER),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # signals are for the front, which lets the workers finish
        )
        self._death = asyncio.create_task(self._process.wait())
        self._death.add_done_callback(self._note_death)
        try:
            async with asyncio.timeout(SECONDS_TO_START):
                answer = await self._ask(self._first)
        except (OSError, EOFError, TimeoutError) as error:
            raise ModelFolderError(
                f"A worker ended before it had loaded its models ({type(error).__name__}). Its own words "
                "stand above; if there are none, the machine may be short of memory."
            ) from None
        if "error" in answer:
            raise ModelFolderError(answer["error"])
        self.pid = answer["ready"]
        self._report("worker_ready", pid=self.pid)

    async def _ask(self, order: Order) -> dict[str, Any]:
        if self._process is None or self._process.stdin is None:
            raise EOFError
        try:
            self._process.stdin.write(pack(order))
            await self._process.stdin.drain()
        except RuntimeError:  # uvloop's word for a pipe whose other end was seen to close
            raise EOFError from None
        return await self._hear()

    async def _hear(self) -> dict[str, Any]:
        if self._process is None or self._process.stdout is None:
            raise EOFError
        return await receive_frame(self._process.stdout)

    async def _end(self) -> None:
        process, self._process, self.pid = self._process, None, 0
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(SECONDS_TO_LEAVE if self._leaving else 0.1):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
