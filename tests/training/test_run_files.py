"""Copies of a run's files on other machines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from jumok.errors import StorageError
from jumok.storage.folders import remove_folder
from jumok.training.parallel import run_files

if TYPE_CHECKING:
    from pathlib import Path

FIRST_OF_A_MACHINE: Any = SimpleNamespace(local_rank=0)


def test_a_copy_that_another_machine_removed_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()

    def remove_twice(folder: Path) -> None:
        remove_folder(folder)
        remove_folder(folder)

    monkeypatch.setattr(run_files, "remove_folder", remove_twice)
    run_files.remove_copy(FIRST_OF_A_MACHINE, copy, tmp_path / "run")
    assert not copy.exists()


def test_a_copy_that_cannot_be_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise StorageError("permission was denied")

    monkeypatch.setattr(run_files, "remove_folder", refuse)
    with pytest.raises(StorageError, match="permission"):
        run_files.remove_copy(FIRST_OF_A_MACHINE, tmp_path, tmp_path / "run")
