"""Locks between processes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from jumok.system.locks import acquire_lock

if TYPE_CHECKING:
    from pathlib import Path

HOLD_LOCK = """
import pathlib, sys
from jumok.system.locks import acquire_lock
lock = acquire_lock(pathlib.Path(sys.argv[1]), wait=False)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(BlockingIOError, match="locked by another process"):
            acquire_lock(path, wait=False)
        other.kill()  # a killed process holds no lock
        other.wait()
        acquire_lock(path, wait=True).release()
    acquire_lock(path, wait=False).release()


def test_a_lock_neither_follows_a_link_nor_empties_a_file(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("content")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="Too many levels"):
        acquire_lock(tmp_path / "lock", wait=False)
    acquire_lock(tmp_path / "precious", wait=False).release()
    assert (tmp_path / "precious").read_text() == "content"
