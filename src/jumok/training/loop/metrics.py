"""metrics.jsonl: one JSON object a line, appended as training goes, and TensorBoard where it is wanted.

A number that is not finite is written as null, since JSON has no word for it. A resumed run cuts the file
back to the length that its checkpoint recorded, so that no step stands there twice and a line torn by a crash
is gone. Whoever reads the file is given every line that can be read: one that cannot hides no other.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Protocol

from jumok.errors import RecipeError
from jumok.storage import disk_errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["CurveWriter", "Metrics", "read_metrics", "tensorboard_writer"]

_INTACT = "All checkpoints are intact."


class CurveWriter(Protocol):
    """What is asked of TensorBoard's `SummaryWriter`."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...
    def close(self) -> None: ...


class Metrics:
    """Append numbers of a run to `metrics.jsonl`, and to curves where somebody draws them."""

    def __init__(self, path: Path, *, length: int = 0, curves: CurveWriter | None = None) -> None:
        """Cut the file back to `length` bytes, then append."""
        self._curves = curves
        self._path = path
        with disk_errors(path, _INTACT):
            path.touch()
            self._file = path.open("r+b")
            self._file.truncate(min(length, path.stat().st_size))
            self._file.seek(0, 2)

    def write(self, kind: str, step: int, values: dict[str, Any]) -> None:
        told = {name: None if _is_odd(value) else value for name, value in values.items()}
        line = json.dumps({"kind": kind, "step": step, **told}, ensure_ascii=False, allow_nan=False)
        with disk_errors(self._path, _INTACT):
            self._file.write(line.encode() + b"\n")
            self._file.flush()  # whoever follows the file sees it at once
        if self._curves is not None:
            for name, value in told.items():
                if isinstance(value, int | float):
                    self._curves.add_scalar(f"{kind}/{name}", value, step)

    def length(self) -> int:
        """Bytes so far, all of them handed to the operating system: what a checkpoint records."""
        with disk_errors(self._path, _INTACT):
            self._file.flush()
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        if self._curves is not None:
            self._curves.close()


def _is_odd(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Every whole line that can be read; none where there is no file. The last line may be on its way."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [told for line in lines[:-1] if (told := _told(line)) is not None]


def _told(line: bytes) -> dict[str, Any] | None:
    """What a line tells; None where it is damaged."""
    try:
        told = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _refuse(constant: str) -> None:
    """Python reads NaN and Infinity as numbers; a page does not."""
    raise ValueError(constant)


def tensorboard_writer() -> Callable[[str], CurveWriter]:
    """TensorBoard's writer, to be given a folder; an error where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise RecipeError(
            "TensorBoard was asked for, but it is not installed. Install it with "
            "`pip install jumok[tensorboard]`, or leave it off: metrics.jsonl holds the same numbers."
        ) from None
    writer: Callable[[str], CurveWriter] = SummaryWriter
    return writer
