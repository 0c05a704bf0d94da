"""Hostile clients: requests that are too large, too slow or malformed, and file names like paths."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from jumok.documents.registry import DOCUMENT_FORMATS
from jumok.server.http_protocol import MAX_PIPELINED
from jumok.server.limits import Limits
from jumok.server.request_body import BODY_TOO_LARGE, FORM, BodyMemoryBudget, parse_request, read_body
from jumok.server.routes import Endpoint
from jumok.server.thread_slot import ThreadSlot
from jumok.server.workers.pending import BusyError
from jumok.system.processes import python_command
from support.serve_models import sentences
from support.serve_process import serving_in_thread, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from starlette.responses import Response

    from jumok.server.routes import ApiRequest
    from support.serve_process import RunningServer

JSON = {"Content-Type": "application/json"}
MULTIPART = {"Content-Type": "multipart/form-data; boundary=x"}


def _ask_raw(port: int, *parts: bytes) -> bytes:
    """Send the parts one after the other. Return everything the server sends until the connection ends.

    The server closes an idle connection after 10 s (`header_timeout`), so the timeout here is much longer.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=40) as connection:
        answer = b""
        try:
            for part in parts:
                connection.sendall(part)
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionError:  # the server closed the connection while this client was still sending
            pass
        return answer


def _status_in(answer: bytes) -> bytes:
    """Return the status in `HTTP/1.1 200 OK…`, or b"" if there was no response."""
    return answer[9:12]


def test_a_body_over_the_limit_is_refused_before_it_is_sent(shared_server: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", shared_server.port), timeout=10) as connection:
        connection.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 3000000\r\n\r\n"
        )
        answer = connection.recv(4096)
    assert b" 413 " in answer.split(b"\r\n")[0]


@pytest.mark.parametrize("path", ["/translate", "/nowhere"])
def test_a_client_that_sends_all_of_a_large_body_before_reading_gets_the_error(
    shared_server: RunningServer, path: str
) -> None:
    for _ in range(3):  # if the connection were reset, only some responses would be lost
        answer = shared_server.request("POST", path, b"x" * 6_000_000, JSON)
        assert answer.status == (413 if path == "/translate" else 404)
    assert answer.json["error"]


def test_a_body_of_unknown_length_is_refused_at_the_limit(shared_server: RunningServer) -> None:
    def count_refused() -> float:
        lines = shared_server.get("/metrics").text.splitlines()
        counts = (
            line for line in lines if line.startswith("jumok_requests_total") and 'status="413"' in line
        )
        return sum(float(line.rsplit(" ", 1)[1]) for line in counts)

    refused_before = count_refused()
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = _ask_raw(shared_server.port, head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 100)
    # The response is lost if the connection is closed while the client is still sending.
    assert _status_in(answer) in (b"413", b"")
    wait_until(lambda: count_refused() == refused_before + 1)


