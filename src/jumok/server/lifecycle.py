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

import uvicorn
import uvloop

from jumok.errors import DataError
from jumok.serve.application import Application
from jumok.serve.checking import address
from jumok.serve.directions import read_directions
from jumok.serve.journal import note
from jumok.serve.protocol import PatientProtocol
from jumok.serve.service import ServeSettings, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    Listening = Callable[[str, Callable[[], None]], None]

__all__ = ["room_for", "run_server"]

Answer = TypeVar("Answer")

OTHER_FILES = 128
"""Pipes to workers, those of a reload too, and whatever else is open."""


def run_server(settings: ServeSettings, *, listening: Listening) -> None:
    """Serve until a signal ends it. As soon as it answers, `listening` is given its address and its end."""
    with contextlib.closing(_bind(settings)) as bound:
        uvloop.run(_run(settings, bound, listening))


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
