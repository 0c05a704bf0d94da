"""Logs: a JSON object a line, with the id of the request and without a word of its text or its key.

The path is told as the route that it matched, and errors by their type and place: a path and a message can
carry what a person wrote.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["journal", "note", "note_error", "write_journal"]

journal = logging.getLogger("jumok.serve")


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Ours carry facts; of the libraries' only the first line of the unfilled message is kept.

        What asyncio writes below it, and tracebacks, can carry what a person wrote.
        """
        first, *_ = str(record.msg).split("\n")
        facts = getattr(record, "facts", None) or {"from": record.name, "event": first}
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = {"time": f"{when}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        return json.dumps({**head, **facts}, ensure_ascii=False)


def write_journal(stream: TextIO) -> None:
    """Send the journal, and warnings of the web server underneath, to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_AsJson())
    for name, level in (
        ("jumok.serve", logging.INFO),
        ("uvicorn", logging.WARNING),
        ("asyncio", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


def note(event: str, **facts: object) -> None:
    journal.info(event, extra={"facts": {"event": event, **facts}})


def note_error(event: str, error: BaseException, **facts: object) -> None:
    """An error that nobody expected: what and where, not its words."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames[-4:]]
    more = {"event": event, "error": type(error).__name__, "at": where, **facts}
    journal.error(event, extra={"facts": more})
