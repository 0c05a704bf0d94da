"""The notebooks of docs/notebooks run from the first cell to the last, without a network or Jupyter."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
MINUTES, PAIRS = 0.05, 1000


def code_cells(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code"), (
        f"{path.name} has stored outputs"
    )
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def with_little_training(code: str) -> str:
    """Return the code with seconds of training, on few pairs: the notebooks generate 20_000."""
    code = re.sub(r"^MINUTES = \d+", f"MINUTES = {MINUTES}", code, flags=re.M)
    return code.replace("20_000", str(PAIRS))


def test_there_are_three_notebooks() -> None:
    assert len(list(FOLDER.glob("*.ipynb"))) == 3


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("train-and-look", marks=pytest.mark.slow),
        pytest.param("change-attention", marks=pytest.mark.slow),
        "your-own-mechanism",
    ],
)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, code in enumerate(code_cells(FOLDER / f"{name}.ipynb")):
        exec(compile(with_little_training(code), f"{name}, cell {number}", "exec"), names)
