"""The live page for one user on one computer: an ASGI application, and the server that runs it.

The server listens on loopback only, and its address contains a secret. Other users of the computer do not
know the secret and get 404. Pages of other sites get 421 because of their Host header, or 403 because of
their Origin header. The Host header is checked because of DNS rebinding: the owner of a site can make its
name resolve to this computer, but the Host header then has the name of the site.

The number of connections is limited. If there are too many, the connection that has been idle longest is
closed. If no connection is idle, the new connection gets 503.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import uvicorn
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from jumok.errors import JumokError
from jumok.plots.page import served_page
from jumok.server.http_application import HttpApplication
from jumok.server.http_errors import error_response, retry_later
from jumok.server.http_protocol import BoundedHttpProtocol
from jumok.server.limits import Limits
from jumok.server.listening import listen, server_config
from jumok.server.request_body import BodyMemoryBudget, read_body
from jumok.server.routes import JSON_TYPE, unless_disconnected

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from jumok.server.viewer.service import ExplanationService

Result = TypeVar("Result")

ADDRESS = "127.0.0.1"
VIEWER_LIMITS = Limits(
    max_body_bytes=64 * 1024, max_connections=32, header_timeout=30, body_timeout=30, response_timeout=30
)
MAX_CONCURRENT_REQUESTS = 8
NDJSON = "application/x-ndjson"

logging.getLogger("uvicorn").addHandler(logging.NullHandler())  # nothing is printed about the requests


class ViewerServer:
    """Serves the live page until it is shut down. Port 0 selects a free port."""

    def __init__(self, service: ExplanationService, *, port: int = 0, limits: Limits = VIEWER_LIMITS) -> None:
        limits = replace(limits, max_body_bytes=limits.max_body_bytes + service.max_picture_characters)
        advice = "Choose another port with --port, or leave it out."
        self._listener = listen(ADDRESS, port, advice=advice)
        self.address: tuple[str, int] = self._listener.getsockname()
        self.port = self.address[1]
        self.application = ViewerApplication(service, self.port, limits)
        config = server_config(self.application, limits, ViewerProtocol, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/{self.application.secret}/"

    def serve_forever(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener]))

    def shutdown(self) -> None:
        """End `serve_forever`, which runs in another thread."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()


class ViewerProtocol(BoundedHttpProtocol):
    """A connection that may be closed, while it waits for a request, to make room for a new connection."""

    grace_seconds = 0.0

    def make_room(self) -> bool:
        others: set[ViewerProtocol] = {*self.connections} - {self}  # type: ignore[assignment]
        idle = [other for other in others if other.is_idle and not other.transport.is_closing()]
        if idle:
            min(idle, key=lambda other: other.waiting_since).transport.close()
        return bool(idle)


class ViewerApplication(HttpApplication):
    """The page at `/SECRET/`, and its requests. They are not logged: the sentences are private."""

    headers = {  # noqa: RUF012, never changed
        b"cache-control": b"no-store",
        b"content-security-policy": b"frame-ancestors 'none'",
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
        b"referrer-policy": b"no-referrer",
        b"x-content-type-options": b"nosniff",
    }
    error_types = (HTTPException, JumokError)

    def __init__(self, service: ExplanationService, port: int, limits: Limits) -> None:
        super().__init__(self._answer)
        self.secret = secrets.token_urlsafe(16)
        self.request_slots = threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS)
        self._service = service
        self._hosts = {f"{name}:{port}" for name in (ADDRESS, "localhost")}
        self._limits = limits
        self._body_budget = BodyMemoryBudget(limits)

    def check_sender(self, headers: Headers) -> str:
        host, origins = headers.get("host", ""), headers.getlist("origin")
        if headers.getlist("host") != [host] or host not in self._hosts:
            raise HTTPException(421, "This server responds to this computer's own name only.")
        if origins not in ([], [f"http://{host}"]):
            raise HTTPException(403, "Requests from other pages are refused.")
        return ""

    async def error_response(self, request: Request, error: Exception) -> Response:
        return error_response(error if isinstance(error, HTTPException) else HTTPException(400, str(error)))

    def log_response(self, request_id: str, scope: Scope, status: int, seconds: float) -> None:
        pass

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "POST"):
            raise HTTPException(501, "This server has no such method.")
        _, secret, operation = [*scope["path"].split("/", 2), "", ""][:3]
        if not secrets.compare_digest(secret.encode(), self.secret.encode()):
            raise HTTPException(404, "There is nothing here. Open the address that jumok printed.")
        if scope["method"] == "POST":
            await self._operate(operation, scope, receive, send)
        elif operation:
            raise HTTPException(404, "There is no such page.")
        elif not scope["path"].endswith("/"):  # the requests of the page are relative to its address
            await RedirectResponse(f"/{self.secret}/")(scope, receive, send)
        else:
            await HTMLResponse(served_page(self._service.page_data()))(scope, receive, send)

    async def _operate(self, operation: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if not self._service.supports(operation):
            raise HTTPException(404, "There is no such operation.")
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != JSON_TYPE.encode():
            raise HTTPException(415, "Send the request as application/json.")
        body = await read_body(scope, receive, self._limits, self._body_budget)
        self._body_budget.release(len(body))
        if not self.request_slots.acquire(blocking=False):
            raise retry_later(503, "Too many requests at once. Try again in a moment.", 1)
        stream = _LineStream(send) if NDJSON.encode() in headers.get(b"accept", b"") else None

        def handle() -> bytes:
            try:
                return self._service.handle(operation, body, stream.send_partial if stream else None)
            finally:
                self.request_slots.release()

        try:
            answer = await unless_disconnected(receive, _in_daemon_thread(handle))
        except JumokError as error:
            if stream is None or not stream.has_started:
                raise
            answer = _json({"error": str(error)})
        finally:
            if stream is not None:
                stream.is_open = False
        if stream is None:
            await Response(answer, media_type=JSON_TYPE)(scope, receive, send)
        else:
            await stream.send_line(answer)
            await send({"type": "http.response.body", "body": b""})


class _LineStream:
    """A response with a line for each partial result or progress report. The last line is the answer.

    The status 200 is sent with the first line. An error before the first line is sent with an error status. A
    later error is sent as the last line.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self.has_started = False
        self.is_open = True

    async def send_line(self, line: bytes) -> None:
        if not self.has_started:
            self.has_started = True
            headers = [(b"content-type", f"{NDJSON}; charset=utf-8".encode())]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": line + b"\n", "more_body": True})

    def send_partial(self, fields: dict[str, Any]) -> None:
        """Send a line from the computing thread, and wait until it is sent.

        Raise a ConnectionError if the stream is closed, so that the work ends.
        """
        if not self.is_open:
            raise ConnectionError
        asyncio.run_coroutine_threadsafe(self.send_line(_json(fields)), self._loop).result()


def _in_daemon_thread(function: Callable[[], Result]) -> asyncio.Future[Result]:
    """Run a function in a thread that does not keep the program from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def resolve(result: Result | None, error: Exception | None) -> None:
        if future.done():  # it is cancelled if the client disconnects
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(cast("Result", result))

    def run() -> None:
        result, error = None, None
        try:
            result = function()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(resolve, result, error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()