@pytest.mark.parametrize(
    "raw_request",
    [
        b"nonsense\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n folded: yes\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX : space before the colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: nul\x00\r\n\r\n",
        b"POST /detect HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /detect HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
def test_malformed_http_is_answered_in_json(shared_server: RunningServer, raw_request: bytes) -> None:
    head, _, body = _ask_raw(shared_server.port, raw_request).partition(b"\r\n\r\n")
    # 404 for /nowhere: the server answers before it reads the body.
    assert head.split()[1] in (b"400", b"404")
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body)["error"]


@pytest.mark.parametrize(
    ("raw_request", "reason"),
    [
        (b"nonsense\r\n\r\n", "not HTTP/1.1"),
        (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", "this is not a proxy"),
        # Each header counts 2 bytes for "X" and "y", and 64 more: 600 of them are above 32,768.
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 600 + b"\r\n", "its head is longer than 32 KiB"),
    ],
)
def test_a_refused_request_gets_the_reason(
    shared_server: RunningServer, raw_request: bytes, reason: str
) -> None:
    _, _, body = _ask_raw(shared_server.port, raw_request).partition(b"\r\n\r\n")
    assert json.loads(body) == {"error": f"Invalid request: {reason}"}


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Transfer-Encoding: identity\r\nContent-Length: 5",
        b"Transfer-Encoding: chunked, identity",
        b"Content-Length: 5\r\nContent-Length: 0",
        b"Content-Length: 5, 0",
    ],
)
def test_a_body_of_ambiguous_length_is_refused_and_ends_its_connection(
    shared_server: RunningServer, lengths: bytes
) -> None:
    # A proxy may take the second request for a part of the body, so the server must not answer it.
    answer = _ask_raw(
        shared_server.port,
        b"POST /detect HTTP/1.1\r\nHost: localhost\r\n" + lengths + b"\r\n\r\n"
        b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("parts", [1, 50])
@pytest.mark.parametrize("size", [1_000, 20_000, 100_000])
@pytest.mark.parametrize("line", [b"X-Long: %b\r\n", b"X: %b\r\n" * 2, b"GET /%b HTTP/1.1\r\n"])
def test_the_size_of_a_head_is_limited_in_however_many_parts_it_arrives(
    shared_server: RunningServer, line: bytes, size: int, parts: int
) -> None:
    count = line.count(b"%b")
    long_lines = line % ((b"x" * (size // count),) * count)
    head = long_lines if line.startswith(b"GET") else b"GET /health HTTP/1.1\r\n" + long_lines
    head += b"Host: localhost\r\nConnection: close\r\n\r\n"
    step = len(head) // parts
    answer = _ask_raw(
        shared_server.port, *(head[start : start + step] for start in range(0, len(head), step))
    )
    # The path of `GET /xxx…` is unknown, so a head within the limit gets 404 instead of 200.
    # A client that is still sending when the connection is closed may not receive the response.
    assert _status_in(answer) in ((b"400", b"") if size > 32_768 else (b"200", b"404"))


def test_the_number_of_headers_has_a_limit(shared_server: RunningServer) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    # Each header counts its name and value, and 64 bytes more (HEADER_OVERHEAD). A head may have 32 KiB.
    assert _ask_raw(shared_server.port, head + b"X: y\r\n" * 200 + b"\r\n").startswith(b"HTTP/1.1 200 ")
    assert _status_in(_ask_raw(shared_server.port, head + b"X: y\r\n" * 2_000 + b"\r\n")) in (b"400", b"")


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET /health HTTP/1.1\r\nX: ",
        b"GET /health HTTP/1.1\r\nX",
        b"POST /detect HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ",
        b"POST /detect HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX",
        b"POST /detect HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
    ],
)
def test_an_endless_request_is_cut_off_and_the_next_request_is_served(
    shared_server: RunningServer, beginning: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", shared_server.port), timeout=10) as connection:
        connection.sendall(beginning.replace(b"\r\n", b"\r\nHost: localhost\r\n", 1))
        with pytest.raises(ConnectionError):
            connection.sendall(b"x" * 20_000_000)
    assert shared_server.get("/health").status == 200


def test_part_of_a_request_may_arrive_with_the_previous_body(shared_server: RunningServer) -> None:
    # The body is longer than a head may be, and must not count as a part of the next head.
    body = json.dumps({"q": "one", "source": "en", "target": "de", "more": "x" * 60_000}).encode()
    first = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    first += b"Content-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_connection(("127.0.0.1", shared_server.port), timeout=10) as connection:
        connection.sendall(first + b"GET /he")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"alth HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def _stream_request(http_version: str, sentence_count: int) -> bytes:
    """Return the bytes of a request for an event stream."""
    fields = {"q": "one two. " * sentence_count, "source": "en", "target": "de"}
    body = json.dumps(fields).encode()
    head = (
        f"POST /v1/translate/stream HTTP/{http_version}\r\n"
        "Host: localhost\r\nContent-Type: application/json\r\n"
    )
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_http_1_0_gets_a_stream_as_one_body(shared_server: RunningServer) -> None:
    answer = _ask_raw(shared_server.port, _stream_request("1.0", 3))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"transfer-encoding" not in head.lower()
    assert f"content-length: {len(body)}".encode() in head
    assert body.startswith(b"event: ")
    assert b"event: done" in body


def test_an_error_is_not_written_into_a_response_that_has_started(shared_server: RunningServer) -> None:
    with socket.socket() as connection:
        # The buffer is small, so that the server has to wait for the client.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", shared_server.port))
        connection.sendall(_stream_request("1.1", 500))
        answer = connection.recv(200)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n")
        while chunk := connection.recv(65536):
            answer += chunk
    stream, _, after = answer.partition(b"event: done")
    assert stream.count(b"HTTP/1.1 ") == 1
    # The next response, if there is one, comes after the stream.
    assert after == b"" or after.count(b"HTTP/1.1 ") == 1


def test_trailers_are_ignored(shared_server: RunningServer) -> None:
    body = b'{"q": "one", "source": "en", "target": "de"}'
    answer = _ask_raw(
        shared_server.port,
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%b\r\n" % (len(body), body),
        b"0\r\nHost: elsewhere\r\nOrigin: https://elsewhere\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_pipelined_requests_are_answered_in_order_up_to_a_limit(shared_server: RunningServer) -> None:
    paths = [b"/health", b"/languages", b"/nowhere"] * 5  # 15 requests; MAX_PIPELINED is 16
    requests = [b"GET %b HTTP/1.1\r\nHost: localhost\r\n" % path for path in paths]
    answer = _ask_raw(shared_server.port, b"\r\n".join(requests) + b"Connection: close\r\n\r\n")
    answers = answer.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"200", b"404"] * 5
    assert all(b'"status"' in answer for answer in answers[::3])
    many = _ask_raw(shared_server.port, (requests[0] + b"\r\n") * 1_000)
    assert many.count(b"HTTP/1.1 200 ") <= MAX_PIPELINED


def test_an_upgrade_to_http_2_is_ignored_on_every_request(shared_server: RunningServer) -> None:
    """Java clients offer HTTP/2 with every request."""
    body = b'{"q": "one", "source": "en", "target": "de"}'
    request = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    with socket.create_connection(("127.0.0.1", shared_server.port), timeout=10) as connection:
        for _ in range(3):
            connection.sendall(request)
            answer = connection.recv(65536)  # head and body come together
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"translatedText" in answer
    last = request.replace(b"Connection: Upgrade", b"Connection: close, Upgrade")
    assert _ask_raw(shared_server.port, request + request + last).count(b"translatedText") == 3


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--x",
        b"--x\r\n",
        b"--x--\r\n",
        b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nno end',
        b"--x\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--x--\r\n",
        b"--x\r\n\r\nno headers\r\n--x--\r\n",
        b"--x\r\nContent-Disposition: nonsense; name=q\r\n\r\n1\r\n--x--\r\n",
        b'--x\r\nContent-Disposition: form-data; name="q"\r\nContent-Type: a; charset=nope\r\n\r\n1\r\n--x--',
        b'--x\r\nContent-Disposition: form-data; name="\xff\xfe"\r\n\r\n\xff\xff\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' * 30 + b"--x--\r\n",
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n1\r\n' * 3
        + b"--x--\r\n",
        b"--x\r\n" + b"A: b\r\n" * 5000 + b"\r\n\r\n--x--\r\n",
        b"\x00" * 1000,
    ],
)
def test_malformed_multipart_is_a_client_error(shared_server: RunningServer, body: bytes) -> None:
    for path in ("/translate", "/translate_file"):
        answer = shared_server.request("POST", path, body, MULTIPART)
        assert answer.status == 400, answer.text
        assert answer.json["error"].startswith("Invalid request: ")
    without_boundary = {"Content-Type": "multipart/form-data"}
    assert shared_server.request("POST", "/translate", body, without_boundary).status == 400


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"null", b"1", b'{"q": NaN}', b"[" * 100_000, b'{"a":' * 50_000, b"\xff", b'{"q":1e999}',
     b'{"q": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_a_json_body_that_cannot_be_used_is_a_client_error(shared_server: RunningServer, body: bytes) -> None:
    """The body is no JSON object, or its field `q` is a number."""
    assert shared_server.request("POST", "/translate", body, JSON).status == 400


@pytest.mark.parametrize(
    "values",
    [
        "[" + "{}," * 690_000 + "0]",  # refused before it is parsed
        "[" + "{}," * 10_000 + "0]",
        "[[" + "[0]," * 5_000 + "0]]",
        '"' + "x" * 1_900_000 + '"',  # one value that is too long
        '[{"' + "x" * 200_000 + '": 0}]',
    ],
)
def test_fields_that_no_route_uses_do_not_fill_the_memory(values: str) -> None:
    body = b'{"q": "one", "x": %s}' % values.encode()
    scope = {
        "type": "http",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }
    tracemalloc.start()
    try:
        with pytest.raises(HTTPException, match=BODY_TOO_LARGE):
            asyncio.run(parse_request(scope, body, Limits(), ThreadSlot()))
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


def test_the_error_for_a_long_text_names_its_size(shared_server: RunningServer) -> None:
    for q in ("x" * 1_000_000, ["x" * 1_000] * 1_000):
        answer = shared_server.post("/translate", {"q": q, "source": "en", "target": "de"})
        message = "Invalid request: request (1000000) exceeds text limit (100000)"
        assert (answer.status, answer.json) == (400, {"error": message})


def test_a_large_form_does_not_stop_the_other_requests() -> None:
    """2 MB of `%41` take a third of a second to decode. Meanwhile the event loop must continue to run."""

    async def run() -> int:
        """Return how often the event loop ran while the form was decoded."""
        scope = {"type": "http", "query_string": b"", "headers": [(b"content-type", FORM.encode())]}
        body = b"q=" + b"%41" * 600_000
        parsing = asyncio.create_task(parse_request(scope, body, Limits(max_characters=10**7), ThreadSlot()))
        turns = 0
        while not parsing.done():
            turns += 1
            await asyncio.sleep(0)
        assert (await parsing).by_name == {"q": "A" * 600_000}
        return turns

    assert asyncio.run(run()) > 10


def test_a_request_does_not_wait_for_the_thread_for_ever() -> None:
    async def run() -> None:
        slot, release = ThreadSlot(0.05), threading.Event()
        first = asyncio.create_task(slot.run(release.wait))
        await asyncio.sleep(0.01)
        with pytest.raises(BusyError, match="The server is busy"):
            await slot.run(int, "7")
        release.set()
        await first
        assert await slot.run(int, "8") == 8

    asyncio.run(run())


@pytest.mark.parametrize("content_type", [FORM, "multipart/form-data; boundary=x"])
def test_a_form_may_have_several_tags(content_type: str) -> None:
    """On the page without JavaScript, each check box sends a field `tags` of its own."""
    body = b"q=one&tags=%3Ca%3E&tags=%3Cb%3E"
    if content_type != FORM:
        parts = [("q", "one"), ("tags", "<a>"), ("tags", "<b>")]
        texts = (
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}' for name, text in parts
        )
        body = "\r\n".join([*texts, "--x--\r\n"]).encode()
    headers = [(b"content-type", content_type.encode())]
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": b""}
    request = asyncio.run(parse_request(scope, body, Limits(), ThreadSlot()))
    assert request.by_name == {"q": "one", "tags": ["<a>", "<b>"]}


