"""Metrics in the text format of Prometheus: counts and times, never content."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate

__all__ = ["Metrics"]

SECONDS_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SENTENCES_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)


class Histogram:
    """Counts of values per bucket."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def to_lines(self, name: str) -> list[str]:
        bounds = [*map(str, self._bounds), "+Inf"]
        cumulative = list(accumulate(self._counts))
        buckets = [
            f'{name}_bucket{{le="{bound}"}} {count}' for bound, count in zip(bounds, cumulative, strict=True)
        ]
        return [
            f"# TYPE {name} histogram",
            *buckets,
            f"{name}_sum {self._sum:.6f}",
            f"{name}_count {cumulative[-1]}",
        ]


class Metrics:
    """Counters and histograms since the server started."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._totals: Counter[str] = Counter()
        self._request_seconds = Histogram(SECONDS_BUCKETS)
        self._batch_sentences = Histogram(SENTENCES_BUCKETS)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        self._request_seconds.observe(seconds)

    def observe_batch(self, num_sentences: int) -> None:
        self._batch_sentences.observe(num_sentences)

    def increment(self, name: str, count: int = 1) -> None:
        """Add to one of the counters: characters, worker_deaths, reloads."""
        self._totals[name] += count

    def to_text(self, **gauges: float) -> str:
        """Return all metrics; `gauges` are current values to add."""
        lines = ["# TYPE jumok_requests_total counter"]
        lines += [
            f'jumok_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
            for (method, route, status), count in sorted(self._requests.items())
        ]
        for name in ("characters", "worker_deaths", "reloads"):
            lines += [f"# TYPE jumok_{name}_total counter", f"jumok_{name}_total {self._totals[name]}"]
        for name, value in gauges.items():
            lines += [f"# TYPE jumok_{name} gauge", f"jumok_{name} {value:g}"]
        lines += self._request_seconds.to_lines("jumok_request_seconds")
        lines += self._batch_sentences.to_lines("jumok_batch_sentences")
        return "\n".join(lines) + "\n"
