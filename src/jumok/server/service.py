"""The service behind the routes: language pairs, queue, workers, security, metrics, files to download."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jumok.errors import JumokError
from jumok.server.download_cache import DownloadCache
from jumok.server.event_log import log_event
from jumok.server.glossaries import NamedGlossaries
from jumok.server.language_pairs import read_language_pairs
from jumok.server.limits import Limits
from jumok.server.metrics import Metrics
from jumok.server.pipeline import TranslationPipeline
from jumok.server.request_body import BodyMemoryBudget
from jumok.server.security import ApiKeys, HostOriginPolicy, RateLimiter, read_api_keys
from jumok.server.thread_slot import ThreadSlot
from jumok.server.workers.pool import WorkerPool
from jumok.server.workers.queue import WorkQueue

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.server.language_pairs import LanguagePair, LanguagePairs

__all__ = ["ServerSettings", "Service"]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The options of `jumok serve`."""

    models: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 5000
    workers: int = 1
    shortlist: bool = False
    """Whether translations are limited to the models' shortlists."""
    api_keys: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    """Addresses of reverse proxies whose X-Forwarded-For and -Proto are trusted."""
    glossaries: tuple[tuple[str, Path], ...] = ()
    """Names and files of glossaries."""
    limits: Limits = field(default_factory=Limits)


class Service:
    """The server without its sockets."""

    def __init__(self, settings: ServerSettings, language_pairs: LanguagePairs) -> None:
        limits = settings.limits
        self.settings = settings
        self.limits = limits
        self.language_pairs = language_pairs
        self.glossaries = NamedGlossaries(settings.glossaries, language_pairs)
        self.openapi_document: dict[str, Any] | None = None
        """Made when it is first requested, and dropped by a reload."""
        self.api_keys = read_api_keys(settings.api_keys) if settings.api_keys else ApiKeys()
        self.host_origin_policy = HostOriginPolicy(
            settings.host, hosts=settings.allowed_hosts, origins=settings.allowed_origins
        )
        self.body_budget = BodyMemoryBudget(limits)
        self.rate_limiter = RateLimiter(limits.requests_per_minute)
        self.metrics = Metrics()
        self.download_cache = DownloadCache(limits)
        self.queue = WorkQueue(limits, workers=settings.workers)
        self.thread_slot = ThreadSlot(limits.thread_timeout)
        self.pipeline = TranslationPipeline(self.queue, limits, self.thread_slot)
        load_message = {
            "kind": "load",
            "models": [str(folder) for folder in settings.models],
            "language_pairs": [pair.name for pair in language_pairs.model_pairs],
            "shortlist": settings.shortlist,
        }
        self.pool = WorkerPool(
            self.queue, load_message, workers=settings.workers, limits=limits, on_event=self._on_event
        )
        self.metrics.add_gauge("waiting_sentences", "Sentences in the queue", lambda: len(self.queue))
        self.metrics.add_gauge(
            "open_requests", "Requests being answered", lambda: self.queue.num_open_requests
        )
        self.metrics.add_gauge("workers", "Workers that are ready", lambda: len(self.pool.pids))
        self._reload_lock = asyncio.Lock()

    def is_idle(self) -> bool:
        """Return whether no request is being answered and nothing runs in the thread of `thread_slot`."""
        return not self.queue.num_open_requests and self.thread_slot.is_free

    def tags(self, pair: LanguagePair) -> tuple[str, ...]:
        """Return the tags that a source sentence of a model may begin with; none before the workers start."""
        tags = self.pool.tags
        return tags[pair.model_index] if tags else ()

    @property
    def all_tags(self) -> list[str]:
        """The tags of all models."""
        return sorted({tag for pair in self.language_pairs.text_pairs for tag in self.tags(pair)})

    async def reload(self) -> None:
        """Reload models, keys and glossaries without dropping a request.

        Nothing is replaced if a model, the keys or a glossary cannot be read, or if the languages of the
        models have changed.
        """
        async with self._reload_lock:
            try:
                pairs = await asyncio.to_thread(read_language_pairs, self.settings.models)
                # The order of the models must be the same, because models are addressed by index.
                if pairs.languages_of_models != self.language_pairs.languages_of_models:
                    log_event(
                        "reload_refused", reason="the languages of the models changed; restart the server"
                    )
                    return
                api_keys = read_api_keys(self.settings.api_keys) if self.settings.api_keys else ApiKeys()
                glossaries = await asyncio.to_thread(NamedGlossaries, self.settings.glossaries, pairs)
                await self.pool.reload()
            except (JumokError, OSError) as error:
                log_event("reload_failed", reason=str(error))
                return
            self.language_pairs = pairs  # `LanguagePair.sentences` of a model may have changed
            self.api_keys = api_keys
            self.glossaries = glossaries
            self.openapi_document = None
            self.metrics.reloads.inc()
            log_event("reloaded", models=len(self.settings.models))

    def _on_event(self, event: str, **fields: float | str) -> None:
        if event == "batch":
            self.metrics.batch_sentences.observe(int(fields["sentences"]))
            return
        if event == "worker_lost":
            self.metrics.worker_deaths.inc()
        log_event(event, **fields)
