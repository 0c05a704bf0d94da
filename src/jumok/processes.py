"""Further Python processes that see the same modules as this one, and how many can run at once.

A new interpreter would look into the working folder first, where any file may have the name of a module. So
it is told to import from where this process imports, in the same order.
"""

from __future__ import annotations

import json
import os
import sys

__all__ = ["available_cores", "python_command"]

SAME_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "


def python_command(code: str, *words: str) -> list[str]:
    """The command that runs these statements in a new process, with `words` as its arguments."""
    return [sys.executable, "-P", "-c", SAME_PATH + code, json.dumps(sys.path), *words]


def available_cores() -> int:
    """How many cores this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
