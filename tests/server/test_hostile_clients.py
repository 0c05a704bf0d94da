"""What hostile clients send: too much, too slowly, malformed, with names like paths."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from serve_models import sentences
from serve_process import serving_here

from jumok.processes import python_command
from jumok.serve.faults import Fault
from jumok.serve.limits import Limits
from jumok.serve.reading import Held, read_body, read_sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from serve_process import Served

JSON = {"Content-Type": "application/json"}
MULTIPART = {"Content-Type": "multipart/form-data; boundary=x"}


def _ask_raw(port: int, *sent: bytes) -> bytes:
    """Everything that is answered until the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        answer = b""
        try:
            for part in sent:
                connection.sendall(part)
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionError:  # it was cut while more was on its way
            pass
        return answer


def test_a_body_over_the_cap_is_refused_before_it_is_sent(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 3000000\r\n\r\n"
        )
        answer = connection.recv(4096)
    assert b" 413 " in answer.split(b"\r\n")[0]


@pytest.mark.parametrize("path", ["/translate", "/nowhere"])
def test_who_sends_a_large_body_without_looking_up_is_told_too(served: Served, path: str) -> None:
    for _ in range(3):
        answer = served.ask("POST", path, b"x" * 6_000_000, JSON)
        assert answer.status == (413 if path == "/translate" else 404)
    assert answer.json["error"]


