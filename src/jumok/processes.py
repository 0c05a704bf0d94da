"""Further Python processes that see the same modules as this one.

A new interpreter would look into the working folder first, where any file may have the name of a module. So
it is told to import from where this process imports, in the same order.
"""

from __future__ import annotations

import json
import sys

__all__ = ["python_command"]

SAME_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "


def python_command(code: str, *words: str) -> list[str]:
    """The command that runs these statements in a new process, with `words` as its arguments."""
    return [sys.executable, "-P", "-c", SAME_PATH + code, json.dumps(sys.path), *words]
