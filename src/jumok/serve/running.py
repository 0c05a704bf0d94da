"""The server on its socket: it starts when every model is loaded, and ends when everything is answered.

SIGTERM and Ctrl-C: no new connections, what was accepted is answered, then the workers leave.
SIGHUP: models and keys are read anew while the old workers go on.
Outside of the main thread there are no signals; there, `listening` is given what drains it.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from jumok.errors import DataError
from jumok.serve.application import Application
from jumok.serve.checking import address
from jumok.serve.directions import read_directions
from jumok.serve.journal import note
from jumok.serve.service import ServeSettings, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    Listening = Callable[[str, Callable[[], None]], None]

__all__ = ["room_for", "run_server"]

Answer = TypeVar("Answer")

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b'Content-Type: application/json\r\nContent-Length: 33\r\n\r\n{"error":"Too many connections."}'
)
_MALFORMED = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n"
    b'Content-Length: 41\r\n\r\n{"error":"Invalid request: not HTTP/1.1"}'
)
GRACE_SECONDS = 1.0
OTHER_FILES = 128
"""Pipes to workers, those of a reload too, and whatever else is open."""


def run_server(settings: ServeSettings, *, listening: Listening) -> None:
    """Serve until a signal ends it. As soon as it answers, `listening` is given its address and its end."""
    with contextlib.closing(_bind(settings)) as bound:
        asyncio.run(_run(settings, bound, listening))


async def _run(settings: ServeSettings, bound: socket.socket, listening: Listening) -> None:
    signals = _Signals()
    service = await signals.unless_ended(_start(settings))
    if service is None:
        note("drained")
        return
    try:
        server = _Server(_config(settings, Application(service)))

        def drain() -> None:
            note("draining")
            server.should_exit = True

        serving = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if not serving.done():
            place = address(*bound.getsockname()[:2])
            note("listening", address=place, workers=settings.workers, models=len(settings.models))
            listening(place, drain)
            signals.hand_over(drain, service.reload)
        await serving
        note("drained")
    finally:
        await service.pool.stop()


async def _start(settings: ServeSettings) -> Service:
    note("loading", models=len(settings.models))
    service = Service(settings, await asyncio.to_thread(read_directions, settings.models))
    await service.pool.start()
    return service


def _config(settings: ServeSettings, application: Application) -> uvicorn.Config:
    limits = settings.limits

    class Protocol(PatientProtocol):
        header_seconds = limits.header_seconds
        fetch_seconds = limits.fetch_seconds
        most_connections = room_for(limits.connections)

    return uvicorn.Config(
        application,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        backlog=2048,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=round(limits.drain_seconds),
        h11_max_incomplete_event_size=32 * 2**10,
    )


def room_for(connections: int) -> int:
    """How many connections may be open, after the limit of this process was raised as far as it goes.

    Each is an open file. Usually a process may have 1,024: beyond that nobody could be told to come again.
    """
    soft, hard = (limit if limit >= 0 else 2**31 for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    wanted = min(hard, connections + OTHER_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return max(1, min(connections, max(soft, wanted) - OTHER_FILES))


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take up first whoever has connected: a port that is closed cuts off those who wait at it."""
        loop = asyncio.get_running_loop()
        protocol: Any = self.config.http_protocol_class
        protocol.closing = True

        def make() -> asyncio.Protocol:
            made: asyncio.Protocol = protocol(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        late = []
        for bound in sockets or []:
            with contextlib.suppress(BlockingIOError):
                while True:
                    connection, _ = bound.accept()
                    connection.setblocking(False)
                    late.append(asyncio.create_task(loop.connect_accepted_socket(make, connection)))
        await super().shutdown(sockets)
        await asyncio.gather(*late, return_exceptions=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled here, so that a drained server ends with exit code 0."""
        yield


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with an end to patience: sending and fetching have a time, connections a limit."""

    header_seconds = 10.0
    fetch_seconds = 60.0
    most_connections = 1_000
    closing = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting: asyncio.TimerHandle | None = None
        self._fetching: asyncio.TimerHandle | None = None
        self._draining = False
        # Writing counts as paused, and is timed, whenever anything is left: a connection that is closed
        # stays for as long as its client does not fetch the rest.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > self.most_connections:
            transport.write(_TOO_MANY)
            transport.close()
            return
        self._await_headers()
        if self.closing:
            self.shutdown()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._draining and self.cycle is not None:
            self.cycle.keep_alive = False
        if not self._idle:
            self._stop_waiting()
        elif self.timeout_keep_alive_task is None:
            # Half a request behind the last one, or the body of one that was refused by its headers.
            self._await_headers()

    def send_400_response(self, msg: str) -> None:
        """As every other fault, in JSON; behind half an answer nothing can be said."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_MALFORMED)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_fetching()
        super().connection_lost(exc)

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


class _Signals:
    """SIGTERM, SIGINT and SIGHUP from the first moment on: by itself, SIGHUP would end what is still loading,
    and the first process of a container would not hear SIGTERM.
    """

    def __init__(self) -> None:
        self._heard: set[signal.Signals] = set()
        self._end: Callable[[], object] = lambda: None
        self._reload: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self._hear, number)

    async def unless_ended(self, work: Coroutine[Any, Any, Answer]) -> Answer | None:
        """What is awaited; None if a signal ends it before."""
        task = asyncio.create_task(work)
        self._end = task.cancel
        try:
            return await task
        except asyncio.CancelledError:
            if not self._heard:
                raise
            return None

    def hand_over(self, end: Callable[[], None], reload: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What to do from now on, and for what was heard before."""
        self._end, self._reload = end, reload
        for number in tuple(self._heard):
            self._hear(number)

    def _hear(self, number: signal.Signals) -> None:
        self._heard.add(number)
        if number is not signal.SIGHUP:
            self._end()
        elif self._reload is not None:
            task = asyncio.get_running_loop().create_task(self._reload())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def _bind(settings: ServeSettings) -> socket.socket:
    """Take the port before models are loaded: a port in use is told at once."""
    host, port = settings.host.strip("[]"), settings.port
    try:
        [(family, kind, protocol, _, place), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
    except OSError as error:
        raise DataError(
            f"{host}:{port} cannot be listened on ({error.strerror or error}). Choose "
            "another with --host and --port; --port 0 takes any that is free."
        ) from None
    bound.setblocking(False)
    return bound