def test_a_body_of_unknown_length_is_cut_at_the_cap(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        sent = 0
        try:
            for _ in range(100):
                connection.sendall(chunk)
                sent += 0x10000
        except OSError:
            pass
        else:
            assert b" 413 " in connection.recv(4096).split(b"\r\n")[0]
    assert served.get("/health").status == 200


@pytest.mark.parametrize(
    "sent",
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
def test_what_is_no_http_is_told_in_json(served: Served, sent: bytes) -> None:
    head, _, body = _ask_raw(served.port, sent).partition(b"\r\n\r\n")
    assert head.split()[1] in (b"400", b"404")
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body)["error"]


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
def test_a_body_with_two_lengths_is_refused_and_ends_its_connection(served: Served, lengths: bytes) -> None:
    answer = _ask_raw(
        served.port,
        b"POST /detect HTTP/1.1\r\nHost: localhost\r\n" + lengths + b"\r\n\r\n"
        b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("parts", [1, 50])
@pytest.mark.parametrize("size", [1_000, 20_000, 100_000])
@pytest.mark.parametrize("line", [b"X-Long: %b\r\n", b"X: %b\r\n" * 2, b"GET /%b HTTP/1.1\r\n"])
def test_a_head_has_a_limit_however_it_comes(served: Served, line: bytes, size: int, parts: int) -> None:
    count = line.count(b"%b")
    long = line % ((b"x" * (size // count),) * count)
    head = long if line.startswith(b"GET") else b"GET /health HTTP/1.1\r\n" + long
    head += b"Host: localhost\r\nConnection: close\r\n\r\n"
    step = len(head) // parts
    answer = _ask_raw(served.port, *(head[start : start + step] for start in range(0, len(head), step)))
    # What is still being sent when a connection ends can cost the client the answer.
    assert answer[9:12] in ((b"400", b"") if size > 32_768 else (b"200", b"404"))


def test_headers_have_a_limit_to_their_number(served: Served) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    assert _ask_raw(served.port, head + b"X: y\r\n" * 200 + b"\r\n").startswith(b"HTTP/1.1 200 ")
    assert _ask_raw(served.port, head + b"X: y\r\n" * 2_000 + b"\r\n")[9:12] in (b"400", b"")


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /health HTTP/1.1\r\nX: ",
        b"GET /health HTTP/1.1\r\nX",
        b"POST /detect HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ",
        b"POST /detect HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX",
        b"POST /detect HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
    ],
)
def test_what_never_ends_is_cut_and_costs_nobody_else_anything(served: Served, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(begun.replace(b"\r\n", b"\r\nHost: localhost\r\n", 1))
        with pytest.raises(ConnectionError):
            connection.sendall(b"x" * 20_000_000)
    assert served.get("/health").status == 200


def test_half_a_request_may_come_with_the_body_before_it(served: Served) -> None:
    body = json.dumps({"q": "one", "source": "en", "target": "de", "more": "x" * 60_000}).encode()
    first = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    first += b"Content-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(first + b"GET /he")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"alth HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def _stream_request(version: str, sentences: int) -> bytes:
    fields = {"q": "one two. " * sentences, "source": "en", "target": "de"}
    body = json.dumps(fields).encode()
    head = (
        f"POST /v1/translate/stream HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    )
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_stream_comes_whole_to_whom_pieces_cannot_be_told_apart(served: Served) -> None:
    answer = _ask_raw(served.port, _stream_request("1.0", 3))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"transfer-encoding" not in head.lower()
    assert f"content-length: {len(body)}".encode() in head
    assert body.startswith(b"event: ")
    assert b"event: done" in body


def test_nothing_is_said_of_a_fault_in_the_middle_of_an_answer(served: Served) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that the server has to wait
        connection.settimeout(10)
        connection.connect(("127.0.0.1", served.port))
        connection.sendall(_stream_request("1.1", 500))
        answer = connection.recv(200)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n")
        while chunk := connection.recv(65536):
            answer += chunk
    stream, _, after = answer.partition(b"event: done")
    assert stream.count(b"HTTP/1.1 ") == 1
    assert after == b"" or after.count(b"HTTP/1.1 ") == 1


def test_headers_behind_a_body_are_not_heeded(served: Served) -> None:
    body = b'{"q": "one", "source": "en", "target": "de"}'
    answer = _ask_raw(
        served.port,
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%b\r\n" % (len(body), body),
        b"0\r\nHost: elsewhere\r\nOrigin: https://elsewhere\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_requests_in_a_row_are_answered_in_a_row(served: Served) -> None:
    """Sent before any is answered; and the whole row of a client that wants too much at once is refused."""
    paths = [b"/health", b"/languages", b"/nowhere"] * 5
    requests = [b"GET %b HTTP/1.1\r\nHost: localhost\r\n" % path for path in paths]
    answer = _ask_raw(served.port, b"\r\n".join(requests) + b"Connection: close\r\n\r\n")
    answers = answer.split(b"HTTP/1.1 ")[1:]
    assert [one[:3] for one in answers] == [b"200", b"200", b"404"] * 5
    assert all(b'"status"' in one for one in answers[::3])
    many = _ask_raw(served.port, (requests[0] + b"\r\n") * 1_000)
    assert many.count(b"HTTP/1.1 200 ") <= 16


def test_who_offers_another_protocol_is_answered_in_this_one_again_and_again(served: Served) -> None:
    """Clients in Java offer HTTP/2 with every request."""
    body = b'{"q": "one", "source": "en", "target": "de"}'
    request = (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        for _ in range(3):
            connection.sendall(request)
            answer = connection.recv(65536)  # head and body come together
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"translatedText" in answer
    last = request.replace(b"Connection: Upgrade", b"Connection: close, Upgrade")
    assert _ask_raw(served.port, request + request + last).count(b"translatedText") == 3


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
def test_malformed_multipart_is_a_fault_of_the_client(served: Served, body: bytes) -> None:
    for path in ("/translate", "/translate_file"):
        answer = served.ask("POST", path, body, MULTIPART)
        assert answer.status == 400, answer.text
        assert answer.json["error"].startswith("Invalid request: ")
    assert served.ask("POST", "/translate", body, {"Content-Type": "multipart/form-data"}).status == 400


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"null", b"1", b'{"q": NaN}', b"[" * 100_000, b'{"a":' * 50_000, b"\xff", b'{"q":1e999}',
     b'{"q": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_what_is_no_json_object_is_a_fault_of_the_client(served: Served, body: bytes) -> None:
    assert served.ask("POST", "/translate", body, JSON).status == 400


@pytest.mark.parametrize(
    "values",
    [
        "[" + "{}," * 690_000 + "0]",
        "[" + "{}," * 10_000 + "0]",
        "[[" + "[0]," * 5_000 + "0]]",
        '"' + "x" * 1_900_000 + '"',
        '[{"' + "x" * 200_000 + '": 0}]',
    ],
)
def test_values_that_nobody_asked_for_do_not_fill_the_memory(values: str) -> None:
    body = b'{"q": "one", "x": %s}' % values.encode()
    scope = {
        "type": "http",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }
    tracemalloc.start()
    try:
        with pytest.raises(Fault, match="too many values"):
            asyncio.run(read_sent(scope, body, Limits()))
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


def test_a_text_that_is_too_long_is_told_its_size_however_long_it_is(served: Served) -> None:
    for q in ("x" * 1_000_000, ["x" * 1_000] * 1_000):
        answer = served.post("/translate", {"q": q, "source": "en", "target": "de"})
        message = "Invalid request: request (1000000) exceeds text limit (100000)"
        assert (answer.status, answer.json) == (400, {"error": message})


def test_whole_numbers_may_have_a_point() -> None:
    scope = {"type": "http", "headers": [(b"content-type", b"application/json")], "query_string": b""}
    sent = asyncio.run(read_sent(scope, b'{"x": [2.0, 0.5, -1e2, 1e300]}', Limits()))
    assert list(map(repr, sent.fields["x"])) == ["2", "0.5", "-100", "1e+300"]


def test_a_text_of_commas_and_brackets_is_no_number_of_values(served: Served) -> None:
    texts = [",[{" * 33] * 1_000
    answer = served.post("/translate", {"q": texts, "source": "en", "target": "de"})
    assert answer.json == {"translatedText": texts}


def test_an_unknown_content_type_is_told(served: Served) -> None:
    assert served.ask("POST", "/translate", b"<q/>", {"Content-Type": "text/xml"}).status == 415


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd.txt", "/etc/passwd.txt", "..\\..\\x.txt", "a\x00b.txt", "CON.txt", "x" * 3000 + ".txt",
     "%2e%2e%2fx.txt", "<img src=x>.txt"],
)  # fmt: skip
def test_a_file_name_like_a_path_leads_nowhere(served: Served, name: str) -> None:
    answer = served.post_file(name, b"one two", source="en", target="de")
    assert answer.status == 200, answer.text
    address = answer.json["translatedFileUrl"]
    assert ".." not in address
    assert address.startswith(f"http://127.0.0.1:{served.port}/download_file/")
    fetched = served.get(address.partition(str(served.port))[2])
    assert fetched.headers["content-disposition"] == 'attachment; filename="translated.txt"'


@pytest.mark.parametrize(
    "name",
    ["../jumok.json", "..%2fjumok.json", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "x.txt", "a" * 32 + ".exe", "."],
)
def test_nothing_but_what_was_put_there_can_be_fetched(served: Served, name: str) -> None:
    assert served.get(f"/download_file/{name}").status == 404


@pytest.mark.parametrize("name", ["a.exe", "a.docx", "a.txt.zip", "a."])
def test_other_types_of_files_are_refused(served: Served, name: str) -> None:
    answer = served.post_file(name, b"one", source="en", target="de")
    assert answer.status == 400
    assert "Known types: .txt, .srt, .html, .po" in answer.json["error"]


@pytest.mark.parametrize(("name", "unit"), [("a.html", "<b>"), ("a.srt", "\n"), ("a.po", "#\n")])
def test_a_file_of_nothing_but_marks_is_refused_before_it_is_parsed(
    served: Served, name: str, unit: str
) -> None:
    answer = served.post_file(name, unit.encode() * 100_001, source="en", target="de")
    assert answer.status == 413
    assert answer.json["error"].startswith(
        "The file has 100,001 tags, entities or lines; it may have 100,000"
    )


def test_a_file_that_is_not_utf_8_is_refused(served: Served) -> None:
    assert "not UTF-8 (byte 3)" in served.post_file("a.txt", b"ab\xff", source="en", target="de").text


@pytest.fixture(scope="module")
def hasty(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without patience, and with room for few."""
    limits = Limits(
        header_seconds=1.0, body_seconds=2.0, fetch_seconds=1.0, connections=110, waiting_sentences=100
    )
    with serving_here(tmp_path_factory.mktemp("hasty"), model, limits=limits) as found:
        yield found


def test_clients_that_send_slowly_are_let_go_and_others_do_not_wait(hasty: Served) -> None:
    served = hasty
    slow = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(100)]
    try:
        for number, connection in enumerate(slow):
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"[: 20 + number % 20])
        half = socket.create_connection(("127.0.0.1", served.port), timeout=60)
        slow.append(half)
        half.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in half.recv(4096)
        half.sendall(b"GET /hea")  # half a request behind a whole one
        body = socket.create_connection(("127.0.0.1", served.port), timeout=60)
        slow.append(body)
        body.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nq=")
        assert served.get("/health").status == 200
        assert served.post("/translate", {"q": "one", "source": "en", "target": "de"}).status == 200
        assert b" 408 " in body.recv(4096)
        for connection in slow[:-1]:
            while connection.recv(4096):  # until the server closes it; a timeout fails the test
                pass
    finally:
        for connection in slow:
            connection.close()


def _be_refused(connection: socket.socket) -> None:
    """By the headers alone: the body is still to be sent."""
    connection.sendall(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(4096)
    assert b" 404 " in answer


@pytest.mark.parametrize("rest", [b"q", b"q=one two", b"q=one twoGET /hea"])
def test_who_goes_on_after_a_refusal_and_stops_is_let_go(hasty: Served, rest: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=10) as connection:
        _be_refused(connection)
        connection.sendall(rest)
        assert connection.recv(4096) == b""


def test_the_body_of_a_refused_request_does_not_end_its_connection(hasty: Served) -> None:
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=10) as connection:
        _be_refused(connection)
        connection.sendall(b"q=one two")
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in connection.recv(4096)


def test_who_never_fetches_the_answers_is_let_go(hasty: Served) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", hasty.port))
        connection.sendall(b"GET /spec HTTP/1.1\r\nHost: localhost\r\n\r\n" * 16)
        with pytest.raises(ConnectionError):
            _send_for_seconds(connection, 60)


def _send_for_seconds(connection: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.send(b"\r\n")
        time.sleep(0.1)


def test_who_comes_when_the_house_is_full_is_told_to_come_again(hasty: Served) -> None:
    inside = [socket.create_connection(("127.0.0.1", hasty.port), timeout=10) for _ in range(110)]
    try:
        hasty_answer = b""
        with socket.create_connection(("127.0.0.1", hasty.port), timeout=10) as late:
            while chunk := late.recv(4096):
                hasty_answer += chunk
    finally:
        for connection in inside:
            connection.close()
    head, _, body = hasty_answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"Retry-After: 5" in head
    assert json.loads(body) == {"error": "Too many connections."}


def test_there_is_room_for_as_many_connections_as_open_files_allow() -> None:
    """1,024 open files are usual, and could be raised; where not, fewer connections are taken."""
    code = (
        "import resource; from jumok.serve.running import room_for\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1000))\n"
        "print(room_for(500), resource.getrlimit(resource.RLIMIT_NOFILE)[0], room_for(2000))"
    )
    ran = subprocess.run(python_command(code), capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["500", "628", "872"]


def test_a_full_queue_refuses_and_says_when_to_come_again(hasty: Served) -> None:
    fields = {"q": sentences(100), "source": "en", "target": "de"}
    with ThreadPoolExecutor(20) as clients:
        answers = list(clients.map(lambda _: hasty.post("/translate", fields), range(60)))
    refused = [answer for answer in answers if answer.status == 503]
    assert {answer.status for answer in answers} == {200, 503}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert refused[0].json == {"error": "The server is busy. Try again later."}
    assert all(len(answer.json["translatedText"]) == 100 for answer in answers if answer.status == 200)


def test_many_bodies_together_have_a_cap_and_give_back_what_they_took() -> None:
    async def run() -> None:
        limits = Limits(held_bytes=100, body_bytes=60)
        held = Held(limits)
        scope = {"type": "http", "headers": []}

        def sending(*chunks: bytes) -> Callable[[], Awaitable[dict[str, object]]]:
            left = list(chunks)

            async def receive() -> dict[str, object]:
                return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

            return receive

        first = await read_body(scope, sending(b"x" * 30, b"x" * 30), limits, held)
        for chunks, status in (((b"x" * 50,), 503), ((b"x" * 30, b"x" * 31), 413)):
            with pytest.raises(Fault) as refused:
                await read_body(scope, sending(*chunks), limits, held)
            assert refused.value.status == status
        held.give_back(len(first))
        await read_body(scope, sending(b"x" * 60), limits, held)
        await read_body(scope, sending(b"x" * 40), limits, held)

    asyncio.run(run())
