"""Converted models, kept in the user's cache folder: made once, found again by what they were made of.

    $JUMOK_CACHE, or $XDG_CACHE_HOME/jumok, or ~/.cache/jumok
      engines/KEY/        the files of one converted model with their manifest
      engines/KEY.lock    held while it is made, so that two processes do not make it twice

The folder may be deleted at any time. An entry is written whole or not at all, is verified whenever it is
used, and is made anew where it is damaged.
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

__all__ = ["cache_folder", "forget", "kept_files"]

UNUSED_SECONDS = 60 * 24 * 3600
"""Entries that nobody has used for this long are removed when another is made."""


def cache_folder() -> Path:
    """Where jumok keeps what it can make again."""
    if own := os.environ.get("JUMOK_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The specification of these folders says that a relative path is to be ignored.
    if Path(shared).is_absolute():
        return Path(shared) / "jumok"
    try:
        return Path.home() / ".cache" / "jumok"
    except RuntimeError:
        raise UnsupportedError(
            "There is no home folder to keep the converted model in. Name a folder in JUMOK_CACHE"
        ) from None


def kept_files(made_of: Mapping[str, Any], make: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    """The files that belong to these facts, by name: from the cache, or made and put there."""
    entry = _entry(made_of)
    found = _read(entry)
    if found is not None:
        return found
    with _held(entry):
        found = _read(entry)  # somebody else may have made it in the meantime
        if found is not None:
            return found
        if os.path.lexists(entry):  # damaged, or a link to nowhere
            remove_folder(entry)
        files = make()
        write_folder(entry, files.items(), facts={"made_of": dict(made_of)}, intact=_NOTHING_LOST)
        _remove_unused(entry.parent)
    return files


def forget(made_of: Mapping[str, Any]) -> None:
    """Remove an entry that is whole and yet of no use."""
    entry = _entry(made_of)
    with _held(entry):
        if entry.exists():
            remove_folder(entry)


_NOTHING_LOST = "The model itself is intact. Set JUMOK_CACHE to another folder, or use the engine torch."


def _entry(made_of: Mapping[str, Any]) -> Path:
    spelt = json.dumps(made_of, sort_keys=True, ensure_ascii=False)
    return cache_folder() / "engines" / hashlib.sha256(spelt.encode()).hexdigest()[:32]


def _read(entry: Path) -> dict[str, bytes] | None:
    """The files of an entry, or None where it is missing or damaged."""
    if not entry.is_dir():
        return None
    try:
        files = verify_folder(entry)
    except ModelFolderError:
        return None
    with suppress(OSError):
        os.utime(entry)  # its last use
    return files


@contextmanager
def _held(entry: Path) -> Iterator[None]:
    """Keep other processes out while an entry is made; they wait and then find it."""
    with disk_errors(entry, _NOTHING_LOST):
        entry.parent.mkdir(parents=True, exist_ok=True)
        lock = entry.with_suffix(".lock").open("w")
    with lock:
        with disk_errors(entry, _NOTHING_LOST):  # some shared disks know no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_unused(folder: Path) -> None:
    """Also what killed processes left half written, once it is that old. Locks are empty and stay."""
    before = time.time() - UNUSED_SECONDS
    for path in folder.iterdir():
        with suppress(OSError):
            if path.is_dir() and path.stat().st_mtime < before:
                shutil.rmtree(path)
