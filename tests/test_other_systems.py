"""jumok can be imported, trains with one process, and translates where functions of Linux are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"

# Removes functions that macOS or Windows does not have. Windows does not have `resource` either, but the
# server imports it, so it is not removed here.
REMOVE_LINUX_FUNCTIONS = """
import os, sys, warnings
import sacrebleu  # needs the real fcntl when it is imported
sys.modules["fcntl"] = None
for name in ("memfd_create", "O_NOFOLLOW", "geteuid", "sched_getaffinity"):
    delattr(os, name)
warnings.filterwarnings("ignore", message="only soft file lock is available")
"""

IMPORT_ALL = """
import importlib, pkgutil
import jumok
for module in pkgutil.walk_packages(jumok.__path__, "jumok."):
    if module.name != "jumok.__main__":
        importlib.import_module(module.name)
        print(module.name)
"""

TRAIN_AND_TRANSLATE = """
sys.modules["resource"] = None  # only the server needs it
import jumok
words = "zero one two three four five six seven eight nine".split()
pairs = [(f"{words[a]} {words[b]}", f"{a} {b}") for a in range(10) for b in range(10)]
settings = {
    "model.width": 32, "model.feed_forward": 64, "model.heads": 2, "model.encoder_layers": 1,
    "model.decoder_layers": 1, "text.vocab_size": 300, "training.steps": 6, "training.validate_every": 3,
    "training.batch_tokens": 256, "languages.source": "en", "languages.target": "de",
}
folder = jumok.train(pairs, out="run", **settings)
try:
    jumok.train(pairs, out="two-processes", **settings, **{"training.processes": 2})
except jumok.UnsupportedError as error:
    print(error)
for engine in ("torch", "ctranslate2"):
    print(engine, len(jumok.load(folder, engine=engine).translate(["one two", "nine"])))
"""


def run(code: str, folder: Path) -> list[str]:
    """Run the code in a process without these functions; return the lines that it prints."""
    process = subprocess.run(
        [sys.executable, "-c", REMOVE_LINUX_FUNCTIONS + code],
        cwd=folder,
        env={
            "PYTHONPATH": str(SOURCES),
            "HOME": str(folder),
            "JUMOK_CACHE": str(folder / "cache"),
            "PATH": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


@pytest.mark.medium
def test_every_module_can_be_imported(tmp_path: Path) -> None:
    imported_modules = run(IMPORT_ALL, tmp_path)
    assert {"jumok.cli.translate", "jumok.training.parallel.shared_memory"} <= set(imported_modules)
    files = [path for path in (SOURCES / "jumok").rglob("*.py") if path.name != "__main__.py"]
    assert len(imported_modules) == len(files) - 1  # `walk_packages` does not list jumok itself


@pytest.mark.medium
def test_one_process_trains_and_translates(tmp_path: Path) -> None:
    error, *translations = run(TRAIN_AND_TRANSLATE, tmp_path)
    assert "Set training.processes = 1." in error
    assert translations == ["torch 2", "ctranslate2 2"]


def test_the_cache_is_where_macos_has_caches(tmp_path: Path) -> None:
    """Windows is not tested, because platformdirs asks the operating system for its folder."""
    pytest.importorskip("platformdirs")
    code = "import sys, jumok.storage.user_cache as f; sys.platform = 'darwin'; print(f.cache_folder())"
    environment = {"PYTHONPATH": str(SOURCES), "HOME": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert Path(process.stdout.strip()) == tmp_path / "Library/Caches/jumok", process.stderr
