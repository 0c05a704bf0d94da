"""Facts about the machine on which the systems run, and how busy the machine is."""

from __future__ import annotations

import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jumok
from jumok.system.processes import available_cores

__all__ = ["PACKAGES", "busy_share", "machine_facts", "package_versions"]

PACKAGES = ("torch", "eole", "transformers", "ctranslate2", "sentencepiece")


def busy_share(seconds: float = 1.0) -> float:
    """Return the share of all cores' time that was not idle while this process slept."""
    idle, total = _jiffies()
    time.sleep(seconds)
    idle_after, total_after = _jiffies()
    return 1 - (idle_after - idle) / max(total_after - total, 1)


def _jiffies() -> tuple[int, int]:
    """Return the idle time (including waiting for disks) and the total time of all cores since boot."""
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    # The last two columns, guest times, are already in the first two.
    fields = [int(field) for field in first.split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def machine_facts() -> dict[str, str | int]:
    return {"cpu": _cpu_model(), "cores": available_cores(), "system": platform.platform(terse=True)}


def package_versions() -> dict[str, str]:
    """Return the versions of Python, of jumok's sources, and of the installed packages."""
    python_and_jumok = {"python": platform.python_version(), "jumok": jumok.__version__}
    return {**python_and_jumok, **{name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
