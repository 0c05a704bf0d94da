"""The server at its limits: `python -m benchmarks.serve_limits PART --model MODEL`.

PART is `costs`, `fairness` or `faults`, or `all`. The model is an English–Korean one, such as that of
`jumok demo`.

- costs: for every kind of requests, finds the largest request that the server accepts, and measures its
  seconds and the memory of the server and its workers above idle.
- fairness: measures the latency of short sentences, first alone, then while a greedy client sends expensive
  requests.
- faults: pauses workers (SIGSTOP) and kills workers (SIGKILL) under load. It counts the lost requests, whose
  status is neither 200 nor 503. A 503 does not count as lost, but is listed as exceeded, too. If all workers
  are paused or killed, it measures the seconds until /health reports that no worker is ready.

The exit code is 1 if a bound of `BOUNDS` is exceeded, or if a request fails that should succeed. On a busy
machine, only the counts of requests are meaningful.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.serve_load import HEAD, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BOUNDS = {"MB above idle": 1000.0, "seconds": 10.0, "p99 ratio": 5.0, "lost": 0.0, "seconds to 503": 3.0}
JSON = "application/json"
PAIR = {"source": "en", "target": "ko"}
SHORT = {"q": "I go home.", **PAIR}
MULTIPART = "multipart/form-data; boundary=x"

Response = tuple[int, float]
"""The status of a response, and the seconds until it was complete."""


@dataclass(frozen=True)
class RequestKind:
    """A kind of requests to one path. The body grows with a size, such as a number of lines.

    `largest` is the largest size to try.
    """

    name: str
    path: str
    largest: int
    make: Callable[[int], dict[str, Any] | bytes]
    content_type: str = JSON

    def body(self, size: int) -> bytes:
        content = self.make(size)
        return content if isinstance(content, bytes) else json.dumps(content).encode()


def _upload_form(name: str, data: bytes) -> bytes:
    """Return a form that uploads a file."""
    fields = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (key.encode(), value.encode())
        for key, value in PAIR.items()
    )
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n\r\n' % name.encode()
    return fields + head + data + b"\r\n--x--\r\n"


def _repeat_unit(unit: str, **fields: Any) -> Callable[[int], dict[str, Any]]:
    """Return a function that makes a request whose text is the unit, repeated `size` times."""
    return lambda size: {"q": unit * size, **PAIR, **fields}


def _text_kinds() -> Iterator[RequestKind]:
    """Yield requests to every route that takes a text, with texts that are expensive in different ways."""
    units = {
        "sentences": "The quick brown singer came to the park. ",
        "one-letter lines": "a\n",
        "random letters": "qzxvkj",
        "emoji": "😀",
        "unknown script": "漢",
        "combining marks": "a\u0300\u0316",
        "no sentence end": "singer park ",
    }
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "/translate": ("/translate", {}),
        "/translate alternatives": ("/translate", {"alternatives": 10}),
        "/v1/translate": ("/v1/translate", {"n_best": 11, "alignment": True}),
        "/v1/translate/stream": ("/v1/translate/stream", {"greedy": True, "alignment": True}),
    }
    for (route, (path, fields)), (name, unit) in itertools.product(options.items(), units.items()):
        yield RequestKind(f"{route}: {name}", path, 100_000 // len(unit), _repeat_unit(unit, **fields))
    for alternatives in (0, 10):
        for name, unit in (("paragraphs", "<p>I go <b>home</b>. "), ("tags", "<b>a</b> ")):
            make = _repeat_unit(unit, format="html", alternatives=alternatives)
            route = f"/translate html, alternatives {alternatives}"
            yield RequestKind(f"{route}: {name}", "/translate", 100_000 // len(unit), make)
    yield RequestKind(
        "/translate: array", "/translate", 1_000, lambda size: {"q": ["I go home. " * 9] * size, **PAIR}
    )
    yield RequestKind("/detect", "/detect", 100_000, lambda size: {"q": "é" * size})
    yield RequestKind(
        "/ (form)",
        "/",
        100_000,
        lambda size: b"source=en&target=ko&q=" + b"%E6%BC%A2" * size,
        "application/x-www-form-urlencoded",
    )


def _file_kinds() -> Iterator[RequestKind]:
    files: dict[str, tuple[int, Callable[[int], bytes]]] = {
        "x.html": (99_000, lambda size: b"a<p>" * size),
        "x.txt": (50_000, lambda size: b"a\n" * size),
        "x.srt": (
            10_000,
            lambda size: b"".join(b"%d\n00:00:01,000 --> 00:00:02,000\nI go\n\n" % n for n in range(size)),
        ),
        "x.po": (10_000, lambda size: b"".join(b'msgid "I go %d"\nmsgstr ""\n\n' % n for n in range(size))),
    }
    for name, (largest, make) in files.items():

        def upload(size: int, name: str = name, make: Any = make) -> bytes:
            return _upload_form(name, make(size))

        yield RequestKind(f"/translate_file: {name}", "/translate_file", largest, upload, MULTIPART)


def _explanation_kinds() -> Iterator[RequestKind]:
    cell = {"site": "cross", "layer": 0, "head": 0, "query": 0, "key": 0}
    # Many changes of attention make the request expensive.
    silences = [{"kind": "silence", "site": "cross", "layer": 0, "head": 0}] * 64
    sentences: dict[str, tuple[int, Callable[[int], tuple[str, str | None]]]] = {
        "long translation": (2_000, lambda size: ("I go home.", "😀" * size)),
        "long source": (1_000, lambda size: ("😀" * size, "x")),
        "both long": (1_000, lambda size: ("😀" * size, "😀" * size)),
        "search": (1_000, lambda size: ("q z" * (size // 3), None)),
    }
    for name, (largest, make) in sentences.items():

        def explain_request(size: int, make: Any = make) -> dict[str, Any]:
            sentence, target = make(size)
            translation = {} if target is None else {"translation": target}
            return {"q": sentence, **PAIR, "changes": silences, **translation}

        def live_page_request(size: int, make: Any = make) -> dict[str, Any]:
            sentence, target = make(size)
            return {"sentence": sentence, "target": target, "cell": cell}

        yield RequestKind(f"/v1/explain: {name}", "/v1/explain", largest, explain_request)
        for operation in ("explain", "rank-heads", "steps"):
            path = f"/attention/en_ko/{operation}"
            yield RequestKind(f"/attention/…/{operation}: {name}", path, largest, live_page_request)


async def timed_exchange(
    port: int,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    content_type: str = JSON,
    address: str = "127.0.0.1",
) -> Response:
    """Send one request from the loopback address `address`. The status 0 means no response."""
    begin = time.perf_counter()
    head = HEAD.format(method, path, len(body)).replace(JSON, content_type if body else "text/plain")
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(address, 0), limit=2**26
        )
        try:
            writer.write(head.encode() + body)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
    except OSError:
        return 0, time.perf_counter() - begin
    return int(answer.split(b" ", 2)[1]) if answer else 0, time.perf_counter() - begin


def ask(port: int, kind: RequestKind, size: int) -> Response:
    return asyncio.run(
        timed_exchange(port, "POST", kind.path, kind.body(size), content_type=kind.content_type)
    )


class MemorySampler:
    """Samples the memory of a server and its workers while a request is answered."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._stop = threading.Event()
        self.peak = 0.0
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> MemorySampler:
        self.peak = self._server.megabytes()  # if a request takes less than 10 ms, this is its only sample
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.01):
            with contextlib.suppress(OSError):  # a worker has just ended
                self.peak = max(self.peak, self._server.megabytes())


