"""A wheel, installed outside of the repository into an empty environment, translates, looks and serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
MODEL = PROJECT / "tests" / "stored" / "models" / "transformer"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, and with its dependencies from this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(PROJECT)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"a wheel cannot be built here: {result.stderr[-300:]}")
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "environment")
    [packages] = (folder / "environment" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:  # as pip installs it, without its dependencies
        archive.extractall(packages)
    # dependencies.pth adds the packages of the environment that runs this test. A .pth file there names the
    # sources of jumok, but they are not added: Python ignores .pth files in a folder that a .pth file adds.
    (packages / "dependencies.pth").write_text(f"{_folder_of_dependencies()}\n", encoding="utf-8")
    return folder / "environment" / "bin" / "python"


def _folder_of_dependencies() -> str:
    import torch

    return str(Path(torch.__file__).parents[1]) if torch.__file__ else sysconfig.get_path("purelib")


def environment() -> dict[str, str]:
    """The variables of this process, without PYTHONPATH, which a developer may have set to the sources."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(python: Path, folder: Path, *arguments: str | Path, text: str = "") -> str:
    result = subprocess.run(
        [python, "-m", "jumok", *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment(),
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_a_wheel_translates_looks_and_serves(python: Path, tmp_path: Path) -> None:
    location = subprocess.run(
        [python, "-c", "import jumok; print(jumok.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert Path(location.stdout.strip()).is_relative_to(python.parents[1])
    translation = run(python, tmp_path, "translate", MODEL, text="I go home.\n").strip()
    assert translation
    run(python, tmp_path, "look", MODEL, "I go home.", "--out", tmp_path / "x.html")
    assert translation in (tmp_path / "x.html").read_text(encoding="utf-8")
    server = subprocess.Popen(
        [python, "-m", "jumok", "serve", str(MODEL), "--port", "0", "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    try:
        # The first line is: jumok serve: URL
        url = server.stdout.readline().split()[2] if server.stdout else ""
        fields = json.dumps({"q": "I go home.", "source": "en", "target": "ko"}).encode()
        request = urllib.request.Request(f"{url}/translate", fields, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["translatedText"] == translation
        with urllib.request.urlopen(url, timeout=60) as page:
            assert b"<html" in page.read()
    finally:
        server.terminate()
        server.wait(timeout=60)
        if server.stdout:
            server.stdout.close()
