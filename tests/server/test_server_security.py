"""Hosts, origins, API keys and rate limits protect the server, and texts and keys are never logged."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

import pytest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from jumok.errors import DataError
from jumok.server.security import (
    ApiKeys,
    HostOriginPolicy,
    RateLimiter,
    client_network,
    is_loopback,
    read_api_keys,
)
from support.serve_process import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.serve_process import RunningServer

REQUEST = {"q": "one two", "source": "en", "target": "de"}
KEY, OTHER_KEY = "correct-horse-battery", "another-key-altogether"
CANARY = "canarytext"  # a text that must never occur in the log or in the metrics


@pytest.fixture(scope="module")
def server_with_keys(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that requires keys, and allows one foreign origin and one more host."""
    folder = tmp_path_factory.mktemp("with-keys")
    keys = folder / "keys.txt"
    keys.write_text(f"# two clients\n{KEY}\n\n{OTHER_KEY}\n", encoding="utf-8")
    keys.chmod(0o600)
    options = ["--api-keys", keys, "--allow-origin", "https://friend.example", "--allow-host", "mt.example"]
    with serving(folder, model, "--workers", "1", "--requests-per-minute", "60", *options) as server:
        yield server


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD"])
def test_hosts_and_origins_are_checked_for_every_method(shared_server: RunningServer, method: str) -> None:
    own_host = f"127.0.0.1:{shared_server.port}"
    hosts = {  # host → whether it is allowed
        own_host: True,
        f"localhost:{shared_server.port}": True,
        "[::1]:5000": True,
    }
    evil = "evil.example"
    hosts |= dict.fromkeys((evil, f"127.0.0.1.{evil}", "10.0.0.5", "", f"127.0.0.1@{evil}"), False)
    origins = ["http://{host}", "https://{host}", None]
    foreign = ["null", f"https://{evil}", "http://{host}" + f".{evil}", "http://127.0.0.1:1", "file://", "*"]
    path = "/translate" if method == "POST" else "/health"
    body = b"q=one&source=en&target=de" if method == "POST" else None
    for (host, host_is_allowed), origin in itertools.product(hosts.items(), [*origins, *foreign]):
        headers = {"Host": host, "Content-Type": "application/x-www-form-urlencoded"}
        if origin is not None:
            headers["Origin"] = origin.format(host=host)
        answer = shared_server.request(method, path, body, headers)
        is_allowed = host_is_allowed and origin in origins
        expected = (405 if method == "OPTIONS" else 200) if is_allowed else 403
        assert answer.status == expected, (host, origin)
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("site", "mode", "destination", "status"),
    [
        ("cross-site", "no-cors", "image", 403),
        ("same-site", "no-cors", "script", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),  # a link
        ("none", "navigate", "document", 200),  # typed by the user
        ("same-origin", "no-cors", "image", 200),
        ("cross-site", "cors", "empty", 200),  # a browser extension; a page would send its Origin
    ],
)
@pytest.mark.parametrize("path", ["/attention/en_de/", "/health"])
def test_other_sites_may_link_to_the_server_but_not_embed_it(
    shared_server: RunningServer, path: str, site: str, mode: str, destination: str, status: int
) -> None:
    """Once, an image on a foreign page could make a worker load torch."""
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
    assert shared_server.get(path, **headers).status == status


def test_an_allowed_origin_gets_its_own_name_back_and_no_credentials(server_with_keys: RunningServer) -> None:
    origin = {"Origin": "https://friend.example"}
    preflight = server_with_keys.request("OPTIONS", "/translate", headers=origin)
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://friend.example"
    assert "access-control-allow-credentials" not in preflight.headers
    assert server_with_keys.get("/health", **origin).headers["vary"] == "Origin"
    assert server_with_keys.get("/health", Host="mt.example").status == 200
    assert server_with_keys.get("/health", Host="mt.example.evil").status == 403


def test_two_host_headers_or_two_origin_headers_are_refused(shared_server: RunningServer) -> None:
    import socket

    own_host = f"127.0.0.1:{shared_server.port}".encode()
    for headers in (
        b"Host: %s\r\nOrigin: http://%s\r\nOrigin: http://evil.example" % (own_host, own_host),
        b"Host: %s\r\nHost: evil.example" % own_host,
    ):
        with socket.create_connection(("127.0.0.1", shared_server.port), timeout=10) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n" % headers)
            assert connection.recv(100).split()[1] in (b"403", b"400")


