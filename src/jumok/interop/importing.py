"""Import a model of another toolkit, in a child process.

The child process has limits on memory and time. It reads the untrusted files, writes the model folder and
sends a report. Even if the files crash the child process, this process gets a report or a typed error, and
`out` is either complete or does not exist.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jumok import errors
from jumok.errors import JumokError, ModelFolderError, RecipeError, StorageError, suggest
from jumok.interop.conversion import POSITION_CHOICES, ImportChoices
from jumok.interop.package import refusal
from jumok.storage.folders import is_leftover
from jumok.system.messages import read_message
from jumok.system.processes import python_command

MAX_SECONDS = 1800
_CHILD = "from jumok.interop.import_worker import work; work()"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The report of an import. The command line prints it as text or, with `--json`, as JSON."""

    folder: str
    """The new model folder; in a description, the path of the model of the other toolkit."""
    format: str
    languages: str
    parameters: int
    vocab_size: int
    positions: str
    positions_reason: str
    licence: str
    codes: tuple[str, ...]


def import_model(
    path: str | Path,
    out: str | Path,
    choices: ImportChoices | None = None,
    *,
    max_seconds: float = MAX_SECONDS,
) -> ImportReport:
    """Turn a model of Hugging Face, Marian, CTranslate2 or Argos Translate into a model folder at `out`."""
    path, out, choices = Path(path), Path(out), choices or ImportChoices()
    if choices.positions not in POSITION_CHOICES:
        raise RecipeError(
            f"There are no positions {choices.positions!r}.{suggest(choices.positions, POSITION_CHOICES)} "
            f"Known: {', '.join(POSITION_CHOICES)}."
        )
    if not path.exists():
        raise refusal(str(path), "there is no such folder or file", "Check its name.")
    if out.exists():
        raise StorageError(f"{out} exists already. Choose another name, or move the old model away.")
    return _run_worker(path, out, choices, max_seconds)


def describe_foreign_model(path: str | Path, *, max_seconds: float = MAX_SECONDS) -> ImportReport:
    """Return the report that an import of a model would have. Nothing is written."""
    return _run_worker(Path(path), None, ImportChoices(), max_seconds)


def _run_worker(path: Path, out: Path | None, choices: ImportChoices, max_seconds: float) -> ImportReport:
    """Run the child process and return its report. If it dies, remove the incomplete folder."""
    task = json.dumps(
        {"path": str(path), "out": None if out is None else str(out), "choices": asdict(choices)}
    )
    older = _incomplete_folders(out)
    try:
        with subprocess.Popen(
            python_command(_CHILD, task),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                output, error_output = process.communicate(timeout=max_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise refusal(str(path), f"reading it took longer than {max_seconds:g} seconds") from None
            except BaseException:
                process.kill()
                raise
    finally:  # the child process has ended
        for folder in _incomplete_folders(out) - older:
            shutil.rmtree(folder, ignore_errors=True)
    report = _parse_report(output)
    if report is None:
        last = error_output.decode("utf-8", errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise refusal(
            str(path), f"the process that read it ended with code {process.returncode} ({last[0]:.200})"
        )
    if "error" in report:
        raise _reported_error(report)
    return ImportReport(**{**report, "codes": tuple(report["codes"])})


def _incomplete_folders(out: Path | None) -> set[Path]:
    """Return the temporary folders that an import to `out` has, or that killed imports have left behind."""
    if out is None:
        return set()
    paths = (path for path in out.parent.glob("*.tmp-*") if path.name.startswith(f"{out.name}.tmp-"))
    return {path for path in paths if is_leftover(path.name)}


def _parse_report(output: bytes) -> dict[str, Any] | None:
    try:
        return read_message(io.BytesIO(output))
    except ValueError:
        return None


def _reported_error(report: dict[str, Any]) -> JumokError:
    kind = getattr(errors, str(report["error"]), None)
    if not isinstance(kind, type) or not issubclass(kind, JumokError):
        kind = ModelFolderError
    return kind(str(report.get("message")))
