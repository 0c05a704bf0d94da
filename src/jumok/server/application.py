"""The ASGI application: checks each request, calls its route, and logs the response."""

from __future__ import annotations

import asyncio
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse

from jumok.server import pages
from jumok.server.api import API_ROUTES
from jumok.server.event_log import log_error, log_event
from jumok.server.http_errors import HttpError, error_response, retry_later
from jumok.server.request_body import ClientDisconnectedError, parse_request, read_body
from jumok.server.routes import RequestContext, find_route
from jumok.server.security import client_network
from jumok.server.workers.pending import BusyError, RequestTooLargeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Message, Receive, Scope, Send

    from jumok.server.routes import Route
    from jumok.server.service import Service

__all__ = ["Application"]

Result = TypeVar("Result")

METHODS = frozenset(("GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"))
SECURITY_HEADERS = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"same-origin",  # with no-referrer, the page's form would have Origin null
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
}
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
DISCONNECT_CHECK_SECONDS = 0.05
"""Requests that are answered faster do not watch for a disconnect."""
CLIENT_DISCONNECTED = 499  # nginx's status; only in the log and metrics, since nobody receives it


class Application:
    """The application that uvicorn calls."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._routes = [*API_ROUTES, *pages.ROUTES]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = Exchange(self._service, self._routes, scope, receive, send)
        await exchange.run()


class Exchange:
    """One request and its response."""

    def __init__(
        self, service: Service, routes: list[Route], scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._service = service
        self._routes = routes
        self._scope = scope
        self._receive = receive
        self._send_raw = send
        self._headers = Headers(scope=scope)
        self._client = client_network((scope.get("client") or ("", 0))[0])
        self._id = secrets.token_hex(8)
        self._route_path = ""
        self._allowed_foreign_origin = ""
        self._status = CLIENT_DISCONNECTED
        self._response_started = False
        self._error_response: Callable[[HttpError], Response] = error_response

    async def run(self) -> None:
        started = time.monotonic()
        try:
            await self._respond()
        except ClientDisconnectedError:
            pass
        except asyncio.CancelledError:
            self._status = 503
            raise
        except Exception as error:  # the one place that catches everything
            log_error("failed", error, request=self._id, route=self._route_path)
            if not self._response_started:
                await self._send_error(HttpError(500, f"Something went wrong here. Request {self._id}."))
        finally:
            self._log(time.monotonic() - started)

    async def _respond(self) -> None:
        try:
            response = await self._response()
        except HttpError as error:
            await self._send_error(error)
        except BusyError as error:
            await self._send_error(retry_later(503, str(error), error.retry_seconds))
        except RequestTooLargeError as error:
            await self._send_error(HttpError(413, str(error)))
        else:
            if isinstance(response, StreamingResponse):  # only while the client is connected
                await self._unless_disconnected(self._send_stream(response))
            else:
                await response(self._scope, _wait_forever, self._send)

    async def _send_stream(self, response: StreamingResponse) -> None:
        """Send chunk by chunk; to an HTTP/1.0 client, which knows no chunked encoding, all at once."""
        sendable: Response = response
        if self._scope["http_version"] == "1.0":
            chunks = [chunk async for chunk in response.body_iterator]
            body = b"".join(chunk.encode() if isinstance(chunk, str) else bytes(chunk) for chunk in chunks)
            sendable = Response(body, response.status_code, dict(response.headers))
        await sendable(self._scope, _wait_forever, self._send)

    async def _response(self) -> Response:
        service, scope = self._service, self._scope
        self._allowed_foreign_origin = service.host_origin_policy.check(self._headers)
        method = scope["method"]
        if method == "OPTIONS" and self._allowed_foreign_origin:
            self._route_path = "preflight"
            return Response(status_code=204, headers=PREFLIGHT_HEADERS)
        route, parameters = find_route(self._routes, method, scope["path"])
        self._route_path = route.path
        context = RequestContext(
            service, self._headers, scope["scheme"], self._client, path_parameters=parameters
        )
        if route.error_page is not None:
            self._error_response = partial(route.error_page, context)
        if not service.api_keys and route.guarded:
            # Checked before the body is read, so a client over its limit costs no more than its headers.
            service.rate_limiter.check(self._client)
        body = await read_body(scope, self._receive, service.limits, service.body_budget)
        try:
            context.request = await parse_request(scope, body, service.limits, service.run_in_thread)
            if service.api_keys and route.guarded:
                context.client = self._key_holder(context.request.api_key)
                service.rate_limiter.check(context.client)
            return await self._unless_disconnected(route.handler(context))
        finally:
            service.body_budget.release(len(body))

    def _key_holder(self, api_key: str) -> str:
        """Return the id of a key's holder. Wrong keys count towards the rate limit of their address."""
        try:
            return self._service.api_keys.check(api_key)
        except HttpError:
            self._service.rate_limiter.check(self._client)
            raise

    async def _unless_disconnected(self, work: Awaitable[Result]) -> Result:
        """Await `work`; cancel it and raise ClientDisconnectedError if the client disconnects."""
        loop = asyncio.get_running_loop()
        timeout = asyncio.timeout(None)  # has no deadline until the client disconnects
        watchers: list[asyncio.Task[None]] = []

        async def watch() -> None:
            await self._receive()  # the body has been read, so this is the disconnect
            timeout.reschedule(loop.time())

        timer = loop.call_later(DISCONNECT_CHECK_SECONDS, lambda: watchers.append(loop.create_task(watch())))
        try:
            async with timeout:
                return await work
        except TimeoutError:
            if timeout.expired():
                raise ClientDisconnectedError from None
            raise
        finally:
            timer.cancel()
            for watcher in watchers:
                watcher.cancel()

    async def _send_error(self, error: HttpError) -> None:
        # Only a client that is too slow (408) is disconnected. After other errors the connection stays open,
        # and the rest of a body that is too large is read for a while and discarded: a client that is still
        # sending when its connection is closed would not see the response.
        if error.status == 408:
            error.headers["Connection"] = "close"
        await self._error_response(error)(self._scope, _wait_forever, self._send)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._response_started = True
            self._status = message["status"]
            headers = {**SECURITY_HEADERS, b"x-request-id": self._id.encode()}
            if self._allowed_foreign_origin:
                headers |= {
                    **CORS_HEADERS,
                    b"access-control-allow-origin": self._allowed_foreign_origin.encode(),
                }
            headers |= message["headers"]  # a route's own headers win; each header occurs once
            message["headers"] = list(headers.items())
        await self._send_raw(message)

    def _log(self, seconds: float) -> None:
        method = self._scope["method"] if self._scope["method"] in METHODS else "other"
        self._service.metrics.observe_request(method, self._route_path, self._status, seconds)
        log_event(
            "request",
            request=self._id,
            method=method,
            route=self._route_path,
            status=self._status,
            milliseconds=round(1000 * seconds, 1),
        )


async def _wait_forever() -> Message:
    """Stand in for `receive` in responses: `_unless_disconnected` already watches for a disconnect."""
    while True:
        await asyncio.sleep(3600)
