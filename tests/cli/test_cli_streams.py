"""Closed standard streams, and file names that are not UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.cli_calls import environment, program
from support.digit_lines import write_tsv

if TYPE_CHECKING:
    from collections.abc import Sequence

STRICT = {"PYTHONIOENCODING": "utf-8:strict"}  # what a terminal with a locale has


def shell(arguments: Sequence[str | Path], closing: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *program(arguments)],
        input=b"one\n",
        capture_output=True,
        check=False,
        timeout=120,
        env=environment(**STRICT),
    )


@pytest.mark.parametrize(
    ("arguments", "closing", "message"),
    [
        (["check", "-"], "<&-", b"jumok check: standard input is closed, so there is nothing to read."),
        (["models"], ">&-", b"jumok models: Standard output is closed, so nothing can be printed."),
        (["corpus", "english-korean", "--count", "3"], "<&- >&-", b"jumok corpus: Standard output is closed"),
        (["--help"], ">&-", b"jumok: Standard output is closed"),
        (["info", "nowhere"], "<&- >&-", b"jumok info: There is no folder nowhere."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_closed_stream_prints_one_line(arguments: list[str], closing: str, message: bytes) -> None:
    done = shell(arguments, closing)
    assert done.returncode == 2
    assert done.stderr.startswith(message), done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("closing", ["<&-", "2>&-"])
def test_a_closed_stream_that_is_not_needed_is_ignored(closing: str) -> None:
    done = shell(["corpus", "english-korean", "--count", "3"], closing)
    assert (done.returncode, done.stderr, done.stdout.count(b"\n")) == (0, b"", 4)


@pytest.mark.parametrize("closing", ["", "2>&-"])
def test_a_reader_that_ends_early_ends_the_command(closing: str) -> None:
    """As `jumok corpus … | head -1` does; the exit code is that of SIGPIPE."""
    command = [
        "sh",
        "-c",
        f'exec "$@" {closing}',
        "sh",
        *program(["corpus", "english-korean", "--count", "50000"]),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(**STRICT)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=120) == 141


@pytest.mark.medium
def test_translating_with_closed_streams(model: Path) -> None:
    closed_input = shell(["translate", model], "<&-")
    assert closed_input.returncode == 2
    assert closed_input.stderr.startswith(b"jumok translate: standard input is closed")
    closed_output = shell(["translate", model], ">&-")
    assert closed_output.returncode == 2
    assert closed_output.stderr == (
        b"jumok translate: Standard output is closed, so nothing can be printed.\n"
    )


def odd_name(folder: Path, name: bytes) -> Path:
    return Path(os.fsdecode(os.fsencode(folder) + b"/" + name))


def test_a_corpus_whose_name_is_not_utf8(tmp_path: Path) -> None:
    file = write_tsv(odd_name(tmp_path, b"caf\xe9.en-de.tsv"), [("one", "eins"), ("two", "two")])
    done = shell(["check", file], "")
    assert (done.returncode, done.stderr) == (1, b"")  # two pairs are too few
    assert f"{tmp_path}/caf\N{REPLACEMENT CHARACTER}.en-de.tsv: 2 pairs".encode() in done.stdout
    report = json.loads(shell(["check", file, "--json"], "").stdout.decode("utf-8"))
    assert report["faults"][0]["examples"][0]["corpus"].endswith("caf\N{REPLACEMENT CHARACTER}.en-de.tsv")


@pytest.mark.medium
def test_a_model_folder_and_a_source_file_whose_names_are_not_utf8(model: Path, tmp_path: Path) -> None:
    folder = odd_name(tmp_path, b"mod\xe8le")
    folder.symlink_to(model, target_is_directory=True)
    done = shell(["info", folder], "")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(os.fsencode(folder) + b"\n")
    source = odd_name(tmp_path, b"entr\xe9e.txt")
    source.write_bytes(b"one\n")
    assert shell(["translate", folder, source], "").returncode == 0
