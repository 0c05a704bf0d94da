"""The built page in the repository, which spares users Node, is up to date with the sources in `web/`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
WEB = PROJECT / "web"
STORED = PROJECT / "src" / "jumok"
BUILT = {
    "JUMOK_PAGE_FOLDER": ("plots", ("page.html", "engine.js")),
    "JUMOK_SERVER_FOLDER": ("server", ("page.js", "page.css")),
}


@pytest.mark.slow
@pytest.mark.web
@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed: the page cannot be rebuilt")
def test_the_stored_page_equals_a_new_build_of_its_sources(tmp_path: Path) -> None:
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
            assert built == (STORED / folder / name).read_text(encoding="utf-8"), (
                "web/ has changed since the last `make web`"
            )


def test_the_lockfile_names_no_registry() -> None:
    lock = (WEB / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