def test_integers_may_be_written_with_a_decimal_point() -> None:
    scope = {"type": "http", "headers": [(b"content-type", b"application/json")], "query_string": b""}
    request = asyncio.run(parse_request(scope, b'{"x": [2.0, 0.5, -1e2, 1e300]}', Limits(), ThreadSlot()))
    # A float has no digits after the point from 2^53 on, so 1e300 stays a float.
    assert list(map(repr, request.by_name["x"])) == ["2", "0.5", "-100", "1e+300"]


def test_commas_and_brackets_in_a_text_do_not_count_as_values(shared_server: RunningServer) -> None:
    texts = [",[{" * 33] * 1_000  # 99,000 characters; a request may have 100,000
    answer = shared_server.post("/translate", {"q": texts, "source": "en", "target": "de"})
    assert answer.json == {"translatedText": texts}


def test_an_unknown_content_type_is_refused(shared_server: RunningServer) -> None:
    assert shared_server.request("POST", "/translate", b"<q/>", {"Content-Type": "text/xml"}).status == 415


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd.txt", "/etc/passwd.txt", "..\\..\\x.txt", "a\x00b.txt", "CON.txt", "x" * 3000 + ".txt",
     "%2e%2e%2fx.txt", "<img src=x>.txt"],
)  # fmt: skip
def test_a_file_name_like_a_path_leads_nowhere(shared_server: RunningServer, name: str) -> None:
    answer = shared_server.post_file(name, b"one two", source="en", target="de")
    assert answer.status == 200, answer.text
    address = answer.json["translatedFileUrl"]
    assert ".." not in address
    assert address.startswith(f"http://127.0.0.1:{shared_server.port}/download_file/")
    fetched = shared_server.get(address.partition(str(shared_server.port))[2])
    assert fetched.headers["content-disposition"] == 'attachment; filename="translated.txt"'