def largest_allowed(port: int, kind: RequestKind) -> int:
    """Return the largest size that is answered with 200. Bisection finds the size to within a tenth."""
    if ask(port, kind, kind.largest)[0] == 200:
        return kind.largest
    low, high = 0, kind.largest
    while high - low > max(1, high // 10):
        middle = (low + high) // 2
        low, high = (middle, high) if ask(port, kind, middle)[0] == 200 else (low, middle)
    return low


def measure_costs(server: Server, options: argparse.Namespace) -> list[str]:
    """Find and measure the most expensive allowed request of every route."""
    idle = server.megabytes()
    exceeded = []
    print(f"idle: {idle:,.0f} MB")
    for kind in itertools.chain(_explanation_kinds(), _text_kinds(), _file_kinds()):
        if options.only and options.only not in kind.name:
            continue
        size = largest_allowed(server.port, kind)
        with MemorySampler(server) as memory:
            status, seconds = ask(server.port, kind, size)
        above = memory.peak - idle
        print(
            f"{kind.name}: size {size:,} of {kind.largest:,}, {status}, {seconds:.2f} s, "
            f"{above:,.0f} MB above idle",
            flush=True,
        )
        # 413 is accepted: the server measures its own speed all the time, so it may now refuse the size that
        # it accepted in `largest_allowed`.
        if seconds > BOUNDS["seconds"] or above > BOUNDS["MB above idle"] or status not in (200, 413):
            exceeded.append(kind.name)
    return exceeded


KINDS: dict[str, RequestKind] = {
    kind.name: kind for kind in itertools.chain(_text_kinds(), _file_kinds(), _explanation_kinds())
}
GREEDY_NAMES = (
    "/translate: sentences",
    "/translate html, alternatives 10: paragraphs",
    "/translate: random letters",
    "/translate_file: x.html",
    "/attention/…/rank-heads: long translation",
)
"""The kinds of requests that the greedy client sends, one kind after the other."""


def measure_fairness(server: Server, options: argparse.Namespace) -> list[str]:
    """Compare the latency of short requests on an idle server with their latency beside a greedy client.

    The modest client sends the short requests. The greedy client sends expensive requests without a pause.
    """
    seconds = options.seconds or 20
    exceeded = []
    asyncio.run(run_modest_client(server.port, 3))  # warm-up
    alone_responses = asyncio.run(run_modest_client(server.port, seconds))
    print(f"alone: {describe(alone_responses)}", flush=True)
    for name in GREEDY_NAMES:
        size = largest_allowed(server.port, KINDS[name])
        body = KINDS[name].body(size)
        for address, connections in (("127.0.0.2", 1), ("127.0.0.1", 1), ("127.0.0.2", 4)):
            where = "other address" if address != "127.0.0.1" else "same address"
            responses, greedy_statuses = asyncio.run(
                run_both_clients(server.port, KINDS[name], body, address, connections, seconds)
            )
            ratio = p99(responses) / p99(alone_responses)
            print(
                f"beside {connections} × {name} ({size:,}, {where}): {describe(responses)}, "
                f"p99 ratio {ratio:.1f}; greedy {dict(greedy_statuses)}",
                flush=True,
            )
            refused = sum(status != 200 for status, _ in responses)
            if refused or ratio > BOUNDS["p99 ratio"]:
                exceeded.append(f"{name}, {where}, {connections}")
    return exceeded


async def run_modest_client(port: int, seconds: float) -> list[Response]:
    """Send one short sentence after the other, and return the responses."""
    end, responses = time.monotonic() + seconds, []
    while time.monotonic() < end:
        responses.append(await timed_exchange(port, "POST", "/translate", json.dumps(SHORT).encode()))
        await asyncio.sleep(0.02)
    return responses


async def run_both_clients(
    port: int, kind: RequestKind, body: bytes, address: str, connections: int, seconds: float
) -> tuple[list[Response], Counter[int]]:
    """Run a modest client beside a greedy client.

    Return the responses to the modest client, and the statuses of the responses to the greedy client.
    """
    statuses: Counter[int] = Counter()

    async def send_greedily() -> None:
        while True:
            status, _ = await timed_exchange(
                port, "POST", kind.path, body, content_type=kind.content_type, address=address
            )
            statuses[status] += 1
            if status != 200:
                await asyncio.sleep(0.2)

    tasks = [asyncio.create_task(send_greedily()) for _ in range(connections)]
    await asyncio.sleep(1)
    responses = await run_modest_client(port, seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return responses, statuses


def p99(responses: list[Response]) -> float:
    times = sorted(seconds for _, seconds in responses)
    return times[int(0.99 * len(times))]


def describe(responses: list[Response]) -> str:
    times = sorted(seconds for _, seconds in responses)
    statuses = dict(Counter(status for status, _ in responses))
    return f"{statuses}, median {1000 * times[len(times) // 2]:.1f} ms, p99 {1000 * p99(responses):.1f} ms"


def measure_faults(server: Server, options: argparse.Namespace) -> list[str]:
    """Pause one worker under load, then all workers. Then kill one worker under load, then all workers."""
    exceeded = []
    for signal_sent in (signal.SIGSTOP, signal.SIGKILL):
        name = signal_sent.name
        for all_workers in (False, True):
            statuses, seconds_to_503 = asyncio.run(
                _fault(server, signal_sent, all_workers, options.seconds or 15)
            )
            lost = sum(count for status, count in statuses.items() if status not in (200, 503))
            health_note = f", /health 503 after {seconds_to_503:.2f} s" if all_workers else ""
            which = "all workers" if all_workers else "one worker"
            print(f"{name} of {which}: {dict(statuses)}, {lost} lost{health_note}", flush=True)
            late = all_workers and seconds_to_503 > BOUNDS["seconds to 503"]
            if lost > BOUNDS["lost"] or statuses[503] or late:
                exceeded.append(f"{name} of {which}")
    return exceeded


async def _fault(
    server: Server, signal_sent: signal.Signals, all_workers: bool, seconds: float
) -> tuple[Counter[int], float]:
    """Return the statuses of requests under load, and the seconds until /health answers 503.

    The seconds are infinite if /health does not answer 503 within ten seconds, or if only one worker is hit.
    """
    statuses: Counter[int] = Counter()
    end = time.monotonic() + seconds
    body = json.dumps({"q": ["I go home.", "The singer came to the park."] * 8, **PAIR}).encode()

    async def client() -> None:
        while time.monotonic() < end:
            status, _ = await timed_exchange(server.port, "POST", "/translate", body)
            statuses[status] += 1

    clients = [asyncio.create_task(client()) for _ in range(16)]
    await asyncio.sleep(2)
    victims = server.pids()[1:] if all_workers else server.pids()[1:2]
    for pid in victims:
        os.kill(pid, signal_sent)
    begin, seconds_to_503 = time.monotonic(), float("inf")
    while all_workers and time.monotonic() < begin + 10:
        if (await timed_exchange(server.port, "GET", "/health"))[0] == 503:
            seconds_to_503 = time.monotonic() - begin
            break
        await asyncio.sleep(0.02)
    await asyncio.gather(*clients)
    while (await timed_exchange(server.port, "GET", "/health"))[0] != 200:
        await asyncio.sleep(0.1)
    # /health answers 200 as soon as one worker is ready. The other workers may still be starting.
    await asyncio.sleep(3)
    return statuses, seconds_to_503


PARTS = {"costs": measure_costs, "fairness": measure_fairness, "faults": measure_faults}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--model", required=True, help="an English-Korean model folder")
    parser.add_argument("--seconds", type=float, help="duration of each measurement")
    parser.add_argument(
        "--only", default="", help="measure only the costs of requests with this in their name"
    )
    options = parser.parse_args()
    exceeded = []
    for name in PARTS if options.part == "all" else [options.part]:
        with (
            tempfile.TemporaryDirectory(prefix="jumok-limits-") as folder,
            Server(options.model, Path(folder)) as server,
        ):
            exceeded += [f"{name}: {one}" for one in PARTS[name](server, options)]
    for one in exceeded:
        print(f"exceeded: {one}")
    raise SystemExit(bool(exceeded))


if __name__ == "__main__":
    main()
