"""Converted models in the user's cache folder, under a hash of the key that says what they were made from.

    engines/HASH/        the files of one converted model with their manifest
    engines/HASH.lock    held during conversion, so that two processes do not convert the same model

The folder may be deleted at any time. Entries are written atomically, verified on every use and created again
if they are damaged. An entry is used only if its manifest, which has the key and the sha256 of every file, is
on the list of what this user's processes have converted (`storage/user_cache.py`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError
from jumok.storage import (
    checksum,
    disk_errors,
    is_checked,
    is_leftover,
    open_lock_file,
    private_folder,
    read_manifest,
    remember_checked,
    remove_folder,
    verify_folder,
    write_folder,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["evict", "get_or_create"]

MAX_UNUSED_SECONDS = 60 * 24 * 3600
"""Entries that were not used for this long are removed when another one is created."""

MAX_LEFTOVER_SECONDS = 24 * 3600
"""Half-written entries of killed processes are removed after this long: no conversion takes a day."""

_MANIFEST = "manifest.json"
_FAILURE_NOTE = "The model itself is intact. Set JUMOK_CACHE to another folder, or use the engine torch."


def get_or_create(key: Mapping[str, Any], create: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    """Return the cached files of a key, file name → bytes; create and store them if there are none."""
    entry = _entry_folder(key)
    cached = _read(entry, key)
    if cached is not None:
        return cached
    with _lock(entry):
        cached = _read(entry, key)  # another process may have created it in the meantime
        if cached is not None:
            return cached
        if os.path.lexists(entry):  # damaged, or a broken link
            remove_folder(entry)
        files = create()
        write_folder(entry, files.items(), metadata={"made_of": dict(key)}, failure_note=_FAILURE_NOTE)
        remember_checked(checksum(read_manifest(entry / _MANIFEST)))
        _remove_unused(entry.parent)
    return files


def evict(key: Mapping[str, Any]) -> None:
    """Remove the entry of a key, if there is one."""
    entry = _entry_folder(key)
    with _lock(entry):
        if entry.exists():
            remove_folder(entry)


def _entry_folder(key: Mapping[str, Any]) -> Path:
    return private_folder("engines") / checksum(key)[:32]


def _read(entry: Path, key: Mapping[str, Any]) -> dict[str, bytes] | None:
    """Return the files of an entry; None if it is missing, damaged, or not made by this user from the key."""
    if not entry.is_dir():
        return None
    try:
        manifest = read_manifest(entry / _MANIFEST)
        if not is_checked(checksum(manifest)) or checksum(manifest["made_of"]) != checksum(key):
            return None
        files = verify_folder(entry)
    except (ModelFolderError, KeyError):
        return None
    with suppress(OSError):
        os.utime(entry)  # the time of its last use
    return files


@contextmanager
def _lock(entry: Path) -> Iterator[None]:
    """Make other processes wait while an entry is created or removed."""
    private_folder("engines", make=True)
    with disk_errors(entry, _FAILURE_NOTE):
        lock = open_lock_file(entry.with_suffix(".lock"))
    with lock:
        with disk_errors(entry, _FAILURE_NOTE):  # some network file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_unused(folder: Path) -> None:
    """Remove old entries, and leftovers of killed processes. Lock files are empty and stay."""
    now = time.time()
    for path in folder.iterdir():
        max_age = MAX_LEFTOVER_SECONDS if is_leftover(path.name) else MAX_UNUSED_SECONDS
        with suppress(OSError):
            if path.is_dir() and path.stat().st_mtime < now - max_age:
                shutil.rmtree(path)
