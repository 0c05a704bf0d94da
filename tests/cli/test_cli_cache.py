"""`jumok cache` lists converted models, removes some until the rest fits a given size, or removes all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.inference.engines.cache import cached_models
from jumok.storage.user_cache import private_folder

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.cli_calls import Call


def test_leftovers_of_a_killed_conversion_are_not_listed_but_are_cleared(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    assert "0 converted models" in call("cache").out
    engines = private_folder("engines", make=True)
    leftovers = [engines / f"{'0' * 32}.tmp-12", engines / f"{'1' * 32}.tmp-removed-12"]
    for leftover in leftovers:
        leftover.mkdir()
        (leftover / "model.bin").write_bytes(b"half")
    assert cached_models() == []
    assert "0 converted models" in call("cache").out
    assert all(leftover.exists() for leftover in leftovers)
    assert "removed 0 converted models" in call("cache", "--clear").out
    assert not any(leftover.exists() for leftover in leftovers)


def test_converted_models_are_listed_removed_above_a_size_and_cleared(
    call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    assert "0 converted models" in call("cache").out
    assert call("translate", model, stdin=b"one\n").code == 0
    listed = call("cache").out
    assert "1 converted model, " in listed
    assert str(model.resolve()) in listed
    assert "1 converted model, " in call("cache", "--max-size", "1G").out.splitlines()[1]
    removed = call("cache", "--max-size", "10k").out.splitlines()
    assert removed[0].startswith("removed 1 converted model, ")
    assert "0 converted models" in removed[1]
    assert call("translate", model, stdin=b"one\n").code == 0
    assert "removed 1 converted model" in call("cache", "--clear").out
    assert cached_models() == []
    assert "Received: 'much'" in call("cache", "--max-size", "much").error_of("cache")
    assert "Leave one out" in call("cache", "--clear", "--max-size", "1G").error_of("cache")
