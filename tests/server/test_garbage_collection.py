"""Garbage is collected while the server is idle. A busy server collects it after a maximum time."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

from jumok.server import garbage_collection
from jumok.server.garbage_collection import collect_when_idle

if TYPE_CHECKING:
    import pytest


class Cycle:
    """An object that refers to itself, so that only the garbage collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_cycles_are_collected_when_the_server_is_idle_or_after_the_maximum_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage_collection, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(garbage_collection, "MAX_SECONDS", 0.3)
    is_idle = False

    async def run() -> None:
        nonlocal is_idle
        task = asyncio.create_task(collect_when_idle(lambda: is_idle))
        await asyncio.sleep(0.05)
        assert not gc.isenabled()  # there are no automatic collections
        first_cycle = weakref.ref(Cycle())
        await asyncio.sleep(0.05)  # several times CHECK_SECONDS, and less than MAX_SECONDS
        assert first_cycle() is not None
        is_idle = True
        await asyncio.sleep(0.05)
        assert first_cycle() is None
        is_idle = False
        second_cycle = weakref.ref(Cycle())
        await asyncio.sleep(0.5)  # more than MAX_SECONDS
        assert second_cycle() is None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert gc.isenabled()
