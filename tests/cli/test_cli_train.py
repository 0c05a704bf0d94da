"""`jumok train` writes a run folder and continues the run after Ctrl-C or after a full disk.

A folder of another run or with other files is refused.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

import jumok.storage.folders
import jumok.training.run.preparation
import jumok.training.run.training_run
from jumok.storage.model_folder import read_model_with_weights
from jumok.system.signals import StopFlag
from support.cli_calls import environment, program
from support.digit_lines import TINY, digit_lines, write_tsv

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.cli_calls import Call


def settings(**changes: Any) -> list[str]:
    """Return the settings of the tiny model, with these changes, as command-line arguments.

    For example, `training__seed=6` changes the setting `training.seed`.
    """
    values = {**TINY, **{name.replace("__", "."): value for name, value in changes.items()}}
    return [option for name, value in values.items() for option in ("--set", f"{name}={value}")]


def temporary_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if ".tmp-" in path.name]


def test_a_run_ends_with_a_model_and_the_same_command_does_not_train_again(
    call: Call, pairs: Path, tmp_path: Path
) -> None:
    arguments = ["train", pairs, "--out", tmp_path / "run", *settings()]
    result = call(*arguments)
    assert result.code == 0, result.err
    assert result.out == ""
    assert "en → de · transformer" in result.err
    assert "finished · step 3" in result.err
    assert f"model: {tmp_path / 'run' / 'model'}" in result.err
    assert temporary_files(tmp_path) == []
    repeated = call(*arguments)
    assert repeated.code == 0
    assert "this run is already finished · step 3" in repeated.err


def test_options_override_settings_and_settings_override_the_recipe(
    call: Call, pairs: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[training]\nsteps = 9\nseed = 5\nlabel_smoothing = 0.2\n", encoding="utf-8")
    options = ["--recipe", recipe, *settings(training__seed=6), "--steps", "2"]
    assert call("train", pairs, "--out", tmp_path / "run", *options).code == 0
    stored = tomllib.loads((tmp_path / "run" / "recipe.toml").read_text(encoding="utf-8"))["training"]
    assert (stored["steps"], stored["seed"], stored["label_smoothing"]) == (2, 6, 0.2)


def test_a_validation_set_may_be_two_texts(call: Call, pairs: Path, tmp_path: Path) -> None:
    for side, language in enumerate(("en", "de")):
        lines = "".join(f"{line[side]}\n" for line in digit_lines(7, seed=9))
        (tmp_path / f"valid.{language}").write_text(lines, encoding="utf-8")
    valid = ["--valid", tmp_path / "valid.en", tmp_path / "valid.de"]
    result = call("train", *valid, pairs, "--out", tmp_path / "run", *settings())
    assert result.code == 0, result.err
    assert "7 for validation" in result.err


def test_a_model_is_fine_tuned(call: Call, pairs: Path, model: Path, tmp_path: Path) -> None:
    for side, language in enumerate(("en", "de")):
        lines = "".join(f"{line[side]}\n" for line in digit_lines(7, seed=9))
        (tmp_path / f"keep.{language}").write_text(lines, encoding="utf-8")
    keep = ["--keep", tmp_path / "keep.en", tmp_path / "keep.de", "--freeze", "encoder"]
    result = call("train", pairs, "--start-from", model, *keep, "--out", tmp_path / "run", "--steps", "2")
    assert result.code == 0, result.err
    assert f"starting from: {model}: " in result.err
    # The number of pairs is not checked, because pairs that are also new pairs are left out.
    assert " to keep (keep.en, keep.de)" in result.err
    assert "fine-tuning: chrf of the new pairs " in result.err
    refused = call("train", pairs, "--out", tmp_path / "other", "--freeze", "encoder")
    assert refused.code == 2
    assert "Name it with --start-from" in refused.err


def test_languages_are_stored_as_codes(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "pairs.tsv", [line[:2] for line in digit_lines(40)])
    arguments = ["train", file, "--out", tmp_path / "run", "--from", "English", "--to", "deu", *settings()]
    assert call(*arguments).code == 0
    card, _, _ = read_model_with_weights(tmp_path / "run" / "model")
    assert (card.recipe.languages.source, card.recipe.languages.target) == ("en", "de")
    assert call(*arguments).code == 0


def test_sentences_and_names_are_shown_as_they_are(call: Call, tmp_path: Path) -> None:
    marked = [(f"[bold]{source} :heart:", f"{target} \\\\") for source, target, _ in digit_lines(40)]
    file = write_tsv(tmp_path / "[red].tsv", marked)
    result = call("train", file, "--out", tmp_path / "[out]", *settings())
    assert result.code == 0, result.err
    assert "    [bold]" in result.err
    assert ":heart:\n" in result.err
    assert " \\\\\n" in result.err
    assert f"model: {tmp_path / '[out]' / 'model'}" in result.err


# --- run folders that are refused or continued ---


def test_a_folder_with_other_files_is_refused(call: Call, pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.docx").write_bytes(b"mine")
    message = call("train", pairs, "--out", tmp_path, *settings()).error_of("train")
    assert "is not a run of jumok. Received: thesis.docx" in message
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.docx"]
    message = call("train", pairs, "--out", tmp_path / "thesis.docx", *settings()).error_of("train")
    assert "thesis.docx is a file" in message


def test_other_settings_are_refused_by_name(
    call: Call, pairs: Path, finished_run: Path, unfinished_run: Path
) -> None:
    for folder in (finished_run, unfinished_run):
        options = ["--seed", "4", "--set", "model.dropout=0.2"]
        result = call("train", pairs, "--out", folder, *options)
        assert result.code == 2
        assert "Traceback" not in result.err
        assert f"jumok train: {folder} holds a run with other settings:" in result.err
        assert "training.seed: received 4, the run has 1" in result.err
        assert "model.dropout: received 0.2, the run has" in result.err


def test_other_sentences_are_refused(call: Call, tmp_path: Path, unfinished_run: Path) -> None:
    others = write_tsv(tmp_path / "others.en-de.tsv", digit_lines(60, seed=7))
    result = call("train", others, "--out", unfinished_run)
    assert result.code == 2
    assert f"{unfinished_run} holds a run on other sentences" in result.err


def test_an_unfinished_run_is_continued(call: Call, pairs: Path, unfinished_run: Path, model: Path) -> None:
    result = call("train", pairs, "--out", unfinished_run)
    assert result.code == 0, result.err
    assert "continuing from step 3" in result.err
    weights = [folder / "weights.safetensors" for folder in (unfinished_run / "model", model)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


# --- the disk ---


def raise_disk_full(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_from_the_start_is_reported(
    call: Call, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", raise_disk_full)
        message = call("train", pairs, "--out", tmp_path / "run", *settings()).error_of("train")
    assert "the disk is full" in message
    assert str(tmp_path / "run") in message
    assert temporary_files(tmp_path) == []
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize("temporary_folder", ["step-3.tmp-", "model.tmp-"])
def test_a_disk_that_becomes_full_leaves_no_incomplete_folder(
    temporary_folder: str, call: Call, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk becomes full at the last write into a folder. The incomplete folder must be removed."""
    arguments = ["train", pairs, "--out", tmp_path / "run", *settings()]
    write = jumok.storage.folders.write_and_sync

    def write_until_full(path: Path, data: bytes) -> None:
        if temporary_folder in str(path) and path.suffix == ".json":
            path.write_bytes(data[: len(data) // 2])
            raise_disk_full()
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(jumok.storage.folders, "write_and_sync", write_until_full)
        result = call(*arguments)
    assert result.code == 2
    assert "Traceback" not in result.err
    assert "the disk is full" in result.err
    assert temporary_files(tmp_path) == []
    assert not (tmp_path / "run" / "model").exists()
    assert call(*arguments).code == 0
    assert call("info", tmp_path / "run" / "model").code == 0


# --- Ctrl-C ---


def test_ctrl_c_before_the_first_step_saves_the_vocabulary_and_the_encoded_pairs(
    call: Call, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def stop_at_once() -> Iterator[StopFlag]:
        flag = StopFlag()
        flag.is_set = True
        yield flag

    arguments = ["train", pairs, "--out", tmp_path / "run", *settings()]
    with monkeypatch.context() as patch:
        patch.setattr(jumok.training.run.training_run, "stop_on_signals", stop_at_once)
        result = call(*arguments)
    assert result.code == 130
    assert "before the first step; only the vocabulary and the encoded pairs are saved." in result.err
    assert not (tmp_path / "run" / "checkpoints").exists()
    repeated = call(*arguments)
    assert repeated.code == 0
    assert "learning vocabulary" not in repeated.err
    assert "finished · step 3" in repeated.err


def test_ctrl_c_while_pairs_are_read_ends_without_a_traceback(
    call: Call, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(jumok.training.run.preparation, "read_sentences", interrupt)
    result = call("train", pairs, "--out", tmp_path / "run", *settings())
    assert result.code == 130
    assert "Traceback" not in result.err


@pytest.mark.medium
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_sigterm_saves_and_the_same_command_continues(
    signal_number: signal.Signals, call: Call, pairs: Path, tmp_path: Path
) -> None:
    command = program(
        [
            "train",
            pairs,
            "--out",
            tmp_path / "run",
            *settings(training__steps=600, training__validate_every=50),
        ]
    )
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        message = ""
        for line in process.stderr:
            message += line
            if "validation loss" in line:  # the first checkpoint is saved with the first validation
                break
        process.send_signal(signal_number)
        message += process.stderr.read()
        assert process.wait(timeout=60) == 130, message
    assert "stopped at step " in message
    assert f"): {tmp_path / 'run' / 'model'}" in message
    assert f"The same command continues; `jumok finish {tmp_path / 'run'}` ends the run here." in message
    assert "Traceback" not in message
    assert call("translate", tmp_path / "run", stdin=b"one two\n").code == 0
    assert temporary_files(tmp_path) == []
    continued = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=environment()
    )
    assert continued.returncode == 0, continued.stderr
    assert "continuing from step " in continued.stderr
    assert "finished · step 600" in continued.stderr
