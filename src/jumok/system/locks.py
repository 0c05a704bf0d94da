"""Locks between processes: a process locks a file, on every operating system, with the package filelock."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from filelock import BaseFileLock

NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""The errno values of a file system that does not support locks."""


def acquire_lock(path: Path, *, wait: bool) -> BaseFileLock:
    """Lock a file, and return the lock, whose `release()` unlocks the file.

    A missing file is created. The content of the file never changes. Raise a BlockingIOError if the file is
    locked already and `wait` is False. Raise another OSError if the file cannot be locked, for example
    because it is a symbolic link or its file system does not support locks (`NO_LOCKS`).
    """
    from filelock import FileLock, Timeout  # start-up

    lock = FileLock(
        path,
        timeout=-1 if wait else 0,
        thread_local=False,  # a generator with the lock may be continued in another thread
        fallback_to_soft=False,  # a marker file would not exclude other machines
    )
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(f"{path} is locked by another process") from None
    return lock
