"""Converted models are kept: made once, whole or not at all, and made anew where they are damaged."""

from __future__ import annotations

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jumok.engines import cache
from jumok.engines.cache import cache_folder, forget, kept_files
from jumok.errors import StorageError

FILES = {"model.bin": b"weights", "config.json": b"{}"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    def __init__(self, seconds: float = 0.0) -> None:
        self.made = 0
        self.seconds = seconds

    def __call__(self) -> dict[str, bytes]:
        self.made += 1
        time.sleep(self.seconds)
        return FILES


def entries(folder: Path) -> list[Path]:
    return [path for path in (folder / "engines").iterdir() if path.is_dir()]


def test_what_was_made_is_found_again() -> None:
    make = Maker()
    assert kept_files({"weights": "a"}, make) == kept_files({"weights": "a"}, make) == FILES
    assert make.made == 1
    kept_files({"weights": "b"}, make)
    assert make.made == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "lose", "manifest"])
def test_a_damaged_entry_is_made_anew(own_folder: Path, damage: str) -> None:
    make = Maker()
    kept_files({"weights": "a"}, make)
    [entry] = entries(own_folder)
    file = entry / ("manifest.json" if damage == "manifest" else "model.bin")
    if damage == "lose":
        file.unlink()
    else:
        file.write_bytes(b"w3ights" if damage == "flip" else file.read_bytes()[:-5])
    assert kept_files({"weights": "a"}, make) == FILES
    assert make.made == 2
    assert kept_files({"weights": "a"}, make) == FILES
    assert make.made == 2


@pytest.mark.parametrize("name", ["manifest.json", "model.bin"])
def test_a_folder_in_place_of_a_file_is_damage_too(own_folder: Path, name: str) -> None:
    kept_files({"weights": "a"}, Maker())
    [entry] = entries(own_folder)
    (entry / name).unlink()
    (entry / name).mkdir()
    assert kept_files({"weights": "a"}, Maker()) == FILES


def test_an_entry_that_leads_nowhere_is_made_anew(own_folder: Path) -> None:
    kept_files({"weights": "a"}, Maker())
    [entry] = entries(own_folder)
    entry.rename(own_folder / "moved")
    entry.symlink_to(own_folder / "nowhere")
    assert kept_files({"weights": "a"}, Maker()) == FILES
    assert entry.is_dir()


def test_a_disk_without_locks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(StorageError, match="JUMOK_CACHE"):
        kept_files({"weights": "a"}, Maker())


def test_an_interrupted_making_leaves_nothing(own_folder: Path) -> None:
    def interrupted() -> dict[str, bytes]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept_files({"weights": "a"}, interrupted)
    assert entries(own_folder) == []
    assert kept_files({"weights": "a"}, Maker()) == FILES


def test_two_at_once_make_it_once() -> None:
    make = Maker(seconds=0.2)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: kept_files({"weights": "a"}, make), range(4)))
    assert found == [FILES] * 4
    assert make.made == 1


def test_what_is_forgotten_is_made_anew() -> None:
    make = Maker()
    kept_files({"weights": "a"}, make)
    forget({"weights": "a"})
    kept_files({"weights": "a"}, make)
    assert make.made == 2


def test_entries_nobody_uses_go_when_another_is_made(own_folder: Path) -> None:
    kept_files({"weights": "old"}, Maker())
    kept_files({"weights": "recent"}, Maker())
    old, recent = sorted(entries(own_folder), key=lambda path: path.stat().st_mtime)
    long_ago = time.time() - cache.UNUSED_SECONDS - 10
    for path in (old, recent):
        os.utime(path, (long_ago, long_ago))
    kept_files({"weights": "recent"}, Maker())  # which counts as a use
    kept_files({"weights": "new"}, Maker())
    assert not old.exists()
    assert recent.exists()
    assert len(entries(own_folder)) == 2


def test_a_place_that_cannot_be_written_is_said(own_folder: Path) -> None:
    own_folder.write_text("a file")
    with pytest.raises(StorageError, match="JUMOK_CACHE"):
        kept_files({"weights": "a"}, Maker())


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUMOK_CACHE")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/jumok")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path("/home/somebody/.cache/jumok")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/home/somebody/.cache/jumok")
