"""Garbage collection while the server is idle.

Python's cyclic garbage collector stops all threads of a process. After a large document was read, one
collection takes tens of milliseconds, in which no request is answered. Reference counts free most memory
without the collector.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CHECK_SECONDS = 1.0
MAX_SECONDS = 15.0
"""Garbage is collected after this time even if requests are being answered."""


async def collect_when_idle(server_is_idle: Callable[[], bool]) -> None:
    """Until cancelled, replace the automatic collections of this process.

    Garbage is collected while the server is idle, and after MAX_SECONDS at the latest.

    Objects that exist when this coroutine starts are not examined in these collections (`gc.freeze`), because
    most of them stay until the process ends.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        collected_at, may_have_garbage = time.monotonic(), False
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            is_idle = server_is_idle()
            may_have_garbage |= not is_idle or gc.get_count()[0] > gc.get_threshold()[0]
            now = time.monotonic()
            if may_have_garbage and (is_idle or now - collected_at > MAX_SECONDS):
                gc.collect()
                collected_at, may_have_garbage = now, False
    finally:
        gc.enable()
        gc.unfreeze()
