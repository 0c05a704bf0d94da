"""Ctrl-C and SIGTERM in training runs and comparisons: the first saves and stops, the second stops at once.

A handler may run between any two bytecodes, so it only sets a flag. The training loop checks the flag after
each step and between the batches of a validation. Only the main thread may install handlers. In another
thread (of a notebook, a server) no handler is installed; the caller stops the run by not requesting the next
event.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class StopFlag:
    """A flag that a signal sets to stop the run. Calling the flag returns whether it is set."""

    def __init__(self) -> None:
        self.is_set = False

    def __call__(self) -> bool:
        return self.is_set


@contextmanager
def stop_on_signals() -> Iterator[StopFlag]:
    """Within this block, the first SIGINT or SIGTERM sets the flag. A second signal has its usual effect.

    A signal that is ignored when the block begins (`nohup`, a background job) stays ignored.
    """
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    replaced = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in replaced.items():  # None: a handler that Python did not install
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def set_flag(number: int, frame: FrameType | None) -> None:
        flag.is_set = True
        restore()

    for number in replaced:
        signal.signal(number, set_flag)
    try:
        yield flag
    finally:
        restore()
