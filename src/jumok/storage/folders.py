"""Folders on disk: written atomically, and verified when they are read.

A folder is written under a temporary name beside its final one, flushed to the disk, and renamed. A process
that is killed while it writes leaves `name.tmp-NUMBER`, never half a `name`. The manifest lists the sha256
and size of every other file and has a checksum of itself, so verification finds even a flipped bit.

    write_folder(final, files, failure_note=…)  atomic; raises a StorageError if the disk is full, for example
    new_folder(final, failure_note=…)           the same as a context manager, for files that are appended to
    verify_folder(folder) -> files              raises a ModelFolderError if a file differs from the manifest
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from jumok.errors import ModelFolderError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

# Flags for opening a file that another user may have created: do not follow a symbolic link, do not wait for
# a pipe, and do not convert line ends. Windows has only the third flag, other systems only the first two.
UNTRUSTED_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
MAX_MANIFEST_BYTES = 16 * 2**20  # a manifest is small, and it is parsed before anything is verified

# Errors of open(2) that mean that the path itself is wrong. All other errors (too many open files, an I/O
# error, a missing permission …) may be temporary, or concern only this process. The file may be undamaged.
_PATH_ERRORS = {
    errno.ENOENT: "it is missing",
    errno.ENOTDIR: "it is missing",
    errno.ELOOP: "it is a symbolic link",
    errno.ENXIO: "it is not a regular file",
    errno.ENAMETOOLONG: "its name is too long",
}
_DISK_ERRORS = {  # errno → cause, advice
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
    metadata: Mapping[str, Any] | None = None,
    manifest: str = "manifest.json",
    failure_note: str = "Nothing that was there before has been touched.",
    replace: bool = False,
) -> None:
    """Write a new folder with these files and a manifest atomically.

    `files` may be a generator, so that only one file is in memory at a time. `metadata` goes into the
    manifest, beside the list of files. `failure_note` is a sentence of the error message that says which data
    is untouched. `replace` replaces an existing folder.
    """
    with new_folder(final, failure_note=failure_note, replace=replace) as temporary:
        entries = {}
        for name, data in files:
            write_and_sync(temporary / name, data)
            entries[name] = manifest_entry(data)
        write_and_sync(temporary / manifest, json_with_checksum({**(metadata or {}), "files": entries}))


@contextmanager
def new_folder(final: Path, *, failure_note: str, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder to write into, and rename it to `final` when the block ends without an error.

    The block must flush its files to the disk (`write_and_sync`). `replace` replaces an existing folder by
    two renames: a process that is killed between them leaves no folder of the final name, and
    `remove_leftovers` brings the old one back.
    """
    with disk_errors(final, failure_note):
        temporary = _temporary(final)
        try:
            make_folder(final.parent)
            temporary.mkdir()
            yield temporary
            _sync_folder(temporary)
            old = final.rename(_temporary(final, "replaced-")) if replace and final.exists() else None
            try:
                temporary.rename(final)
            except BaseException:
                if old is not None and not final.exists():
                    old.rename(final)
                raise
            if old is not None:
                _remove(_rename_for_removal(old))
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    _sync_new_name(final, failure_note)


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder and its parents, if they are missing, and flush their names to the disk."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=mode, exist_ok=True)
        _sync_folder(path.parent)
    if not missing and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def manifest_entry(data: bytes) -> dict[str, Any]:
    """Return the manifest entry of a file with this content."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def write_file(
    path: Path,
    data: bytes | Iterable[bytes],
    *,
    failure_note: str = "The file that was there before is untouched.",
) -> None:
    """Write or replace one file atomically. `data` may be an iterable of chunks, for large files."""
    with disk_errors(path, failure_note):
        temporary = _temporary(path)
        try:
            write_and_sync(temporary, data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    _sync_new_name(path, failure_note)


def remove_folder(folder: Path) -> None:
    """Remove a folder. It is renamed first, so a half-removed folder never has its name."""
    with disk_errors(folder, "Nothing else has been touched."):
        _remove(_rename_for_removal(folder))


def _temporary(path: Path, kind: str = "") -> Path:
    """Return a random name beside a path. `kind` is a part of the name that `remove_leftovers` looks for.

    A process id would not be unique: ids are reused, and two containers or machines with a shared folder can
    have processes with the same id. Then one process could write to the files of the other process.
    """
    return path.with_name(f"{path.name}.tmp-{kind}{secrets.randbits(32)}")


def _rename_for_removal(folder: Path) -> Path:
    return folder.rename(_temporary(folder, "removed-"))


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder, as far as possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def is_leftover(name: str) -> bool:
    """Return whether a name is that of a temporary file or folder, which a killed process leaves behind.

    The name does not show whether the process is still writing.
    """
    return re.search(r"\.tmp-(removed-|replaced-)?\d+$", name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders in a folder. No other process may be writing to the folder.

    Their names are `name.tmp-NUMBER`, `name.tmp-removed-NUMBER` and `name.tmp-replaced-NUMBER`. The last is a
    complete old folder. If there is no folder `name`, because the process was killed before the new folder
    got this name, the old folder is renamed back to `name`.
    """
    for path in folder.glob("*.tmp-*"):
        replaced = re.fullmatch(r"(.+)\.tmp-replaced-\d+", path.name)
        if replaced and not (final := path.with_name(replaced[1])).exists():
            with suppress(OSError):
                path.rename(final)
        elif is_leftover(path.name):
            _remove(path)


