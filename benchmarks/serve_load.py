"""The server under load: `python -m benchmarks.serve_load PART --model MODEL`.

PART is `load`, `crowd`, `single`, `kill` or `restarts`, or `all`. The model is an English–Korean one, such as
that of `jumok demo`. Clients run in this process, the server and its workers in their own. Each part prints
its measures. At the end, the measures are stored in results/serving.json, from which a section of
docs/performance.md is generated; with `--seconds` or `--keep-nothing` they are not stored.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import jumok
from benchmarks.machine import busy_share, machine_facts, package_versions
from benchmarks.measure import BusyMachineError, wait_until_idle
from benchmarks.page import RESULTS, as_text, write_pages
from jumok.datasets.english_korean import generate

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

Row = tuple[str, dict[str, float]]

RESULT = RESULTS / "serving.json"
SENTENCES, PER_REQUEST = 1_000, 32
EXPECTED_STATUSES = {200, 429, 503}
HEAD = (
    "{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n"
)


class Server:
    """`jumok serve MODEL` as a program, with its log in a file."""

    def __init__(self, model: str, folder: Path) -> None:
        self.log = folder / f"{time.monotonic_ns()}.jsonl"
        command = [sys.executable, "-m", "jumok", "serve", model, "--port", "0", "--requests-per-minute", "0"]
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream)
        line = self.process.stdout.readline().decode() if self.process.stdout else ""
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait()

    def events(self) -> list[dict[str, Any]]:
        *lines, _ = self.log.read_text(encoding="utf-8").split("\n")  # the last line may be incomplete
        return [json.loads(line) for line in lines if line.startswith("{")]

    def pids(self) -> list[int]:
        """Return the process ids of the server and of its workers, in this order."""
        pid = self.process.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def megabytes(self) -> float:
        pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids()]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def exchange(port: int, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """Send one request on a new connection, and return the status, the headers and the body of the response.

    An incomplete response raises EOFError.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(HEAD.format(method, path, len(body)).encode() + body)
        await writer.drain()
        head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if len(rest) != int(headers.get("content-length", -1)):
            raise EOFError
        return int(first.split()[1]), headers, rest
    finally:
        writer.close()


class Load:
    """Clients that send arrays of sentences, and statistics of the responses.

    A client sends its next array when its previous array is answered.
    """

    def __init__(self, port: int, expected: dict[str, str], seconds: float) -> None:
        self.port = port
        self.expected = expected
        self.end = time.monotonic() + seconds
        self.statuses: Counter[int] = Counter()
        self.response_ids: set[str] = set()
        self.unanswered = 0  # requests on an open connection, without a complete response
        self.not_connected = 0  # refused connections
        self.without_retry = 0  # responses other than 200 without Retry-After
        self.translated_sentences = 0
        self.wrong = 0  # translations that are not as in `expected`

    async def run(self, clients: int) -> float:
        """Run the clients; return the seconds until the last response."""
        begin = time.monotonic()
        await asyncio.gather(*(self._client(number) for number in range(clients)))
        return time.monotonic() - begin

    async def _client(self, number: int) -> None:
        generator = random.Random(number)
        texts = list(self.expected)
        while time.monotonic() < self.end:
            chosen = generator.choices(texts, k=PER_REQUEST)
            body = json.dumps({"q": chosen, "source": "en", "target": "ko"}).encode()
            try:
                status, headers, answer = await exchange(self.port, "POST", "/translate", body)
            except ConnectionRefusedError:
                self.not_connected += 1
                await asyncio.sleep(0.05)
            except (OSError, EOFError):
                self.unanswered += 1
            else:
                await self._record(chosen, status, headers, answer)

    async def _record(self, chosen: list[str], status: int, headers: dict[str, str], answer: bytes) -> None:
        self.statuses[status] += 1
        self.response_ids.add(headers.get("x-request-id", ""))
        if status == 200:
            self.translated_sentences += len(chosen)
            translations = json.loads(answer)["translatedText"]
            self.wrong += sum(
                self.expected[one] != text for one, text in zip(chosen, translations, strict=True)
            )
        elif "retry-after" not in headers:
            self.without_retry += 1
        else:
            remaining = max(0.0, self.end - time.monotonic())
            await asyncio.sleep(min(float(headers["retry-after"]), remaining))

    @property
    def unexpected(self) -> int:
        """The number of responses with an unexpected status."""
        return sum(count for status, count in self.statuses.items() if status not in EXPECTED_STATUSES)


async def run_load_with(load: Load, clients: int, *others: Coroutine[Any, Any, Any]) -> float:
    """Run the load and other coroutines at the same time. Return the seconds that the load took."""
    tasks = [asyncio.create_task(other) for other in others]
    seconds = await load.run(clients)
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    return seconds


