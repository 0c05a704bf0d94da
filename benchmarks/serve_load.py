"""How the server bends under load: `python benchmarks/serve_load.py MODEL --clients 64 --seconds 60`.

Clients on this machine send arrays of sentences as fast as they are answered. Told at the end: what was
answered, sentences a second beside the library's in this process, /health meanwhile, memory, and whether
the text is that of translating alone. With `--kill 5` a worker is killed after five seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import jumok
from jumok.corpus.english_korean import generate

SOURCES = 2_000


async def exchange(port: int, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """One request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        top, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        first, *lines = top.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return int(first.split()[1]), headers, rest
    finally:
        writer.close()


class Load:
    """Clients that ask, and one that looks after the server's health."""

    def __init__(self, port: int, source: str, target: str, texts: list[str], per_request: int) -> None:
        self.port = port
        self.languages = {"source": source, "target": target}
        self.texts = texts
        self.per_request = per_request
        self.statuses: Counter[int] = Counter()
        self.unanswered = 0
        self.without_retry = 0
        self.done = 0
        self.found: dict[str, str] = {}
        self.health: list[float] = []

    async def client(self, number: int, end: float) -> None:
        generator = random.Random(number)
        while time.monotonic() < end:
            chosen = generator.choices(self.texts, k=self.per_request)
            body = json.dumps({"q": chosen, **self.languages}).encode()
            try:
                status, headers, answer = await exchange(self.port, "POST", "/translate", body)
            except (OSError, IndexError, ValueError):
                self.unanswered += 1
                continue
            self.statuses[status] += 1
            if status == 200:
                self.done += len(chosen)
                self.found.update(zip(chosen, json.loads(answer)["translatedText"], strict=True))
            elif "retry-after" not in headers:
                self.without_retry += 1
            else:
                await asyncio.sleep(min(float(headers["retry-after"]), max(0.0, end - time.monotonic())))

    async def look_after(self, end: float) -> None:
        while time.monotonic() < end:
            begin = time.monotonic()
            await exchange(self.port, "GET", "/health")
            self.health.append(time.monotonic() - begin)
            await asyncio.sleep(0.1)


def processes(pid: int) -> list[int]:
    """The server and its workers."""
    return [pid, *(int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def memory(pid: int) -> float:
    """In megabytes."""
    pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in processes(pid)]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def computing(pid: int) -> float:
    """Seconds of computing so far: unlike the clock, they mean something on a machine that is shared."""
    times = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in processes(pid)]
    return sum(int(fields[11]) + int(fields[12]) for fields in times) / os.sysconf("SC_CLK_TCK")


async def run(arguments: argparse.Namespace, server: subprocess.Popen[bytes], port: int) -> None:
    say = sys.stdout.write
    translator = jumok.load(arguments.model)
    texts = [pair.source for pair in generate("test", SOURCES, polite=0.0)]
    one = texts[0]
    latencies: dict[str, list[float]] = {"library": [], "server": []}
    body = json.dumps({"q": one, "source": "en", "target": "ko"}).encode()
    for _ in range(arguments.singles):
        begin = time.monotonic()
        translator.translate([one])
        between = time.monotonic()
        await exchange(port, "POST", "/translate", body)
        latencies["library"].append(between - begin)
        latencies["server"].append(time.monotonic() - between)
    library, served = (1000 * statistics.median(times) for times in latencies.values())
    say(f"one sentence: server {served:.1f} ms, library {library:.1f} ms, ratio {served / library:.2f}\n")
    begin, computed = time.monotonic(), time.process_time()
    alone = {t.source: t.text for t in translator.stream(texts)}
    pace = len(texts) / (time.monotonic() - begin)
    computed = time.process_time() - computed
    load = Load(port, "en", "ko", texts, arguments.sentences)
    before, idle = memory(server.pid), computing(server.pid)
    start = time.monotonic()
    tasks = [load.client(number, start + arguments.seconds) for number in range(arguments.clients)]
    if arguments.kill:
        asyncio.get_running_loop().call_later(arguments.kill, kill_worker, server.pid)
    await asyncio.gather(*tasks, load.look_after(start + arguments.seconds))
    seconds = time.monotonic() - start
    slowest = sorted(load.health)[int(0.99 * len(load.health))]
    wrong = sum(alone[source] != text for source, text in load.found.items())
    say(
        f"statuses {dict(load.statuses)}, unanswered {load.unanswered}, no Retry-After {load.without_retry}\n"
    )
    say(
        f"sentences/s {load.done / seconds:.0f}, library {pace:.0f}, ratio {load.done / seconds / pace:.2f}\n"
    )
    if not arguments.kill and load.done:
        each, library_each = (computing(server.pid) - idle) / load.done, computed / len(texts)
        say(f"computing a sentence: server {1000 * each:.2f} ms, library {1000 * library_each:.2f} ms\n")
    say(f"/health p99 {1000 * slowest:.0f} ms of {len(load.health)}\n")
    say(f"memory {before:.0f} MB before, {memory(server.pid):.0f} MB after\n")
    say(f"texts that differ from translating alone: {wrong} of {len(load.found)}\n")


def kill_worker(pid: int) -> None:
    os.kill(processes(pid)[1], signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", help="an English-Korean model, as `jumok demo` makes it")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--singles", type=int, default=50)
    parser.add_argument("--kill", type=float, default=0)
    arguments = parser.parse_args()
    words = ["serve", arguments.model, "--port", "0", "--requests-per-minute", "0"]
    server = subprocess.Popen(
        [sys.executable, "-m", "jumok", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        line = server.stdout.readline().decode() if server.stdout else ""
        asyncio.run(run(arguments, server, int(line.rsplit(":", 1)[1])))
    finally:
        server.terminate()
        sys.stdout.write(f"exit code {server.wait()}\n")


if __name__ == "__main__":
    main()
