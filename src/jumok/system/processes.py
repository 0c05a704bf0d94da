"""Further Python processes that see the same modules as this one, and how many can run at once.

A new interpreter would look into the working folder first, where any file may have the name of a module. So
it is told to import from where this process imports, in the same order.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from math import ceil
from pathlib import Path

__all__ = ["available_cores", "python_command"]

MACHINE = Path("/")
SAME_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "


def python_command(code: str, *words: str) -> list[str]:
    """The command that runs these statements in a new process, with `words` as its arguments."""
    return [sys.executable, "-P", "-c", SAME_PATH + code, json.dumps(sys.path), *words]


def available_cores(root: Path = MACHINE) -> int:
    """How many cores this process may use: those it is bound to, or fewer if its time on them has a quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([bound, *_quotas(root)])


@cache
def _quotas(root: Path) -> tuple[int, ...]:
    """How many cores each control group around this process may keep busy, where that is limited.

    A container with one core of a large machine still sees all of them: it only runs for part of the time.
    """
    found = []
    for group in _lines(root / "proc/self/cgroup"):
        number, controllers, path = [*group.split(":", 2), "", ""][:3]
        if number == "0":  # version 2: one tree for all controllers
            mount, files = root / "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):
            mount, files = root / "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        # Seen from inside a container the path may be that of the host, and its mount the group itself.
        inside = () if ".." in path else Path(path.strip("/")).parts
        for depth in range(len(inside) + 1):
            words = [word for file in files for word in _lines(mount.joinpath(*inside[:depth], file))]
            found.append(_quota(" ".join(words).split()))
    return tuple(ceil(quota) for quota in found if quota > 0)


def _quota(words: list[str]) -> float:
    """Microseconds of every so many; 0 where there is no limit, which is written as "max" or -1."""
    try:
        most, period = map(int, words)
    except ValueError:
        return 0.0
    return most / period if period > 0 else 0.0


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
