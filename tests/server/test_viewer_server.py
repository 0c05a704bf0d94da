"""The server of the live page answers only pages of its own secret address, on the same computer.

It refuses large and incomplete requests.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jumok.analysis.explainer import explain
from jumok.errors import DataError
from jumok.server.viewer.http_server import VIEWER_LIMITS, ViewerServer
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.system.processes import python_command
from support.random_translators import SENTENCE, small_translator
from support.serve_process import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jumok.server.viewer.service import OnPartial

REQUEST = {"model": 0, "sentence": SENTENCE}


@contextmanager
def serving(service: ExplanationService, **settings: Any) -> Iterator[ViewerServer]:
    """Run the server of a live page in a thread until the block ends."""
    with ViewerServer(service, **settings) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[ViewerServer]:
    with serving(
        ExplanationService([NamedTranslator("tiny", small_translator("bahdanau"))], sentence="</script>")
    ) as running:
        yield running


def send(
    server: ViewerServer, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Send a request. A valid Host and Content-Length are added unless `headers` has them."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    all_headers = {"Host": f"127.0.0.1:{server.port}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in all_headers.items():
            connection.putheader(name, value)
        if body is not None and "Content-Length" not in all_headers:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return (
            response.status,
            {name.title(): value for name, value in response.getheaders()},
            response.read(),
        )
    finally:
        connection.close()


def post(server: ViewerServer, operation: str, fields: Any, **headers: str) -> tuple[int, Any]:
    body = json.dumps(fields).encode()
    status, _, response = send(
        server,
        "POST",
        f"/{server.application.secret}/{operation}",
        body,
        **{"Content-Type": "application/json", **headers},
    )
    return status, json.loads(response)


def test_the_page_lists_its_models_and_may_not_be_framed(server: ViewerServer) -> None:
    status, headers, page = send(server, "GET", f"/{server.application.secret}/")
    assert status == 200
    assert b'"models": [{"name": "tiny"' in page
    # The page has two scripts. The server's sentence is "</script>", and it must not end one of them.
    assert page.count(b"</script>") == 2
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


def test_the_address_without_its_last_slash_leads_to_the_page(server: ViewerServer) -> None:
    """The requests of the page are relative to its address."""
    status, headers, _ = send(server, "GET", f"/{server.application.secret}")
    assert (status, headers["Location"]) == (307, f"/{server.application.secret}/")
    assert send(server, "GET", "/wrong")[0] == 404


def test_a_request_gets_an_explanation(server: ViewerServer) -> None:
    status, response = post(server, "explain", REQUEST, Origin=f"http://127.0.0.1:{server.port}")
    assert status == 200
    assert response["target"]["text"] == small_translator("bahdanau").translate([SENTENCE])[0].text


def test_partial_translations_are_streamed(server: ViewerServer) -> None:
    partials: list[str] = []
    sentence = f"{SENTENCE} {SENTENCE}"
    expected = explain(small_translator("bahdanau"), sentence, on_partial=partials.append)
    assert len(partials) > 1
    body = json.dumps({"sentence": sentence}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
    tokenizer = small_translator("bahdanau").tokenizers.target
    ids = expected.target.ids
    replayed = [tokenizer.decode(ids[:length]) for length in range(1, len(ids) + 1)]
    for texts in (partials, replayed):  # the second request replays the cached translation
        status, _, received = send(server, "POST", f"/{server.application.secret}/explain", body, **headers)
        *lines, response = [json.loads(line) for line in received.splitlines()]
        assert (status, [line["partial"] for line in lines]) == (200, texts)
        assert response["target"]["text"] == expected.text


def test_a_given_translation_is_not_streamed(server: ViewerServer) -> None:
    body = json.dumps({"sentence": SENTENCE, "target": SENTENCE}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
    for _ in range(2):
        _, _, response = send(server, "POST", f"/{server.application.secret}/explain", body, **headers)
        assert len(response.splitlines()) == 1


def test_an_error_before_the_first_streamed_line_has_its_own_status(server: ViewerServer) -> None:
    status, response = post(server, "explain", {"sentence": 3}, Accept="application/x-ndjson")
    assert status == 400
    assert "sentence" in response["error"]


def test_an_error_after_the_first_streamed_line_is_the_last_line() -> None:
    class FailingService(ExplanationService):
        def handle(self, operation: str, body: bytes, on_partial: OnPartial | None = None) -> bytes:
            if on_partial is not None:
                on_partial({"partial": "begun"})
            raise DataError("That went wrong.")

    with serving(FailingService([])) as server:
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        status, _, body = send(server, "POST", f"/{server.application.secret}/explain", b"{}", **headers)
    assert status == 200
    assert body == b'{"partial": "begun"}\n{"error": "That went wrong."}\n'


def test_a_search_ends_quietly_when_the_client_disconnects(capsys: pytest.CaptureFixture[str]) -> None:
    ended = threading.Event()

    class EndlessService(ExplanationService):
        def handle(self, operation: str, body: bytes, on_partial: OnPartial | None = None) -> bytes:
            assert on_partial is not None
            try:
                while True:
                    on_partial({"partial": "more and more " * 1000})
            finally:
                ended.set()

    with serving(EndlessService([])) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            host = f"127.0.0.1:{server.port}"
            client.sendall(
                f"POST /{server.application.secret}/explain HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n"
                "Content-Type: application/json\r\nAccept: application/x-ndjson\r\n\r\n{}".encode()
            )
            assert client.recv(12) == b"HTTP/1.1 200"
        assert ended.wait(20)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_other_host_names_are_refused(server: ViewerServer, method: str, host: str) -> None:
    host = host.format(port=server.port)
    assert send(server, method, f"/{server.application.secret}/", b"{}", Host=host)[0] == 421


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://127.0.0.1", "http://localhost:{port}"]
)
def test_other_origins_are_refused(server: ViewerServer, origin: str) -> None:
    status, response = post(server, "explain", REQUEST, Origin=origin.format(port=server.port))
    assert status == 403
    assert "error" in response


@pytest.mark.parametrize("path", ["/", "/wrong/", "//", "/{secret}x/", "/{secret}/../", "/{secret}/no", "*"])
def test_a_wrong_address_is_not_found(server: ViewerServer, path: str) -> None:
    assert send(server, "GET", path.format(secret=server.application.secret))[0] == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_refused(server: ViewerServer, method: str) -> None:
    assert send(server, method, f"/{server.application.secret}/explain")[0] == 501


def test_a_form_of_another_page_is_refused(server: ViewerServer) -> None:
    """Without the permission of the server, a page of another origin can send text, but no JSON."""
    assert post(server, "explain", REQUEST, **{"Content-Type": "text/plain"})[0] == 415


@pytest.mark.parametrize(
    ("length", "status"),
    [
        (str(VIEWER_LIMITS.max_body_bytes + 1), 413),
        ("9" * 18, 413),
        ("9" * 30, 400),  # does not fit into 64 bits, so the parser refuses it
        ("-1", 400),
        ("x", 400),
        ("٣", 400),  # the Arabic digit 3
    ],
)
def test_requests_of_invalid_or_large_size_are_refused_unread(
    server: ViewerServer, length: str, status: int
) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": length.encode().decode("latin-1")}
    assert send(server, "POST", f"/{server.application.secret}/explain", b"", **headers)[0] == status


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "the request"),
        ({"sentence": "x" * 1001}, "sentence"),
        ({"sentence": 3}, "sentence"),
        ({"sentence": "x", "model": 7}, "1 models"),
        ({"sentence": "x", "prefix": [10**9]}, "tokens from 0"),
        ({"sentence": "x", "prefix": [-1]}, "tokens from 0"),
        ({"sentence": "x", "changes": [{"kind": "erase"}]}, "'erase' found using 'kind'"),
        ({"sentence": "x", "changes": [{"kind": "silence", "site": "cross", "layer": 9}]}, "no layer 9"),
        ({"sentence": "x", "changes": [{}] * 65}, "changes"),
        ({"sentence": "x", "folder": "/etc"}, "folder"),
    ],
)
def test_an_invalid_request_is_refused_with_a_reason(server: ViewerServer, fields: Any, message: str) -> None:
    status, response = post(server, "explain", fields)
    assert status == 400
    assert message in response["error"]


def test_a_body_that_is_not_json_is_refused(server: ViewerServer) -> None:
    headers = {"Content-Type": "application/json"}
    assert send(server, "POST", f"/{server.application.secret}/explain", b"\xff{", **headers)[0] == 400


def test_the_number_of_waiting_requests_is_limited(server: ViewerServer) -> None:
    acquired_slots = 0
    while server.application.request_slots.acquire(blocking=False):
        acquired_slots += 1
    try:
        status, headers, _ = send(
            server,
            "POST",
            f"/{server.application.secret}/explain",
            b"{}",
            **{"Content-Type": "application/json"},
        )
    finally:
        server.application.request_slots.release(acquired_slots)
    assert (status, headers["Retry-After"]) == (503, "1")
    assert post(server, "explain", REQUEST)[0] == 200


def connect(server: ViewerServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def test_incomplete_requests_do_not_accumulate_threads_and_the_page_is_served(server: ViewerServer) -> None:
    threads_before = threading.active_count()
    with ExitStack() as connections:
        incomplete = [
            connections.enter_context(connect(server)) for _ in range(3 * VIEWER_LIMITS.max_connections)
        ]
        for connection in incomplete:
            with suppress(ConnectionError):  # the server closed this connection to accept a newer one
                connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert send(server, "GET", f"/{server.application.secret}/")[0] == 200
        with suppress(ConnectionResetError):  # the server closed the connection before it read the bytes
            assert incomplete[0].recv(1) == b""
        wait_until(lambda: threading.active_count() <= threads_before + VIEWER_LIMITS.max_connections)
        assert post(server, "explain", REQUEST)[0] == 200


def test_a_connection_whose_request_is_being_answered_is_not_closed_for_newer_ones() -> None:
    started, finish = threading.Event(), threading.Event()

    class SlowService(ExplanationService):
        def handle(self, operation: str, body: bytes, on_partial: OnPartial | None = None) -> bytes:
            started.set()
            finish.wait(20)
            return b"{}"

    with serving(SlowService([])) as server, ExitStack() as connections, ThreadPoolExecutor(1) as client:
        request = client.submit(post, server, "explain", REQUEST)
        assert started.wait(20)
        idle = [connections.enter_context(connect(server)) for _ in range(2 * VIEWER_LIMITS.max_connections)]
        assert idle[0].recv(1) == b""
        finish.set()
        assert request.result() == (200, {})


@pytest.mark.parametrize("beginning", [b"GET / HTTP/1.1\r\nX: ", b"POST /%b/explain HTTP/1.1\r\n%b\r\n\r\n{"])
def test_a_request_that_arrives_byte_by_byte_has_a_deadline(beginning: bytes) -> None:
    limits = replace(VIEWER_LIMITS, header_timeout=0.5, body_timeout=0.5)
    with serving(ExplanationService([]), limits=limits) as server:
        if b"%b" in beginning:
            head = f"Host: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\nContent-Length: 999"
            beginning %= (server.application.secret.encode(), head.encode())
        with connect(server) as connection:
            connection.sendall(beginning)
            connection.settimeout(0.05)
            for _ in range(400):  # a byte every 0.05 s
                try:
                    if connection.recv(4096) == b"":
                        break
                except TimeoutError:
                    with suppress(ConnectionError):
                        connection.sendall(b" ")
                except ConnectionError:
                    break
            else:
                pytest.fail("the connection is still open after 20 s")


@pytest.mark.medium
def test_the_live_page_needs_no_package_of_the_serve_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extra = [
        re.split(r"[<>=]", requirement)[0].replace("-", "_")
        for requirement in project["optional-dependencies"]["serve"]
    ]
    assert "uvloop" in extra
    # A module that is None in `sys.modules` cannot be imported.
    code = f"import sys; sys.modules.update(dict.fromkeys({extra}))\nimport jumok.server.viewer.http_server"
    subprocess.run(python_command(code), check=True)


def test_nothing_is_logged(server: ViewerServer, capsys: pytest.CaptureFixture[str]) -> None:
    post(server, "explain", {"sentence": "a secret sentence"})
    post(server, "explain", {"sentence": "a secret sentence", "odd": 1})
    assert capsys.readouterr() == ("", "")


def test_the_server_listens_on_loopback_only(server: ViewerServer) -> None:
    assert server.address[0] == "127.0.0.1"


def test_each_server_has_its_own_secret(server: ViewerServer) -> None:
    with ViewerServer(ExplanationService([])) as other:
        assert other.application.secret != server.application.secret
        assert len(other.application.secret) >= 20


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(DataError, match="Choose another"):
        ViewerServer(ExplanationService([]), port=listener.getsockname()[1])
