"""Converted models in the user's cache folder, under a hash of the key that says what they were made from.

    $JUMOK_CACHE, or $XDG_CACHE_HOME/jumok, or ~/.cache/jumok
      engines/HASH/        the files of one converted model with their manifest
      engines/HASH.lock    held during conversion, so that two processes do not convert the same model

The folder may be deleted at any time. Entries are written atomically, verified on every use and created again
if they are damaged.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError, UnsupportedError
from jumok.storage import disk_errors, remove_folder, verify_folder, write_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["cache_folder", "evict", "get_or_create"]

MAX_UNUSED_SECONDS = 60 * 24 * 3600
"""Entries that were not used for this long are removed when another one is created."""

_FAILURE_NOTE = "The model itself is intact. Set JUMOK_CACHE to another folder, or use the engine torch."


def cache_folder() -> Path:
    """Return the folder for files that jumok can create again."""
    if folder := os.environ.get("JUMOK_CACHE"):
        return Path(folder).expanduser()
    xdg_folder = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that relative paths are ignored.
    if Path(xdg_folder).is_absolute():
        return Path(xdg_folder) / "jumok"
    try:
        return Path.home() / ".cache" / "jumok"
    except RuntimeError:
        raise UnsupportedError(
            "There is no home folder to store the converted model in. Name a folder in JUMOK_CACHE"
        ) from None


def get_or_create(key: Mapping[str, Any], create: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    """Return the cached files of a key, file name → bytes; create and store them if there are none."""
    entry = _entry_folder(key)
    cached = _read(entry)
    if cached is not None:
        return cached
    with _lock(entry):
        cached = _read(entry)  # another process may have created it in the meantime
        if cached is not None:
            return cached
        if os.path.lexists(entry):  # damaged, or a broken link
            remove_folder(entry)
        files = create()
        write_folder(entry, files.items(), metadata={"made_of": dict(key)}, failure_note=_FAILURE_NOTE)
        _remove_unused(entry.parent)
    return files


def evict(key: Mapping[str, Any]) -> None:
    """Remove the entry of a key, if there is one."""
    entry = _entry_folder(key)
    with _lock(entry):
        if entry.exists():
            remove_folder(entry)


def _entry_folder(key: Mapping[str, Any]) -> Path:
    text = json.dumps(key, sort_keys=True, ensure_ascii=False)
    return cache_folder() / "engines" / hashlib.sha256(text.encode()).hexdigest()[:32]


def _read(entry: Path) -> dict[str, bytes] | None:
    """Return the files of an entry, or None if it is missing or damaged."""
    if not entry.is_dir():
        return None
    try:
        files = verify_folder(entry)
    except ModelFolderError:
        return None
    with suppress(OSError):
        os.utime(entry)  # the time of its last use
    return files


@contextmanager
def _lock(entry: Path) -> Iterator[None]:
    """Make other processes wait while an entry is created or removed."""
    with disk_errors(entry, _FAILURE_NOTE):
        entry.parent.mkdir(parents=True, exist_ok=True)
        lock = entry.with_suffix(".lock").open("w")
    with lock:
        with disk_errors(entry, _FAILURE_NOTE):  # some network file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_unused(folder: Path) -> None:
    """Remove old entries, and old leftovers of killed processes. Lock files are empty and stay."""
    cutoff = time.time() - MAX_UNUSED_SECONDS
    for path in folder.iterdir():
        with suppress(OSError):
            if path.is_dir() and path.stat().st_mtime < cutoff:
                shutil.rmtree(path)