@pytest.mark.parametrize(
    "name",
    ["../jumok.json", "..%2fjumok.json", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "x.txt", "a" * 32 + ".exe", "."],
)
def test_only_cached_files_can_be_downloaded(shared_server: RunningServer, name: str) -> None:
    assert shared_server.get(f"/download_file/{name}").status == 404


@pytest.mark.parametrize("name", ["a.exe", "a.bin", "a.txt.zip", "a."])
def test_files_of_unknown_types_are_refused(shared_server: RunningServer, name: str) -> None:
    answer = shared_server.post_file(name, b"one", source="en", target="de")
    assert answer.status == 400
    suffixes = ", ".join(document_format.suffix for document_format in DOCUMENT_FORMATS)
    assert f"Known types: {suffixes}." in answer.json["error"]


# Each `unit` has one mark of syntax that counts.
@pytest.mark.parametrize(("name", "unit"), [("a.html", "<b>"), ("a.srt", "\n"), ("a.po", "#\n")])
def test_a_file_with_too_many_syntax_characters_is_refused(
    shared_server: RunningServer, name: str, unit: str
) -> None:
    answer = shared_server.post_file(name, unit.encode() * 100_001, source="en", target="de")
    assert answer.status == 413
    assert answer.json["error"].startswith(
        "The file has 100,001 tags, entities, line ends and other marks of syntax. "
        "At most 100,000 are allowed."
    )


