"""A server for one person on one computer: the page, and answers to what it asks.

It listens on loopback only, and its address holds a secret, so that other users and other pages of the same
computer are not answered. Host and Origin are checked besides: a page that lets its own name point to this
computer carries that name in both.
"""

from __future__ import annotations

import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

from jumok.errors import DataError, JumokError
from jumok.look import page_with

if TYPE_CHECKING:
    from jumok.viewer.answers import Viewer

__all__ = ["ViewerServer"]

ADDRESS = "127.0.0.1"
MOST_BYTES = 64 * 1024
MOST_WAITING = 8
SECONDS = 30
LINES = "application/x-ndjson"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class ViewerServer(ThreadingHTTPServer):
    """Serves a viewer's page until it is shut down. Port 0 takes one that is free."""

    daemon_threads = True

    def __init__(self, viewer: Viewer, *, port: int = 0) -> None:
        self.viewer = viewer
        self.secret = secrets.token_urlsafe(16)
        self.waiting = threading.BoundedSemaphore(MOST_WAITING)
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError as error:
            raise DataError(
                f"Port {port} cannot be used: {error.strerror}. Choose another with --port, or leave it out."
            ) from None

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(f"{name}:{self.server_port}" for name in (ADDRESS, "localhost"))

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.secret}/"


class RefusedError(Exception):
    """A request that is not answered, and how that is said."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Handler(BaseHTTPRequestHandler):
    """One connection. Nothing that it is asked is written anywhere."""

    protocol_version = "HTTP/1.1"
    server_version = "jumok"
    sys_version = ""
    timeout = SECONDS

    @property
    def viewer_server(self) -> ViewerServer:
        return cast("ViewerServer", self.server)

    def do_GET(self) -> None:
        self._serve(self._page)

    def do_POST(self) -> None:
        self._serve(self._answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, the name of the method it replaces
        """Sentences are nobody else's business."""

    def _serve(self, respond: Any) -> None:
        try:
            self._respond(respond)
        except ConnectionError:  # whoever asked has left; a search that was still writing ends here
            self.close_connection = True

    def _respond(self, respond: Any) -> None:
        try:
            respond(self._checked())
        except RefusedError as refused:
            self._fail(refused.status, str(refused))
        except JumokError as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))

    def _checked(self) -> str:
        """What is asked for, after the secret; refused where the request comes from elsewhere."""
        server = self.viewer_server
        if (
            self.headers.get_all("Host", []) != [host := self.headers.get("Host", "")]
            or host not in server.hosts
        ):
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST, "This server answers to this computer's own name only."
            )
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            raise RefusedError(HTTPStatus.FORBIDDEN, "Other pages are not answered.")
        _, secret, what = [*self.path.split("?")[0].split("/", 2), "", ""][:3]
        if not secrets.compare_digest(secret.encode(), server.secret.encode()):
            raise RefusedError(
                HTTPStatus.NOT_FOUND, "There is nothing here. Open the address that jumok printed."
            )
        return what

    def _page(self, what: str) -> None:
        if what:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such page.")
        self._send(HTTPStatus.OK, "text/html", page_with(self.viewer_server.viewer.data()).encode())

    def _answer(self, what: str) -> None:
        server = self.viewer_server
        if not server.viewer.knows(what):
            raise RefusedError(HTTPStatus.NOT_FOUND, "That cannot be asked.")
        if self.headers.get_content_type() != "application/json":
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Questions are asked as application/json.")
        body = self._body()
        if not server.waiting.acquire(blocking=False):
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "Too many questions at once. Ask again in a moment."
            )
        try:
            if LINES in self.headers.get("Accept", ""):
                self._answer_in_lines(what, body)
            else:
                self._send(HTTPStatus.OK, "application/json", server.viewer.answer(what, body))
        finally:
            server.waiting.release()

    def _answer_in_lines(self, what: str, body: bytes) -> None:
        """A line for each beginning of the translation while it is written; the last line is the answer.

        The status is sent with the first line, so a question that is refused before has its own; what goes
        wrong later is told in the last line.
        """
        begun = False

        def tell(line: bytes) -> None:
            nonlocal begun
            if not begun:
                self._head(HTTPStatus.OK, LINES, {"Transfer-Encoding": "chunked"})
                begun = True
            self.wfile.write(b"%x\r\n%s\n\r\n" % (len(line) + 1, line))

        try:
            answer = self.viewer_server.viewer.answer(what, body, lambda text: tell(_json({"begun": text})))
        except JumokError as error:
            if not begun:
                raise
            answer = _json({"error": str(error)})
        tell(answer)
        self.wfile.write(b"0\r\n\r\n")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "A question says how long it is.")
        if int(length) > MOST_BYTES:
            raise RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A question has at most {MOST_BYTES} bytes."
            )
        return self.rfile.read(int(length))

    def _fail(self, status: HTTPStatus, message: str) -> None:
        # What was sent may not have been read: the connection must not be taken for a next request.
        self.close_connection = True
        self._send(status, "application/json", _json({"error": message}))

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._head(status, kind, {"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _head(self, status: HTTPStatus, kind: str, further: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, **further}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()


def _json(told: dict[str, str]) -> bytes:
    return json.dumps(told, ensure_ascii=False).encode()
