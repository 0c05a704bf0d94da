"""Whose turn it is to compute: one request at a time, and long ones let the others through."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Turns:
    """A lock whose holder can let those who wait go first, and then take it again."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False
        self._num_waiting = 0

    @contextmanager
    def take(self) -> Iterator[None]:
        """Hold the turn inside a `with` statement."""
        with self._changed:
            self._num_waiting += 1
            self._changed.wait_for(lambda: not self._is_taken)
            self._num_waiting -= 1
            self._is_taken = True
        try:
            yield
        finally:
            with self._changed:
                self._is_taken = False
                self._changed.notify_all()

    def give_way(self) -> None:
        """Let every request that waits go first. The holder calls this between parts of long work."""
        with self._changed:
            if not self._num_waiting:
                return
            self._is_taken = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_taken and not self._num_waiting)
            self._is_taken = True