def test_a_file_that_is_not_utf_8_is_refused(shared_server: RunningServer) -> None:
    assert "not UTF-8 (byte 3)" in shared_server.post_file("a.txt", b"ab\xff", source="en", target="de").text


@pytest.fixture(scope="module")
def strict_server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with short timeouts and low limits."""
    limits = Limits(
        header_timeout=1.0,
        body_timeout=2.0,
        response_timeout=1.0,
        max_connections=110,
        max_queued_sentences=100,
    )
    with serving_in_thread(tmp_path_factory.mktemp("strict"), model, limits=limits) as server:
        yield server


def test_slow_clients_are_disconnected_and_others_do_not_wait(strict_server: RunningServer) -> None:
    slow = [socket.create_connection(("127.0.0.1", strict_server.port), timeout=60) for _ in range(100)]
    try:
        for number, connection in enumerate(slow):
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"[: 20 + number % 20])
        reused_connection = socket.create_connection(("127.0.0.1", strict_server.port), timeout=60)
        slow.append(reused_connection)
        reused_connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in reused_connection.recv(4096)
        reused_connection.sendall(b"GET /hea")  # part of a request after a complete one
        incomplete_body = socket.create_connection(("127.0.0.1", strict_server.port), timeout=60)
        slow.append(incomplete_body)
        incomplete_body.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nq="
        )
        assert strict_server.get("/health").status == 200
        assert strict_server.post("/translate", {"q": "one", "source": "en", "target": "de"}).status == 200
        assert b" 408 " in incomplete_body.recv(4096)
        for connection in slow[:-1]:  # all except `incomplete_body`
            while connection.recv(4096):  # until the server closes it; a timeout fails the test
                pass
    finally:
        for connection in slow:
            connection.close()


def _send_headers_that_get_404(connection: socket.socket) -> None:
    """Send the headers of a request to an unknown path, without its body, and read the response."""
    connection.sendall(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(4096)
    assert b" 404 " in answer


# A part of the body of 9 bytes, the whole body, and the body with a part of the next request.
@pytest.mark.parametrize("rest", [b"q", b"q=one two", b"q=one twoGET /hea"])
def test_a_refused_client_that_stops_sending_is_disconnected(
    strict_server: RunningServer, rest: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", strict_server.port), timeout=10) as connection:
        _send_headers_that_get_404(connection)
        connection.sendall(rest)
        assert connection.recv(4096) == b""


def test_the_body_of_a_refused_request_does_not_end_its_connection(strict_server: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", strict_server.port), timeout=10) as connection:
        _send_headers_that_get_404(connection)
        connection.sendall(b"q=one two")
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in connection.recv(4096)


def test_a_client_that_does_not_read_responses_is_disconnected(strict_server: RunningServer) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", strict_server.port))
        connection.sendall(b"GET /spec HTTP/1.1\r\nHost: localhost\r\n\r\n" * MAX_PIPELINED)
        with pytest.raises(ConnectionError):
            _send_for_seconds(connection, 60)


def _send_for_seconds(connection: socket.socket, seconds: float) -> None:
    """Send line breaks. If the server has closed the connection, this raises a ConnectionError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.send(b"\r\n")
        time.sleep(0.1)


