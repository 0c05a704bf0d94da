"""A slot for one thread, in which work runs that would block the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from jumok.server.workers.pending import BusyError

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

MAX_LOOP_CHARACTERS = 4_000
"""Work on a longer text runs in a thread. Splitting a text of this length into sentences takes about 1 ms,
which is about the time for starting a thread."""


class ThreadSlot:
    """Runs one function at a time in a thread.

    Several threads would slow down all requests, because only one thread of a process runs Python code at a
    time (GIL).
    """

    def __init__(self, timeout: float | None = None) -> None:
        """`timeout`: seconds that a request may wait for the thread; None for no limit."""
        self._free = asyncio.Semaphore(1)
        self._timeout = timeout

    @property
    def is_free(self) -> bool:
        return not self._free.locked()

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function in the thread, or raise a BusyError if the thread is not free in time.

        A thread cannot be cancelled: if its request is cancelled, the thread keeps the slot until it ends.
        """
        try:
            async with asyncio.timeout(self._timeout):
                await self._free.acquire()
        except TimeoutError:
            raise BusyError("The server is busy. Try again later.", 5) from None
        try:
            thread = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
        except BaseException:
            self._free.release()
            raise
        thread.add_done_callback(self._on_end)
        await asyncio.wait([thread])
        return thread.result()

    async def run_if_large(
        self, num_characters: int, function: Callable[..., Result], *arguments: Any
    ) -> Result:
        """Run a function on text of `num_characters`: at once if the text is short, else in the thread."""
        if num_characters <= MAX_LOOP_CHARACTERS:
            return function(*arguments)
        return await self.run(function, *arguments)

    def _on_end(self, thread: asyncio.Future[Any]) -> None:
        self._free.release()
        if not thread.cancelled():
            thread.exception()  # asyncio would log an exception that is never retrieved
