"""The lifecycle of a server: it answers once all models are loaded, and ends once all requests are answered.

After SIGTERM or Ctrl-C, the server accepts no new connections, answers the accepted requests, and ends the
workers. SIGHUP reloads models, API keys and glossaries while the old workers continue.
Outside the main thread, Python cannot handle signals. There, the caller drains the server with the function
that `on_listening` receives.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import uvicorn
import uvloop

from jumok.server.application import Application
from jumok.server.event_log import log_event
from jumok.server.garbage_collection import collect_when_idle
from jumok.server.http_protocol import BoundedHttpProtocol
from jumok.server.language_pairs import read_language_pairs
from jumok.server.listening import listen, server_config
from jumok.server.service import Service
from jumok.server.settings_check import server_url
from jumok.text.language_detection import detect_languages

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Iterator

    from jumok.server.service import ServerSettings

    OnListening = Callable[[str, Callable[[], None]], None]

Result = TypeVar("Result")

SWITCH_SECONDS = 0.0005
"""A thread that reads a document lets the event loop run after this time; the default is ten times longer."""
RESERVED_FILES = 128
"""Number of open files besides connections, such as pipes to the old and new workers during a reload."""


def run_server(settings: ServerSettings, *, on_listening: OnListening) -> None:
    """Serve until a signal, or until the server is drained.

    `on_listening` is called with the URL and a function that drains the server.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    # Listen before models are loaded, so that a port in use is reported at once. Connections that arrive
    # while models are being loaded are answered afterwards.
    advice = "Choose another address with --host and --port; --port 0 takes any free port."
    with contextlib.closing(listen(settings.host.strip("[]"), settings.port, advice=advice)) as listener:
        uvloop.run(_run(settings, listener, on_listening))


async def _run(settings: ServerSettings, listener: socket.socket, on_listening: OnListening) -> None:
    signals = _SignalHandlers()
    service = await signals.unless_terminated(_start_service(settings))
    if service is None:
        log_event("drained")
        return
    collecting = asyncio.create_task(collect_when_idle(service.is_idle))
    try:
        server = _Server(_config(settings, Application(service)))

        def drain() -> None:
            log_event("draining")
            server.should_exit = True

        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if not serving.done():
            url = server_url(*listener.getsockname()[:2])
            log_event("listening", address=url, workers=settings.workers, models=len(settings.models))
            on_listening(url, drain)
            signals.set_actions(drain, service.reload)
        await serving
        log_event("drained")
    finally:
        collecting.cancel()
        await service.pool.stop()


async def _start_service(settings: ServerSettings) -> Service:
    log_event("loading", models=len(settings.models))
    service = Service(settings, await asyncio.to_thread(read_language_pairs, settings.models))
    # The language detector is loaded by its first call. Without this call, the first request that detects a
    # language would load the detector, and the requests of all clients would have to wait.
    await asyncio.gather(service.pool.start(), asyncio.to_thread(detect_languages, "", ()))
    return service


def _config(settings: ServerSettings, application: Application) -> uvicorn.Config:
    limits = settings.limits
    return server_config(
        application,
        replace(limits, max_connections=allow_connections(limits.max_connections)),
        BoundedHttpProtocol,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=round(limits.drain_timeout),
    )


def allow_connections(wanted: int) -> int:
    """Raise the limit on open files if needed. Return how many of `wanted` connections it allows.

    The usual limit is 1,024 open files. A connection beyond the limit could not even get a 503.
    """
    # A limit of -1 (RLIM_INFINITY) means no limit.
    soft, hard = (limit if limit >= 0 else 2**31 for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    needed = min(hard, wanted + RESERVED_FILES)
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return max(1, min(wanted, max(soft, needed) - RESERVED_FILES))


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept pending connections before the port is closed, because closing it would reset them."""
        loop = asyncio.get_running_loop()
        protocol: Any = self.config.http_protocol_class
        protocol.closing = True

        def make_protocol() -> asyncio.Protocol:
            new_protocol: asyncio.Protocol = protocol(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return new_protocol

        accepting = []
        for listener in sockets or []:
            with contextlib.suppress(OSError):  # no more connections, or too many open files
                while True:
                    connection, _ = listener.accept()
                    connection.setblocking(False)
                    accepting.append(
                        asyncio.create_task(loop.connect_accepted_socket(make_protocol, connection))
                    )
        await super().shutdown(sockets)
        await asyncio.gather(*accepting, return_exceptions=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers. With uvicorn's handlers, a drained server would not end with exit code 0."""
        yield


class _SignalHandlers:
    """Handles SIGTERM, SIGINT and SIGHUP from the start, even while models are being loaded.

    By default SIGHUP would end the process, and the first process of a container would ignore SIGTERM.
    """

    def __init__(self) -> None:
        self._received: set[signal.Signals] = set()
        self._terminate: Callable[[], object] = lambda: None
        self._reload: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        if threading.current_thread() is threading.main_thread():
            for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(signal_number, self._on_signal, signal_number)

    async def unless_terminated(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """Return the result of `work`; None if SIGTERM or SIGINT cancels it."""
        task = asyncio.create_task(work)
        self._terminate = task.cancel
        try:
            return await task
        except asyncio.CancelledError:
            if self._received <= {signal.SIGHUP}:  # the caller was cancelled; SIGHUP cancels nothing
                raise
            return None

    def set_actions(
        self, terminate: Callable[[], None], reload: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Set the actions of signals: SIGTERM and SIGINT terminate, SIGHUP reloads.

        The actions also run for signals that were received before.
        """
        self._terminate, self._reload = terminate, reload
        for signal_number in tuple(self._received):
            self._on_signal(signal_number)

    def _on_signal(self, signal_number: signal.Signals) -> None:
        self._received.add(signal_number)
        if signal_number is not signal.SIGHUP:
            self._terminate()
        elif self._reload is not None:
            task = asyncio.get_running_loop().create_task(self._reload())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
