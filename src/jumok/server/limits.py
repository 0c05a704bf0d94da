"""Every size and time that the server keeps to, in one place. All are on unless somebody says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """What one request, one client and the whole server may ask for."""

    characters: int = 100_000
    """Characters of text in one request; LibreTranslate's `charLimit`."""
    texts: int = 1_000
    """Texts of one array."""
    alternatives: int = 10
    body_bytes: int = 2 * 2**20
    """Checked while a body arrives, before any of it is parsed."""
    held_bytes: int = 128 * 2**20
    """Of all bodies together that are being read or answered."""
    file_marks: int = 100_000
    """Tags, entities and lines of a file, counted before any of it is parsed: each costs microseconds."""
    header_seconds: float = 10.0
    body_seconds: float = 20.0
    """How long a client may take to send its headers, and then its body."""
    fetch_seconds: float = 60.0
    """How long a client may take to fetch what was written for it."""
    connections: int = 2_000
    waiting_sentences: int = 8_192
    """The one queue is full with these, or with so many characters."""
    waiting_characters: int = 1_000_000
    answer_seconds: float = 60.0
    """A request that cannot be answered within this time is refused, or ends with 503."""
    requests_per_minute: int = 3_000
    """Of one key, or of one address where there are no keys; 0 is no limit."""
    kept_files: int = 100
    kept_file_bytes: int = 64 * 2**20
    """Translated files wait in memory to be fetched, this many, this large together, this long."""
    kept_file_seconds: float = 1_200.0
    drain_seconds: float = 90.0
    """After SIGTERM, what was accepted has this long to be answered."""