def measure_load(server: Server, expected: dict[str, str], options: argparse.Namespace) -> list[Row]:
    """Run 64 clients, and measure the speed, the latency of /health and the memory.

    Also count the translations that differ from those of the library.
    """
    health: list[float] = []
    memory: list[float] = [server.megabytes()]

    async def poll_health() -> None:
        while True:
            begin = time.monotonic()
            await exchange(server.port, "GET", "/health")
            health.append(time.monotonic() - begin)
            await asyncio.sleep(0.05)

    async def sample_memory() -> None:
        while True:
            await asyncio.sleep(5)
            memory.append(server.megabytes())

    speeds = [translate_speed(options.model, list(expected))]
    load = Load(server.port, expected, options.seconds or 60)
    seconds = asyncio.run(run_load_with(load, 64, poll_health(), sample_memory()))
    speeds.append(translate_speed(options.model, list(expected)))
    print(f"statuses {dict(load.statuses)}; megabytes every 5 s: {[round(value) for value in memory]}")
    measures = {
        "sentences/s": load.translated_sentences / seconds,
        "/health p99, ms": 1000 * sorted(health)[int(0.99 * len(health))],
        "MB, start": memory[0],
        "MB, maximum": max(memory),
        "growth, %": 100 * (max(memory) / memory[0] - 1),
        "unanswered": load.unanswered,
        "other statuses": load.unexpected,
        "texts that differ": load.wrong,
    }
    return [("jumok serve", measures), ("jumok translate", {"sentences/s": statistics.mean(speeds)})]


def translate_speed(model: str, texts: Sequence[str], times: int = 8) -> float:
    """Return sentences per second of `jumok translate`, including its start."""
    lines = "".join(f"{text}\n" for text in texts) * times
    begin = time.monotonic()
    command = [sys.executable, "-m", "jumok", "translate", model]
    subprocess.run(command, input=lines.encode(), stdout=subprocess.DEVNULL, check=True)
    return times * len(texts) / (time.monotonic() - begin)


def measure_crowd(server: Server, expected: dict[str, str], options: argparse.Namespace) -> list[Row]:
    """Run 512 clients, and count the requests that were answered, refused or not answered.

    The server should answer every accepted request, and send Retry-After with every refusal.
    """
    load = Load(server.port, expected, options.seconds or 30)
    asyncio.run(load.run(512))
    refused = load.statuses[429] + load.statuses[503]
    measures = {
        "answered": load.statuses[200],
        "refused": refused,
        "unanswered": load.unanswered,
        "without Retry-After": load.without_retry,
        "other statuses": load.unexpected,
        "texts that differ": load.wrong,
    }
    return [("jumok serve", {name: float(value) for name, value in measures.items()})]


