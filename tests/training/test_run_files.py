"""The files of a run that rank 0 sends to other machines, and their copies there."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from jumok.errors import JumokError, StorageError
from jumok.storage.folders import remove_folder
from jumok.training.parallel import run_files
from jumok.training.run.run_folder import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER_SEEN_BY_THE_FIRST_RANK_OF_A_MACHINE: Any = SimpleNamespace(local_rank=0)


def test_removing_a_copy_that_another_machine_has_removed_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()

    def remove_twice(folder: Path) -> None:
        remove_folder(folder)  # as the other machine does
        remove_folder(folder)

    monkeypatch.setattr(run_files, "remove_folder", remove_twice)
    run_files.remove_copy(CLUSTER_SEEN_BY_THE_FIRST_RANK_OF_A_MACHINE, copy, tmp_path / "run")
    assert not copy.exists()


def test_a_copy_that_cannot_be_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise StorageError("permission was denied")

    monkeypatch.setattr(run_files, "remove_folder", refuse)
    with pytest.raises(StorageError, match="permission"):
        run_files.remove_copy(CLUSTER_SEEN_BY_THE_FIRST_RANK_OF_A_MACHINE, tmp_path, tmp_path / "run")


def test_only_files_that_every_rank_reads_are_sent(tmp_path: Path) -> None:
    for name in ("average/weights", "start/weights", "checkpoints/step-1/weights", "pieces.model"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert list(run_files.list_files(RunFolder(tmp_path))) == ["pieces.model", "start/weights"]


class StandInCluster:
    """A cluster in which another machine with the same cache folder makes its copy before this machine."""

    local_rank = 0

    def __init__(self, copy: Path, content: bytes) -> None:
        self.copy, self.content = copy, content

    def receive_bytes(self, length: int) -> bytes:
        self.copy.mkdir()
        (self.copy / "pieces.model").write_bytes(self.content)
        return self.content


@pytest.mark.parametrize("content", [b"tokens", b"others"])
def test_a_copy_that_another_machine_has_made_meanwhile_is_used_if_it_is_the_same(
    tmp_path: Path, content: bytes
) -> None:
    copy, rank_0 = tmp_path / "copy", tmp_path / "rank 0"
    rank_0.mkdir()
    (rank_0 / "pieces.model").write_bytes(b"tokens")
    files = run_files.list_files(RunFolder(rank_0))
    cluster: Any = StandInCluster(copy, content)
    with pytest.raises(JumokError, match="changed while") if content != b"tokens" else nullcontext():
        run_files._receive_files(cluster, copy, files)
    assert [path.name for path in tmp_path.iterdir() if "tmp" in path.name] == []
    assert (copy / "pieces.model").read_bytes() == content