def test_connections_over_the_limit_get_503(strict_server: RunningServer) -> None:
    # 110 is the limit of `strict_server`.
    accepted = [socket.create_connection(("127.0.0.1", strict_server.port), timeout=10) for _ in range(110)]
    try:
        answer = b""
        with socket.create_connection(("127.0.0.1", strict_server.port), timeout=10) as late:
            while chunk := late.recv(4096):
                answer += chunk
    finally:
        for connection in accepted:
            connection.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"Retry-After: 5" in head
    assert json.loads(body) == {"error": "Too many connections."}


def test_the_limit_of_open_files_is_raised_or_connections_are_limited() -> None:
    code = (
        "import resource; from jumok.server.lifecycle import allow_connections\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1000))\n"
        "print(allow_connections(500))\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], allow_connections(2000))"
    )
    result = subprocess.run(python_command(code), capture_output=True, text=True, check=True)
    # 128 files are reserved for other uses: 500 connections need 628 files, and 1,000 files leave 872.
    assert result.stdout.split() == ["500", "628", "872"]


def test_a_full_queue_refuses_requests_with_retry_after(strict_server: RunningServer) -> None:
    fields = {"q": sentences(100), "source": "en", "target": "de"}
    with ThreadPoolExecutor(20) as clients:
        answers = list(clients.map(lambda _: strict_server.post("/translate", fields), range(60)))
    refused = [answer for answer in answers if answer.status == 503]
    assert {answer.status for answer in answers} == {200, 503}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert refused[0].json == {"error": "The server is busy. Try again later."}
    assert all(len(answer.json["translatedText"]) == 100 for answer in answers if answer.status == 200)


def test_all_request_bodies_together_have_a_limit_and_release_their_bytes() -> None:
    async def run() -> None:
        limits = Limits(max_total_body_bytes=100, max_body_bytes=60)
        budget = BodyMemoryBudget(limits)
        scope = {"type": "http", "headers": []}

        def receiver_of(*chunks: bytes) -> Callable[[], Awaitable[dict[str, object]]]:
            remaining = list(chunks)

            async def receive() -> dict[str, object]:
                return {"type": "http.request", "body": remaining.pop(0), "more_body": bool(remaining)}

            return receive

        first = await read_body(scope, receiver_of(b"x" * 30, b"x" * 30), limits, budget)
        for chunks, status in (((b"x" * 50,), 503), ((b"x" * 30, b"x" * 31), 413)):
            with pytest.raises(HTTPException) as refused:
                await read_body(scope, receiver_of(*chunks), limits, budget)
            assert refused.value.status_code == status
        budget.release(len(first))
        # Together, the next two bodies have exactly 100 bytes, so neither call raises an error.
        await read_body(scope, receiver_of(b"x" * 60), limits, budget)
        await read_body(scope, receiver_of(b"x" * 40), limits, budget)

    asyncio.run(run())


def test_the_bytes_of_a_body_are_reserved_until_a_stream_has_ended() -> None:
    budget = BodyMemoryBudget(Limits(max_total_body_bytes=20))
    service = SimpleNamespace(
        api_keys=None,
        rate_limiter=SimpleNamespace(check=lambda _: None),
        limits=Limits(),
        body_budget=budget,
        thread_slot=ThreadSlot(),
    )
    refusal_statuses: list[int] = []

    async def chunks() -> AsyncIterator[bytes]:
        with pytest.raises(HTTPException) as error:
            budget.reserve(15)
        refusal_statuses.append(error.value.status_code)
        yield b"end"

    async def handler(_: ApiRequest) -> Response:
        return StreamingResponse(chunks())

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b'{"q": "a"}', "more_body": False}

    async def send(_: object) -> None: ...

    headers = [(b"content-type", b"application/json"), (b"content-length", b"10")]
    scope = {
        "type": "http",
        "method": "POST",
        "headers": headers,
        "query_string": b"",
        "http_version": "1.1",
        "app": SimpleNamespace(service=service),
    }
    asyncio.run(Endpoint(handler)(scope, receive, send))  # type: ignore[arg-type]
    assert refusal_statuses == [503]
    budget.reserve(15)  # raises no error: the bytes of the body have been released