def measure_single(server: Server, expected: dict[str, str], options: argparse.Namespace) -> list[Row]:
    """Measure the latency of one client with one sentence per request, and of the library in this process.

    The client uses one connection for all requests, or a new connection for each request. Each sentence is
    translated in all three ways before the next sentence.
    """
    translator = jumok.load(options.model)
    persistent = socket.create_connection(("127.0.0.1", server.port))

    def as_request(text: str) -> bytes:
        body = json.dumps({"q": text, "source": "en", "target": "ko"}).encode()
        return HEAD.format("POST", "/translate", len(body)).encode() + body

    requests = {text: as_request(text) for text in expected}

    def ask(connection: socket.socket, sent: bytes) -> None:
        """Send a request and read its response, with little work here, so that the server is measured."""
        connection.sendall(sent)
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
            received = connection.recv(65536)
            if not received:
                raise EOFError
            answer += received

    def ask_on_new_connection(text: str) -> None:
        with socket.create_connection(("127.0.0.1", server.port)) as fresh:
            ask(fresh, requests[text])

    ways: dict[str, Callable[[str], object]] = {
        "jumok serve, one connection": lambda text: ask(
            persistent, requests[text].replace(b"Connection: close\r\n", b"")
        ),
        "jumok serve, new connections": ask_on_new_connection,
        "the library in process": lambda text: translator.translate([text]),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number, text in enumerate(expected):
        for name, way in ways.items():
            begin = time.perf_counter()
            way(text)
            if number >= 20:  # after a warm-up
                times[name].append(1000 * (time.perf_counter() - begin))
    persistent.close()
    return [
        (name, {"ms": statistics.median(taken), "p99, ms": sorted(taken)[int(0.99 * len(taken))]})
        for name, taken in times.items()
    ]


def measure_kill(server: Server, expected: dict[str, str], options: argparse.Namespace) -> list[Row]:
    """Kill a worker with SIGKILL under load, and measure the time until its replacement is ready.

    Also count the requests that are not answered.
    """
    seconds_until_back = [float("inf")]

    async def kill_worker() -> None:
        await asyncio.sleep(3)
        ready = sum(event["event"] == "worker_ready" for event in server.events())
        os.kill(server.pids()[1], signal.SIGKILL)
        begin = time.monotonic()
        while sum(event["event"] == "worker_ready" for event in server.events()) <= ready:
            await asyncio.sleep(0.02)
        seconds_until_back[0] = time.monotonic() - begin

    load = Load(server.port, expected, options.seconds or 12)
    asyncio.run(run_load_with(load, 64, kill_worker()))
    measures = {
        "seconds until back": seconds_until_back[0],
        "answered": load.statuses[200],
        "refused": load.statuses[429] + load.statuses[503],
        "unanswered": load.unanswered,
        "other statuses": load.unexpected,
    }
    return [("jumok serve", {name: float(value) for name, value in measures.items()})]


def measure_restarts(server: Server, expected: dict[str, str], options: argparse.Namespace) -> list[Row]:
    """Send SIGTERM to a server under load, twenty times, and count accepted requests without a response.

    The log of the server has the requests that it has accepted.
    """
    accepted = lost = unaccepted = 0
    for number in range(20):
        running = server if number == 0 else Server(options.model, server.log.parent)
        load = Load(running.port, expected, 2.0)

        async def end(running: Server = running) -> None:
            await asyncio.sleep(1)
            running.process.terminate()

        asyncio.run(run_load_with(load, 32, end()))
        failed = running.process.wait() != 0
        accepted_ids = {event["request"] for event in running.events() if event["event"] == "request"}
        accepted += len(accepted_ids)
        lost += len(accepted_ids - load.response_ids) + failed  # a wrong exit code counts as a lost request
        unaccepted += max(0, load.unanswered - len(accepted_ids - load.response_ids))
    measures = {
        "restarts": 20,
        "accepted": accepted,
        "accepted and lost": lost,
        "closed before accepted": unaccepted,
    }
    return [("jumok serve", {name: float(value) for name, value in measures.items()})]


Part = tuple[str, str, "Callable[[Server, dict[str, str], argparse.Namespace], list[Row]]"]
PARTS: dict[str, Part] = {
    "load": ("64 clients, 32 sentences per request, 60 s", "sentences/s", measure_load),
    "crowd": ("512 clients, 32 sentences per request, 30 s", "answered", measure_crowd),
    "single": ("one sentence per request, one client", "ms", measure_single),
    "kill": ("a worker killed under 64 clients", "seconds until back", measure_kill),
    "restarts": ("SIGTERM under 32 clients, 20 times", "accepted", measure_restarts),
}


def as_result(title: str, measure: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return a result in the format of the other topics.

    The ratio of a row is the speed of the first row divided by the speed of this row. The first row has none.
    """
    reference = rows[0][1][measure]

    def ratio(value: float) -> float:
        return value / reference if measure == "ms" else reference / value

    row_records = [
        {
            "name": name,
            "measures": measures,
            "rounds": [measures[measure]],
            "ratio": ratio(measures[measure]) if index else None,
        }
        for index, (name, measures) in enumerate(rows)
    ]
    return {"title": title, "measure": measure, "rows": row_records}


def write(
    results: Sequence[dict[str, Any]], share: float, anyway: bool, path: Path = RESULT
) -> dict[str, Any]:
    """Store these results in place of earlier results of the same parts. Keep results of other parts."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"results": []}
    by_title = {result["title"]: result for result in results}
    unchanged = {old["title"]: old for old in before["results"] if old["title"] not in by_title}
    by_title |= unchanged
    content = {
        "topic": "serving",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": "python -m benchmarks.serve_load all --model MODEL",
        "machine": machine_facts(),
        "versions": package_versions(),
        "rounds": 1,
        "busy_share": max(round(share, 3), before["busy_share"] if unchanged else 0.0),
        "may_have_been_busy": anyway or bool(unchanged and before["may_have_been_busy"]),
        "results": [by_title[title] for title, *_ in PARTS.values() if title in by_title],
        "remarks": [],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument(
        "--model", required=True, help="an English-Korean model folder, such as that of `jumok demo`"
    )
    parser.add_argument(
        "--seconds", type=float, help="duration of the parts load, crowd and kill; writes no results"
    )
    parser.add_argument(
        "--anyway", action="store_true", help="measure even if the machine is busy; the results say so"
    )
    parser.add_argument("--keep-nothing", action="store_true", help="print only, write no results")
    options = parser.parse_args()
    try:
        if not options.anyway:
            wait_until_idle()
    except BusyMachineError as error:
        raise SystemExit(f"benchmarks: {error}") from None
    share = busy_share()
    translator = jumok.load(options.model)
    texts = list(dict.fromkeys(pair.source for pair in generate("test", SENTENCES, polite=0.0)))
    # Each text is translated in a call of its own, because texts of one call would be batched.
    expected = {text: translator.translate([text])[0].text for text in texts}
    results = []
    for name in PARTS if options.part == "all" else [options.part]:
        title, measure, run = PARTS[name]
        with (
            tempfile.TemporaryDirectory(prefix="jumok-serve-") as folder,
            Server(options.model, Path(folder)) as server,
        ):
            rows = run(server, expected, options)
        for row, measures in rows:
            print(f"{name}: {row}: " + ", ".join(f"{key} {value:,.4g}" for key, value in measures.items()))
        results.append(as_result(title, measure, rows))
    if not options.keep_nothing and options.seconds is None:  # the titles name the default durations
        print(as_text(write(results, share, options.anyway)))
        write_pages()


if __name__ == "__main__":
    main()
