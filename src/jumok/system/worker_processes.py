"""Processes of this machine that get one message at a time, and are replaced when they die.

    workers = WorkerProcesses(code, count=2, first=load_message, advice="Use fewer workers.")
    for item, answer in workers.map((item, message) for …): …        in the order in which they are done

A worker runs `code`, reads messages from its standard input and writes one answer to each on its standard
output (`messages.py`; `answer_messages` is its loop). An answer {"failed": text of an error,
"is_storage_error": whether it is a StorageError or a DataError} reports an error.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from jumok.errors import DataError, JumokError, StorageError
from jumok.system.messages import pack_message, read_message
from jumok.system.processes import python_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jumok.system.messages import Message

MAX_ATTEMPTS = 3
"""After this many workers have died on a message, it is not sent again: the message may be the cause."""

Item = TypeVar("Item")


class WorkerProcesses(Generic[Item]):
    """`count` processes of `cores` threads each. When a process starts, it must answer the message `first`.

    If workers die, the error message ends with `advice`, a sentence on what to do against lack of memory.
    """

    def __init__(self, code: str, *, count: int, first: Message, advice: str, cores: int = 1) -> None:
        self.count = count
        self.first_answer: Message = {}
        """The answer of a worker to `first`; empty before a worker has started."""
        self._code, self._first, self._advice, self._cores = code, first, advice, cores
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def map(self, requests: Iterator[tuple[Item, Message]]) -> Iterator[tuple[Item, Message]]:
        """Yield each item with the answer to its message, in the order of the answers.

        `requests` is advanced when a worker is free.
        """
        done: queue.Queue[tuple[Item, Message] | BaseException | None] = queue.Queue(2 * self.count)
        self._stopped = False
        threads = [
            threading.Thread(target=self._feed, args=(requests, done), daemon=True) for _ in range(self.count)
        ]
        for thread in threads:
            thread.start()
        try:
            ended = 0
            while ended < self.count:
                result = done.get()
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    ended += 1
                else:
                    yield result
        finally:
            self._stop()
            while any(thread.is_alive() for thread in threads):
                with suppress(queue.Empty):
                    done.get(timeout=0.05)

    def _feed(
        self,
        requests: Iterator[tuple[Item, Message]],
        done: queue.Queue[tuple[Item, Message] | BaseException | None],
    ) -> None:
        """Give messages to one worker until there are no more; a worker that died is replaced."""
        worker: subprocess.Popen[bytes] | None = None
        try:
            while (request := self._next(requests)) is not None:
                item, message = request
                answer = None
                for _ in range(MAX_ATTEMPTS):
                    worker = worker or self._start()
                    if (answer := _ask(worker, message)) is not None:
                        break
                    self._end(worker)
                    worker = None
                if self._stopped:
                    return
                done.put((item, self._check_answer(answer, item)))
        except BaseException as error:
            done.put(error)
        finally:
            if worker is not None:
                self._end(worker)
            done.put(None)

    def _next(self, requests: Iterator[tuple[Item, Message]]) -> tuple[Item, Message] | None:
        with self._lock:
            return None if self._stopped else next(requests, None)

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a worker, and return it after it has answered the message `first`."""
        environment = {**os.environ, "OMP_NUM_THREADS": str(self._cores)}
        with self._lock:
            if self._stopped:
                raise StorageError("The work was stopped.")
            worker = subprocess.Popen(
                python_command(self._code), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            self._running.add(worker)
        answer = _ask(worker, self._first)
        if answer is None:
            exit_code = worker.wait()
            self._end(worker)
            raise StorageError(
                f"A worker process ended while it started (exit code {exit_code}), perhaps for lack of "
                f"memory. {self._advice}"
            )
        if "failed" in answer:
            self._end(worker)
            raise _error(answer)
        self.first_answer = answer
        return worker

    def _check_answer(self, answer: Message | None, item: Item) -> Message:
        if answer is None:
            raise StorageError(
                f"{MAX_ATTEMPTS} worker processes died one after the other on {item}. {self._advice}"
            )
        if "failed" in answer:
            raise _error(answer)
        return answer

    def _end(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        with self._lock:
            self._running.discard(worker)

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for worker in running:
            worker.kill()


def _ask(worker: subprocess.Popen[bytes], message: Message) -> Message | None:
    """Send a message to a worker and return its answer; None if the worker has died."""
    if worker.stdin is None or worker.stdout is None:
        return None
    try:
        worker.stdin.write(pack_message(message))
        worker.stdin.flush()
        return read_message(worker.stdout)
    except (OSError, ValueError):  # ValueError: the pipe was closed
        return None


def _error(answer: Message) -> JumokError:
    kind = StorageError if answer["is_storage_error"] else DataError
    return kind(str(answer["failed"]))


def answer_messages(answer: Callable[[Message], Message]) -> None:
    """Answer the messages on the standard streams of this process until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that reads the answers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a library must not get between two answers
    while (message := read_message(sys.stdin.buffer)) is not None:
        try:
            response = answer(message)
        except JumokError as error:
            response = {"failed": str(error), "is_storage_error": isinstance(error, StorageError)}
        try:
            answers.write(pack_message(response))
            answers.flush()
        except BrokenPipeError:  # the program has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), answers.fileno())  # else Python would try again at exit
            return
