"""One tiny trained model for all tests of the command line, and `jumok ARGUMENTS` in this process."""

from __future__ import annotations

import io
import shutil
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from jumok.cli import main
from support.cli_calls import Call, Result
from support.digit_lines import TINY, digit_lines, write_tsv

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """A function that runs `jumok ARGUMENTS` in this process. It expects that SystemExit is raised."""

    def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin or b"")))
            with pytest.raises(SystemExit) as end:
                main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        code = end.value.code
        return Result(code if isinstance(code, int) else int(bool(code)), output.out, output.err)

    return run


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty pairs with alignments."""
    return write_tsv(tmp_path_factory.mktemp("pairs") / "digits.en-de.tsv", digit_lines(60))


@pytest.fixture(scope="session")
def finished_run(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with a model. Tests must not change this folder, but may change a copy."""
    import jumok

    out = tmp_path_factory.mktemp("finished") / "run"
    jumok.train(pairs, out=out, **TINY)
    return out


@pytest.fixture(scope="session")
def model(finished_run: Path) -> Path:
    return finished_run / "model"


@pytest.fixture(scope="session")
def gold_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six pairs with gold alignments."""
    return write_tsv(tmp_path_factory.mktemp("gold") / "test.en-de.tsv", digit_lines(6, seed=2))


@pytest.fixture
def unfinished_run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished run without its model. jumok continues this copy like an unfinished run."""
    run_copy = tmp_path / "unfinished"
    shutil.copytree(finished_run, run_copy)
    shutil.rmtree(run_copy / "model")
    return run_copy
