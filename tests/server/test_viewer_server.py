"""The live page's server answers one person on one computer: nobody else, and nothing too large."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from explain_translators import SENTENCE, family_translator
from jumok.errors import DataError
from jumok.viewer import Viewed, Viewer, ViewerServer
from jumok.viewer.server import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUESTION = {"model": 0, "sentence": SENTENCE}


@contextmanager
def serving(viewer: Viewer) -> Iterator[ViewerServer]:
    with ViewerServer(viewer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[ViewerServer]:
    with serving(Viewer([Viewed("tiny", family_translator("bahdanau"))], sentence="</script>")) as found:
        yield found


def ask(
    server: ViewerServer, method: str, what: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """A request with just these headers, besides a good Host."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    named = {"Host": f"127.0.0.1:{server.server_port}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    try:
        connection.putrequest(method, what, skip_host=True, skip_accept_encoding=True)
        for name, value in named.items():
            connection.putheader(name, value)
        if body is not None and "Content-Length" not in named:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def question(server: ViewerServer, what: str, asked: Any, **headers: str) -> tuple[int, Any]:
    body = json.dumps(asked).encode()
    status, _, answer = ask(
        server, "POST", f"/{server.secret}/{what}", body, **{"Content-Type": "application/json", **headers}
    )
    return status, json.loads(answer)


def test_the_page_comes_with_its_models_and_is_shown_in_no_frame(server: ViewerServer) -> None:
    status, headers, page = ask(server, "GET", f"/{server.secret}/")
    assert status == 200
    assert b'"models": [{"name": "tiny"' in page
    assert page.count(b"</script>") == 2
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


def test_a_question_is_answered(server: ViewerServer) -> None:
    status, answer = question(server, "explain", QUESTION, Origin=f"http://127.0.0.1:{server.server_port}")
    assert status == 200
    assert answer["target"]["text"] == family_translator("bahdanau").translate([SENTENCE])[0].text