def test_a_key_is_required_in_the_body_or_a_header(server_with_keys: RunningServer) -> None:
    assert server_with_keys.post("/translate", REQUEST).json == {"error": "Invalid API key"}
    assert server_with_keys.post("/translate", {**REQUEST, "api_key": KEY + "x"}).status == 403
    assert server_with_keys.post("/translate", {**REQUEST, "api_key": KEY}).status == 200
    assert server_with_keys.post_form("/translate", {**REQUEST, "api_key": OTHER_KEY}).status == 200
    assert server_with_keys.post("/v1/translate", REQUEST, Authorization=f"Bearer {KEY}").status == 200
    assert server_with_keys.get("/metrics").status == 403
    assert server_with_keys.get("/languages").status == 200
    settings = server_with_keys.get("/frontend/settings").json
    assert settings["keyRequired"] is True


def test_a_key_in_the_url_is_ignored(server_with_keys: RunningServer) -> None:
    assert (
        server_with_keys.request("POST", f"/translate?q=one&source=en&target=de&api_key={KEY}").status == 403
    )


def test_each_key_has_its_own_rate_limit(server_with_keys: RunningServer) -> None:
    # 60 requests per minute are allowed.
    answers = [server_with_keys.post("/detect", {"q": "one", "api_key": KEY}) for _ in range(70)]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused
    assert refused[0].json == {"error": "Slowdown: 60 per 1 minute"}
    assert int(refused[0].headers["retry-after"]) >= 1
    assert server_with_keys.post("/detect", {"q": "one", "api_key": OTHER_KEY}).status == 200


def test_neither_the_log_nor_the_metrics_contain_texts_or_keys(server_with_keys: RunningServer) -> None:
    key = {"Authorization": f"Bearer {OTHER_KEY}"}
    wrong_key = f"wrong-{CANARY}"
    server_with_keys.post("/translate", {**REQUEST, "q": f"one {CANARY}", "api_key": OTHER_KEY})
    server_with_keys.post("/translate", {**REQUEST, "q": CANARY, "source": CANARY, "format": CANARY}, **key)
    server_with_keys.post("/translate", {**REQUEST, "q": CANARY, "api_key": wrong_key})
    server_with_keys.request("POST", f"/translate?q={CANARY}&source=en&target=de&api_key={CANARY}")
    server_with_keys.post("/v1/translate/stream", {**REQUEST, "q": f"one. {CANARY}"}, **key)
    wrong_change = {"kind": "silence", "site": "cross", "head": 99}  # the model has no such head
    requests = [
        {"q": CANARY},
        {"q": f"{CANARY} \ud800", "changes": [wrong_change]},
        {"q": CANARY, "changes": CANARY},
    ]
    statuses = [
        server_with_keys.post("/v1/explain", {**REQUEST, **fields}, **key).status for fields in requests
    ]
    assert statuses == [200, 409, 400]
    server_with_keys.post_file(f"{CANARY}.txt", CANARY.encode(), source="en", target="de", api_key=OTHER_KEY)
    server_with_keys.post_file(f"{CANARY}.po", CANARY.encode(), source=CANARY, target="de", api_key=wrong_key)
    server_with_keys.post_form("/", {**REQUEST, "q": CANARY, "target": CANARY, "api_key": OTHER_KEY})
    server_with_keys.request("GET", f"/{CANARY}/{CANARY}?{CANARY}={CANARY}")
    server_with_keys.request(CANARY.upper(), f"/{CANARY}")
    server_with_keys.request("POST", "/translate", CANARY.encode(), {"Content-Type": f"application/{CANARY}"})
    server_with_keys.request("GET", "/health", headers={"Host": f"{CANARY}.example", "User-Agent": CANARY})
    log = server_with_keys.log.read_text(encoding="utf-8")
    metrics = server_with_keys.get("/metrics", **key)
    assert metrics.status == 200
    for text in (log, metrics.text):
        assert "jumok" in text or "request" in text
        assert CANARY not in text.lower()
        assert KEY not in text
        assert OTHER_KEY not in text
    assert {"request", "route", "status", "milliseconds"} <= server_with_keys.events()[-1].keys()


def test_requests_with_wrong_keys_are_rate_limited(server_with_keys: RunningServer) -> None:
    guesses = [
        server_with_keys.post("/detect", {"q": "one", "api_key": f"guess-{n}"}).status for n in range(70)
    ]
    assert guesses[0] == 403
    assert 429 in guesses
    assert server_with_keys.post("/detect", {"q": "one", "api_key": OTHER_KEY}).status == 200


