"""The server on its socket: it starts when every model is loaded, and ends when everything is answered.

SIGTERM and Ctrl-C: no new connections, what was accepted is answered, then the workers leave.
SIGHUP: models and keys are read anew while the old workers go on.
Outside of the main thread there are no signals; there, `listening` is given what drains it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from jumok.errors import DataError
from jumok.serve.application import Application
from jumok.serve.directions import read_directions
from jumok.serve.journal import note
from jumok.serve.service import ServeSettings, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Listening = Callable[[str, Callable[[], None]], None]

__all__ = ["run_server"]

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b'Content-Type: application/json\r\nContent-Length: 33\r\n\r\n{"error":"Too many connections."}'
)
GRACE_SECONDS = 1.0


def run_server(settings: ServeSettings, *, listening: Listening) -> None:
    """Serve until a signal ends it. As soon as it answers, `listening` is given its address and its end."""
    with contextlib.closing(_bind(settings)) as bound:
        asyncio.run(_run(settings, bound, listening))


async def _run(settings: ServeSettings, bound: socket.socket, listening: Listening) -> None:
    service = Service(settings, await asyncio.to_thread(read_directions, settings.models))
    try:
        await service.pool.start()
        server = _Server(_config(settings, Application(service)))

        def drain() -> None:
            note("draining")
            server.should_exit = True

        if threading.current_thread() is threading.main_thread():
            _handle_signals(drain, service)
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        address = _address(bound)
        note("listening", address=address, workers=settings.workers, models=len(settings.models))
        listening(address, drain)
        await serving
        note("drained")
    finally:
        await service.pool.stop()


def _config(settings: ServeSettings, application: Application) -> uvicorn.Config:
    limits = settings.limits

    class Protocol(PatientProtocol):
        header_seconds = limits.header_seconds
        fetch_seconds = limits.fetch_seconds
        most_connections = limits.connections

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


def _handle_signals(drain: Callable[[], None], service: Service) -> None:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[Any]] = set()

    def reload() -> None:
        task = loop.create_task(service.reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGTERM, drain)
    loop.add_signal_handler(signal.SIGINT, drain)
    loop.add_signal_handler(signal.SIGHUP, reload)


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


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
