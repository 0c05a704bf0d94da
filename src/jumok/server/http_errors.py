"""HTTP errors with a message for the user: Starlette's HTTPException, and how it is sent."""

from __future__ import annotations

from math import ceil

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

NOT_FOUND = "There is nothing at this address."


def bad_request(reason: str) -> HTTPException:
    """Return a 400 with LibreTranslate's wording."""
    return HTTPException(400, f"Invalid request: {reason}")


def retry_later(status: int, message: str, seconds: float) -> HTTPException:
    """Return a 429 or 503 that says when to try again."""
    return HTTPException(status, message, {"Retry-After": str(max(1, ceil(seconds)))})


def error_response(error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
