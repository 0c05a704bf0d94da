"""The log: one JSON object per line. What is logged about a request has its id, but not its text or key.

A path is logged as the route that it matched, and an unexpected error by its type and location: paths and
messages of such errors can contain text of a client.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

_logger = logging.getLogger("jumok.server")
_JSON = json.JSONEncoder(ensure_ascii=False)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON.

        A record of this package has `fields`. From a record of a library, only the first line of the message
        template is used: arguments, tracebacks and later lines can contain text of a client.
        """
        first_line, *_ = str(record.msg).split("\n")
        fields = getattr(record, "fields", None) or {"from": record.name, "event": first_line}
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = {"time": f"{when}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        return _JSON.encode({**head, **fields})


def configure_logging(stream: TextIO) -> None:
    """Send the log, warnings of uvicorn and errors of asyncio to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonFormatter())
    for name, level in (
        ("jumok.server", logging.INFO),
        ("uvicorn", logging.WARNING),
        ("asyncio", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


def log_event(event: str, **fields: object) -> None:
    if _logger.isEnabledFor(logging.INFO):
        # `_logger.info` would also look for the file and line of its caller, and take twice as long.
        extra = {"fields": {"event": event, **fields}}
        _logger.handle(_logger.makeRecord(_logger.name, logging.INFO, "", 0, event, (), None, extra=extra))


def log_error(event: str, error: BaseException, **fields: object) -> None:
    """Log an unexpected error: its type and location, not its message."""
    frames = traceback.extract_tb(error.__traceback__)
    location = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames[-4:]]
    all_fields = {"event": event, "error": type(error).__name__, "at": location, **fields}
    _logger.error(event, extra={"fields": all_fields})
