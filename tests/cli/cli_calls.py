"""Two ways to call the command line: in this process, and as a program."""

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
class Ran:
    """How a call ended and what it said."""

    code: int
    out: str
    err: str

    def paragraph(self, verb: str) -> str:
        """The one paragraph that a person gets for bad input, after checking that it is just that."""
        assert self.code == 2, self.err
        assert self.err.startswith(f"jumok {verb}: "), self.err
        assert "Traceback" not in self.err
        assert "\n\n" not in self.err
        assert self.err.endswith("\n")
        return self.err


class Call(Protocol):
    def __call__(self, *words: str | Path, stdin: bytes | None = None) -> Ran: ...


def program(words: Sequence[str | Path]) -> list[str]:
    return [sys.executable, "-c", "from jumok.cli import main; main()", *map(str, words)]


def environment(**more: str) -> dict[str, str]:
    # Buffered, as it is for people: a closed pipe or a full disk may show at the very end only.
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "", **more}


def spawn(*words: str | Path, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
    """`jumok WORDS` as a program of its own."""
    return subprocess.run(
        program(words), input=stdin, capture_output=True, check=False, timeout=120, env=environment(**more)
    )
