"""The files in the repository that are built from the sources in `web/` are up to date.

The files are stored in the repository so that users need no Node.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
WEB = PROJECT / "web"
# Environment variable that sets the output folder of a build → the default folder, and the built files.
BUILT = {
    "JUMOK_PAGE_FOLDER": ("src/jumok/plots", ("page.html", "engine.js")),
    "JUMOK_SERVER_FOLDER": ("src/jumok/server", ("page.js", "page.css")),
    "JUMOK_FIGURES_FOLDER": ("docs/site/static", ("figures.js",)),
}


@pytest.mark.slow
@pytest.mark.web
@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed: the page cannot be rebuilt")
def test_the_stored_files_equal_a_new_build_of_their_sources(tmp_path: Path) -> None:
    sources = tmp_path / "web"
    shutil.copytree(WEB, sources, ignore=shutil.ignore_patterns("node_modules"))
    folders = {variable: str(tmp_path / folder) for variable, (folder, _) in BUILT.items()}
    environment = {**os.environ, **folders}
    for command in (
        ["npm", "ci", "--silent"],
        ["npm", "run", "--silent", "check"],
        ["npm", "run", "--silent", "build"],
    ):
        process = subprocess.run(
            command, cwd=sources, env=environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stdout + process.stderr
    for folder, names in BUILT.values():
        for name in names:
            built = (tmp_path / folder / name).read_text(encoding="utf-8")
            stored = (PROJECT / folder / name).read_text(encoding="utf-8")
            assert built == stored, f"{name} is out of date: web/ has changed since the last `make web`"


def test_the_lockfile_names_no_registry() -> None:
    lock = (WEB / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
