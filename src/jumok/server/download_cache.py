"""Translated files until they are fetched: in memory, under names that cannot be guessed, for a while.

There is no folder and no path, so that no name, however it is written, can lead anywhere else.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumok.serve.limits import Limits

__all__ = ["Shelf"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A file, and when it was put there."""

    data: bytes
    since: float


class Shelf:
    """The oldest files make way for new ones."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files: dict[str, Kept] = {}

    def put(self, data: bytes, suffix: str) -> str:
        """Keep a file; the answer is its name."""
        name = secrets.token_urlsafe(24) + suffix
        self._files[name] = Kept(data, time.monotonic())
        self._clear()
        return name

    def get(self, name: str) -> bytes | None:
        self._clear()
        kept = self._files.get(name)
        return kept.data if kept else None

    def _clear(self) -> None:
        limits, now = self._limits, time.monotonic()
        size = sum(len(kept.data) for kept in self._files.values())
        for name, kept in list(self._files.items()):
            old = now - kept.since > limits.kept_file_seconds
            if not (old or size > limits.kept_file_bytes or len(self._files) > limits.kept_files):
                return
            size -= len(kept.data)
            del self._files[name]
