"""The worker processes: one per core, each fed from the queue, and restarted when it dies.

    pool = WorkerPool(queue, load_message, workers=2, …)
    await pool.start()          # raises a ModelFolderError if a model cannot be loaded
    await pool.reload()         # new workers take over; the old ones finish their batch
    await pool.stop()

If a worker fails or dies, its work goes back to the head of the queue once; the second time it is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import TYPE_CHECKING

from jumok.errors import DataError, ModelFolderError
from jumok.server.workers.queue import BusyError, PendingExplanation, pending_items
from jumok.system.messages import pack_message, receive_message
from jumok.system.processes import python_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.server.workers.queue import PendingSentence, Work, WorkQueue
    from jumok.system.messages import Message

    OnEvent = Callable[..., None]

__all__ = ["WorkerHandle", "WorkerPool"]

WORKER_CODE = "from jumok.server.workers.worker import main; main()"
# Seconds for a worker to load its models, to answer a batch or an explanation, and to end.
START_TIMEOUT = 120.0
BATCH_TIMEOUT = 60.0
STOP_TIMEOUT = 5.0
MIN_RESTART_DELAY, MAX_RESTART_DELAY = 1.0, 30.0
"""Seconds between restarts, doubled until a batch succeeds, because a start takes seconds of CPU."""


class WorkerPool:
    """The workers of a server. `on_event(event, **fields)` is called on starts, deaths and batches."""

    def __init__(self, queue: WorkQueue, load_message: Message, *, workers: int, on_event: OnEvent) -> None:
        self._queue = queue
        self._load_message = load_message
        self._num_workers = workers
        self._on_event = on_event
        self._handles: list[WorkerHandle] = []

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that are ready for work."""
        return [handle.pid for handle in self._handles if handle.pid]

    async def start(self) -> None:
        """Start the workers and wait until each has loaded every model."""
        self._handles = await self._start_workers()

    async def reload(self) -> None:
        """Replace all workers by new ones. If a model cannot be loaded, the old ones stay."""
        new = await self._start_workers()
        old, self._handles = self._handles, new
        await asyncio.gather(*(handle.stop() for handle in old))

    async def stop(self) -> None:
        """Stop the workers after their current batches."""
        handles, self._handles = self._handles, []
        await asyncio.gather(*(handle.stop() for handle in handles))

    async def _start_workers(self) -> list[WorkerHandle]:
        handles = [
            WorkerHandle(self._queue, self._load_message, self._on_event) for _ in range(self._num_workers)
        ]
        try:
            results = await asyncio.gather(*(handle.start() for handle in handles), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
        except BaseException:  # a worker has failed, or a signal has cancelled the start
            await asyncio.gather(*(handle.stop() for handle in handles))
            raise
        return handles


class WorkerHandle:
    """One worker: its current process, which is replaced when it dies, and the task that feeds it."""

    def __init__(self, queue: WorkQueue, load_message: Message, on_event: OnEvent) -> None:
        self._queue = queue
        self._load_message = load_message
        self._on_event = on_event
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._exit: asyncio.Task[int] | None = None
        self._is_working = False
        self._waits_for_work = False
        self._is_stopping = False
        self._restart_delay = 0.0
        self.pid = 0

    async def start(self) -> None:
        """Start the process, wait until it has loaded its models, and feed it."""
        await self._start_process()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finish the current batch, then end the process."""
        self._is_stopping = True
        if self._task is not None:
            if not self._is_working:
                self._task.cancel()
            await asyncio.wait([self._task])
        await self._end_process()

    async def _run(self) -> None:
        while not self._is_stopping:
            work = await self._next_work()
            self._is_working = True
            try:
                if work is None:
                    raise EOFError
                await self._execute(work)
            except (OSError, EOFError, ValueError, TimeoutError) as error:
                self._on_event("worker_lost", pid=self.pid, reason=type(error).__name__)
                if work is not None:
                    self._requeue(work)
                self._is_working = False
                await self._restart()
            self._is_working = False

    async def _next_work(self) -> Work | None:
        """Wait for work; None if the process dies while it waits."""
        if self._exit is None or self._exit.done():
            return None
        self._waits_for_work = True
        try:
            return await self._queue.take()
        except asyncio.CancelledError:
            if self._is_stopping or self._task is None or not self._exit.done():
                raise
            self._task.uncancel()
            return None
        finally:
            self._waits_for_work = False

    def _on_exit(self, process_exit: asyncio.Task[int]) -> None:
        if self._waits_for_work and self._task is not None and process_exit is self._exit:
            self._task.cancel()

    async def _execute(self, work: Work) -> None:
        num_sentences = len(pending_items(work))
        started = time.monotonic()
        async with asyncio.timeout(BATCH_TIMEOUT):
            if isinstance(work, PendingExplanation):
                answer = await self._request(_explain_message(work))
            else:
                answer = await self._translate(work)
        seconds = time.monotonic() - started
        if answer["kind"] == "failed":
            self._on_event("batch_failed", sentences=num_sentences, reason=answer["message"])
            self._requeue(work)
            return
        self._restart_delay = 0.0
        self._queue.complete(work, seconds)
        self._on_event("batch", sentences=num_sentences, seconds=seconds)
        _resolve(work, answer)

    async def _translate(self, batch: list[PendingSentence]) -> Message:
        answer = await self._request(_translate_message(batch))
        while answer["kind"] == "partial":
            batch[answer["index"]].update(answer["text"])
            await asyncio.sleep(0)  # lets the request send it before more arrives
            answer = await self._receive()
        return answer

    def _requeue(self, work: Work) -> None:
        pending = pending_items(work)
        for item in pending:
            if item.failed and not item.future.done():
                item.future.set_exception(BusyError("The translation failed twice. Try again later.", 5))
            item.failed = True
        self._queue.requeue(pending)

    async def _restart(self) -> None:
        while not self._is_stopping:
            await self._end_process()
            await asyncio.sleep(self._restart_delay)
            self._restart_delay = min(MAX_RESTART_DELAY, max(MIN_RESTART_DELAY, 2 * self._restart_delay))
            try:
                await self._start_process()
            except (ModelFolderError, OSError, EOFError) as error:
                self._on_event("worker_not_started", reason=type(error).__name__)
            else:
                return

    async def _start_process(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *python_command(WORKER_CODE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # signals are for the server process, which lets the workers finish
        )
        self._exit = asyncio.create_task(self._process.wait())
        self._exit.add_done_callback(self._on_exit)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                answer = await self._request(self._load_message)
        except (OSError, EOFError, TimeoutError) as error:
            raise ModelFolderError(
                f"A worker ended before it had loaded its models ({type(error).__name__}). If it has written "
                "no message above, the machine may be short of memory."
            ) from None
        if answer["kind"] == "failed":
            raise ModelFolderError(answer["message"])
        self.pid = answer["pid"]
        self._on_event("worker_ready", pid=self.pid)

    async def _request(self, message: Message) -> Message:
        if self._process is None or self._process.stdin is None:
            raise EOFError
        try:
            self._process.stdin.write(pack_message(message))
            await self._process.stdin.drain()
        except RuntimeError:  # what uvloop raises if the other end of the pipe is closed
            raise EOFError from None
        return await self._receive()

    async def _receive(self) -> Message:
        if self._process is None or self._process.stdout is None:
            raise EOFError
        return await receive_message(self._process.stdout)

    async def _end_process(self) -> None:
        process, self._process, self.pid = self._process, None, 0
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(STOP_TIMEOUT if self._is_stopping else 0.1):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _translate_message(batch: list[PendingSentence]) -> Message:
    key = batch[0].key
    texts = [sentence.text for sentence in batch]
    return {"kind": "translate", "model": key.model_index, **key.options._asdict(), "texts": texts}


def _explain_message(pending: PendingExplanation) -> Message:
    return {
        "kind": "explain",
        "model": pending.model_index,
        "operation": pending.operation,
        "body": pending.text,
    }


def _resolve(work: Work, answer: Message) -> None:
    if isinstance(work, PendingExplanation):
        if work.future.done():
            return
        if answer["kind"] == "refused":
            work.future.set_exception(DataError(answer["message"]))
        else:
            work.future.set_result(answer["answer"])
        return
    for sentence, candidates in zip(work, answer["translations"], strict=True):
        if not sentence.future.done():
            sentence.future.set_result(candidates)
