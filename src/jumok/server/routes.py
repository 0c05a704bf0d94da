"""The endpoints of routes: they read a request and check who sent it before they call its handler."""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from jumok.server.request_body import ClientDisconnectedError, RequestFields, parse_request, read_body
from jumok.server.security import client_network

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.exceptions import HTTPException
    from starlette.types import Receive, Scope, Send

    from jumok.server.api.fields import ApiModel
    from jumok.server.service import Service

Result = TypeVar("Result")

GET, POST = ["GET"], ["POST"]
JSON_TYPE = "application/json"
SECONDS_BEFORE_WATCHING = 0.05
"""A request that is answered sooner is not watched for a disconnect of its client."""


class ApiRequest(Request):
    """A request as the handler of a route gets it."""

    def __init__(self, scope: Scope, service: Service) -> None:
        super().__init__(scope)
        self.service = service
        self.content = RequestFields()
        self.body_bytes = 0
        """Bytes of the body, which are reserved until the response is sent."""
        self.client_id = client_network((scope.get("client") or ("", 0))[0])
        """The IPv4 address or IPv6 /64 network of the client; after an API key was checked, the key's id."""

    @property
    def fields(self) -> dict[str, Any]:
        return self.content.by_name


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The application behind one route, and what the OpenAPI document says about it.

    In the document, the id of the route is the name of the handler in camel case, and the summary of the
    route is the first line of the handler's docstring.
    """

    handler: Callable[[ApiRequest], Awaitable[Response]]
    answer: Any = None
    """The type of the answer, which pydantic describes. If it is None, the document has no such route."""
    request: type[ApiModel] | None = None
    _: KW_ONLY
    body_types: tuple[str, ...] = (JSON_TYPE,)
    answer_types: tuple[str, ...] = (JSON_TYPE,)
    more_errors: tuple[str, ...] = ()
    """Error statuses in addition to 403, and to those that every route with a `request` can return."""
    is_offered: Callable[[Service], bool] = lambda _: True
    """Whether this server has the models that the route needs. If not, the document does not list the route.
    The handler must refuse requests to it."""
    guarded: bool = True
    """Whether requests count towards the client's rate limit, and need a key if the server has keys."""
    error_page: Callable[[ApiRequest, HTTPException], Response] | None = None
    """Renders errors as a page; by default they are JSON."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = scope["api_request"] = ApiRequest(scope, scope["app"].service)
        try:
            response = await self._respond(request, receive)
            if isinstance(response, StreamingResponse):
                await unless_disconnected(receive, _send_stream(response, scope, receive, send))
            else:
                await response(scope, receive, send)
        finally:
            request.service.body_budget.release(request.body_bytes)

    async def _respond(self, request: ApiRequest, receive: Receive) -> Response:
        service = request.service
        if self.guarded and not service.api_keys:
            # Checked before the body is read, so a client over its limit costs no more than its headers.
            service.rate_limiter.check(request.client_id)
        body = await read_body(request.scope, receive, service.limits, service.body_budget)
        request.body_bytes = len(body)
        request.content = await parse_request(request.scope, body, service.limits, service.thread_slot)
        if self.guarded and service.api_keys:
            _check_key(request)
        return await unless_disconnected(receive, self.handler(request))


def _check_key(request: ApiRequest) -> None:
    """Check the API key, and use its id as the id of the client.

    A wrong key counts towards the rate limit of the address that sent it.
    """
    service = request.service
    try:
        request.client_id = service.api_keys.check(request.content.api_key)
    finally:
        service.rate_limiter.check(request.client_id)


async def _send_stream(response: StreamingResponse, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response chunk by chunk. For an HTTP/1.0 client, send the chunks as one body instead.

    HTTP/1.0 has no chunked encoding.
    """
    if scope["http_version"] != "1.0":
        await response.stream_response(send)
        return
    chunks = [chunk async for chunk in response.body_iterator]
    body = b"".join(chunk.encode() if isinstance(chunk, str) else bytes(chunk) for chunk in chunks)
    await Response(body, response.status_code, dict(response.headers))(scope, receive, send)


async def unless_disconnected(receive: Receive, work: Awaitable[Result]) -> Result:
    """Await `work`; cancel it and raise ClientDisconnectedError if the client disconnects."""
    loop = asyncio.get_running_loop()
    watchers: list[asyncio.Task[None]] = []

    async def watch() -> None:
        await receive()  # the body has been read, so the next message is the disconnect
        timeout.reschedule(loop.time())

    # Most requests are answered before the timer, and never need a task.
    timer = loop.call_later(SECONDS_BEFORE_WATCHING, lambda: watchers.append(loop.create_task(watch())))
    timeout = asyncio.timeout(None)
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