def test_every_response_has_the_security_headers(shared_server: RunningServer) -> None:
    for answer in (
        *map(shared_server.get, ("/", "/health", "/nowhere")),
        shared_server.post("/translate", REQUEST),
    ):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-request-id"]
        assert "server" not in answer.headers
    policy = shared_server.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy


def test_loopback_addresses_are_recognised() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.1.2.3", "example.org", "", "localhost.evil"]))


def test_a_public_server_allows_ip_addresses_as_hosts_but_no_foreign_name() -> None:
    from starlette.datastructures import Headers

    policy = HostOriginPolicy("0.0.0.0")
    assert policy.check(Headers({"host": "192.168.1.7:5000"})) == ""
    with pytest.raises(HTTPException, match="403"):
        policy.check(Headers({"host": "rebound.example"}))


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("localhost", True), ("LocalHost.:5000", True), ("127.0.0.1:", True), ("[::1]", True),
        ("[::1]:80", True), ("MT.example", True), ("mt.example.:443", True), ("mt.example..", False),
        (".", False), (":5000", False), ("localhost:x", False), ("localhost:80,evil", False), ("::1", False),
        ("[::1]x", False), ("[::1", False), ("mt.example/x", False), ("x@mt.example", False),
        ("mt.example evil", False), ("mt.example\\x", False), ("10.0.0.5", False), ("evil", False),
    ],
)  # fmt: skip
def test_a_host_may_have_a_port_a_dot_and_capitals_and_nothing_else(host: str, is_allowed: bool) -> None:
    from starlette.datastructures import Headers

    policy = HostOriginPolicy("127.0.0.1", hosts=["mt.Example:8443"])
    if is_allowed:
        assert policy.check(Headers({"host": host, "origin": f"https://{host.lower()}"})) == ""
    else:
        with pytest.raises(HTTPException, match="403"):
            policy.check(Headers({"host": host}))


def test_a_rate_limit_recovers_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("jumok.server.security.time.monotonic", lambda: now[0])
    limiter = RateLimiter(2)  # per minute; `check` raises an error if a client is over the limit
    for _ in range(2):
        limiter.check("someone")
    with pytest.raises(HTTPException, match="Slowdown"):
        limiter.check("someone")
    limiter.check("someone else")
    now[0] += 30
    limiter.check("someone")


def test_refused_requests_do_not_count_towards_the_rate_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("jumok.server.security.time.monotonic", lambda: now[0])
    limiter = RateLimiter(60)
    accepted = 0
    for _ in range(3 * 180):  # three requests per second for three minutes
        with contextlib.suppress(HTTPException):
            limiter.check("an office")
            accepted += 1
        now[0] += 1 / 3
    # 60 requests are accepted at first, and one more for each of the 180 seconds.
    assert 60 + 175 < accepted <= 60 + 181


def test_a_client_that_waits_for_retry_after_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("jumok.server.security.time.monotonic", lambda: now[0])
    limiter = RateLimiter(7)  # one per 8.57 s
    for _ in range(7):
        limiter.check("someone")
    for seconds in (0.0, 0.1, 4.2):
        now[0] += seconds
        with pytest.raises(HTTPException) as refused:
            limiter.check("someone")
    now[0] += int(refused.value.headers["Retry-After"])
    limiter.check("someone")


def test_all_addresses_of_an_ipv6_network_are_one_client() -> None:
    assert (
        client_network("2001:db8:1:2:3::4") == client_network("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    )
    assert client_network("2001:db8:1:3::4") != client_network("2001:db8:1:2::4")
    assert client_network("::ffff:10.0.0.1") == client_network("10.0.0.1") == "10.0.0.1"
    assert client_network("") == ""


def test_a_byte_order_mark_is_not_part_of_a_key(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{KEY}\n", encoding="utf-8-sig")
    assert read_api_keys(path).check(KEY)


def test_a_file_of_keys_that_is_missing_or_empty_or_has_a_short_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with pytest.raises(DataError, match="cannot be read"):
        read_api_keys(path)
    path.write_text("short\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 of them shorter"):
        read_api_keys(path)
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(DataError, match="0 keys"):
        read_api_keys(path)
    assert not ApiKeys()


def test_the_origin_null_cannot_be_allowed() -> None:
    policy = HostOriginPolicy("127.0.0.1", origins=["null", "https://example.org"])
    assert policy.check(Headers({"host": "127.0.0.1", "origin": "https://example.org"}))
    with pytest.raises(HTTPException, match="Pages of this origin may not use the server"):
        policy.check(Headers({"host": "127.0.0.1", "origin": "null"}))
