"""The application of `jumok serve`: its routes, who may use them, and the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.routing import Match, Router

from jumok.server import pages
from jumok.server.api import API_ROUTES
from jumok.server.event_log import log_event
from jumok.server.http_application import HttpApplication
from jumok.server.http_errors import NOT_FOUND, error_response, retry_later
from jumok.server.workers.pending import BusyError, RequestTooLargeError

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from jumok.server.service import Service

ROUTES = (*API_ROUTES, *pages.ROUTES)
METHODS = frozenset(("GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"))


class Application(HttpApplication):
    """The application that uvicorn calls."""

    headers = {  # noqa: RUF012, never changed
        b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
        b"referrer-policy": b"same-origin",  # with no-referrer, the page's form would have Origin null
        b"x-content-type-options": b"nosniff",
        b"x-frame-options": b"DENY",
        b"cache-control": b"no-store",
    }
    error_types = (HTTPException, BusyError, RequestTooLargeError)

    def __init__(self, service: Service) -> None:
        super().__init__(Router(ROUTES, redirect_slashes=False))
        self.service = service

    def check_sender(self, headers: Headers) -> str:
        return self.service.host_origin_policy.check(headers)

    async def error_response(self, request: Request, error: Exception) -> Response:
        """Return the error as JSON, or as an HTML page if the endpoint has an `error_page`."""
        if isinstance(error, BusyError):
            http_error = retry_later(503, str(error), error.retry_seconds)
        else:
            http_error = error if isinstance(error, HTTPException) else HTTPException(413, str(error))
        # Every endpoint stores an `ApiRequest` in the scope. If the scope has none, no endpoint was called.
        api_request = request.scope.get("api_request")
        if api_request is None and http_error.status_code in (404, 405):
            http_error = _routing_error(request.scope)
        error_page = None if api_request is None else request.scope["endpoint"].error_page
        return error_page(api_request, http_error) if error_page else error_response(http_error)

    def log_response(self, request_id: str, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        # The path of the matched route contains nothing that the client sent.
        route = scope["route"].path if "route" in scope else "preflight" if status == 204 else ""
        self.service.metrics.observe_request(method, route, status, seconds)
        milliseconds = round(1000 * seconds, 1)
        log_event(
            "request",
            request=request_id,
            method=method,
            route=route,
            status=status,
            milliseconds=milliseconds,
        )


def _routing_error(scope: Scope) -> HTTPException:
    """Return the error for a request that no route accepts: 404 for an unknown path, else 405.

    The 405 lists the methods of all routes of the path. Starlette would list only those of the first route.
    """
    matching = (route for route in ROUTES if route.matches(scope)[0] is not Match.NONE)
    allowed = sorted({method for route in matching for method in route.methods or ()})
    if not allowed:
        return HTTPException(404, NOT_FOUND)
    message = "The method is not allowed for this address."
    return HTTPException(405, message, {"Allow": ", ".join(allowed)})
