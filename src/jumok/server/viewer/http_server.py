"""An HTTP server for one user on one computer: the page and its requests.

It listens on loopback only, and its address contains a secret, so that other users and other pages on the
same computer get no response. Host and Origin are checked too, against DNS rebinding: a page whose own name
resolves to this computer sends that name in both.

Each connection has a thread, so their number is limited: a new connection takes the place of the one that has
waited longest without a complete request.
"""

from __future__ import annotations

import contextlib
import io
import json
import secrets
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

from jumok.errors import DataError, JumokError
from jumok.plots import page_with_data

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.server.viewer.service import ExplanationService

__all__ = ["ViewerServer"]

ADDRESS = "127.0.0.1"
MAX_BODY_BYTES = 64 * 1024
MAX_CONNECTIONS = 32
MAX_CONCURRENT_REQUESTS = 8
TIMEOUT_SECONDS = 30
"""For a client to send a whole request, and to read the response."""
NDJSON = "application/x-ndjson"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class ViewerServer(ThreadingHTTPServer):
    """Serves the live page until it is shut down. Port 0 selects a free port."""

    daemon_threads = True
    request_queue_size = 128  # by default connections beyond five wait a second before they try again

    def __init__(self, service: ExplanationService, *, port: int = 0) -> None:
        self.service = service
        self.secret = secrets.token_urlsafe(16)
        self.request_slots = threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS)
        self._lock = threading.Lock()
        self._waiting: dict[socket.socket, None] = {}  # without a complete request, the oldest first
        self._answering: set[socket.socket] = set()
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError as error:
            raise DataError(
                f"Port {port} cannot be used: {error.strerror}. Choose another with --port, or leave it out."
            ) from None

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection; if there are too many, close the one that has waited longest."""
        with self._lock:
            self._waiting[request] = None
            if len(self._waiting) + len(self._answering) > MAX_CONNECTIONS:
                oldest = next(iter(self._waiting))
                del self._waiting[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end of the connection, and ends
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._waiting.pop(request, None)
        super().shutdown_request(request)

    @contextlib.contextmanager
    def answering(self, connection: socket.socket) -> Iterator[None]:
        """Keep a connection while its request, which has been read, is answered."""
        with self._lock:
            self._waiting.pop(connection, None)
            self._answering.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._answering.remove(connection)
                self._waiting[connection] = None

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(f"{name}:{self.server_port}" for name in (ADDRESS, "localhost"))

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.secret}/"


class RefusedError(Exception):
    """A request that is refused, with the HTTP status of the response."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class TimedReader(io.RawIOBase):
    """Reads a connection until a deadline: a timeout per read would let a byte now and then keep it open."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self.deadline = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(TIMEOUT_SECONDS)


class Handler(BaseHTTPRequestHandler):
    """One connection. Nothing about its requests is logged."""

    protocol_version = "HTTP/1.1"
    server_version = "jumok"
    sys_version = ""
    timeout = TIMEOUT_SECONDS

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._reader = TimedReader(self.connection)
        self.rfile = io.BufferedReader(self._reader)

    def handle_one_request(self) -> None:
        self._reader.deadline = time.monotonic() + TIMEOUT_SECONDS
        super().handle_one_request()

    @property
    def viewer_server(self) -> ViewerServer:
        return cast("ViewerServer", self.server)

    def do_GET(self) -> None:
        self._serve(self._send_page)

    def do_POST(self) -> None:
        self._serve(self._handle)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, the name of the method it replaces
        """Log nothing: the sentences are private."""

    def _serve(self, respond: Any) -> None:
        try:
            self._respond(respond)
        except ConnectionError:  # the client has disconnected; a search that is still running ends here
            self.close_connection = True

    def _respond(self, respond: Any) -> None:
        try:
            respond(self._check_request())
        except RefusedError as refused:
            self._fail(refused.status, str(refused))
        except JumokError as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))

    def _check_request(self) -> str:
        """Return the path after the secret; refuse a request from another host or origin."""
        server = self.viewer_server
        if (
            self.headers.get_all("Host", []) != [host := self.headers.get("Host", "")]
            or host not in server.hosts
        ):
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST, "This server responds to this computer's own name only."
            )
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            raise RefusedError(HTTPStatus.FORBIDDEN, "Requests from other pages are refused.")
        _, secret, path = [*self.path.split("?")[0].split("/", 2), "", ""][:3]
        if not secrets.compare_digest(secret.encode(), server.secret.encode()):
            raise RefusedError(
                HTTPStatus.NOT_FOUND, "There is nothing here. Open the address that jumok printed."
            )
        return path

    def _send_page(self, path: str) -> None:
        if path:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such page.")
        server = self.viewer_server
        with server.answering(self.connection):
            self._send(HTTPStatus.OK, "text/html", page_with_data(server.service.page_data()).encode())

    def _handle(self, operation: str) -> None:
        server = self.viewer_server
        if not server.service.supports(operation):
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such operation.")
        if self.headers.get_content_type() != "application/json":
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the request as application/json.")
        body = self._read_body()
        if not server.request_slots.acquire(blocking=False):
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests at once. Try again in a moment."
            )
        try:
            with server.answering(self.connection):
                if NDJSON in self.headers.get("Accept", ""):
                    self._stream(operation, body)
                else:
                    self._send(HTTPStatus.OK, "application/json", server.service.handle(operation, body))
        finally:
            server.request_slots.release()

    def _stream(self, operation: str, body: bytes) -> None:
        """Send one line per partial translation; the last line is the response.

        The status is sent with the first line, so a request that is refused before that has its own status;
        a later error is the last line.
        """
        started = False

        def send_line(line: bytes) -> None:
            nonlocal started
            if not started:
                self._send_head(HTTPStatus.OK, NDJSON, {"Transfer-Encoding": "chunked"})
                started = True
            self.wfile.write(b"%x\r\n%s\n\r\n" % (len(line) + 1, line))

        try:
            response = self.viewer_server.service.handle(
                operation, body, lambda text: send_line(_json({"partial": text}))
            )
        except JumokError as error:
            if not started:
                raise
            response = _json({"error": str(error)})
        send_line(response)
        self.wfile.write(b"0\r\n\r\n")

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "A request needs a Content-Length.")
        if int(length) > MAX_BODY_BYTES:
            raise RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The request is too large. At most {MAX_BODY_BYTES:,} bytes are allowed.",
            )
        return self.rfile.read(int(length))

    def _fail(self, status: HTTPStatus, message: str) -> None:
        # The body may not have been read, so the connection cannot be used for a next request.
        self.close_connection = True
        self._send(status, "application/json", _json({"error": message}))

    def _send(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self._send_head(status, content_type, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send_head(self, status: HTTPStatus, content_type: str, more_headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, **more_headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", f"{content_type}; charset=utf-8")
        self.end_headers()


def _json(fields: dict[str, str]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()
