"""`jumok.server.http_protocol` uses internals of uvicorn, so only one minor version of uvicorn is allowed."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_uvicorn_is_pinned_to_one_minor_version_which_is_installed() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [pinned] = [requirement for requirement in project["dependencies"] if requirement.startswith("uvicorn")]
    bounds = re.fullmatch(r"uvicorn>=(\d+)\.(\d+),<(\d+)\.(\d+)", pinned)
    assert bounds is not None, pinned
    major, minor, next_major, next_minor = map(int, bounds.groups())
    assert (next_major, next_minor) == (major, minor + 1)
    assert metadata.version("uvicorn").startswith(f"{major}.{minor}.")
