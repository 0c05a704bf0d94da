"""Middleware of both servers: it checks who sends a request, adds headers, answers errors and logs.

The servers are `jumok serve` (`application.py`) and `jumok look --live` (`viewer/http_server.py`).
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from jumok.server.event_log import log_error
from jumok.server.request_body import ClientDisconnectedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLIENT_DISCONNECTED = 499  # nginx's status; only in the log and metrics, since nobody receives it
CORS_HEADERS = {
    b"vary": b"Origin",
    b"access-control-expose-headers": b"Retry-After, X-Request-Id, X-Translated-Through",
    b"cross-origin-resource-policy": b"cross-origin",
}
PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Content-Type, Authorization",
    "Access-Control-Max-Age": "600",
}


class HttpApplication:
    """Middleware around an ASGI application. A subclass says who may send requests and how errors look."""

    headers: Mapping[bytes, bytes]
    """Headers of every response. A header that the response already has is not replaced."""
    error_types: tuple[type[Exception], ...] = (HTTPException,)
    """Errors that `error_response` answers. Any other exception is logged and answered with 500."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    def check_sender(self, headers: Headers) -> str:
        """Raise an HTTPException if Host or Origin is not allowed.

        Return the origin if it belongs to another site that is allowed, else "".
        """
        raise NotImplementedError

    async def error_response(self, request: Request, error: Exception) -> Response:
        """Return the response to an error of `error_types`."""
        raise NotImplementedError

    def log_response(self, request_id: str, scope: Scope, status: int, seconds: float) -> None:
        """Log a response."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope["app"] = self
        request_id, started = f"{random.getrandbits(64):016x}", time.monotonic()
        status, has_started = CLIENT_DISCONNECTED, False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, has_started
            if message["type"] == "http.response.start":
                status, has_started = message["status"], True
                headers = {**self.headers, b"x-request-id": request_id.encode()}
                if origin := scope.get("foreign_origin"):
                    headers |= {**CORS_HEADERS, b"access-control-allow-origin": origin.encode()}
                message["headers"] = list((headers | dict(message["headers"])).items())  # no header twice
            await send(message)

        try:
            try:
                await self._dispatch(scope, receive, send_with_headers)
            except self.error_types as error:
                if has_started:
                    raise
                response = await self.error_response(Request(scope), error)
                await response(scope, receive, send_with_headers)
        except ClientDisconnectedError:
            pass
        except asyncio.CancelledError:
            status = 503
            raise
        except Exception as error:  # the one place in the middleware that catches everything
            log_error("failed", error, request=request_id)
            if not has_started:
                failed = HTTPException(500, f"Something went wrong here. Request {request_id}.")
                response = await self.error_response(Request(scope), failed)
                await response(scope, receive, send_with_headers)
        finally:
            self.log_response(request_id, scope, status, time.monotonic() - started)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["foreign_origin"] = origin = self.check_sender(Headers(scope=scope))
        if origin and scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=PREFLIGHT_HEADERS)(scope, receive, send)
        else:
            await self._application(scope, receive, send)
