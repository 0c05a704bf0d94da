"""Converted models in the user's cache folder. The key of an entry describes the model and the conversion.

    engines/DIGEST/        the files of one converted model with their manifest; DIGEST is the first half of
                           the sha256 of the key
    engines/DIGEST.lock    held during conversion, so that two processes do not convert the same model, if the
                           file system has locks

The folder `engines` may be deleted at any time. Entries are written atomically, verified on every use and
created again if they are damaged. The manifest of an entry has the key and the sha256 of every file. An entry
is used only if a process of this user has written it: the digest of its manifest is then on the list of
`storage/user_cache.py`.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError, StorageError
from jumok.storage.folders import (
    checksum,
    disk_errors,
    is_leftover,
    read_manifest,
    remove_folder,
    verify_folder,
    write_folder,
)
from jumok.storage.user_cache import is_checked, private_folder, remember_checked
from jumok.system.locks import NO_LOCKS, acquire_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

MAX_UNUSED_SECONDS = 60 * 24 * 3600
"""Entries that were not used for this long are removed when another entry is created."""

MAX_LEFTOVER_SECONDS = 24 * 3600
"""Half-written entries that are older are removed when an entry is created: no conversion takes a day."""

_MANIFEST = "manifest.json"
_FAILURE_NOTE = "The model itself is intact. Set JUMOK_CACHE to another folder, or use the engine torch."


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A converted model in the cache. `model` is the folder of the original model.

    `precision` and `model` are "" if the manifest does not have them or cannot be read.
    """

    folder: Path
    num_bytes: int
    last_used: float
    """Seconds since 1970."""
    precision: str
    model: str


def cached_models() -> list[CachedModel]:
    """Return the complete converted models of this user, the most recently used first."""
    entries = [path for path in _folders() if not is_leftover(path.name)]
    return sorted(map(_describe, entries), key=lambda entry: entry.last_used, reverse=True)


def remove_cached(entry: CachedModel) -> None:
    """Remove a converted model. A process that uses the model continues, because it has read the files."""
    with _lock(entry.folder):
        if entry.folder.exists():
            remove_folder(entry.folder)


def remove_half_written() -> None:
    """Remove the half-written entries of killed processes. Wait for processes that still convert a model."""
    for path in _folders():
        if is_leftover(path.name):
            with _lock(path):  # the lock of DIGEST.tmp-NUMBER is DIGEST.lock
                shutil.rmtree(path, ignore_errors=True)


def _folders() -> list[Path]:
    folder = private_folder("engines")
    return [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


def _describe(folder: Path) -> CachedModel:
    num_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    precision = model = ""
    with suppress(ModelFolderError, KeyError, TypeError):
        manifest = read_manifest(folder / _MANIFEST)
        model = str(manifest.get("model", ""))
        precision = str(manifest["made_of"].get("precision", ""))
    return CachedModel(folder, num_bytes, folder.stat().st_mtime, precision, model)


def get_or_create(
    key: Mapping[str, Any], create: Callable[[], dict[str, bytes]], *, model: str = ""
) -> dict[str, bytes]:
    """Return the cached files of a key: file name → bytes. Create and store them if there is no entry.

    `model` is the folder of the original model, which the list of cached models shows.
    """
    entry = _entry_folder(key)
    cached = _read(entry, key)
    if cached is not None:
        return cached
    with _lock(entry):
        cached = _read(entry, key)  # another process may have created it in the meantime
        if cached is not None:
            return cached
        if os.path.lexists(entry):  # an entry that cannot be used, or a broken link
            remove_folder(entry)
        files = create()
        metadata = {"made_of": dict(key), "model": model}
        try:
            write_folder(entry, files.items(), metadata=metadata, failure_note=_FAILURE_NOTE)
        except StorageError:
            if _read(entry, key) is None:
                raise
            return files  # another machine, which the lock does not reach, has written the entry
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
    """Return the files of an entry, or None if it cannot be used.

    An entry can be used if it is complete and undamaged, has this key, and was written by a process of this
    user, which has put its manifest on the list of `storage/user_cache.py`.
    """
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
    """Make other processes wait while an entry is created or removed.

    If the file system has no locks, two processes may convert the same model, which costs only time: an entry
    is written atomically.
    """
    private_folder("engines", make=True)
    lock = None
    with disk_errors(entry, _FAILURE_NOTE):
        try:
            lock = acquire_lock(entry.with_suffix(".lock"), wait=True)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def _remove_unused(folder: Path) -> None:
    """Remove entries that were not used for long, and old half-written entries.

    Lock files are empty and stay. See `MAX_UNUSED_SECONDS` and `MAX_LEFTOVER_SECONDS`.
    """
    now = time.time()
    for path in folder.iterdir():
        max_age = MAX_LEFTOVER_SECONDS if is_leftover(path.name) else MAX_UNUSED_SECONDS
        with suppress(OSError):
            if path.is_dir() and path.stat().st_mtime < now - max_age:
                shutil.rmtree(path)
