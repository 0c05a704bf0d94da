"""A cache of translated files that wait to be downloaded: in memory, under names that cannot be guessed.

The files are not stored on disk, so a requested name cannot lead to any other file of the computer.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumok.documents.document import DocumentFormat
    from jumok.server.limits import Limits


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file, its format, and when it was stored."""

    data: bytes
    document_format: DocumentFormat
    stored_at: float


class DownloadCache:
    """A bounded cache that evicts the oldest files first. The newest file stays until it expires."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files: dict[str, CachedFile] = {}

    def put(self, data: bytes, document_format: DocumentFormat) -> str:
        """Store a file and return the name under which it can be downloaded."""
        name = secrets.token_urlsafe(24) + document_format.suffix
        self._files[name] = CachedFile(data, document_format, time.monotonic())
        self._evict()
        return name

    def get(self, name: str) -> CachedFile | None:
        self._evict()
        return self._files.get(name)

    def _evict(self) -> None:
        limits, now = self._limits, time.monotonic()
        size = sum(len(file.data) for file in self._files.values())
        for name, file in list(self._files.items()):
            has_expired = now - file.stored_at > limits.cached_file_lifetime
            is_too_much = size > limits.max_cached_file_bytes and len(self._files) > 1
            if not (has_expired or is_too_much or len(self._files) > limits.max_cached_files):
                return
            size -= len(file.data)
            del self._files[name]
