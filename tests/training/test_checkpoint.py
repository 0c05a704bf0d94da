"""Checkpoints: the newest undamaged one is loaded, damaged ones are named, a full disk is reported."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest
import torch

from jumok.errors import RunFolderError, StorageError
from jumok.training.loop.checkpoint import (
    Checkpoint,
    load_checkpoint_weights,
    load_newest_checkpoint,
    remove_old_checkpoints,
    save_checkpoint,
    saved_steps,
)

if TYPE_CHECKING:
    from pathlib import Path

FILES = ["weights.safetensors", "optimiser.safetensors", "ema.safetensors", "state.json", "manifest.json"]


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(
        step=step,
        weights={"w": torch.full((3,), float(step))},
        optimiser={"exp_avg/w": torch.zeros(3)},
        moving_average={"w": torch.full((3,), step / 2)},
        state={"seconds": 1.5},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for step in (10, 20, 30):
        save_checkpoint(tmp_path / "checkpoints", checkpoint(step))
    return tmp_path / "checkpoints"


def test_a_checkpoint_is_read_back(folder: Path) -> None:
    loaded, damaged = load_newest_checkpoint(folder)
    assert damaged == []
    assert loaded is not None
    assert loaded.step == 30
    assert loaded.weights["w"].tolist() == [30.0] * 3
    assert loaded.state == {"seconds": 1.5}
    assert loaded.moving_average is not None
    assert load_checkpoint_weights(folder, 20, moving_average=False)["w"].tolist() == [20.0] * 3
    assert load_checkpoint_weights(folder, 20, moving_average=True)["w"].tolist() == [10.0] * 3


def test_a_missing_folder_gives_no_checkpoint_and_no_error(tmp_path: Path) -> None:
    assert load_newest_checkpoint(tmp_path / "none") == (None, [])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "delete"])
def test_a_damaged_checkpoint_is_named_and_the_previous_one_used(
    folder: Path, name: str, damage: str
) -> None:
    path = folder / "step-30" / name
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    elif damage == "truncate":
        path.write_bytes(bytes(data[: len(data) // 2]))
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    loaded, damaged = load_newest_checkpoint(folder)
    assert loaded is not None
    assert loaded.step == 20
    assert len(damaged) == 1
    assert str(path) in damaged[0]
    assert saved_steps(folder) == [10, 20]
    assert (folder / "step-30.damaged").is_dir()


def test_if_all_checkpoints_are_damaged_loading_fails(folder: Path) -> None:
    for step in (10, 20, 30):
        (folder / f"step-{step}" / "state.json").unlink()
    with pytest.raises(RunFolderError, match="All 3 checkpoints") as caught:
        load_newest_checkpoint(folder)
    assert "does not restart from zero" in str(caught.value)
    assert saved_steps(folder) == [10, 20, 30]


def test_leftovers_of_a_killed_process_are_not_checkpoints(folder: Path) -> None:
    shutil.copytree(folder / "step-30", folder / "step-40.tmp-77")
    loaded, _ = load_newest_checkpoint(folder)
    assert loaded is not None
    assert loaded.step == 30


def test_the_newest_two_and_the_needed_ones_are_kept(folder: Path) -> None:
    save_checkpoint(folder, checkpoint(40))
    remove_old_checkpoints(folder, {10})
    assert saved_steps(folder) == [10, 30, 40]
    remove_old_checkpoints(folder, set())
    assert saved_steps(folder) == [30, 40]
    remove_old_checkpoints(folder, set())
    assert saved_steps(folder) == [30, 40]


def test_an_existing_checkpoint_is_not_written_again(folder: Path) -> None:
    before = (folder / "step-30" / "manifest.json").stat().st_mtime_ns
    save_checkpoint(folder, checkpoint(30))
    assert (folder / "step-30" / "manifest.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("failing_call", range(6))  # one per file in FILES, and one for the folder
def test_a_full_disk_leaves_the_last_checkpoint_intact(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing_call: int
) -> None:
    calls = iter(range(100))
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if next(calls) == failing_call:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError, match=r"step-40.*disk is full.*step 30 is intact"):
        save_checkpoint(folder, checkpoint(40))
    assert saved_steps(folder) == [10, 20, 30]
    assert [path.name for path in folder.iterdir() if ".tmp-" in path.name] == []
