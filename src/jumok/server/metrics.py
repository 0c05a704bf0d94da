"""Counts for Prometheus, in its text format: how much and how fast, never what."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate

__all__ = ["Metrics"]

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)


class Histogram:
    """How many values lie below each bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def note(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> list[str]:
        bounds = [*map(str, self._bounds), "+Inf"]
        below = list(accumulate(self._counts))
        buckets = [f'{name}_bucket{{le="{bound}"}} {n}' for bound, n in zip(bounds, below, strict=True)]
        return [
            f"# TYPE {name} histogram",
            *buckets,
            f"{name}_sum {self._sum:.6f}",
            f"{name}_count {below[-1]}",
        ]


class Metrics:
    """What happened since the server started."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._totals: Counter[str] = Counter()
        self._seconds = Histogram(SECONDS)
        self._batches = Histogram(SENTENCES)

    def note_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        self._seconds.note(seconds)

    def note_batch(self, sentences: int) -> None:
        self._batches.note(sentences)

    def add(self, name: str, count: int = 1) -> None:
        """Count towards one of: characters, worker_deaths, reloads."""
        self._totals[name] += count

    def text(self, **now: float) -> str:
        """All of it; `now` are values of this moment."""
        lines = ["# TYPE jumok_requests_total counter"]
        lines += [
            f'jumok_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
            for (method, route, status), count in sorted(self._requests.items())
        ]
        for name in ("characters", "worker_deaths", "reloads"):
            lines += [f"# TYPE jumok_{name}_total counter", f"jumok_{name}_total {self._totals[name]}"]
        for name, value in now.items():
            lines += [f"# TYPE jumok_{name} gauge", f"jumok_{name} {value:g}"]
        lines += self._seconds.lines("jumok_request_seconds")
        lines += self._batches.lines("jumok_batch_sentences")
        return "\n".join(lines) + "\n"
