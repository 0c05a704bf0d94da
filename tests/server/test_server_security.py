"""Who may speak to the server: hosts, origins, keys, paces; and what must never stand in a log."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

import pytest
from serve_process import serving

from jumok.errors import DataError
from jumok.serve.faults import Fault
from jumok.serve.gates import Keys, Pacing, Visitors, client_of, is_loopback, read_keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from serve_process import Served

ASK = {"q": "one two", "source": "en", "target": "de"}
KEY, OTHER_KEY = "correct-horse-battery", "another-key-altogether"
CANARY = "canarytext"


@pytest.fixture(scope="module")
def guarded(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for keys, and welcomes one origin and one more name."""
    folder = tmp_path_factory.mktemp("guarded")
    keys = folder / "keys.txt"
    keys.write_text(f"# two people\n{KEY}\n\n{OTHER_KEY}\n", encoding="utf-8")
    keys.chmod(0o600)
    options = ["--api-keys", keys, "--allow-origin", "https://friend.example", "--allow-host", "mt.example"]
    with serving(folder, model, "--workers", "1", "--requests-per-minute", "60", *options) as found:
        yield found


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD"])
def test_hosts_and_origins_are_checked_for_every_method(served: Served, method: str) -> None:
    own = f"127.0.0.1:{served.port}"
    hosts = {own: True, f"localhost:{served.port}": True, "[::1]:5000": True}
    evil = "evil.example"
    hosts |= dict.fromkeys((evil, f"127.0.0.1.{evil}", "10.0.0.5", "", f"127.0.0.1@{evil}"), False)
    origins = ["http://{host}", "https://{host}", None]
    foreign = ["null", f"https://{evil}", "http://{host}" + f".{evil}", "http://127.0.0.1:1", "file://", "*"]
    path = "/translate" if method == "POST" else "/health"
    body = b"q=one&source=en&target=de" if method == "POST" else None
    for (host, good), origin in itertools.product(hosts.items(), [*origins, *foreign]):
        headers = {"Host": host, "Content-Type": "application/x-www-form-urlencoded"}
        if origin is not None:
            headers["Origin"] = origin.format(host=host)
        answer = served.ask(method, path, body, headers)
        welcome = good and origin in origins
        expected = (405 if method == "OPTIONS" else 200) if welcome else 403
        assert answer.status == expected, (host, origin)
        assert "access-control-allow-origin" not in answer.headers


def test_a_welcome_origin_gets_its_own_name_back_and_no_credentials(guarded: Served) -> None:
    origin = {"Origin": "https://friend.example"}
    preflight = guarded.ask("OPTIONS", "/translate", headers=origin)
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://friend.example"
    assert "access-control-allow-credentials" not in preflight.headers
    assert guarded.get("/health", **origin).headers["vary"] == "Origin"
    assert guarded.get("/health", Host="mt.example").status == 200
    assert guarded.get("/health", Host="mt.example.evil").status == 403


def test_two_hosts_or_two_origins_are_refused(served: Served) -> None:
    import socket

    own = f"127.0.0.1:{served.port}".encode()
    for headers in (
        b"Host: %s\r\nOrigin: http://%s\r\nOrigin: http://evil.example" % (own, own),
        b"Host: %s\r\nHost: evil.example" % own,
    ):
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n" % headers)
            assert connection.recv(100).split()[1] in (b"403", b"400")


def test_a_key_is_asked_for_and_may_come_in_the_body_or_a_header(guarded: Served) -> None:
    assert guarded.post("/translate", ASK).json == {"error": "Invalid API key"}
    assert guarded.post("/translate", {**ASK, "api_key": KEY + "x"}).status == 403
    assert guarded.post("/translate", {**ASK, "api_key": KEY}).status == 200
    assert guarded.post_form("/translate", {**ASK, "api_key": OTHER_KEY}).status == 200
    assert guarded.post("/v1/translate", ASK, Authorization=f"Bearer {KEY}").status == 200
    assert guarded.get("/metrics").status == 403
    assert guarded.get("/languages").status == 200
    settings = guarded.get("/frontend/settings").json
    assert settings["keyRequired"] is True


def test_a_key_in_an_address_is_no_key(guarded: Served) -> None:
    assert guarded.ask("POST", f"/translate?q=one&source=en&target=de&api_key={KEY}").status == 403


def test_each_key_has_a_pace_of_its_own(guarded: Served) -> None:
    answers = [guarded.post("/detect", {"q": "one", "api_key": KEY}) for _ in range(70)]
    slow = [answer for answer in answers if answer.status == 429]
    assert slow
    assert slow[0].json == {"error": "Slowdown: 60 per 1 minute"}
    assert int(slow[0].headers["retry-after"]) >= 1
    assert guarded.post("/detect", {"q": "one", "api_key": OTHER_KEY}).status == 200


