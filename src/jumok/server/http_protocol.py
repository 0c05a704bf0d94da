"""HTTP/1.1 with timeouts for sending and reading, and limits on request heads, pipelines and connections.

This module depends on internals of uvicorn's HttpToolsProtocol (`pipeline`, `cycle`, `_start_asgi_task`, …).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_TOO_MANY_CONNECTIONS = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b'Content-Type: application/json\r\nContent-Length: 33\r\n\r\n{"error":"Too many connections."}'
)
MAX_HEAD_BYTES = 32 * 2**10
_HEAD_TOO_LONG = f"its head is longer than {MAX_HEAD_BYTES // 2**10} KiB"
HEADER_OVERHEAD = 64  # bytes of memory per header, besides its name and value
MAX_PIPELINED = 16
"""Maximum number of parsed requests that wait until the current request is answered."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection, with the limits and timeouts that uvicorn and its parser lack."""

    header_timeout = 10.0
    response_timeout = 60.0
    max_connections = 1_000
    grace_seconds = 1.0  # an idle connection stays open this long after a shutdown begins
    closing = False  # set to True for all connections when the server begins to shut down

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = self._coalescing = _CoalescingTransport(transport, self.loop)
        self._current_cycle: RequestResponseCycle | None = None
        self._header_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None
        self._draining = False
        self._in_head = self._in_body = False
        self._head_bytes = 0  # of the head of the request, and of its trailer
        self._silent_bytes = 0  # fed to the parser since its last callback
        self._bad_request_reason = "not HTTP/1.1"
        # With a high-water mark of 0, asyncio calls `pause_writing` as soon as a byte cannot be sent at once,
        # and the response timer starts. Without the timer, a connection that the server has closed would stay
        # open until the client had read the rest of the response.
        transport.set_write_buffer_limits(high=0)
        self.waiting_since = self.loop.time()
        if len(self.connections) > self.max_connections and not self.make_room():
            self.transport.write(_TOO_MANY_CONNECTIONS)
            self.transport.close()
            return
        self._start_header_timer()
        if self.closing:
            self.shutdown()

    def make_room(self) -> bool:
        """Hook: close another connection to make room for this one. Return whether one was closed.

        By default none is closed.
        """
        return False

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._silent_bytes += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("")
            return
        if self._silent_bytes > MAX_HEAD_BYTES:
            self._bad_request_reason = _HEAD_TOO_LONG
            self.send_400_response("")
        if self._draining and self.cycle is not None:
            self.cycle.keep_alive = False
        if not self.is_idle:
            self._stop_header_timer()
        elif self.timeout_keep_alive_task is None:
            # The data is a part of the next request, or of the body of a request that was refused because of
            # its headers.
            self._start_header_timer()

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                # A new parser is needed, because a parser that has read `Connection: close, Upgrade` reads no
                # further data, even with this leniency.
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refuse(f"more than {MAX_PIPELINED} requests are waiting")
        self._in_head = True
        self._head_bytes = self._silent_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + HEADER_OVERHEAD)
        if self._in_head:  # a trailer could contradict the headers that were checked
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._silent_bytes = 0
        if self.parser.get_method() == b"CONNECT":
            self._refuse("this is not a proxy")
        if self.parser.should_upgrade():
            return  # the parser stops after this head
        self._in_head, self._in_body = False, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._silent_bytes = 0
        if self._in_body:
            self._in_body = False
            super().on_message_complete()

    def _count_head(self, num_bytes: int) -> None:
        self._silent_bytes = 0
        self._head_bytes += num_bytes
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(_HEAD_TOO_LONG)

    def _refuse(self, reason: str) -> NoReturn:
        """Stop the parser, which reports every exception of a callback as a parse error."""
        self._bad_request_reason = reason
        raise ValueError(reason)

    def _head_without_upgrade(self) -> bytes:
        """Return the head that was just read, but leave out its Upgrade header.

        Java clients offer HTTP/2 with every request. With this header, the parser would read the body of the
        request as HTTP/2.
        """
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def send_400_response(self, msg: str) -> None:
        """Close the connection. Before this, send the error as JSON, unless a part of a response was sent.

        uvicorn would send `msg` as plain text.
        """
        cycle = self._current_cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_bad_request(self._bad_request_reason))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_response_timer()
        self._coalescing.drop()
        super().connection_lost(exc)
        # The base class notifies only the last request of the pipeline. The request that is being answered
        # may be an earlier request.
        if self._current_cycle is not None and not self._current_cycle.response_complete:
            self._current_cycle.disconnected = True
            self._current_cycle.message_event.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._response_timer is None:
            self._response_timer = self.loop.call_later(self.response_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_response_timer()

    def shutdown(self) -> None:
        """Close the connection after the current request.

        An idle connection stays open for a moment, for a request that was sent before its client could see
        the shutdown.
        """
        self._draining = True
        if self.is_idle:
            self.loop.call_later(self.grace_seconds, self._close_if_idle)
        else:
            super().shutdown()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._current_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        self.waiting_since = self.loop.time()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered. A part of the next request may have arrived."""
        return self.cycle is None or self.cycle.response_complete

    def _close_if_idle(self) -> None:
        if self.is_idle and not self.transport.is_closing():
            super().shutdown()

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.header_timeout, self.transport.close)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _stop_response_timer(self) -> None:
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None


def _bad_request(reason: str) -> bytes:
    body = f'{{"error":"Invalid request: {reason}"}}'
    return (
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode("ascii")


class _CoalescingTransport(asyncio.Transport):
    """Holds the head of a response until its body follows, so that both are sent in one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._flush_handle: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:  # type: ignore[override]
        if self._head:
            data = self._take_head() + data
        elif data.startswith(b"HTTP/1.1 "):
            self._head = data
            self._flush_handle = self._loop.call_soon(self._send_head)  # the body may come much later
            return
        self._transport.write(data)

    def close(self) -> None:
        self._send_head()
        self._transport.close()

    def abort(self) -> None:
        self.drop()
        self._transport.abort()

    def drop(self) -> None:
        """Discard the head; the client has disconnected."""
        self._take_head()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _send_head(self) -> None:
        if self._head:
            self._transport.write(self._take_head())

    def _take_head(self) -> bytes:
        head, self._head = self._head, b""
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        return head
