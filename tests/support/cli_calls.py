"""Calls of the command line: their result, and how to run it as a program.

The fixture `call` of tests/cli/conftest.py calls it in this process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Result:
    """The exit code and the output of a call."""

    code: int
    out: str
    err: str

    def error_of(self, command: str) -> str:
        """Check that the call ended with an error of this command, in one paragraph, and return it."""
        assert self.code == 2, self.err
        assert self.err.startswith(f"jumok {command}: "), self.err
        assert "Traceback" not in self.err
        assert "\n\n" not in self.err
        assert self.err.endswith("\n")
        return self.err


class Call(Protocol):
    def __call__(self, *arguments: str | Path, stdin: bytes | None = None) -> Result: ...


def program(arguments: Sequence[str | Path]) -> list[str]:
    return [sys.executable, "-c", "from jumok.cli import main; main()", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    # Buffered, as for users: a closed pipe or a full disk may be noticed only at the end.
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "", **variables}


def spawn(*arguments: str | Path, stdin: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run `jumok ARGUMENTS` as a program, with these environment variables too."""
    return subprocess.run(
        program(arguments),
        input=stdin,
        capture_output=True,
        check=False,
        timeout=120,
        env=environment(**variables),
    )