def test_no_text_and_no_key_stands_in_the_log_or_the_metrics(guarded: Served) -> None:
    key = {"Authorization": f"Bearer {OTHER_KEY}"}
    wrong = f"wrong-{CANARY}"
    guarded.post("/translate", {**ASK, "q": f"one {CANARY}", "api_key": OTHER_KEY})
    guarded.post("/translate", {**ASK, "q": CANARY, "source": CANARY, "format": CANARY}, **key)
    guarded.post("/translate", {**ASK, "q": CANARY, "api_key": wrong})
    guarded.ask("POST", f"/translate?q={CANARY}&source=en&target=de&api_key={CANARY}")
    guarded.post("/v1/translate/stream", {**ASK, "q": f"one. {CANARY}"}, **key)
    wrong_change = {"kind": "silence", "site": "cross", "head": 99}
    asked = [
        {"q": CANARY},
        {"q": f"{CANARY} \ud800", "changes": [wrong_change]},
        {"q": CANARY, "changes": CANARY},
    ]
    told = [guarded.post("/v1/explain", {**ASK, **one}, **key).status for one in asked]
    assert told == [200, 409, 400]
    guarded.post_file(f"{CANARY}.txt", CANARY.encode(), source="en", target="de", api_key=OTHER_KEY)
    guarded.post_file(f"{CANARY}.po", CANARY.encode(), source=CANARY, target="de", api_key=wrong)
    guarded.post_form("/", {**ASK, "q": CANARY, "target": CANARY, "api_key": OTHER_KEY})
    guarded.ask("GET", f"/{CANARY}/{CANARY}?{CANARY}={CANARY}")
    guarded.ask(CANARY.upper(), f"/{CANARY}")
    guarded.ask("POST", "/translate", CANARY.encode(), {"Content-Type": f"application/{CANARY}"})
    guarded.ask("GET", "/health", headers={"Host": f"{CANARY}.example", "User-Agent": CANARY})
    log = guarded.log.read_text(encoding="utf-8")
    metrics = guarded.get("/metrics", **key)
    assert metrics.status == 200
    for text in (log, metrics.text):
        assert "jumok" in text or "request" in text
        assert CANARY not in text.lower()
        assert KEY not in text
        assert OTHER_KEY not in text
    assert {"request", "route", "status", "milliseconds"} <= guarded.events()[-1].keys()


def test_whoever_guesses_keys_is_slowed_down_too(guarded: Served) -> None:
    guesses = [guarded.post("/detect", {"q": "one", "api_key": f"guess-{n}"}).status for n in range(70)]
    assert guesses[0] == 403
    assert 429 in guesses
    assert guarded.post("/detect", {"q": "one", "api_key": OTHER_KEY}).status == 200


def test_every_answer_carries_the_headers_that_protect_a_browser(served: Served) -> None:
    for answer in (*map(served.get, ("/", "/health", "/nowhere")), served.post("/translate", ASK)):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-request-id"]
        assert "server" not in answer.headers
    policy = served.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy


def test_addresses_of_this_machine_are_told_apart() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.1.2.3", "example.org", "", "localhost.evil"]))


def test_a_server_for_all_answers_to_bare_addresses_but_to_no_foreign_name() -> None:
    from starlette.datastructures import Headers

    visitors = Visitors("0.0.0.0")
    assert visitors.check(Headers({"host": "192.168.1.7:5000"})) == ""
    with pytest.raises(Fault, match="403"):
        visitors.check(Headers({"host": "rebound.example"}))


@pytest.mark.parametrize(
    ("host", "good"),
    [
        ("localhost", True), ("LocalHost.:5000", True), ("127.0.0.1:", True), ("[::1]", True),
        ("[::1]:80", True), ("MT.example", True), ("mt.example.:443", True), ("mt.example..", False),
        (".", False), (":5000", False), ("localhost:x", False), ("localhost:80,evil", False), ("::1", False),
        ("[::1]x", False), ("[::1", False), ("mt.example/x", False), ("x@mt.example", False),
        ("mt.example evil", False), ("mt.example\\x", False), ("10.0.0.5", False), ("evil", False),
    ],
)  # fmt: skip
def test_a_host_may_have_a_port_a_dot_and_capitals_and_nothing_else(host: str, good: bool) -> None:
    from starlette.datastructures import Headers

    visitors = Visitors("127.0.0.1", hosts=["mt.Example:8443"])
    if good:
        assert visitors.check(Headers({"host": host, "origin": f"https://{host.lower()}"})) == ""
    else:
        with pytest.raises(Fault, match="403"):
            visitors.check(Headers({"host": host}))


def test_a_pace_is_regained_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("jumok.serve.gates.time.monotonic", lambda: now[0])
    pacing = Pacing(2)
    for _ in range(2):
        pacing.check("someone")
    with pytest.raises(Fault, match="Slowdown"):
        pacing.check("someone")
    pacing.check("someone else")
    now[0] += 30
    pacing.check("someone")


def test_many_who_share_an_address_get_its_pace_however_often_they_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("jumok.serve.gates.time.monotonic", lambda: now[0])
    pacing = Pacing(60)
    heard = 0
    for _ in range(3 * 180):
        with contextlib.suppress(Fault):
            pacing.check("an office")
            heard += 1
        now[0] += 1 / 3
    assert 60 + 175 < heard <= 60 + 181


def test_whoever_waits_as_long_as_told_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("jumok.serve.gates.time.monotonic", lambda: now[0])
    pacing = Pacing(7)  # one in 8.57 s
    for _ in range(7):
        pacing.check("someone")
    for later in (0.0, 0.1, 4.2):
        now[0] += later
        with pytest.raises(Fault) as refused:
            pacing.check("someone")
    now[0] += int(refused.value.headers["Retry-After"])
    pacing.check("someone")


def test_all_addresses_of_one_network_of_ipv6_are_one_client() -> None:
    assert client_of("2001:db8:1:2:3::4") == client_of("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert client_of("2001:db8:1:3::4") != client_of("2001:db8:1:2::4")
    assert client_of("::ffff:10.0.0.1") == client_of("10.0.0.1") == "10.0.0.1"
    assert client_of("") == ""


def test_keys_written_with_a_byte_order_mark_are_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{KEY}\n", encoding="utf-8-sig")
    assert read_keys(path).check(KEY)


def test_keys_are_read_from_a_file_and_short_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with pytest.raises(DataError, match="cannot be read"):
        read_keys(path)
    path.write_text("short\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 of them shorter"):
        read_keys(path)
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(DataError, match="0 keys"):
        read_keys(path)
    assert not Keys()
