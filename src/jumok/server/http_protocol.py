"""HTTP/1.1 with an end to patience: sending and fetching have a time; heads, queues, connections a limit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

__all__ = ["PatientProtocol"]

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b'Content-Type: application/json\r\nContent-Length: 33\r\n\r\n{"error":"Too many connections."}'
)
_MALFORMED = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n"
    b'Content-Length: 41\r\n\r\n{"error":"Invalid request: not HTTP/1.1"}'
)
GRACE_SECONDS = 1.0
MOST_HEAD_BYTES = 32 * 2**10
BYTES_OF_A_HEADER = 64  # that it takes in memory beside its name and value
MOST_PIPELINED = 16
"""Requests behind the one that is being answered, each of them parsed already."""


class PatientProtocol(HttpToolsProtocol):
    """One connection. What the parser underneath leaves unbounded is bounded here."""

    header_seconds = 10.0
    fetch_seconds = 60.0
    most_connections = 1_000
    closing = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = self._answers = _HeadWithBody(transport, self.loop)
        self._running: RequestResponseCycle | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._fetching: asyncio.TimerHandle | None = None
        self._draining = False
        self._in_head = self._in_body = False
        self._head_bytes = 0  # of the head, or the trailer, that is being read
        self._unheard_bytes = 0  # that the parser has kept or skipped since it last told of anything
        # Writing counts as paused, and is timed, whenever anything is left: a connection that is closed
        # stays for as long as its client does not fetch the rest.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > self.most_connections:
            self.transport.write(_TOO_MANY)
            self.transport.close()
            return
        self._await_headers()
        if self.closing:
            self.shutdown()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unheard_bytes += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("")
            return
        if self._unheard_bytes > MOST_HEAD_BYTES:
            self.send_400_response("")
        if self._draining and self.cycle is not None:
            self.cycle.keep_alive = False
        if not self._idle:
            self._stop_waiting()
        elif self.timeout_keep_alive_task is None:
            # Half a request behind the last one, or the body of one that was refused by its headers.
            self._await_headers()

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                data = self._head_without_offer() + data[offer.args[0] :]
                # The one that has stopped reads nothing more behind `Connection: close`.
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the base does
            else:
                return

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MOST_PIPELINED:
            raise ValueError  # which the parser reports as it does all that it cannot parse
        self._in_head = True
        self._head_bytes = self._unheard_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + BYTES_OF_A_HEADER)
        if self._in_head:  # a header behind a body could contradict those that were heeded
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unheard_bytes = 0
        if self.parser.get_method() == b"CONNECT":
            raise ValueError  # this is no proxy
        if self.parser.should_upgrade():
            return  # the parser stops behind this head
        self._in_head, self._in_body = False, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unheard_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unheard_bytes = 0
        if self._in_body:
            self._in_body = False
            super().on_message_complete()

    def _count_head(self, count: int) -> None:
        self._unheard_bytes = 0
        self._head_bytes += count
        if self._head_bytes > MOST_HEAD_BYTES:
            raise ValueError

    def _head_without_offer(self) -> bytes:
        """The head that was just read, without the other protocol that it offers.

        Clients in Java offer HTTP/2 with every request; the parser takes what follows for that protocol.
        """
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def send_400_response(self, msg: str) -> None:
        """As every other fault, in JSON; behind half an answer nothing can be said."""
        answering = self._running
        if answering is None or answering.response_complete or not answering.response_started:
            self.transport.write(_MALFORMED)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_fetching()
        self._answers.drop()
        super().connection_lost(exc)
        # The base knows the last request of a queue; the one that is being answered may be another.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._fetching is None:
            self._fetching = self.loop.call_later(self.fetch_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_fetching()

    def shutdown(self) -> None:
        """Wait a moment for a request that was sent before its client could know of the end."""
        self._draining = True
        if self._idle:
            self.loop.call_later(GRACE_SECONDS, self._let_go)
        else:
            super().shutdown()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _let_go(self) -> None:
        if self._idle and not self.transport.is_closing():
            super().shutdown()

    def _await_headers(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.header_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_fetching(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            self._fetching = None


class _HeadWithBody(asyncio.Transport):
    """Holds the head of an answer until its body comes, so that both are sent, and received, as one."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held = b""
        self._release: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:  # type: ignore[override]
        if self._held:
            data = self._take_held() + data
        elif data.startswith(b"HTTP/1.1 "):
            self._held = data
            self._release = self._loop.call_soon(self._send_held)  # the body may be long in coming
            return
        self._transport.write(data)

    def close(self) -> None:
        self._send_held()
        self._transport.close()

    def abort(self) -> None:
        self.drop()
        self._transport.abort()

    def drop(self) -> None:
        """Nobody is there to be sent anything."""
        self._take_held()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _send_held(self) -> None:
        if self._held:
            self._transport.write(self._take_held())

    def _take_held(self) -> bytes:
        held, self._held = self._held, b""
        if self._release is not None:
            self._release.cancel()
            self._release = None
        return held
