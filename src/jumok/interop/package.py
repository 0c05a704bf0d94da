"""The untrusted files of a model in a folder or a zip. Files are read one by one, and never run or extracted.

A zip that contains a single folder is read like that folder. File names that could lead outside the zip,
files that are too large and git-LFS pointers are refused.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from jumok.errors import ModelFolderError
from jumok.storage.folders import read_regular_file

MAX_FILE_BYTES = 16 * 2**30
MAX_TEXT_BYTES = 64 * 2**20
MAX_COMPRESSION = 200
"""The maximum compression ratio of a file above 1 MiB in a zip. Weights are hardly compressible, whereas a
zip bomb has a very high ratio."""
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def refusal(name: str, reason: str, advice: str = "Get the model again from its origin.") -> ModelFolderError:
    """Return the error for a model that cannot be imported."""
    return ModelFolderError(f"{name} cannot be imported: {reason}. {advice}")


class Package:
    """The files of a model by name. Messages name the folder or zip by `label`."""

    def __init__(self, label: str, sizes: dict[str, int]) -> None:
        self.label = label
        self.sizes = sizes

    def __contains__(self, name: str) -> bool:
        return name in self.sizes

    def names(self, suffix: str = "") -> list[str]:
        return sorted(name for name in self.sizes if name.endswith(suffix))

    def read(self, name: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """Return the bytes of a file. Refuse a missing or too large file, and a git-LFS pointer."""
        if name not in self.sizes:
            raise self.refusal(f"the file {name} is missing")
        if self.sizes[name] > max_bytes:
            raise self.refusal(f"{name} has {self.sizes[name]:,} bytes, more than {max_bytes:,}")
        data = self._read(name, max_bytes)
        if data.startswith(_LFS_POINTER):
            raise self.refusal(
                f"{name} is a git-LFS pointer of {len(data)} bytes, not the file itself",
                "Download the real file: `git lfs pull`, or `hf download` from the Hugging Face hub.",
            )
        return data

    def text(self, name: str) -> str:
        try:
            return self.read(name, MAX_TEXT_BYTES).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self.refusal(f"{name} is not UTF-8 ({error.reason} at byte {error.start:,})") from None

    def json(self, name: str) -> dict[str, Any]:
        """Return the JSON object in a file."""
        try:
            content = json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise self.refusal(f"{name} is not JSON ({error})") from None
        if not isinstance(content, dict):
            raise self.refusal(f"{name} is not a JSON object")
        return content

    def refusal(self, reason: str, advice: str = "Get the model again from its origin.") -> ModelFolderError:
        return refusal(self.label, reason, advice)

    def _read(self, name: str, max_bytes: int) -> bytes:
        raise NotImplementedError


class _Folder(Package):
    def __init__(self, folder: Path) -> None:
        # Download caches store each file once and link to it, so a link to a file is followed.
        files = [path for pattern in ("*", "*/*") for path in sorted(folder.glob(pattern)) if path.is_file()]
        paths = {path.relative_to(folder).as_posix(): path.resolve() for path in files}
        super().__init__(str(folder), {name: path.stat().st_size for name, path in paths.items()})
        self._paths = paths

    def _read(self, name: str, max_bytes: int) -> bytes:
        return read_regular_file(self._paths[name], max_bytes=max_bytes)


class _Zip(Package):
    def __init__(self, path: Path) -> None:
        try:
            self._archive = zipfile.ZipFile(path)
            entries = [entry for entry in self._archive.infolist() if not entry.is_dir()]
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise refusal(str(path), f"it is not a zip that can be read ({error})") from None
        for entry in entries:
            _check_entry(path, entry)
        claimed, size = sum(entry.compress_size for entry in entries), path.stat().st_size
        if claimed > size:
            raise refusal(
                str(path), f"its entries claim {claimed:,} bytes, more than the {size:,} of the zip"
            )
        folders = {entry.filename.partition("/")[0] for entry in entries if "/" in entry.filename}
        has_one_folder = len(folders) == 1 and all("/" in entry.filename for entry in entries)
        prefix = f"{folders.pop()}/" if has_one_folder else ""
        self._entries = {entry.filename.removeprefix(prefix): entry for entry in entries}
        super().__init__(str(path), {name: entry.file_size for name, entry in self._entries.items()})

    def _read(self, name: str, max_bytes: int) -> bytes:
        try:
            with self._archive.open(self._entries[name]) as file:
                return file.read(max_bytes)
        except (
            OSError,
            zipfile.BadZipFile,
            NotImplementedError,
            RuntimeError,
            ValueError,
            EOFError,
        ) as error:
            raise self.refusal(f"{name} cannot be unpacked ({error})") from None
        except Exception as error:  # zlib.error and lzma.LZMAError have no common base class
            raise self.refusal(f"{name} cannot be unpacked ({type(error).__name__}: {error})") from None


def _check_entry(path: Path, entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    parts = PurePosixPath(name).parts
    if name.startswith("/") or "\\" in name or ":" in name or "\0" in name or ".." in parts:
        raise refusal(
            str(path),
            f"the name of a file could lead outside it ({name!r})",
            "Do not use a package you do not trust.",
        )
    if entry.file_size > 2**20 and entry.file_size > MAX_COMPRESSION * max(1, entry.compress_size):
        raise refusal(
            str(path),
            f"{name!r} would unpack to {entry.file_size:,} bytes from {entry.compress_size:,}",
            "Do not use a package you do not trust.",
        )


def open_package(path: Path) -> Package:
    """Return the files of a folder or a zip (`.zip`, `.argosmodel`)."""
    if path.is_dir():
        return _Folder(path)
    if path.is_file():
        return _Zip(path)
    raise refusal(str(path), "there is no such folder or file", "Check its name.")
