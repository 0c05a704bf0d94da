"""Ctrl-C and SIGTERM while training: the first asks for a save, the second leaves at once.

A handler may run between any two bytecodes, so it only raises a flag; the loop looks at it after each step
and between the batches of a validation. Signals reach the main thread alone: elsewhere (a notebook's
worker, a server) nothing is installed and whoever drives the events just stops asking for the next one.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["Interrupt", "watch_signals"]


class Interrupt:
    """Whether somebody asked the run to stop."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked


@contextmanager
def watch_signals() -> Iterator[Interrupt]:
    """Within this block SIGINT and SIGTERM raise the flag; a second one acts as it would have without it.

    Who started the program so that it ignores one of them (`nohup`, a job in the background) meant it.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.asked = True
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield interrupt
    finally:
        restore()
