"""The worker processes. Each receives work from the queue, and is replaced if it dies or hangs.

    pool = WorkerPool(queue, load_message, workers=2, …)
    await pool.start()          # raises a ModelFolderError if a model cannot be loaded
    await pool.reload()         # new workers take over; the old ones finish their batch
    await pool.stop()

If a worker fails or is lost, the sentences of its batch are tried once more. After the second failure their
requests get an error. A question (for an explanation, candidate words or a caption) is not tried again,
because the question itself may have made the worker fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Self

from jumok.errors import DataError, ModelFolderError
from jumok.server.workers.heartbeat import HEARTBEAT
from jumok.server.workers.pending import BusyError, PendingQuestion, PendingSentence, pending_items
from jumok.system.messages import pack_message, receive_message
from jumok.system.processes import python_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from jumok.server.limits import Limits
    from jumok.server.workers.pending import Work
    from jumok.server.workers.queue import WorkQueue
    from jumok.system.messages import Message

    OnEvent = Callable[..., None]

__all__ = ["Heartbeats", "WorkerHandle", "WorkerPool"]

WORKER_CODE = "from jumok.server.workers.worker import main; main()"
# Seconds after which a worker that has not loaded its models, or has not ended, is killed.
START_TIMEOUT = 120.0
STOP_TIMEOUT = 5.0
CHECK_SECONDS = 0.25
"""How often heartbeats are checked."""
MAX_SILENCE = 2.0
"""A worker that sends no heartbeat for this many seconds is replaced."""
MAX_STANDSTILL, MIN_PROGRESS = 5.0, 0.02
"""A worker is replaced if its batch uses less than MIN_PROGRESS seconds of CPU time in MAX_STANDSTILL
seconds; heartbeats alone use far less."""
MAX_CPU_SECONDS, MAX_SLOWNESS = 10.0, 20.0
"""A worker is replaced if its batch uses more than MAX_CPU_SECONDS of CPU time and more than MAX_SLOWNESS
times the estimate."""
MIN_RESTART_DELAY, MAX_RESTART_DELAY = 1.0, 30.0
"""The first restart is immediate. Before the second restart the server waits MIN_RESTART_DELAY seconds, and
before each later restart twice as long as before, at most MAX_RESTART_DELAY seconds. If a batch or a question
succeeds, the next restart is immediate again. A start takes seconds of CPU time, so a worker that fails again
and again must not be restarted all the time."""


class WorkerPool:
    """The workers of a server. `on_event(event, **fields)` is called on starts, deaths and batches."""

    def __init__(
        self, queue: WorkQueue, load_message: Message, *, workers: int, limits: Limits, on_event: OnEvent
    ) -> None:
        self._queue = queue
        self._load_message = load_message
        self._num_workers = workers
        self._limits = limits
        self._on_event = on_event
        self._handles: list[WorkerHandle] = []

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that have loaded the models, and have not failed."""
        return [handle.pid for handle in self._handles if handle.pid]

    @property
    def tags(self) -> list[tuple[str, ...]]:
        """The tags of each model, such as `<polite>`; none before the workers are ready."""
        return self._handles[0].tags if self._handles else []

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
            WorkerHandle(self._queue, self._load_message, self._limits, self._on_event)
            for _ in range(self._num_workers)
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

    def __init__(self, queue: WorkQueue, load_message: Message, limits: Limits, on_event: OnEvent) -> None:
        self._queue = queue
        self._load_message = load_message
        self._limits = limits
        self._on_event = on_event
        self._process: asyncio.subprocess.Process | None = None
        self._heartbeats = Heartbeats()
        self._watcher: asyncio.Task[None] | None = None
        self._hang_reason = ""
        self._task: asyncio.Task[None] | None = None
        self._exit: asyncio.Task[int] | None = None
        self._is_working = False
        self._is_stopping = False
        self._restart_delay = 0.0
        self._has_torch = False
        self.pid = 0
        self.tags: list[tuple[str, ...]] = []

    async def start(self) -> None:
        """Start the process, wait until it has loaded its models, and feed it."""
        await self._start_process()
        self._task = asyncio.create_task(self._run())
        self._watcher = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Finish the current batch, then end the process."""
        self._is_stopping = True
        if self._task is not None:
            if not self._is_working:
                self._task.cancel()
            await asyncio.wait([self._task])
        if self._watcher is not None:
            self._watcher.cancel()
        await self._end_process()

    async def _run(self) -> None:
        while not self._is_stopping:
            work: Work | None = None
            try:
                work = await self._queue.take(self._has_ended)
                self._is_working = True
                await self._execute(work)
            except (OSError, EOFError, ValueError) as error:
                reason = self._hang_reason or type(error).__name__
                self._on_event("worker_lost", pid=self._heartbeats.pid, reason=reason)
                self._hang_reason, self.pid = "", 0
                if work is not None:
                    self._try_again(work)
                self._is_working = False
                await self._restart()
            self._is_working = False

    def _has_ended(self) -> bool:
        return self._exit is None or self._exit.done()

    async def _watch(self) -> None:
        """Kill the process if it hangs. `_run` then replaces the process."""
        loop = asyncio.get_running_loop()
        while True:
            sleep_started = loop.time()
            await asyncio.sleep(CHECK_SECONDS)
            if loop.time() - sleep_started > MAX_SILENCE / 2:
                self._heartbeats.restart_timers()  # this process did not run either, so it read no heartbeats
            if self.pid and (reason := self._heartbeats.hang_reason()):
                self._hang_reason, self.pid = reason, 0
                if self._process is not None:
                    with contextlib.suppress(ProcessLookupError):
                        self._process.kill()

    async def _execute(self, work: Work) -> None:
        items = pending_items(work)
        started = time.monotonic()
        if isinstance(work, PendingQuestion):
            message, needs_torch = _question_message(work), True
            estimate, timeout = math.inf, self._limits.question_timeout  # infinite: no limit on its CPU time
        else:
            message = _translate_message(work)
            needs_torch = message["needs_torch"]
            estimate, timeout = sum(item.seconds for item in items), self._limits.batch_timeout
        may_load = needs_torch and not self._has_torch
        with self._heartbeats.working(estimate, timeout=timeout, may_load=may_load):
            if isinstance(work, PendingQuestion):
                answer = await self._request(message)
            else:
                answer = await self._translate(work, message)
        seconds = time.monotonic() - started
        if answer["kind"] == "failed":
            self._on_event("batch_failed", sentences=len(items), reason=answer["message"])
            self._try_again(work)
            return
        _resolve(work, answer)
        if not len(self._queue):
            await asyncio.sleep(0)  # no work is waiting: let the responses be sent before the bookkeeping
        self._restart_delay = 0.0
        self._has_torch |= needs_torch
        self._queue.complete(work, answer["cpu_seconds"], answer.get("seconds", seconds))
        if not isinstance(work, PendingQuestion):
            self._on_event("batch", sentences=len(items), seconds=seconds)

    async def _translate(self, batch: list[PendingSentence], message: Message) -> Message:
        answer = await self._request(message)
        while answer["kind"] == "partial":
            batch[answer["index"]].update(answer["text"])
            await asyncio.sleep(0)  # lets the request send the text before more arrives
            answer = await self._receive()
        return answer

    def _try_again(self, work: Work) -> None:
        """Return sentences to the queue, unless they have failed twice. A question ends with an error."""
        if isinstance(work, PendingQuestion):
            self._queue.release_question()
            smaller_input = "smaller picture" if work.question.kind == "caption" else "shorter text"
            message = (
                f"The {work.question.noun} took too long, or its worker was lost. Try a {smaller_input}."
            )
            _fail(work, message)
            return
        for sentence in work:
            if sentence.has_failed:
                _fail(sentence, "The translation failed twice. Try again later.")
            sentence.has_failed = True
        self._queue.requeue(work)

    async def _restart(self) -> None:
        while not self._is_stopping:
            await self._end_process()
            await asyncio.sleep(self._restart_delay)
            self._restart_delay = min(MAX_RESTART_DELAY, max(MIN_RESTART_DELAY, 2 * self._restart_delay))
            try:
                await self._start_process()
            except (ModelFolderError, OSError, EOFError, ValueError) as error:
                self._on_event("worker_not_started", reason=type(error).__name__)
            else:
                return

    async def _start_process(self) -> None:
        reader, writer = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *python_command(WORKER_CODE, str(writer)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=(writer,),
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,  # signals are for the server process, which lets the workers finish
            )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self._heartbeats = Heartbeats()
        self._has_torch = False
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: self._heartbeats, os.fdopen(reader, "rb", buffering=0)
        )
        self._exit = asyncio.create_task(self._process.wait())
        self._exit.add_done_callback(lambda _: self._queue.wake_workers())
        try:
            async with asyncio.timeout(START_TIMEOUT):
                answer = await self._request(self._load_message)
        except (OSError, EOFError, ValueError, TimeoutError) as error:  # ValueError: an answer is not JSON
            raise ModelFolderError(
                f"A worker did not load its models ({type(error).__name__}). If it has written no message "
                "above, the machine may be short of memory."
            ) from None
        if answer["kind"] == "failed":
            raise ModelFolderError(answer["message"])
        self._queue.speed.set_first(answer["speeds"], answer["alphabets"])
        self.tags = [tuple(tags) for tags in answer["tags"]]
        self._heartbeats.restart_timers()
        self.pid = self._heartbeats.pid = answer["pid"]
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
        self._heartbeats.close()
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            # A process that is replaced gets less time, because it has failed or hangs.
            async with asyncio.timeout(STOP_TIMEOUT if self._is_stopping else 0.1):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


class Heartbeats(asyncio.Protocol):
    """Receives the heartbeats of a worker, and finds out whether the worker hangs."""

    def __init__(self) -> None:
        self.pid = 0
        self._last_beat = 0.0
        self._cpu_seconds = 0.0
        self._is_working = False
        self._may_load = False
        self._deadline = 0.0
        self._max_cpu_seconds = 0.0
        self._progress: tuple[float, float] = (0.0, 0.0)  # CPU seconds and time of the last progress
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._last_beat = _now()
        [self._cpu_seconds] = HEARTBEAT.unpack(data[-HEARTBEAT.size :])
        if self._cpu_seconds - self._progress[0] >= MIN_PROGRESS:
            self._progress = self._cpu_seconds, self._last_beat

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def restart_timers(self) -> None:
        """Measure the time without heartbeats, and without progress, from now on."""
        self._last_beat = _now()
        self._progress = self._cpu_seconds, self._last_beat

    def working(self, estimated_seconds: float, *, timeout: float = math.inf, may_load: bool = False) -> Self:
        """Use the result in a `with` statement while the worker computes an answer.

        During the block, `hang_reason` expects progress, and an answer within `timeout` seconds.
        `may_load` says that the worker may have to load torch first. Then neither progress nor heartbeats are
        expected: an import waits for the disk, and can hold Python's global lock (GIL) for seconds.
        """
        now = _now()
        self._progress = self._cpu_seconds, now
        self._deadline = now + timeout
        self._max_cpu_seconds = self._cpu_seconds + max(MAX_CPU_SECONDS, MAX_SLOWNESS * estimated_seconds)
        self._is_working, self._may_load = True, may_load
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._may_load:
            self.restart_timers()
        self._is_working = self._may_load = False

    def hang_reason(self) -> str:
        """Return why the worker must be replaced; "" if it works, or waits for work."""
        now = _now()
        if self._is_working and now > self._deadline:
            return "TimeoutError"
        if self._may_load:
            return ""
        if now - self._last_beat > MAX_SILENCE:
            return "no heartbeat"
        if self._is_working and now - self._progress[1] > MAX_STANDSTILL:
            return "no progress"
        if self._is_working and self._cpu_seconds > self._max_cpu_seconds:
            return "endless batch"
        return ""


def _translate_message(batch: list[PendingSentence]) -> Message:
    key = batch[0].key
    texts = [sentence.text for sentence in batch]
    terms = [[asdict(match) for match in sentence.terms] for sentence in batch]
    return {
        "kind": "translate",
        "model": key.model_index,
        **key.options._asdict(),
        "texts": texts,
        "terms": terms,
        "needs_torch": key.options.align or key.options.words or any(terms),
    }


def _question_message(pending: PendingQuestion) -> Message:
    return {"kind": pending.question.kind, "model": pending.model_index, **pending.question.fields}


def _resolve(work: Work, answer: Message) -> None:
    """Give the worker's answer to the requests that wait for it."""
    if isinstance(work, PendingQuestion):
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


def _fail(item: PendingSentence | PendingQuestion, message: str) -> None:
    if not item.future.done():
        item.future.set_exception(BusyError(message, 5))


def _now() -> float:
    return asyncio.get_running_loop().time()
