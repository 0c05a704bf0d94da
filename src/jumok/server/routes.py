"""Routes: a method and a path, the function that handles them, and whether they need a key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from jumok.server.http_errors import HttpError
from jumok.server.request_body import RequestFields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.datastructures import Headers
    from starlette.responses import Response

    from jumok.server.service import Service

__all__ = ["NOT_FOUND", "RequestContext", "Route", "find_route"]

NOT_FOUND = "There is nothing at this address."


@dataclass(slots=True)
class RequestContext:
    """A request as the handler of a route gets it."""

    service: Service
    headers: Headers
    scheme: str
    client: str = ""
    """The id of the key's holder, or the address if the server has no keys."""
    request: RequestFields = field(default_factory=RequestFields)
    path_parameters: dict[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Any]:
        return self.request.by_name


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path with their handler. `{name}` in a path matches one segment of it."""

    method: str
    path: str
    handler: Callable[[RequestContext], Awaitable[Response]]
    guarded: bool = False
    """Whether it needs a key, if the server has keys, and counts towards the client's rate limit."""
    error_page: Callable[[RequestContext, HttpError], Response] | None = None
    """Renders errors as a page; by default they are JSON."""

    def match(self, path: str) -> dict[str, str] | None:
        match = _pattern(self.path).fullmatch(path)
        return match.groupdict() if match else None


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))


def find_route(routes: Sequence[Route], method: str, path: str) -> tuple[Route, dict[str, str]]:
    """Return the route of a request and its path parameters; raise 404 or 405 if there is none."""
    allowed = set()
    for route in routes:
        parameters = route.match(path)
        if parameters is None:
            continue
        if method in {route.method, "HEAD"} and (method != "HEAD" or route.method == "GET"):
            return route, parameters
        allowed |= {route.method, "HEAD"} if route.method == "GET" else {route.method}
    if allowed:
        raise HttpError(
            405, "The method is not allowed for this address.", {"Allow": ", ".join(sorted(allowed))}
        )
    raise HttpError(404, NOT_FOUND)
