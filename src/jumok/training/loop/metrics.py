"""metrics.jsonl: one JSON object per line, appended while training; TensorBoard curves on request.

A number that is not finite is written as null, since JSON cannot express it. A resumed run truncates the file
to the length that its checkpoint recorded, so that no step occurs twice and a half-written line is gone.
`read_metrics` skips damaged lines and returns all others.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Protocol

from jumok.errors import RecipeError
from jumok.storage.folders import disk_errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FAILURE_NOTE = "All checkpoints are intact."


class CurveWriter(Protocol):
    """The part of TensorBoard's `SummaryWriter` that is used here."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...
    def close(self) -> None: ...


class Metrics:
    """Appends the numbers of a run to `metrics.jsonl` and, if there is a writer, to TensorBoard curves."""

    def __init__(self, path: Path, *, length: int = 0, curves: CurveWriter | None = None) -> None:
        """Truncate the file to `length` bytes, or make it; `write` appends to it."""
        self._curves = curves
        self._path = path
        with disk_errors(path, _FAILURE_NOTE):
            path.touch()
            self._file = path.open("r+b")
            self._file.truncate(min(length, path.stat().st_size))
            self._file.seek(0, 2)

    def write(self, kind: str, step: int, values: dict[str, Any]) -> None:
        """Append one line; `kind` is "train" or "validation"."""
        finite = {name: value if _is_finite(value) else None for name, value in values.items()}
        line = json.dumps({"kind": kind, "step": step, **finite}, ensure_ascii=False, allow_nan=False)
        with disk_errors(self._path, _FAILURE_NOTE):
            self._file.write(line.encode() + b"\n")
            self._file.flush()  # so that a page that follows the file sees the line at once
        if self._curves is not None:
            for name, value in finite.items():
                if isinstance(value, int | float):
                    self._curves.add_scalar(f"{kind}/{name}", value, step)

    def length(self) -> int:
        """Flush the file and return its length in bytes, which a checkpoint records."""
        with disk_errors(self._path, _FAILURE_NOTE):
            self._file.flush()
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        if self._curves is not None:
            self._curves.close()


def _is_finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return all complete, undamaged lines; none if there is no file."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    # The text after the last newline is empty or half-written.
    return [metrics for line in lines[:-1] if (metrics := _parse_line(line)) is not None]


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the object in a line; None if the line is damaged."""
    try:
        content = json.loads(line, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _reject_constant(constant: str) -> None:
    """Refuse NaN and Infinity, which Python parses and JavaScript does not."""
    raise ValueError(constant)


def tensorboard_writer() -> Callable[[str], CurveWriter]:
    """Return TensorBoard's `SummaryWriter`; raise a RecipeError if it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # optional
    except ImportError:
        raise RecipeError(
            "TensorBoard is not installed. Install it with `pip install jumok[tensorboard]`, or train "
            "without it: metrics.jsonl holds the same numbers."
        ) from None
    writer: Callable[[str], CurveWriter] = SummaryWriter
    return writer