def test_the_translation_is_told_while_it_is_written(server: ViewerServer) -> None:
    heard: list[str] = []
    sentence = f"{SENTENCE} {SENTENCE}"
    expected = family_translator("bahdanau").explain(sentence, hear=heard.append)
    assert len(heard) > 1
    asked = json.dumps({"sentence": sentence}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
    subwords = family_translator("bahdanau").vocabularies.target
    ids = expected.target.ids
    again = [subwords.decode(ids[:length]) for length in range(1, len(ids) + 1)]
    for told in (heard, again):  # what is known already is told as it ended
        status, _, body = ask(server, "POST", f"/{server.secret}/explain", asked, **headers)
        *beginnings, answer = [json.loads(line) for line in body.splitlines()]
        assert (status, [line["begun"] for line in beginnings]) == (200, told)
        assert answer["target"]["text"] == expected.text


def test_a_translation_that_was_given_is_not_told_as_if_it_were_written(server: ViewerServer) -> None:
    asked = json.dumps({"sentence": SENTENCE, "target": SENTENCE}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
    for _ in range(2):
        _, _, body = ask(server, "POST", f"/{server.secret}/explain", asked, **headers)
        assert len(body.splitlines()) == 1


def test_what_fails_before_the_first_line_has_its_status(server: ViewerServer) -> None:
    status, answer = question(server, "explain", {"sentence": 3}, Accept="application/x-ndjson")
    assert status == 400
    assert "sentence" in answer["error"]


def test_what_fails_later_is_the_last_line() -> None:
    class Failing(Viewer):
        def answer(self, what: str, body: bytes, hear: Callable[[str], None] | None = None) -> bytes:
            if hear is not None:
                hear("begun")
            raise DataError("That went wrong.")

    with serving(Failing([])) as server:
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        status, _, body = ask(server, "POST", f"/{server.secret}/explain", b"{}", **headers)
    assert status == 200
    assert body == b'{"begun": "begun"}\n{"error": "That went wrong."}\n'


def test_a_search_nobody_waits_for_is_ended_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    ended = threading.Event()

    class Endless(Viewer):
        def answer(self, what: str, body: bytes, hear: Callable[[str], None] | None = None) -> bytes:
            assert hear is not None
            try:
                while True:
                    hear("more and more " * 1000)
            finally:
                ended.set()

    with serving(Endless([])) as server:
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as left:
            host = f"127.0.0.1:{server.server_port}"
            left.sendall(
                f"POST /{server.secret}/explain HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n"
                "Content-Type: application/json\r\nAccept: application/x-ndjson\r\n\r\n{}".encode()
            )
            assert left.recv(12) == b"HTTP/1.1 200"
        assert ended.wait(20)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_other_names_of_this_computer_are_not_answered(server: ViewerServer, method: str, host: str) -> None:
    named = host.format(port=server.server_port)
    assert ask(server, method, f"/{server.secret}/", b"{}", Host=named)[0] == 421


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://127.0.0.1", "http://localhost:{port}"]
)
def test_other_pages_are_not_answered(server: ViewerServer, origin: str) -> None:
    status, answer = question(server, "explain", QUESTION, Origin=origin.format(port=server.server_port))
    assert status == 403
    assert "error" in answer


@pytest.mark.parametrize("path", ["/", "/wrong/", "//", "/{secret}x/", "/{secret}/../", "/{secret}/no", "*"])
def test_without_the_secret_there_is_nothing(server: ViewerServer, path: str) -> None:
    assert ask(server, "GET", path.format(secret=server.secret))[0] == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_refused(server: ViewerServer, method: str) -> None:
    assert ask(server, method, f"/{server.secret}/explain")[0] == 501


def test_a_form_of_another_page_cannot_ask(server: ViewerServer) -> None:
    assert question(server, "explain", QUESTION, **{"Content-Type": "text/plain"})[0] == 415


@pytest.mark.parametrize(
    ("length", "status"), [(str(MOST_BYTES + 1), 413), ("9" * 30, 413), ("-1", 411), ("x", 411), ("٣", 411)]
)
def test_odd_and_large_questions_are_refused_unread(server: ViewerServer, length: str, status: int) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": length.encode().decode("latin-1")}
    assert ask(server, "POST", f"/{server.secret}/explain", b"", **headers)[0] == status


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([], "the question"),
        ({"sentence": "x" * 1001}, "sentence"),
        ({"sentence": 3}, "sentence"),
        ({"sentence": "x", "model": 7}, "1 models"),
        ({"sentence": "x", "forced_prefix": [10**9]}, "pieces from 0"),
        ({"sentence": "x", "forced_prefix": [-1]}, "pieces from 0"),
        ({"sentence": "x", "changes": [{"kind": "erase"}]}, "'erase' found using 'kind'"),
        ({"sentence": "x", "changes": [{"kind": "silence", "site": "cross", "layer": 9}]}, "no layer 9"),
        ({"sentence": "x", "changes": [{}] * 65}, "changes"),
        ({"sentence": "x", "folder": "/etc"}, "folder"),
    ],
)
def test_a_question_that_makes_no_sense_is_told_so(server: ViewerServer, asked: Any, words: str) -> None:
    status, answer = question(server, "explain", asked)
    assert status == 400
    assert words in answer["error"]


def test_bytes_that_are_no_json_are_told_so(server: ViewerServer) -> None:
    headers = {"Content-Type": "application/json"}
    assert ask(server, "POST", f"/{server.secret}/explain", b"\xff{", **headers)[0] == 400


def test_only_so_many_wait(server: ViewerServer) -> None:
    taken = 0
    while server.waiting.acquire(blocking=False):
        taken += 1
    try:
        status, headers, _ = ask(
            server, "POST", f"/{server.secret}/explain", b"{}", **{"Content-Type": "application/json"}
        )
    finally:
        server.waiting.release(taken)
    assert (status, headers["Retry-After"]) == (503, "1")
    assert question(server, "explain", QUESTION)[0] == 200


def test_nothing_is_logged(server: ViewerServer, capsys: pytest.CaptureFixture[str]) -> None:
    question(server, "explain", {"sentence": "a secret sentence"})
    question(server, "explain", {"sentence": "a secret sentence", "odd": 1})
    assert capsys.readouterr() == ("", "")


def test_it_listens_on_loopback_only(server: ViewerServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_each_server_has_its_own_secret(server: ViewerServer) -> None:
    with ViewerServer(Viewer([])) as other:
        assert other.secret != server.secret
        assert len(other.secret) >= 20


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(DataError, match="Choose another"):
        ViewerServer(Viewer([]), port=taken.getsockname()[1])
