"""Run a server in a process of its own or in a thread of the test's process, and send HTTP requests to it."""

from __future__ import annotations

import http.client
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from jumok.server.event_log import configure_logging
from jumok.server.lifecycle import run_server
from jumok.server.service import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


def wait_until(condition: Callable[[], object], seconds: float = 240) -> None:
    """Wait until the condition is true. The timeout is long because the machine may be slow."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


@dataclass(frozen=True)
class Answer:
    """The response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class RunningServer:
    """A running server. `process` is None if the server runs in a thread."""

    url: str
    log: Path
    process: subprocess.Popen[bytes] | None = None
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self.port = urlsplit(self.url).port or 0

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, fields: Mapping[str, Any], **headers: str) -> Answer:
        """Send fields as JSON."""
        return self.request(
            "POST", path, json.dumps(fields).encode(), {"Content-Type": "application/json", **headers}
        )

    def post_form(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        content_type = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.request("POST", path, urlencode(fields).encode(), {**content_type, **headers})

    def post_file(self, name: str, data: bytes, *, path: str = "/translate_file", **fields: str) -> Answer:
        body = b"".join(
            b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (key.encode(), value.encode())
            for key, value in fields.items()
        )
        body += b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n' % name.encode()
        body += data + b"\r\n--x--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        return self.request("POST", path, body, headers)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())
        finally:
            connection.close()

    def events(self) -> list[dict[str, Any]]:
        """Return all events in the log of the server."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def wait_for(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until the log has `count` events of this name. Return all events of this name."""

        def logged_events() -> list[dict[str, Any]]:
            return [line for line in self.events() if line.get("event") == event]

        wait_until(lambda: len(logged_events()) >= count)
        return logged_events()

    def worker_pids(self) -> list[int]:
        """Return the process ids of the workers that have been ready and are still alive."""
        return [
            line["pid"]
            for line in self.events()
            if line["event"] == "worker_ready" and os.path.exists(f"/proc/{line['pid']}")  # noqa: PTH110
        ]

    def stop(self) -> int:
        """Send SIGTERM, wait until the process has ended, and return its exit code."""
        assert self.process is not None
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)


@contextmanager
def restored_logging() -> Iterator[None]:
    """At the end of the block, restore the log handlers, which belong to the whole process."""
    before = {name: logging.getLogger(name).handlers for name in ("jumok.server", "uvicorn", "asyncio")}
    try:
        yield
    finally:
        for name, handlers in before.items():
            logging.getLogger(name).handlers = handlers


@contextmanager
def serving_in_thread(folder: Path, *models: Path, **settings: Any) -> Iterator[RunningServer]:
    """Run a server in a thread of this process until the block ends, so that coverage can measure the server.

    `settings` are fields of `ServerSettings`. Some of these fields have no option on the command line.
    """
    log = folder / "log.jsonl"
    ready: queue.Queue[tuple[str, Callable[[], None]]] = queue.Queue()
    server_settings = ServerSettings(models=models, port=0, **settings)
    with log.open("w", encoding="utf-8") as stream, ThreadPoolExecutor(1) as threads, restored_logging():
        configure_logging(stream)
        server_future = threads.submit(
            run_server, server_settings, on_listening=lambda *listening: ready.put(listening)
        )
        # An empty URL means that the server has ended. If it failed, `result()` below raises its error.
        server_future.add_done_callback(lambda _: ready.put(("", lambda: None)))
        url, drain = ready.get(timeout=300)
        try:
            if not url:
                server_future.result()
            yield RunningServer(url, log)
        finally:
            drain()
            server_future.result(timeout=120)


@contextmanager
def serving(folder: Path, *arguments: str | Path) -> Iterator[RunningServer]:
    """Run `jumok serve ARGUMENTS` on a free port until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.jsonl"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "jumok", "serve", *map(str, arguments), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=stream,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        )
        killer = threading.Timer(300, process.kill)  # ends the wait for a server that does not start
        killer.start()
        try:
            line = process.stdout.readline().decode() if process.stdout else ""
            assert line.startswith("jumok serve: http"), log.read_text(encoding="utf-8")
            killer.cancel()
            yield RunningServer(line.split()[2], log, process)
        finally:
            killer.cancel()
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout:
                process.stdout.close()
