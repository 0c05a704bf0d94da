"""A route: a method and a path, what answers it, and whether it asks for a key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from jumok.serve.faults import Fault
from jumok.serve.reading import Sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.datastructures import Headers
    from starlette.responses import Response

    from jumok.serve.service import Service

__all__ = ["Call", "Route", "find_route"]


@dataclass(slots=True)
class Call:
    """One request as a route sees it."""

    service: Service
    headers: Headers
    scheme: str
    sent: Sent = field(default_factory=Sent)
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """`{name}` in a path stands for one part of it. The name of a route is its operation in OpenAPI."""

    method: str
    path: str
    name: str
    answer: Callable[[Call], Awaitable[Response]]
    guarded: bool = False
    """Asks for a key, where there are keys, and counts towards a client's pace."""
    refuse: Callable[[Call, Fault], Response] | None = None
    """How people are told what machines are told in JSON."""

    def match(self, path: str) -> dict[str, str] | None:
        found = _pattern(self.path).fullmatch(path)
        return found.groupdict() if found else None


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))


def find_route(routes: Sequence[Route], method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of a request; 404 or 405 where there is none."""
    allowed = set()
    for route in routes:
        parameters = route.match(path)
        if parameters is None:
            continue
        if method in {route.method, "HEAD"} and (method != "HEAD" or route.method == "GET"):
            return route, parameters
        allowed |= {route.method, "HEAD"} if route.method == "GET" else {route.method}
    if allowed:
        raise Fault(405, "The method is not allowed for this address.", {"Allow": ", ".join(sorted(allowed))})
    raise Fault(404, "There is nothing at this address.")
