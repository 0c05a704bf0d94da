"""HTTP errors: a status, a message for the user, and response headers."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from starlette.responses import JSONResponse, Response

__all__ = ["HttpError", "bad_request", "error_response", "retry_later"]


@dataclass(slots=True)
class HttpError(Exception):
    """Ends a request with `{"error": message}`, unless its route shows errors in another way."""

    status: int
    message: str
    headers: dict[str, str] = field(default_factory=dict)


def bad_request(reason: str) -> HttpError:
    """Return a 400 with LibreTranslate's wording."""
    return HttpError(400, f"Invalid request: {reason}")


def retry_later(status: int, message: str, seconds: float) -> HttpError:
    """Return a 429 or 503 that says when to try again."""
    return HttpError(status, message, {"Retry-After": str(max(1, ceil(seconds)))})


def error_response(error: HttpError) -> Response:
    return JSONResponse({"error": error.message}, status_code=error.status, headers=error.headers)
