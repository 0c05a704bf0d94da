"""The listening socket and uvicorn's settings, for `jumok serve` and for the live page."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

import uvicorn

from jumok.errors import DataError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from jumok.server.http_protocol import BoundedHttpProtocol
    from jumok.server.limits import Limits

BACKLOG = 2048
"""Connections that may wait to be accepted."""


def listen(host: str, port: int, *, advice: str) -> socket.socket:
    """Return a socket that listens. If that fails, raise a DataError whose message ends with `advice`.

    `bind` alone would not detect that a second server is being started on the same port: both servers could
    bind the port, and only `listen` would fail.
    """
    with contextlib.ExitStack() as on_error:
        try:
            [(family, socket_type, protocol, _, address), *_] = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
            listener = on_error.enter_context(socket.socket(family, socket_type, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            reason = error.strerror or error
            raise DataError(f"Cannot listen on {host}:{port} ({reason}). {advice}") from None
        on_error.pop_all()
    listener.setblocking(False)
    return listener


def server_config(
    application: ASGIApp, limits: Limits, protocol: type[BoundedHttpProtocol], **settings: Any
) -> uvicorn.Config:
    """Return uvicorn's settings for an application with these limits."""
    protocol_limits = {
        "header_timeout": limits.header_timeout,
        "response_timeout": limits.response_timeout,
        "max_connections": limits.max_connections,
    }
    return uvicorn.Config(
        application,
        http=type("LimitedProtocol", (protocol,), protocol_limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=30,
        **settings,
    )
