"""Translate files on disk: one file, or every document of a folder. Each file is written atomically.

plan = plan_files(Path("docs"), Path("docs.ko"))
for source, target in plan.files:
    translate_file(source, target, translate, language="ko")
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """The files to translate, and the files of the source folder that are not translated."""

    files: list[tuple[Path, Path]]
    """The path of each document, and the path of its translation."""
    left_out: list[Path]
    """Files that are not documents."""
    folder: Path | None = None
    """The folder to write to if the source is a folder."""
    hidden: list[Path] = field(default_factory=list)
    """Hidden files, and hidden folders that contain files. They are not translated."""


def plan_files(source: Path, out: Path, *, overwrite: bool = False) -> FilePlan:
    """Return the files to translate and the paths of their translations.

    Raise an error if a target exists and `overwrite` is false. If an earlier translation of the folder was
    interrupted, its part file exists, and existing targets are accepted.
    """
    if out.name in ("", ".."):  # "." and ".." have no name to which the suffix of a part file can be added
        out = out.resolve()
    if source.is_dir():
        plan = _plan_folder(source, out)
        overwrite = overwrite or part_path(out).exists()
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


def _plan_folder(source: Path, out: Path) -> FilePlan:
    # The output folder may be inside the source folder. Its files are translations, not sources.
    resolved_source, resolved_out = source.resolve(), out.resolve()
    excluded = resolved_out if resolved_source in resolved_out.parents else None
    inside = sorted(
        path
        for path in source.rglob("*")
        if path.is_file() and (excluded is None or not path.resolve().is_relative_to(excluded))
    )
    visible, hidden = [], []
    for path in inside:
        if (hidden_part := _first_hidden(path.relative_to(source))) is None:
            visible.append(path)
        else:
            hidden.append(source / hidden_part)
    hidden = list(dict.fromkeys(hidden))
    files = [(path, out / path.relative_to(source)) for path in visible if is_document(path.name)]
    if not files:
        note = f" Hidden files and folders are left out, such as {hidden[0].name}." if hidden else ""
        raise DataError(f"{source} has no document of a known type, among {len(visible):,} files.{note}")
    return FilePlan(files, [path for path in visible if not is_document(path.name)], out, hidden)


def _first_hidden(path: Path) -> Path | None:
    """Return the first file or folder on the path that is hidden, such as .git, or None.

    Lock files such as ~$report.docx, which Word creates beside open documents, count as hidden.
    """
    for index, part in enumerate(path.parts):
        if part.startswith((".", "~$")):
            return Path(*path.parts[: index + 1])
    return None


def check_target(source: Path, target: Path, *, overwrite: bool) -> None:
    """Raise an error if the target is the source file, or if it exists and `overwrite` is false."""
    if target.exists() and target.samefile(source):
        raise DataError(f"{target} would replace its own source. Choose another name for the translation.")
    if target.exists() and not overwrite:
        raise StorageError(
            f"{target} exists and is not overwritten. Choose another name, or add --overwrite."
        )


def open_document(path: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> Document:
    """Read a document. Errors name the file. `read` may convert the text of the file to UTF-8."""
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
) -> Sequence[str]:
    """Translate a document, write the translation atomically, and return the notes on the document.

    Raise an error if the target exists and `overwrite` is false.
    """
    document = open_document(source, read)
    data = document.write(translate(document.segments), language, source_language)
    with disk_errors(target.parent, "Nothing has been written."):
        target.parent.mkdir(parents=True, exist_ok=True)
    check_target(source, target, overwrite=overwrite)
    write_file(target, data)
    return document.notes
