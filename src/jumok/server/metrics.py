"""Metrics for Prometheus: counts and times, never content."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS_MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4
SECONDS_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SENTENCES_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one server since it started."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        labels = ("method", "route", "status")
        requests = Counter("jumok_requests", "Requests answered", labels, registry=registry)
        # There are few combinations of labels, and `labels` is slow.
        self._counter_of = cache(requests.labels)
        self.characters = Counter("jumok_characters", "Characters of text received", registry=registry)
        self.worker_deaths = Counter("jumok_worker_deaths", "Workers that died or hung", registry=registry)
        self.reloads = Counter("jumok_reloads", "Reloads of the models", registry=registry)
        self._request_seconds = Histogram(
            "jumok_request_seconds", "Time to respond", buckets=SECONDS_BUCKETS, registry=registry
        )
        self.batch_sentences = Histogram(
            "jumok_batch_sentences", "Sentences per batch", buckets=SENTENCES_BUCKETS, registry=registry
        )

    def add_gauge(self, name: str, documentation: str, read: Callable[[], float]) -> None:
        """Add a gauge whose value is read each time the metrics are read."""
        Gauge(f"jumok_{name}", documentation, registry=self._registry).set_function(read)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._counter_of(method, route, status).inc()
        self._request_seconds.observe(seconds)

    def to_text(self) -> bytes:
        return generate_latest(self._registry)
