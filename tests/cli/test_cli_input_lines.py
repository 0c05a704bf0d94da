"""`InputLines` reads the lines of a file or a pipe as soon as each line arrives."""

from __future__ import annotations

import io
import os
import sys
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from jumok.cli import input_lines
from jumok.cli.input_lines import InputLines
from jumok.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


def read_standard_input(data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    with closing(InputLines(None)) as lines:
        return list(lines)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 2**16])
def test_lines_do_not_depend_on_the_block_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_lines, "BLOCK_BYTES", block)
    for text in ("", "\n", "one", "one\n", "one\n\ntwo", "\n\n", "하나\r\n둘\r셋\u2028넷\n", "one\n\n"):
        expected = [line.removesuffix("\r") for line in text.split("\n")]
        assert read_standard_input(text.encode(), monkeypatch) == (
            expected if expected[-1] else expected[:-1]
        )
    assert read_standard_input(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo", monkeypatch) == ["one", "\ufefftwo"]


def test_bytes_that_are_not_utf8_are_reported_with_their_position(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"standard input, line 2, byte 4: this is not UTF-8"):
        read_standard_input(b"one\ntwo\xff\n", monkeypatch)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no file"):
        InputLines(tmp_path / "nowhere")


def test_a_line_is_ready_as_soon_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as stream, os.fdopen(write_end, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        lines = InputLines(None)
        assert not lines.ready()
        assert not lines.is_terminal
        writer.write(b"one\ntwo\n")
        assert lines.ready()
        assert next(lines) == "one"
        assert lines.ready()
        assert next(lines) == "two"
        assert not lines.ready()
        writer.close()
        assert lines.ready()
        assert list(lines) == []


def test_a_file_is_always_ready(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("one\n", encoding="utf-8")
    with closing(InputLines(file)) as lines:
        assert lines.ready()
        assert list(lines) == ["one"]
        assert lines.ready()
