"""Start Python processes that import the same modules as this process, and count the usable cores.

A new interpreter would look for modules in the working folder first, where any file may have the name of a
module. `python_command` therefore passes this process's `sys.path` on.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from math import ceil
from pathlib import Path

ROOT = Path("/")
_SET_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "


def python_command(code: str, *arguments: str) -> list[str]:
    """Return the command that runs `code` in a new process with this process's `sys.path`."""
    return [sys.executable, "-P", "-c", _SET_PATH + code, json.dumps(sys.path), *arguments]


def available_cores(root: Path = ROOT) -> int:
    """Return how many cores this process may use: those of its CPU affinity, or fewer if a cgroup limits it.

    `root` is the root of the file system, for tests.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([affinity, *_cgroup_limits(root)])


@cache
def _cgroup_limits(root: Path) -> tuple[int, ...]:
    """Return the CPU limits, in cores, of the control groups that contain this process.

    A container limited to one core of a large machine still sees all cores; it only gets part of their time.
    """
    quotas = []
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, controllers, path = [*line.split(":", 2), "", ""][:3]
        if hierarchy == "0":  # version 2: one tree for all controllers
            mount, files = root / "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):
            mount, files = root / "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        # In a container, `path` may be a path of the host, and `mount` may be the folder of the group itself.
        # Files that do not exist are skipped.
        groups = () if ".." in path else Path(path.strip("/")).parts
        for depth in range(len(groups) + 1):
            lines = [line for file in files for line in _lines(mount.joinpath(*groups[:depth], file))]
            quotas.append(_quota(" ".join(lines).split()))
    return tuple(ceil(quota) for quota in quotas if quota > 0)


def _quota(values: list[str]) -> float:
    """Return quota / period in cores; 0 or less if there is no limit, which is written as "max" or -1."""
    try:
        quota, period = map(int, values)
    except ValueError:
        return 0.0
    return quota / period if period > 0 else 0.0


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
