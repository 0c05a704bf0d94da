"""The user's cache folder: converted models, and the list of checked models (`inference/first_use.py`).

    $JUMOK_CACHE, or $XDG_CACHE_HOME/jumok, or ~/.cache/jumok (macOS, Windows: the system's cache folder)
      engines/        converted models (`inference/engines/cache.py`)
      checked/        one empty file per checked model folder or converted model; its name is the digest of
                      the model (`digest` and `conversion_digest` of `model_folder.StoredModel`)

The cache folder may be deleted at any time. Anyone who can write to it can replace the models that jumok
runs. Like ssh with its keys, jumok therefore refuses a folder that belongs to another user, or to which other
users may write.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from jumok.errors import JumokError, StorageError, UnsupportedError
from jumok.storage.folders import UNTRUSTED_FLAGS, disk_errors, make_folder

ADVICE = "Set JUMOK_CACHE to another folder"
_CHECKED = "checked"


def cache_folder() -> Path:
    """Return the folder for files that jumok can create again."""
    try:
        if folder := os.environ.get("JUMOK_CACHE"):
            return Path(folder).expanduser()
        if sys.platform == "linux":
            # The XDG specification says that relative paths are ignored.
            xdg_folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
            return (xdg_folder if xdg_folder.is_absolute() else Path.home() / ".cache") / "jumok"
        from platformdirs import user_cache_path  # optional: not installed on Linux

        return user_cache_path("jumok", appauthor=False)
    except RuntimeError:
        raise UnsupportedError(
            "There is no home folder for the cache. Name a folder in JUMOK_CACHE."
        ) from None


def private_folder(name: str, *, make: bool = False) -> Path:
    """Return a folder in the cache folder. Raise a StorageError if either folder is not private.

    `_check_private` says what private means. `make` creates missing folders, which only this user can access.
    Without `make`, the returned folder may not exist.
    """
    folder = cache_folder() / name
    with disk_errors(folder, f"{ADVICE}."):
        if make:
            make_folder(folder.parent, mode=0o700)
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            _check_private(folder.parent, folder.parent.stat(), sticky_allowed=True)
            _check_private(folder, folder.lstat())
    return folder


def _check_private(path: Path, status: os.stat_result, *, sticky_allowed: bool = False) -> None:
    """Raise an error if a path is a link, or if another user owns it or may write to it.

    Root may own the path. A group may write to the path if the id of the group is that of the owner: many
    systems give each user such a private group, with write permission for everything that the user creates.
    In a sticky folder, such as /tmp or a tmpfs of a container, others can add files, but they cannot replace
    the files of this user.
    """
    if stat.S_ISLNK(status.st_mode):
        raise StorageError(
            f"{path} is a symbolic link, so it is not used. Remove it, or set JUMOK_CACHE to another folder."
        )
    if not hasattr(os, "geteuid"):  # Windows: a user's profile, where caches are, is closed to others
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise StorageError(
            f"{path} belongs to another user (user id {status.st_uid}), so nothing in it is used. {ADVICE}."
        )
    writable_by_others = stat.S_IWOTH if status.st_gid == status.st_uid else stat.S_IWOTH | stat.S_IWGRP
    if status.st_mode & writable_by_others and not (sticky_allowed and status.st_mode & stat.S_ISVTX):
        raise StorageError(
            f"Other users may write to {path} (mode {stat.S_IMODE(status.st_mode):o}), so nothing in it is "
            f"used. Remove that permission (`chmod go-w {path}`) and delete its content, or set "
            "JUMOK_CACHE to a folder that does not exist yet: jumok makes it for this user alone."
        )


def is_checked(digest: str) -> bool:
    """Return whether this digest is on the list of checked models; False if the list cannot be used."""
    try:
        path = private_folder(_CHECKED) / digest
        status = path.lstat()
        _check_private(path, status)
    except (OSError, JumokError):
        return False
    return stat.S_ISREG(status.st_mode)


def remember_checked(digest: str) -> bool:
    """Put a digest on the list of checked models. Return False if the list cannot be written.

    A model that is not on the list is checked or converted again. This only takes time.
    """
    try:
        path = private_folder(_CHECKED, make=True) / digest
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | UNTRUSTED_FLAGS, 0o600))
    except (OSError, JumokError):
        return False
    return True
