"""Translate files on disk: one file, or every document of a folder. Nothing is half-written.

for source, target in plan.files:
    translate_file(source, target, translate, language="ko")
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.documents.part_file import part_path
from jumok.documents.registry import find_format, is_document, read_document
from jumok.errors import DataError, StorageError
from jumok.storage.folders import disk_errors, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jumok.documents.document import Document, SegmentTranslation

    Translate = Callable[[Sequence[str]], Sequence[SegmentTranslation]]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The files to translate with their translations' paths, and the files of a folder that are left out."""

    files: list[tuple[Path, Path]]
    left_out: list[Path]
    folder: Path | None = None
    """The folder for the translations of a folder."""


def plan_files(source: Path, out: Path, *, overwrite: bool = False) -> FilePlan:
    """Return the files to translate and where to write each; refuse existing targets unless `overwrite`.

    An interrupted translation of a folder has a part file: then existing targets are not refused here.
    """
    if source.is_dir():
        found = sorted(
            path
            for path in source.rglob("*")
            if path.is_file() and not _is_hidden(path.relative_to(source)) and not _is_inside(path, out)
        )
        files = [(path, out / path.relative_to(source)) for path in found if is_document(path.name)]
        plan = FilePlan(files, [path for path in found if not is_document(path.name)], out)
        overwrite = overwrite or part_path(out).exists()
        if not files:
            raise DataError(f"{source} has no document of a known type, among {len(found):,} files.")
    else:
        find_format(source.name)
        if out.is_dir():
            out = out / source.name
        if find_format(out.name) is not find_format(source.name):
            raise DataError(
                f"A translated document keeps its format. Received: {source.name} to be written as "
                f"{out.name}. Choose a name that ends in {source.suffix}."
            )
        plan = FilePlan([(source, out)], [])
    for path, target in plan.files:
        check_target(path, target, overwrite=overwrite)
    return plan


def _is_hidden(path: Path) -> bool:
    """Return whether a file or a folder on the path begins with a dot, such as .git."""
    return any(part.startswith(".") for part in path.parts)


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def check_target(source: Path, target: Path, *, overwrite: bool) -> None:
    """Raise if the translation would replace its source, or a file that exists unless `overwrite`."""
    if target.exists() and target.samefile(source):
        raise DataError(f"{target} would replace its own source. Choose another name for the translation.")
    if target.exists() and not overwrite:
        raise StorageError(
            f"{target} exists and is not overwritten. Choose another name, or add --overwrite."
        )


def open_document(path: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> Document:
    """Read a document; the error names the file. `read` may return its text in another encoding."""
    try:
        data = read(path)
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return read_document(path.name, data)[1]
    except DataError as error:
        raise DataError(f"{path}: {error}" if data else f"{path} is empty.") from None


def translate_file(
    source: Path,
    target: Path,
    translate: Translate,
    *,
    language: str,
    source_language: str = "",
    read: Callable[[Path], bytes] = Path.read_bytes,
    overwrite: bool = False,
) -> None:
    """Translate a document and write it atomically; not over a file that was written meanwhile."""
    document = open_document(source, read)
    data = document.write(translate(document.segments), language, source_language)
    with disk_errors(target.parent, "Nothing has been written."):
        target.parent.mkdir(parents=True, exist_ok=True)
    check_target(source, target, overwrite=overwrite)
    write_file(target, data)
