"""Stores the finished blocks of a long translation on disk, for example in `report.ko.docx.part`.

    part = PartFile(path, key)          the key identifies the input, the model and the options
    part.results                        results by block name, including results of earlier processes
    part.add("3", result)               appends the result of block "3" and flushes it to the disk
    part.remove()                       deletes the file, after the document has been written
    part.close()                        releases the lock; must always be called

The file has one JSON value per line. The first line is the key. Every other line is [name, result, digest].
If a process is killed, the last line may be incomplete. The next process removes this line. A file with a
different key belongs to another translation. A file without a key was not written by jumok. Both kinds of
files are refused unless `overwrite` is true. A file that ends within its key is replaced, because a process
was killed while it wrote the key.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jumok.errors import StorageError
from jumok.storage.folders import UNTRUSTED_FLAGS, disk_errors, make_folder
from jumok.system.locks import NO_LOCKS, acquire_lock

if TYPE_CHECKING:
    from pathlib import Path

    from filelock import BaseFileLock

_SUFFIX, _LOCK_SUFFIX = ".part", ".part.lock"
_KEY_NAME = "jumok translate"


def make_key(*content: Any) -> str:
    """Return a digest of values that JSON can represent."""
    text = json.dumps(content, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class PartFile:
    """The results of an incomplete translation, stored beside the file or folder that will be written.

    A lock lets one process use the part file at a time. Without the lock, two processes would cut off each
    other's results.
    """

    def __init__(self, target: Path, key: str, *, overwrite: bool = False) -> None:
        self.path = part_path(target)
        self._lock_file = target.with_name(target.name + _LOCK_SUFFIX)
        self._key = key
        self._header = json.dumps({_KEY_NAME: key}).encode() + b"\n"
        self._lock = self._acquire_lock(target)
        try:
            self.results, self._length = self._read(overwrite=overwrite)
        except BaseException:
            self.close()
            raise

    def add(self, name: str, result: Any) -> None:
        """Store a result."""
        line = json.dumps([name, result, make_key(self._key, name, result)]).encode() + b"\n"
        with disk_errors(self.path, "What was stored before is intact."):
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | UNTRUSTED_FLAGS, 0o666)
            with os.fdopen(descriptor, "ab") as file:
                file.truncate(self._length)  # removes an incomplete line, or a translation to be overwritten
                if not self._length:
                    line = self._header + line
                self._length += file.write(line)
                file.flush()
                os.fsync(file.fileno())
        self.results[name] = result

    def remove(self) -> None:
        with disk_errors(self.path, "Everything is translated."):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock, so that other processes can use the file."""
        if self._lock is not None:
            with suppress(OSError):  # Windows does not remove open files
                self._lock_file.unlink(missing_ok=True)
            self._lock.release()

    def _acquire_lock(self, target: Path) -> BaseFileLock | None:
        """Return the lock, or None if the file system has no locks."""
        with disk_errors(self._lock_file, "Nothing has been translated."):
            make_folder(target.parent)
            try:
                return acquire_lock(self._lock_file, wait=False)
            except BlockingIOError:
                raise StorageError(
                    f"Another process is translating to {target}. Wait for it, or choose another name with "
                    "--out."
                ) from None
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
                return None

    def _read(self, *, overwrite: bool) -> tuple[dict[str, Any], int]:
        """Return the stored results, and the length of the intact part of the file."""
        results: dict[str, Any] = {}
        header, rest = self._read_file()
        if header != self._header:
            # A killed process may have written only the beginning of the header. Such a file is replaced.
            if not overwrite and not self._header.startswith(header):
                self._refuse(header)
            return results, 0
        length = len(header)
        with suppress(ValueError, TypeError):  # a damaged line ends the intact part
            for line in rest.splitlines(keepends=True):
                name, result, digest = json.loads(line)
                if not line.endswith(b"\n") or digest != make_key(self._key, name, result):
                    break
                results[name] = result
                length += len(line)
        return results, length

    def _read_file(self) -> tuple[bytes, bytes]:
        """Return the first bytes of the file, as many as the header has, and the rest of the file.

        If the first bytes are not the expected header, the rest is not read, and b"" is returned for it. If
        there is no file, both are b"".
        """
        if self.path.exists() and not self.path.is_file():
            raise StorageError(f"{self.path} is not a file. Move it away, or choose another name with --out.")
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | UNTRUSTED_FLAGS), "rb") as file:
                header = file.read(len(self._header))
                return header, file.read() if header == self._header else b""
        except FileNotFoundError:
            return b"", b""
        except OSError as error:
            reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
            raise StorageError(
                f"{self.path} cannot be read: {reason}. Move it away, or choose another name with --out."
            ) from None

    def _refuse(self, header: bytes) -> None:
        """Raise an error, because the file does not belong to this translation."""
        if header.startswith(b'{"' + _KEY_NAME.encode()):
            raise StorageError(
                f"{self.path} is an interrupted translation of another document, or with another model or "
                "other options. Run the command that began it to continue, or add --overwrite to begin again."
            )
        raise StorageError(
            f"{self.path} exists and is not from jumok. jumok needs this file name to store the progress of "
            "the translation. Choose another name with --out, or add --overwrite to replace the file."
        )


def part_path(target: Path) -> Path:
    """Return the path of the part file of a translation."""
    return target.with_name(target.name + _SUFFIX)
