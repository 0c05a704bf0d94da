"""The result of a call of the command line, and functions that run the command line in a process of its own.

The fixture `call` of tests/cli/conftest.py runs the command line in the process of the test.
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
        """Assert that the call ended with a one-paragraph error of this command. Return the error message."""
        assert self.code == 2, self.err
        assert self.err.startswith(f"jumok {command}: "), self.err
        assert "Traceback" not in self.err
        assert "\n\n" not in self.err
        assert self.err.endswith("\n")
        return self.err


class Call(Protocol):
    """The type of the fixture `call`."""

    def __call__(self, *arguments: str | Path, stdin: bytes | None = None) -> Result: ...


def program(arguments: Sequence[str | Path]) -> list[str]:
    """Return the command line that runs `jumok ARGUMENTS`."""
    return [sys.executable, "-c", "from jumok.cli import main; main()", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of the test process with these variables changed."""
    # The empty PYTHONUNBUFFERED keeps output buffered, as users have it. Then a closed pipe or a full disk
    # may be noticed only at the end.
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "", **variables}


def spawn(*arguments: str | Path, stdin: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run `jumok ARGUMENTS` in a process of its own, with these environment variables changed."""
    return subprocess.run(
        program(arguments),
        input=stdin,
        capture_output=True,
        check=False,
        timeout=120,
        env=environment(**variables),
    )