def write_and_sync(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file and flush it to the disk."""
    with path.open("wb") as file:
        file.writelines([data] if isinstance(data, bytes | bytearray | memoryview) else data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, if the file system can do this. If not, it reports EINVAL."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # this user may write to the folder but not read it; or this is Windows
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _sync_new_name(path: Path, failure_note: str) -> None:
    """Flush the new name of a file or folder to the disk. Its content is complete even if this fails."""
    try:
        _sync_folder(path.parent)
    except OSError as error:
        cause, advice = _cause_and_advice(error)
        raise StorageError(
            f"{path} is complete, but the disk did not confirm its name: {cause}. After a power failure it "
            f"may be missing. {failure_note} {advice}"
        ) from error


def _cause_and_advice(error: OSError) -> tuple[str, str]:
    default = (f"{error.strerror or error}", "Check the path and the disk.")
    return _DISK_ERRORS.get(error.errno or 0, default)


@contextmanager
def disk_errors(path: Path, failure_note: str) -> Iterator[None]:
    """Turn an OSError of the block into a StorageError; `failure_note` says which data is untouched."""
    try:
        yield
    except OSError as error:
        cause, advice = _cause_and_advice(error)
        raise StorageError(f"{path} could not be written: {cause}. {failure_note} {advice}") from error


def json_with_checksum(content: Mapping[str, Any]) -> bytes:
    """Return readable JSON that contains a checksum of its content."""
    with_checksum = {**content, "checksum": checksum(content)}
    text = json.dumps(with_checksum, ensure_ascii=False, indent=1, allow_nan=False)
    return (text + "\n").encode()


def checksum(content: Mapping[str, Any]) -> str:
    """Return the sha256 of the content in canonical JSON: sorted keys, no spaces."""
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def read_json_with_checksum(path: Path) -> dict[str, Any]:
    """Read a file that `json_with_checksum` has produced. Refuse it if its content was changed."""
    data = read_regular_file(path, max_bytes=MAX_MANIFEST_BYTES)
    try:
        content = json.loads(data, parse_constant=_refuse_constant)
        if not isinstance(content, dict):
            raise ModelFolderError(damage_message(path, "it is not a JSON object"))
        recorded = content.pop("checksum", None)
        computed = checksum(content)  # raises for a lone surrogate, which JSON can contain as an escape
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(damage_message(path, f"it is not JSON ({error})")) from None
    if recorded != computed:
        raise ModelFolderError(damage_message(path, "its checksum does not match its content"))
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a file that `json_with_checksum` has produced and that has a list of files."""
    content = read_json_with_checksum(path)
    if not isinstance(content.get("files"), dict):
        raise ModelFolderError(damage_message(path, 'it has no list of "files"'))
    return content


def read_regular_file(path: Path, *, max_bytes: int) -> bytes:
    """Read a regular file; refuse symbolic links, devices, pipes, and files of more than `max_bytes`.

    A ModelFolderError means that the file is missing or refused, a StorageError that it cannot be read at the
    moment.
    """
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise ModelFolderError(damage_message(path, _PATH_ERRORS[errno.ELOOP]))
    try:
        descriptor = os.open(path, os.O_RDONLY | UNTRUSTED_FLAGS)
    except OSError as error:
        if error.errno in _PATH_ERRORS:
            raise ModelFolderError(damage_message(path, _PATH_ERRORS[error.errno])) from None
        raise _read_error(path, error) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):  # checked first: os.fdopen would fail for a folder
        os.close(descriptor)
        raise ModelFolderError(damage_message(path, "it is not a regular file"))
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > max_bytes:
            reason = f"it has {status.st_size:,} bytes, more than {max_bytes:,}"
            raise ModelFolderError(damage_message(path, reason))
        try:
            return file.read()
        except OSError as error:
            raise _read_error(path, error) from error


