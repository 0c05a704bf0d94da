"""Commands work with closed standard streams or report them, and read files whose names are not UTF-8."""

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

STRICT_UTF8 = {"PYTHONIOENCODING": "utf-8:strict"}  # as in a terminal whose locale is set


def run_in_shell(arguments: Sequence[str | Path], closing: str) -> subprocess.CompletedProcess[bytes]:
    """Run `jumok ARGUMENTS` in a shell, with a redirection such as `<&-` that closes a stream."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *program(arguments)],
        input=b"one\n",
        capture_output=True,
        check=False,
        timeout=120,
        env=environment(**STRICT_UTF8),
    )


@pytest.mark.parametrize(
    ("arguments", "closing", "message"),
    [
        (["check", "-"], "<&-", b"jumok check: standard input is closed, so there is nothing to read."),
        (["models"], ">&-", b"jumok models: Standard output is closed, so nothing can be printed."),
        (["corpus", "english-korean", "--count", "3"], "<&- >&-", b"jumok corpus: Standard output is closed"),
        (["--help"], ">&-", b"jumok: Standard output is closed"),
        (["info", "missing-model"], "<&- >&-", b"jumok info: There is no folder missing-model."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_closed_stream_prints_one_line(arguments: list[str], closing: str, message: bytes) -> None:
    result = run_in_shell(arguments, closing)
    assert result.returncode == 2
    assert result.stderr.startswith(message), result.stderr
    assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize("closing", ["<&-", "2>&-"])
def test_a_closed_stream_that_is_not_needed_is_ignored(closing: str) -> None:
    result = run_in_shell(["corpus", "english-korean", "--count", "3"], closing)
    assert (result.returncode, result.stderr, result.stdout.count(b"\n")) == (0, b"", 4)


@pytest.mark.parametrize("closing", ["", "2>&-"])
def test_a_reader_that_ends_early_ends_the_command(closing: str) -> None:
    """`jumok corpus … | head -1` is an example. The exit code 141 is that of SIGPIPE."""
    command = [
        "sh",
        "-c",
        f'exec "$@" {closing}',
        "sh",
        *program(["corpus", "english-korean", "--count", "50000"]),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(**STRICT_UTF8)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=120) == 141


@pytest.mark.medium
def test_closed_streams_are_errors_of_a_translation(model: Path) -> None:
    closed_input = run_in_shell(["translate", model], "<&-")
    assert closed_input.returncode == 2
    assert closed_input.stderr.startswith(b"jumok translate: standard input is closed")
    closed_output = run_in_shell(["translate", model], ">&-")
    assert closed_output.returncode == 2
    assert closed_output.stderr == (
        b"jumok translate: Standard output is closed, so nothing can be printed.\n"
    )


def path_from_bytes(folder: Path, name: bytes) -> Path:
    return Path(os.fsdecode(os.fsencode(folder) + b"/" + name))


def test_a_corpus_whose_file_name_is_not_utf8_is_read(tmp_path: Path) -> None:
    file = write_tsv(path_from_bytes(tmp_path, b"caf\xe9.en-de.tsv"), [("one", "eins"), ("two", "two")])
    result = run_in_shell(["check", file], "")
    assert (result.returncode, result.stderr) == (1, b"")  # two pairs are too few
    assert f"{tmp_path}/caf\N{REPLACEMENT CHARACTER}.en-de.tsv: 2 pairs".encode() in result.stdout
    report = json.loads(run_in_shell(["check", file, "--json"], "").stdout.decode("utf-8"))
    assert report["faults"][0]["examples"][0]["corpus"].endswith("caf\N{REPLACEMENT CHARACTER}.en-de.tsv")


@pytest.mark.medium
def test_a_model_folder_and_a_text_whose_names_are_not_utf8_are_read(model: Path, tmp_path: Path) -> None:
    folder = path_from_bytes(tmp_path, b"mod\xe8le")
    folder.symlink_to(model, target_is_directory=True)
    result = run_in_shell(["info", folder], "")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.startswith(os.fsencode(folder) + b"\n")
    source = path_from_bytes(tmp_path, b"entr\xe9e.txt")
    source.write_bytes(b"one\n")
    assert run_in_shell(["translate", folder, source], "").returncode == 0
