"""A lock for one request at a time, whose holder can let waiting requests go first during long work."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class YieldingLock:
    """A lock whose holder can yield it to all waiting threads, and then take it again."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False
        self._num_waiting = 0

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock inside a `with` statement."""
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

    def yield_to_waiting(self) -> None:
        """Let every waiting thread go first. The holder calls this between parts of long work."""
        with self._changed:
            if not self._num_waiting:
                return
            self._is_taken = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_taken and not self._num_waiting)
            self._is_taken = True
