"""The ASGI application: each request through the gates, to its route, and back with a log line."""

from __future__ import annotations

import asyncio
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse

from jumok.serve.contract import CONTRACT
from jumok.serve.faults import Fault, busy, in_json
from jumok.serve.gates import client_of
from jumok.serve.journal import note, note_error
from jumok.serve.pages import PAGES
from jumok.serve.queueing import BusyError
from jumok.serve.reading import ClientGoneError, read_body, read_sent
from jumok.serve.routes import Call, find_route
from jumok.serve.version_one import VERSION_ONE
from jumok.serve.views import ATTENTION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Message, Receive, Scope, Send

    from jumok.serve.routes import Route
    from jumok.serve.service import Service

__all__ = ["Application"]

Answer = TypeVar("Answer")

METHODS = frozenset(("GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"))
SECURITY = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"same-origin",  # with no-referrer, a form of the page would come from Origin null
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
}
FOR_OTHER_ORIGINS = {
    b"vary": b"Origin",
    b"access-control-expose-headers": b"Retry-After, X-Request-Id, X-Translated-Through",
    b"cross-origin-resource-policy": b"cross-origin",
}
A_MOMENT = 0.05  # seconds
CLIENT_GONE = 499  # only in logs and counts: nobody is there to read it


class Application:
    """What uvicorn calls."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._routes = [*CONTRACT, *VERSION_ONE, *ATTENTION, *PAGES]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = Exchange(self._service, self._routes, scope, receive, send)
        await exchange.run()


class Exchange:
    """One request and its answer."""

    def __init__(
        self, service: Service, routes: list[Route], scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._service = service
        self._routes = routes
        self._scope = scope
        self._receive = receive
        self._send_raw = send
        self._headers = Headers(scope=scope)
        self._address = client_of((scope.get("client") or ("", 0))[0])
        self._id = secrets.token_hex(8)
        self._route = ""
        self._origin = ""
        self._status = CLIENT_GONE
        self._started = False
        self._refuse: Callable[[Fault], Response] = in_json

    async def run(self) -> None:
        begin = time.monotonic()
        try:
            await self._exchange()
        except ClientGoneError:
            pass
        except asyncio.CancelledError:
            self._status = 503
            raise
        except Exception as error:  # the one place where everything ends up
            note_error("failed", error, request=self._id, route=self._route)
            if not self._started:
                await self._fail(Fault(500, f"Something went wrong here. Request {self._id}."))
        finally:
            self._tell(time.monotonic() - begin)

    async def _exchange(self) -> None:
        try:
            response = await self._answer()
        except Fault as fault:
            await self._fail(fault)
        except BusyError as error:
            await self._fail(busy(503, str(error), error.seconds))
        else:
            if isinstance(response, StreamingResponse):  # goes on for as long as somebody listens
                await self._while_listening(self._send_stream(response))
            else:
                await response(self._scope, _nothing, self._send)

    async def _send_stream(self, response: StreamingResponse) -> None:
        """Piece by piece; whole, to whom HTTP/1.0 cannot tell where a piece ends."""
        sent: Response = response
        if self._scope["http_version"] == "1.0":
            pieces = [piece async for piece in response.body_iterator]
            body = b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces)
            sent = Response(body, response.status_code, dict(response.headers))
        await sent(self._scope, _nothing, self._send)

    async def _answer(self) -> Response:
        service, scope = self._service, self._scope
        self._origin = service.visitors.check(self._headers)
        method = scope["method"]
        if method == "OPTIONS" and self._origin:
            self._route = "preflight"
            return Response(status_code=204, headers=_preflight())
        route, parameters = find_route(self._routes, method, scope["path"])
        self._route = route.path
        call = Call(service, self._headers, scope["scheme"], parameters=parameters)
        if route.refuse is not None:
            self._refuse = partial(route.refuse, call)
        if not service.keys and route.guarded:
            # Before the body is read: who comes too often costs no more than its headers.
            service.pacing.check(self._address)
        body = await read_body(scope, self._receive, service.limits, service.held)
        try:
            return await self._answer_body(route, call, body)
        finally:
            service.held.give_back(len(body))

    async def _answer_body(self, route: Route, call: Call, body: bytes) -> Response:
        service = self._service
        call.sent = await read_sent(self._scope, body, service.limits)
        if service.keys and route.guarded:
            service.pacing.check(self._holder(call.sent.key))
        return await self._while_listening(route.answer(call))

    def _holder(self, key: str) -> str:
        """Who holds a key. Guesses have a pace too, that of the address they come from."""
        try:
            return self._service.keys.check(key)
        except Fault:
            self._service.pacing.check(self._address)
            raise

    async def _while_listening(self, work: Awaitable[Answer]) -> Answer:
        """Do something for a client; stop when it leaves. What takes a moment is done before one looks."""
        task = asyncio.current_task()
        leaving: asyncio.Future[Message] | None = None
        listening = True

        def left(_: object) -> None:
            if listening and task is not None:
                task.cancel()

        def listen() -> None:
            nonlocal leaving
            leaving = asyncio.ensure_future(self._receive())
            leaving.add_done_callback(left)

        soon = asyncio.get_running_loop().call_later(A_MOMENT, listen)
        try:
            return await work
        except asyncio.CancelledError:
            if task is None or leaving is None or not leaving.done():
                raise
            task.uncancel()
            raise ClientGoneError from None
        finally:
            listening = False
            soon.cancel()
            if leaving is not None:
                leaving.cancel()

    async def _fail(self, fault: Fault) -> None:
        # The rest of a body that is too large is read for a while and thrown away: who is still sending when
        # the connection is cut would not see why.
        if fault.status == 408:
            fault.headers["Connection"] = "close"
        await self._refuse(fault)(self._scope, _nothing, self._send)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self._status = message["status"]
            headers = {**SECURITY, b"x-request-id": self._id.encode()}
            if self._origin:
                headers |= {**FOR_OTHER_ORIGINS, b"access-control-allow-origin": self._origin.encode()}
            headers |= message["headers"]  # a route's own say; each of them comes once
            message["headers"] = list(headers.items())
        await self._send_raw(message)

    def _tell(self, seconds: float) -> None:
        method = self._scope["method"] if self._scope["method"] in METHODS else "other"
        self._service.metrics.note_request(method, self._route, self._status, seconds)
        note(
            "request",
            request=self._id,
            method=method,
            route=self._route,
            status=self._status,
            milliseconds=round(1000 * seconds, 1),
        )


async def _nothing() -> Message:
    """For responses that listen for the end of a connection, which is heard elsewhere."""
    while True:
        await asyncio.sleep(3600)


def _preflight() -> dict[str, str]:
    return {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Content-Type, Authorization",
        "Access-Control-Max-Age": "600",
    }
