"""Everything that answers requests, put together: directions, queue, workers, gates, counts, files."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jumok.errors import JumokError
from jumok.serve.directions import read_directions
from jumok.serve.gates import Keys, Pacing, Visitors, read_keys
from jumok.serve.journal import note
from jumok.serve.limits import Limits
from jumok.serve.metrics import Metrics
from jumok.serve.pool import Pool
from jumok.serve.queueing import SentenceQueue
from jumok.serve.reading import Held
from jumok.serve.shelf import Shelf
from jumok.serve.translating import Renderer

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.serve.directions import Directions

__all__ = ["ServeSettings", "Service"]


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """What a person says on the command line."""

    models: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 5000
    workers: int = 1
    shortlist: bool = False
    """Whether translations are limited to the models' shortlists."""
    keys: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    """Addresses of reverse proxies, whose X-Forwarded-For and -Proto are believed."""
    limits: Limits = field(default_factory=Limits)


class Service:
    """The server without its sockets."""

    def __init__(self, settings: ServeSettings, directions: Directions) -> None:
        limits = settings.limits
        self.settings = settings
        self.limits = limits
        self.directions = directions
        self.keys = read_keys(settings.keys) if settings.keys else Keys()
        self.visitors = Visitors(
            settings.host, hosts=settings.allowed_hosts, origins=settings.allowed_origins
        )
        self.held = Held(limits)
        self.pacing = Pacing(limits.requests_per_minute)
        self.metrics = Metrics()
        self.shelf = Shelf(limits)
        self.queue = SentenceQueue(limits, workers=settings.workers)
        self.renderer = Renderer(self.queue, limits)
        first = {
            "models": [str(folder) for folder in settings.models],
            "directions": [direction.name for direction in directions.all],
            "shortlist": settings.shortlist,
        }
        self.pool = Pool(self.queue, first, workers=settings.workers, report=self._report)
        self._reloading = asyncio.Lock()

    async def reload(self) -> None:
        """Read models and keys anew, without dropping a request; if one is wrong, all stays as it was."""
        async with self._reloading:
            try:
                directions = await asyncio.to_thread(read_directions, self.settings.models)
                # Not only the languages: each model is known by its place.
                if directions.all != self.directions.all:
                    note("reload_refused", reason="the directions of the models changed; restart the server")
                    return
                keys = read_keys(self.settings.keys) if self.settings.keys else Keys()
                await self.pool.reload()
            except (JumokError, OSError) as error:
                note("reload_failed", reason=str(error))
                return
            self.keys = keys
            self.metrics.add("reloads")
            note("reloaded", models=len(self.settings.models))

    def _report(self, event: str, **facts: float | str) -> None:
        if event == "batch":
            self.metrics.note_batch(int(facts["sentences"]))
            return
        if event == "worker_lost":
            self.metrics.add("worker_deaths")
        note(event, **facts)
