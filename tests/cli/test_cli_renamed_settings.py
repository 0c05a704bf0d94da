"""Old names of settings and options still work on the command line, and one line names the new name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jumok.cli.arguments import RENAMED_OPTIONS, rename_options
from jumok.errors import RecipeError, RenamedSettingWarning
from support.cli_calls import spawn

if TYPE_CHECKING:
    from pathlib import Path


def test_old_options_become_new_ones() -> None:
    arguments = ["translate", "m", "--longest=1.5", "--no-repeat", "3", "--", "--longest"]
    with pytest.warns(RenamedSettingWarning) as warnings:
        new_arguments = rename_options(arguments)
    assert new_arguments == [
        "translate",
        "m",
        "--max-length-ratio=1.5",
        "--no-repeat-ngram-size",
        "3",
        "--",
        "--longest",
    ]
    assert len(warnings) == 2
    assert rename_options(new_arguments) == new_arguments


@pytest.mark.parametrize(("old", "new"), RENAMED_OPTIONS.items())
def test_the_old_and_the_new_name_of_an_option_together_are_refused(old: str, new: str) -> None:
    with pytest.raises(RecipeError, match=f"{old} is the old name of {new}"):
        rename_options(["translate", "m", old, "2", f"{new}=2"])


@pytest.mark.medium
def test_an_old_option_works_and_prints_one_line_with_the_new_name(model: Path) -> None:
    old = spawn("translate", model, "--longest", "0.1", stdin=b"one two three\n")
    new = spawn("translate", model, "--max-length-ratio", "0.1", stdin=b"one two three\n")
    assert (old.returncode, old.stdout) == (0, new.stdout)
    hint = b"jumok translate: --longest is now --max-length-ratio; the old name works until 1.0.\n"
    assert old.stderr == hint + new.stderr
    assert b"--longest" not in new.stderr


def test_an_old_setting_is_reported_once(tmp_path: Path) -> None:
    result = spawn("train", tmp_path / "none.tsv", "--out", tmp_path / "run", "--set", "training.warmup=3")
    assert result.returncode == 2
    assert result.stderr.decode().count("training.warmup is now training.warmup_steps") == 1
    assert "Traceback" not in result.stderr.decode()
    assert result.stderr.decode().startswith("jumok train: training.warmup is now training.warmup_steps; ")
