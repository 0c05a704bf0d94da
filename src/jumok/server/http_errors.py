"""Answers that are no translation: a status, a sentence for people, and headers that go with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from starlette.responses import JSONResponse, Response

__all__ = ["Fault", "busy", "in_json", "invalid"]


@dataclass(slots=True)
class Fault(Exception):  # noqa: N818 - most are the client's
    """Ends a request, with `{"error": message}` unless its route tells it otherwise."""

    status: int
    message: str
    headers: dict[str, str] = field(default_factory=dict)


def invalid(what: str) -> Fault:
    """400, in the words of LibreTranslate."""
    return Fault(400, f"Invalid request: {what}")


def busy(status: int, message: str, seconds: float) -> Fault:
    """429 or 503, with the time after which it makes sense to try again."""
    return Fault(status, message, {"Retry-After": str(max(1, ceil(seconds)))})


def in_json(fault: Fault) -> Response:
    return JSONResponse({"error": fault.message}, status_code=fault.status, headers=fault.headers)
