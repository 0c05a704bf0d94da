"""Folders on disk: written whole or not at all, and read without trusting them.

A folder is written under a temporary name beside its final one, its files and itself are flushed to the disk,
and one rename makes it appear. Whoever is killed in the middle leaves `name.tmp-…`, never half a `name`. The
manifest lists sha256 and size of every other file and carries a checksum of itself: a flipped bit is found.

    write_folder(final, files, intact=…)      atomic; full disk and the like become a StorageError
    verify_folder(folder) -> files            each read and compared; ModelFolderError names the damaged one
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from jumok.errors import DataError, ModelFolderError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = [
    "check_name",
    "checked_json",
    "damaged",
    "disk_errors",
    "is_leftover",
    "line_of",
    "read_checked_json",
    "read_listed",
    "read_manifest",
    "read_regular_file",
    "remove_folder",
    "remove_leftovers",
    "standard_input",
    "verify_folder",
    "write_file",
    "write_folder",
]

LARGEST_MANIFEST = 16 * 2**20  # bytes; a manifest is small, and is parsed before anything vouches for it

_DISK_FAULTS = {
    errno.ENOSPC: ("the disk is full", "Free some space and run the same command again."),
    errno.EDQUOT: ("the disk quota is used up", "Free some space and run the same command again."),
    errno.EROFS: ("the file system is read-only", "Choose a folder that can be written to."),
    errno.EACCES: ("permission was denied", "Choose a folder that can be written to."),
    errno.EPERM: ("permission was denied", "Choose a folder that can be written to."),
    errno.EIO: ("the disk reported an I/O error", "Check the disk, then run the same command again."),
}


def write_folder(
    final: Path,
    files: Iterable[tuple[str, bytes]],
    *,
    facts: Mapping[str, Any] | None = None,
    manifest: str = "manifest.json",
    intact: str = "Nothing that was there before has been touched.",
) -> None:
    """Write a new folder so that it appears whole or not at all.

    `files` may be a generator: one file's bytes are held at a time. `facts` go into the manifest, beside the
    list of files. `intact` is the sentence that tells a reader of the error what they still have.
    """
    with disk_errors(final, intact):
        temporary = final.with_name(f"{final.name}.tmp-{os.getpid()}")
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir(parents=True)
            listed = {}
            for name, data in files:
                _write_and_sync(temporary / name, data)
                listed[name] = line_of(data)
            _write_and_sync(temporary / manifest, checked_json({**(facts or {}), "files": listed}))
            _sync_folder(temporary)
            temporary.rename(final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _sync_folder(final.parent)


def line_of(data: bytes) -> dict[str, Any]:
    """What a manifest says of a file."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def write_file(
    path: Path, data: bytes, *, intact: str = "The file that was there before is untouched."
) -> None:
    """Write or replace one file atomically."""
    with disk_errors(path, intact):
        temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
        try:
            _write_and_sync(temporary, data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def remove_folder(folder: Path) -> None:
    """Remove a folder; renamed first, so that nothing half removed stands under a name with a meaning."""
    with disk_errors(folder, "Nothing else has been touched."):
        doomed = folder.with_name(f"{folder.name}.tmp-removed-{os.getpid()}")
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def is_leftover(name: str) -> bool:
    """Whether a name is that of something half written or half removed."""
    return re.search(r"\.tmp-(removed-)?\d+$", name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove what killed writers left in a folder: `name.tmp-PID` and `name.tmp-removed-PID`."""
    for path in folder.glob("*.tmp-*"):
        if not is_leftover(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _write_and_sync(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; some file systems cannot, and say EINVAL."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path, intact: str) -> Iterator[None]:
    """Say in words what the disk said in a number."""
    try:
        yield
    except OSError as error:
        unknown = (f"{error.strerror or error}", "Check the path and the disk.")
        what, advice = _DISK_FAULTS.get(error.errno or 0, unknown)
        raise StorageError(f"{path} could not be written: {what}. {intact} {advice}") from error


def checked_json(content: Mapping[str, Any]) -> bytes:
    """JSON for people, with a checksum of its content inside."""
    whole = {**content, "checksum": _checksum(content)}
    text = json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False)
    return (text + "\n").encode()


def _checksum(content: Mapping[str, Any]) -> str:
    """sha256 of the content in one fixed spelling: what protects the manifest itself from a flipped bit."""
    fixed = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(fixed.encode()).hexdigest()


def read_checked_json(path: Path) -> dict[str, Any]:
    """The inverse of `checked_json`; a file that was changed since is refused."""
    data = read_regular_file(path, largest=LARGEST_MANIFEST)
    try:
        content = json.loads(data, parse_constant=_refuse_constant)
        if not isinstance(content, dict):
            raise ModelFolderError(damaged(path, "it is not a JSON object"))
        recorded = content.pop("checksum", None)
        found = _checksum(content)  # half a character, which JSON can spell, cannot be encoded
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(damaged(path, f"it is not JSON ({error})")) from None
    if recorded != found:
        raise ModelFolderError(damaged(path, "its checksum does not match its content"))
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def read_manifest(path: Path) -> dict[str, Any]:
    content = read_checked_json(path)
    if not isinstance(content.get("files"), dict):
        raise ModelFolderError(damaged(path, 'it has no list of "files"'))
    return content


def read_regular_file(path: Path, *, largest: int) -> bytes:
    """The bytes of a plain file: no symbolic link, device or pipe is followed, nothing larger is read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ModelFolderError(damaged(path, "it is missing")) from None
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else f"{error.strerror}"
        raise ModelFolderError(damaged(path, reason)) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):  # asked first: of a folder, no file object can be made
        os.close(descriptor)
        raise ModelFolderError(damaged(path, "it is not a plain file"))
    with os.fdopen(descriptor, "rb") as file:
        if found.st_size > largest:
            raise ModelFolderError(damaged(path, f"it has {found.st_size:,} bytes, more than {largest:,}"))
        try:
            return file.read()
        except OSError as error:
            raise StorageError(f"{path} could not be read: {error.strerror}. Check the disk.") from error


def read_listed(folder: Path, name: str, listed: object) -> bytes:
    """One file of a folder, compared with its line of the manifest."""
    path = folder / name
    if not isinstance(listed, dict) or not isinstance(listed.get("size"), int):
        raise ModelFolderError(damaged(path, "the manifest lists neither its size nor its sha256"))
    data = read_regular_file(path, largest=listed["size"])
    if len(data) != listed["size"]:
        raise ModelFolderError(damaged(path, f"it has {len(data):,} bytes instead of {listed['size']:,}"))
    if hashlib.sha256(data).hexdigest() != listed.get("sha256"):
        raise ModelFolderError(damaged(path, "its sha256 is not the one that was recorded"))
    return data


def damaged(path: Path, reason: str) -> str:
    return f"{path} cannot be used: {reason}. Copy the folder again from where it came, or make it anew."


def check_name(folder: Path, name: str) -> None:
    """A listed name is a bare file name; what could lead elsewhere is refused before it is opened."""
    if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise ModelFolderError(
            f"{folder} lists a file outside itself. Received: {name!r}. Do not use a folder you do not trust."
        )


def verify_folder(folder: Path, *, manifest: str = "manifest.json") -> dict[str, bytes]:
    """Every listed file's bytes, each compared with its sha256 and size."""
    content = read_manifest(folder / manifest)
    for name in content["files"]:
        check_name(folder, name)
    return {name: read_listed(folder, name, listed) for name, listed in content["files"].items()}


def standard_input() -> BinaryIO:
    """The bytes of standard input, which a caller may have closed (`<&-`)."""
    if sys.stdin is None:
        raise DataError("standard input is closed, so there is nothing to read. Name a file, or pipe one in.")
    return sys.stdin.buffer
