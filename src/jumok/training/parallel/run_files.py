"""The files of a run that every rank reads: tokenizers, encoded pairs, a pretrained encoder, a start model.

A rank on the machine of rank 0, or with the same file system, opens the files in the run folder itself. Every
other machine gets one copy of the files in the user's cache folder. The copy is removed when rank 0 ends
without an error. After a crash, a restarted rank can therefore use the copy again.

Files are compared by size and sha256. Encoded pairs are compared by size only: their manifest has their
sha256, and opening the pairs checks it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumok.errors import JumokError, StorageError
from jumok.storage.folders import checksum, is_leftover, new_folder, remove_folder
from jumok.storage.user_cache import private_folder

if TYPE_CHECKING:
    from jumok.training.parallel.cluster import Cluster
    from jumok.training.run.run_folder import RunFolder

# Files and folders of a run folder that only rank 0 reads.
RANK_0_NAMES = {"run.json", "run.lock", "recipe.toml", "metrics.jsonl", "checkpoints", "model", "tensorboard"}
RANK_0_NAMES |= {"average", "corpus", "validation.jsonl", "sources.json"}
CHUNK_BYTES = 16 * 2**20

FileEntries = dict[str, dict[str, Any]]
"""Path in the run folder → its "size" and, unless the manifest of the encoded pairs has it, its "sha256"."""


def list_files(folder: RunFolder) -> FileEntries:
    """Return the files that every rank needs."""
    files = FileEntries()
    for path in sorted(folder.path.rglob("*")):
        name = path.relative_to(folder.path)
        if name.parts[0] in RANK_0_NAMES or any(map(is_leftover, name.parts)) or not path.is_file():
            continue
        is_manifest = path.name == "store.json"
        files[name.as_posix()] = _entry(path, with_digest=path.parent != folder.data or is_manifest)
    return files


def _entry(path: Path, *, with_digest: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"size": path.stat().st_size}
    if with_digest:
        entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return entry


def send_folder(cluster: Cluster, folder: RunFolder, files: FileEntries) -> None:
    """Send the files from rank 0, if another machine needs them."""
    # The other machines answer "send" in `receive_folder` if they need a copy.
    if not any(cluster.gather_answers("")):
        return
    for name in files:
        with (folder.path / name).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                cluster.send_bytes(chunk)
    cluster.gather_answers("")  # wait until every machine has written its copy


def receive_folder(cluster: Cluster, path: Path, files: FileEntries) -> Path:
    """Return a folder with these files: `path` if it has them, else the copy in the user's cache folder.

    Rank 0 sends the files if any machine still needs a copy.
    """
    folder = path if _has_files(path, files) else private_folder("runs", make=True) / checksum(files)
    needs_copy = cluster.local_rank == 0 and not _has_files(folder, files)  # one copy per machine
    if any(cluster.gather_answers("send" if needs_copy else "")):
        _receive_files(cluster, folder if needs_copy else None, files)
        cluster.gather_answers("")  # wait until every copy is renamed to the folder that its machine opens
    return folder


def remove_copy(cluster: Cluster, folder: Path, path: Path) -> None:
    """Remove the copy of a run's files, once per machine; `path` is the run folder itself."""
    if cluster.local_rank == 0 and folder != path:
        _remove_if_exists(folder)


def _remove_if_exists(folder: Path) -> None:
    try:
        if folder.exists():
            remove_folder(folder)
    except StorageError:
        if folder.exists():  # else another machine with the same cache folder has removed it
            raise


def _has_files(folder: Path, files: FileEntries) -> bool:
    try:
        return all(
            _entry(folder / name, with_digest="sha256" in entry) == entry for name, entry in files.items()
        )
    except OSError:
        return False


def _receive_files(cluster: Cluster, copy: Path | None, files: FileEntries) -> None:
    """Receive the files that rank 0 broadcasts; write them to the folder `copy`, unless it is None."""
    if copy is None:
        for entry in files.values():
            for length in _chunk_lengths(entry["size"]):
                cluster.receive_bytes(length)
        return
    _remove_if_exists(copy)  # an old copy is incomplete or damaged
    try:
        _write_copy(cluster, copy, files)
    except StorageError:
        if not _has_files(copy, files):  # else another machine with the same cache folder was faster
            raise


def _write_copy(cluster: Cluster, copy: Path, files: FileEntries) -> None:
    with new_folder(copy, failure_note="Nothing else has been touched.") as temporary:
        for name, entry in files.items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise StorageError(f"Rank 0 sent a file that belongs elsewhere. Received: {name!r}.")
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                for length in _chunk_lengths(entry["size"]):
                    file.write(cluster.receive_bytes(length))
                file.flush()
                os.fsync(file.fileno())
        if not _has_files(temporary, files):
            raise JumokError(
                "The files of the run changed while rank 0 sent them. Run the same command again."
            )


def _chunk_lengths(size: int) -> list[int]:
    whole, rest = divmod(size, CHUNK_BYTES)
    return [CHUNK_BYTES] * whole + ([rest] if rest else [])
