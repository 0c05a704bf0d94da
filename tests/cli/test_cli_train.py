"""`jumok train`: a run, the same run again, and what a run folder refuses."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from cli_calls import environment, program

import jumok.storage.folders
import jumok.training.run
from digit_lines import TINY, digit_lines, write_tsv
from jumok.storage import read_model_folder
from jumok.training.signals import Interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cli_calls import Call


def settings(**changed: Any) -> list[str]:
    """The tiny model as words of the command line."""
    named = {**TINY, **{name.replace("__", "."): value for name, value in changed.items()}}
    return [word for name, value in named.items() for word in ("--set", f"{name}={value}")]


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if ".tmp-" in path.name]


def test_a_whole_run_and_the_same_command_again(call: Call, pairs: Path, tmp_path: Path) -> None:
    words = ["train", pairs, "--out", tmp_path / "run", *settings()]
    ran = call(*words)
    assert ran.code == 0, ran.err
    assert ran.out == ""
    assert "en → de · transformer" in ran.err
    assert "finished · step 3" in ran.err
    assert f"model: {tmp_path / 'run' / 'model'}" in ran.err
    assert leftovers(tmp_path) == []
    again = call(*words)
    assert again.code == 0
    assert "this run is already finished · step 3" in again.err


def test_options_override_settings_and_settings_override_the_recipe(
    call: Call, pairs: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[training]\nsteps = 9\nseed = 5\nlabel_smoothing = 0.2\n", encoding="utf-8")
    words = ["--recipe", recipe, *settings(training__seed=6), "--steps", "2"]
    assert call("train", pairs, "--out", tmp_path / "run", *words).code == 0
    stored = tomllib.loads((tmp_path / "run" / "recipe.toml").read_text(encoding="utf-8"))["training"]
    assert (stored["steps"], stored["seed"], stored["label_smoothing"]) == (2, 6, 0.2)


def test_a_validation_set_of_two_texts(call: Call, pairs: Path, tmp_path: Path) -> None:
    for side, language in enumerate(("en", "de")):
        lines = "".join(f"{line[side]}\n" for line in digit_lines(7, seed=9))
        (tmp_path / f"valid.{language}").write_text(lines, encoding="utf-8")
    valid = ["--valid", tmp_path / "valid.en", tmp_path / "valid.de"]
    ran = call("train", *valid, pairs, "--out", tmp_path / "run", *settings())
    assert ran.code == 0, ran.err
    assert "7 for validation" in ran.err


def test_languages_are_stored_as_codes(call: Call, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "pairs.tsv", [line[:2] for line in digit_lines(40)])
    words = ["train", file, "--out", tmp_path / "run", "--from", "English", "--to", "deu", *settings()]
    assert call(*words).code == 0
    card, _, _ = read_model_folder(tmp_path / "run" / "model")
    assert (card.recipe.languages.source, card.recipe.languages.target) == ("en", "de")
    assert call(*words).code == 0


def test_sentences_and_names_are_shown_as_they_are(call: Call, tmp_path: Path) -> None:
    marked = [(f"[bold]{source} :heart:", f"{target} \\\\") for source, target, _ in digit_lines(40)]
    file = write_tsv(tmp_path / "[red].tsv", marked)
    ran = call("train", file, "--out", tmp_path / "[out]", *settings())
    assert ran.code == 0, ran.err
    assert "    [bold]" in ran.err
    assert ":heart:\n" in ran.err
    assert " \\\\\n" in ran.err
    assert f"model: {tmp_path / '[out]' / 'model'}" in ran.err


# --- folders that are not this run's ---


def test_a_folder_with_something_else(call: Call, pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.docx").write_bytes(b"mine")
    said = call("train", pairs, "--out", tmp_path, *settings()).paragraph("train")
    assert "is not a run of jumok. Received: thesis.docx" in said
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.docx"]
    said = call("train", pairs, "--out", tmp_path / "thesis.docx", *settings()).paragraph("train")
    assert "thesis.docx is a file" in said


def test_other_settings_are_refused_by_name(
    call: Call, pairs: Path, finished_run: Path, unfinished_run: Path
) -> None:
    for folder in (finished_run, unfinished_run):
        words = ["--steps", "4", "--set", "model.dropout=0.2"]
        ran = call("train", pairs, "--out", folder, *words)
        assert ran.code == 2
        assert "Traceback" not in ran.err
        assert f"jumok train: {folder} holds a run with other settings:" in ran.err
        assert "training.steps: asked 4, the run has 3" in ran.err
        assert "model.dropout: asked 0.2, the run has" in ran.err


def test_other_sentences_are_refused(call: Call, tmp_path: Path, unfinished_run: Path) -> None:
    others = write_tsv(tmp_path / "others.en-de.tsv", digit_lines(60, seed=7))
    ran = call("train", others, "--out", unfinished_run)
    assert ran.code == 2
    assert f"{unfinished_run} holds a run on other sentences" in ran.err


def test_an_unfinished_run_is_continued(call: Call, pairs: Path, unfinished_run: Path, model: Path) -> None:
    ran = call("train", pairs, "--out", unfinished_run)
    assert ran.code == 0, ran.err
    assert "continuing from step 3" in ran.err
    weights = [folder / "weights.safetensors" for folder in (unfinished_run / "model", model)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


# --- the disk ---


def full(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_from_the_start(
    call: Call, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        said = call("train", pairs, "--out", tmp_path / "run", *settings()).paragraph("train")
    assert "the disk is full" in said
    assert str(tmp_path / "run") in said
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize("place", ["step-3.tmp-", "model.tmp-"])
def test_a_disk_that_fills_up(
    place: str, call: Call, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the last write of a folder: half of it is there already, and must not stay."""
    words = ["train", pairs, "--out", tmp_path / "run", *settings()]
    write = jumok.storage.folders._write_and_sync

    def fills_up(path: Path, data: bytes) -> None:
        if place in str(path) and path.suffix == ".json":
            path.write_bytes(data[: len(data) // 2])
            full()
        write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(jumok.storage.folders, "_write_and_sync", fills_up)
        ran = call(*words)
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert "the disk is full" in ran.err
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "run" / "model").exists()
    assert call(*words).code == 0
    assert call("info", tmp_path / "run" / "model").code == 0


# --- Ctrl-C ---


def test_ctrl_c_before_the_first_step(
    call: Call, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def asked_at_once() -> Iterator[Interrupt]:
        interrupt = Interrupt()
        interrupt.asked = True
        yield interrupt

    words = ["train", pairs, "--out", tmp_path / "run", *settings()]
    with monkeypatch.context() as patched:
        patched.setattr(jumok.training.run, "watch_signals", asked_at_once)
        ran = call(*words)
    assert ran.code == 130
    assert "saved" not in ran.err
    assert "before the first step; the pieces and the encoded pairs are kept, but no step." in ran.err
    assert not (tmp_path / "run" / "checkpoints").exists()
    again = call(*words)
    assert again.code == 0
    assert "learning pieces" not in again.err
    assert "finished · step 3" in again.err


def test_ctrl_c_while_reading(
    call: Call, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(jumok.training.run, "read_sentences", interrupted)
    ran = call("train", pairs, "--out", tmp_path / "run", *settings())
    assert ran.code == 130
    assert "Traceback" not in ran.err


@pytest.mark.medium
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_the_same_command_continues(
    number: signal.Signals, pairs: Path, tmp_path: Path
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
        said = ""
        for line in process.stderr:
            said += line
            if "validation loss" in line:  # the first checkpoint comes with it
                break
        process.send_signal(number)
        said += process.stderr.read()
        assert process.wait(timeout=60) == 130, said
    assert "interrupted; everything is saved. The same command continues" in said
    assert "Traceback" not in said
    assert not (tmp_path / "run" / "model").exists()
    assert leftovers(tmp_path) == []
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert "continuing from step " in done.stderr
    assert "finished · step 600" in done.stderr
