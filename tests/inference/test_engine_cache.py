"""The cache of converted models: created once, written atomically, created again if damaged."""

from __future__ import annotations

import errno
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jumok.errors import StorageError, UnsupportedError
from jumok.inference.engines import cache
from jumok.inference.engines.cache import evict, get_or_create
from jumok.storage.folders import write_folder
from jumok.storage.user_cache import cache_folder

FILES = {"model.bin": b"weights", "config.json": b"{}"}


@pytest.fixture(autouse=True)
def temporary_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Creator:
    """Creates the files of an entry after some seconds, and counts its calls."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.num_calls = 0
        self.seconds = seconds

    def __call__(self) -> dict[str, bytes]:
        self.num_calls += 1
        time.sleep(self.seconds)
        return FILES


def entries(folder: Path) -> list[Path]:
    return [path for path in (folder / "engines").iterdir() if path.is_dir()]


def test_a_stored_entry_is_found_again() -> None:
    create = Creator()
    assert get_or_create({"weights": "a"}, create) == get_or_create({"weights": "a"}, create) == FILES
    assert create.num_calls == 1
    get_or_create({"weights": "b"}, create)
    assert create.num_calls == 2


@pytest.mark.parametrize("damage", ["change", "cut", "remove", "cut the manifest"])
def test_a_damaged_entry_is_created_again(temporary_cache: Path, damage: str) -> None:
    create = Creator()
    get_or_create({"weights": "a"}, create)
    [entry] = entries(temporary_cache)
    file = entry / ("manifest.json" if damage == "cut the manifest" else "model.bin")
    if damage == "remove":
        file.unlink()
    else:
        file.write_bytes(b"w3ights" if damage == "change" else file.read_bytes()[:-5])
    assert get_or_create({"weights": "a"}, create) == FILES
    assert create.num_calls == 2
    assert get_or_create({"weights": "a"}, create) == FILES
    assert create.num_calls == 2


@pytest.mark.parametrize("name", ["manifest.json", "model.bin"])
def test_an_entry_with_a_folder_in_place_of_a_file_is_created_again(temporary_cache: Path, name: str) -> None:
    get_or_create({"weights": "a"}, Creator())
    [entry] = entries(temporary_cache)
    (entry / name).unlink()
    (entry / name).mkdir()
    assert get_or_create({"weights": "a"}, Creator()) == FILES


def test_an_entry_that_is_a_broken_link_is_created_again(temporary_cache: Path) -> None:
    get_or_create({"weights": "a"}, Creator())
    [entry] = entries(temporary_cache)
    entry.rename(temporary_cache / "moved")
    entry.symlink_to(temporary_cache / "nowhere")
    assert get_or_create({"weights": "a"}, Creator()) == FILES
    assert entry.is_dir()


def test_the_cache_works_on_a_disk_without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without locks, two machines may convert the same model. The entry that is written first is kept."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    create = Creator()

    def create_after_another_machine() -> dict[str, bytes]:
        get_or_create({"weights": "a"}, create)
        return FILES

    monkeypatch.setattr("fcntl.flock", no_locks)
    assert get_or_create({"weights": "a"}, create_after_another_machine) == FILES
    assert get_or_create({"weights": "a"}, create) == FILES
    assert create.num_calls == 1
    evict({"weights": "a"})
    get_or_create({"weights": "a"}, create)
    assert create.num_calls == 2


def test_an_interrupted_conversion_leaves_no_entry(temporary_cache: Path) -> None:
    def interrupted() -> dict[str, bytes]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get_or_create({"weights": "a"}, interrupted)
    assert entries(temporary_cache) == []
    assert get_or_create({"weights": "a"}, Creator()) == FILES


def test_concurrent_callers_create_an_entry_once() -> None:
    create = Creator(seconds=0.2)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: get_or_create({"weights": "a"}, create), range(4)))
    assert results == [FILES] * 4
    assert create.num_calls == 1


def test_an_evicted_entry_is_created_again() -> None:
    create = Creator()
    get_or_create({"weights": "a"}, create)
    evict({"weights": "a"})
    get_or_create({"weights": "a"}, create)
    assert create.num_calls == 2


def test_unused_entries_are_removed_when_another_is_created(temporary_cache: Path) -> None:
    get_or_create({"weights": "old"}, Creator())
    get_or_create({"weights": "recent"}, Creator())
    old, recent = sorted(entries(temporary_cache), key=lambda path: path.stat().st_mtime)
    long_ago = time.time() - cache.MAX_UNUSED_SECONDS - 10
    for path in (old, recent):
        os.utime(path, (long_ago, long_ago))
    get_or_create({"weights": "recent"}, Creator())  # counts as a use
    get_or_create({"weights": "new"}, Creator())
    assert not old.exists()
    assert recent.exists()
    assert len(entries(temporary_cache)) == 2


def test_a_cache_folder_that_cannot_be_written_raises_an_error(temporary_cache: Path) -> None:
    temporary_cache.write_text("a file")
    with pytest.raises(StorageError, match="JUMOK_CACHE"):
        get_or_create({"weights": "a"}, Creator())


def test_environment_variables_set_the_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUMOK_CACHE")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/jumok")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path("/home/somebody/.cache/jumok")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/home/somebody/.cache/jumok")
    monkeypatch.setenv("JUMOK_CACHE", "~nobody-has-this-name/c")
    with pytest.raises(UnsupportedError, match="no home folder"):
        cache_folder()


# --- a cache that other programs or users have written to ---


def test_a_foreign_entry_with_a_valid_manifest_is_not_used(temporary_cache: Path) -> None:
    """The entry is replaced twice: by that of another model, and by changed files with a new manifest."""
    get_or_create({"weights": "a"}, Creator())
    get_or_create({"weights": "b"}, lambda: {**FILES, "model.bin": b"foreign"})
    [entry] = [path for path in entries(temporary_cache) if (path / "model.bin").read_bytes() == b"weights"]
    [foreign_entry] = [path for path in entries(temporary_cache) if path != entry]
    shutil.rmtree(entry)
    shutil.copytree(foreign_entry, entry)
    assert get_or_create({"weights": "a"}, Creator()) == FILES
    shutil.rmtree(entry)
    changed_files = {**FILES, "model.bin": b"changed"}
    write_folder(entry, changed_files.items(), metadata={"made_of": {"weights": "a"}})
    assert get_or_create({"weights": "a"}, Creator()) == FILES


def test_a_lock_file_that_is_a_link_is_refused_and_its_target_is_unchanged(
    temporary_cache: Path, tmp_path: Path
) -> None:
    get_or_create({"weights": "a"}, Creator())
    [lock] = (temporary_cache / "engines").glob("*.lock")
    [entry] = entries(temporary_cache)
    shutil.rmtree(entry)
    lock.unlink()
    precious = tmp_path / "precious.txt"
    precious.write_text("content")
    lock.symlink_to(precious)
    with pytest.raises(StorageError, match="JUMOK_CACHE"):
        get_or_create({"weights": "a"}, Creator())
    assert precious.read_text() == "content"


def test_a_cache_folder_that_other_users_may_write_to_is_refused(temporary_cache: Path) -> None:
    get_or_create({"weights": "a"}, Creator())
    (temporary_cache / "engines").chmod(0o777)
    with pytest.raises(StorageError, match=r"Other users may write to .*chmod go-w"):
        get_or_create({"weights": "a"}, Creator())


def test_leftovers_of_killed_processes_are_removed_after_a_day(temporary_cache: Path) -> None:
    get_or_create({"weights": "a"}, Creator())
    for name, days in (("old.tmp-123", 2), ("new.tmp-123", 0)):
        (temporary_cache / "engines" / name).mkdir()
        then = time.time() - days * 24 * 3600
        os.utime(temporary_cache / "engines" / name, (then, then))
    get_or_create({"weights": "b"}, Creator())
    assert not (temporary_cache / "engines" / "old.tmp-123").exists()
    assert (temporary_cache / "engines" / "new.tmp-123").exists()
