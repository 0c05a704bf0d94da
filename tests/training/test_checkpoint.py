"""Checkpoints: the newest whole one is found, the damaged are named, nothing is lost without a word."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest
import torch

from jumok.errors import RunFolderError, StorageError
from jumok.training.checkpoint import (
    Checkpoint,
    load_newest,
    remove_old,
    save_checkpoint,
    saved_steps,
    stored_weights,
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


def test_reads_back(folder: Path) -> None:
    found, damaged = load_newest(folder)
    assert damaged == []
    assert found is not None
    assert found.step == 30
    assert found.weights["w"].tolist() == [30.0] * 3
    assert found.state == {"seconds": 1.5}
    assert found.moving_average is not None
    assert stored_weights(folder, 20, moving_average=False)["w"].tolist() == [20.0] * 3
    assert stored_weights(folder, 20, moving_average=True)["w"].tolist() == [10.0] * 3


def test_no_folder_is_no_checkpoint(tmp_path: Path) -> None:
    assert load_newest(tmp_path / "none") == (None, [])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("fault", ["flip", "truncate", "empty", "delete"])
def test_the_damaged_is_named_and_the_previous_used(folder: Path, name: str, fault: str) -> None:
    path = folder / "step-30" / name
    data = bytearray(path.read_bytes())
    if fault == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    elif fault == "truncate":
        path.write_bytes(bytes(data[: len(data) // 2]))
    elif fault == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    found, damaged = load_newest(folder)
    assert found is not None
    assert found.step == 20
    assert len(damaged) == 1
    assert str(path) in damaged[0]
    assert saved_steps(folder) == [10, 20]
    assert (folder / "step-30.damaged").is_dir()


def test_never_a_silent_start_from_zero(folder: Path) -> None:
    for step in (10, 20, 30):
        (folder / f"step-{step}" / "state.json").unlink()
    with pytest.raises(RunFolderError, match="None of the 3 checkpoints") as caught:
        load_newest(folder)
    assert "does not start again from zero" in str(caught.value)
    assert saved_steps(folder) == [10, 20, 30]


def test_what_a_killed_writer_left_is_not_a_checkpoint(folder: Path) -> None:
    shutil.copytree(folder / "step-30", folder / "step-40.tmp-77")
    found, _ = load_newest(folder)
    assert found is not None
    assert found.step == 30


def test_two_are_kept_and_those_needed(folder: Path) -> None:
    save_checkpoint(folder, checkpoint(40))
    remove_old(folder, {10})
    assert saved_steps(folder) == [10, 30, 40]
    remove_old(folder, set())
    assert saved_steps(folder) == [30, 40]
    remove_old(folder, set())
    assert saved_steps(folder) == [30, 40]


def test_an_existing_checkpoint_is_left_alone(folder: Path) -> None:
    before = (folder / "step-30" / "manifest.json").stat().st_mtime_ns
    save_checkpoint(folder, checkpoint(30))
    assert (folder / "step-30" / "manifest.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("call", range(6))
def test_a_full_disk_leaves_the_last_intact(folder: Path, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    calls = iter(range(100))
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if next(calls) == call:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError, match=r"step-40.*disk is full.*step 30 is intact"):
        save_checkpoint(folder, checkpoint(40))
    assert saved_steps(folder) == [10, 20, 30]
    assert [path.name for path in folder.iterdir() if ".tmp-" in path.name] == []