def _read_error(path: Path, error: OSError) -> StorageError:
    advice = {
        errno.EMFILE: "Raise the limit of open files (`ulimit -n`)",
        errno.EACCES: "Check who may read it",
    }.get(error.errno or 0, "Check the disk")
    return StorageError(
        f"{path} could not be read: {error.strerror or error}. {advice}, then run the same command again."
    )


def read_listed_file(folder: Path, name: str, entry: object) -> bytes:
    """Read one file of a folder and compare it with its entry in the manifest."""
    path = folder / name
    if not isinstance(entry, dict) or not isinstance(entry.get("size"), int):
        raise ModelFolderError(damage_message(path, "the manifest does not list its size"))
    data = read_regular_file(path, max_bytes=entry["size"])
    if len(data) != entry["size"]:
        raise ModelFolderError(
            damage_message(path, f"it has {len(data):,} bytes instead of {entry['size']:,}")
        )
    if hashlib.sha256(data).hexdigest() != entry.get("sha256"):
        raise ModelFolderError(damage_message(path, "its sha256 is not the recorded one"))
    return data


class OpenFile:
    """A file that can be read even after its folder was replaced or removed.

    Unix keeps an open file until the last process closes it. Windows would refuse to replace a folder with an
    open file, so on Windows the file is not opened.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        if os.name == "posix":
            with suppress(OSError):
                self._descriptor = os.open(path, os.O_RDONLY | UNTRUSTED_FLAGS)
                weakref.finalize(self, os.close, self._descriptor)

    def read(self, entry: Mapping[str, Any]) -> bytes | None:
        """Return the content if it has the sha256 of this manifest entry.

        Return None if the content differs, or if the file could not be opened.
        """
        if self._descriptor is None:
            return None
        blocks: list[bytes] = []
        while block := os.pread(self._descriptor, 2**24, sum(map(len, blocks))):
            blocks.append(block)
        data = b"".join(blocks)
        return data if hashlib.sha256(data).hexdigest() == entry.get("sha256") else None


def damage_message(path: Path, reason: str) -> str:
    return f"{path} cannot be used: {reason}. Copy the folder again from its origin, or create it again."


def check_file_name(folder: Path, name: str) -> None:
    """Raise a ModelFolderError if a name that a manifest lists is not a plain file name.

    Call this before the file is opened: such a name could lead out of the folder.
    """
    if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise ModelFolderError(
            f"{folder} lists a file outside itself. Received: {name!r}. Do not use a folder you do not trust."
        )


def verify_folder(folder: Path, *, manifest: str = "manifest.json") -> dict[str, bytes]:
    """Return the bytes of every listed file. Refuse a file whose size or sha256 differs from the manifest."""
    content = read_manifest(folder / manifest)
    for name in content["files"]:
        check_file_name(folder, name)
    return {name: read_listed_file(folder, name, entry) for name, entry in content["files"].items()}
