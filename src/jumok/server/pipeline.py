"""From texts to translations: cut into sentences, queued, sent through one or more models, joined.

A route through a third language is walked sentence by sentence; word links are followed through its words.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError
from jumok.serve.queueing import BusyError, Kind, Waiting, Wish
from jumok.serve.sentences import lay_out, sentence_spans
from jumok.text.words import word_spans

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

    from jumok.serve.directions import Direction
    from jumok.serve.limits import Limits
    from jumok.serve.queueing import SentenceQueue
    from jumok.text import Span

    Link = tuple[int, int]

__all__ = ["Candidate", "Renderer", "Rendering", "SpanLink", "diagonal"]

SpanLink = tuple["Span", "Span"]
"""A stretch of the source and the stretch of the translation that stands for it, in characters."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One translation of a sentence."""

    text: str
    score: float
    links: tuple[Link, ...] | None = None
    """Between words; None where the model gave none."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A text translated: its sentences with their candidates, best first."""

    source: str
    spans: tuple[Span, ...]
    sentences: tuple[tuple[Candidate, ...], ...]
    language: str

    def text(self, rank: int = 0) -> str:
        """The r-th translation joins the r-th of each sentence, or its last."""
        chosen = [candidate.text for candidate in self.chosen(rank)]
        return "".join(lay_out(self.source, self.spans, chosen, self.language))

    def chosen(self, rank: int = 0) -> list[Candidate]:
        return [candidates[min(rank, len(candidates) - 1)] for candidates in self.sentences]

    def alternatives(self) -> list[tuple[str, float]]:
        """The other translations with their scores; those that read the same are left out."""
        most = max((len(candidates) for candidates in self.sentences), default=1)
        if most == 1:
            return []
        ranked = {self.text(rank): self.score(rank) for rank in reversed(range(most))}
        ranked.pop(self.text(), None)
        return list(reversed(ranked.items()))

    def score(self, rank: int = 0) -> float:
        """The mean over sentences; 0 where there are none."""
        scores = [candidate.score for candidate in self.chosen(rank)]
        return sum(scores) / len(scores) if scores else 0.0

    def links(self, rank: int = 0) -> list[SpanLink]:
        """Word links in characters of the whole source and the whole translation."""
        found: list[SpanLink] = []
        for (start, end), place, candidate in zip(
            self.spans, self._places(rank), self.chosen(rank), strict=True
        ):
            source, target = word_spans(self.source[start:end]), word_spans(candidate.text)
            links = diagonal(len(source), len(target)) if candidate.links is None else candidate.links
            found.extend((_shift(source[i], start), _shift(target[j], place)) for i, j in links)
        return found

    def _places(self, rank: int) -> list[int]:
        """Where each sentence begins in the whole translation."""
        chosen = [candidate.text for candidate in self.chosen(rank)]
        lengths = map(len, lay_out(self.source, self.spans, chosen, self.language))
        return list(accumulate(lengths))[:-1:2]


class Renderer:
    """Puts the sentences of a request into the queue, and waits for them as long as a request may take."""

    def __init__(self, queue: SentenceQueue, limits: Limits) -> None:
        self._queue = queue
        self._limits = limits

    def deadline(self) -> float:
        """When a request that comes now must have been answered, in the loop's time."""
        return asyncio.get_running_loop().time() + self._limits.answer_seconds

    async def render(self, texts: Sequence[str], route: Sequence[Direction], wish: Wish) -> list[Rendering]:
        """The texts translated along a route, in order."""
        spans = [tuple(sentence_spans(text)) if route else () for text in texts]
        sentences = [
            text[start:end] for text, of_text in zip(texts, spans, strict=True) for start, end in of_text
        ]
        with self._open():
            done = iter(await self._walk(sentences, route, wish, self.deadline()) if route else [])
        return [
            self._rendering(text, of_text, [next(done) for _ in of_text], route)
            for text, of_text in zip(texts, spans, strict=True)
        ]

    async def render_sentences(
        self, texts: Sequence[str], route: Sequence[Direction], wish: Wish, deadline: float
    ) -> AsyncIterator[tuple[int, int, str | Rendering]]:
        """The number of a text and of a sentence in it, and its translation: so far, and at last as it is."""
        if not route:
            for number, text in enumerate(texts):
                yield number, 0, self._rendering(text, (), [], route)
            return
        places = [
            (number, place, text[start:end])
            for number, text in enumerate(texts)
            for place, (start, end) in enumerate(sentence_spans(text))
        ]
        with self._open():
            sentences = [sentence for *_, sentence in places]
            async with aclosing(self._walk_watched(sentences, route, wish, deadline)) as walks:
                for number, place, sentence in places:
                    while isinstance(found := await anext(walks), str):
                        yield number, place, found
                    yield number, place, self._rendering(sentence, ((0, len(sentence)),), [found], route)

    async def view(self, direction: Direction, what: str, question: str) -> str:
        """What a model tells about its attention, as JSON; a DataError is what it says it cannot tell."""
        waiting = Waiting(Kind(direction.number, Wish(view=what)), question)
        with self._open(), self._queued([waiting]):
            async with asyncio.timeout_at(self.deadline()):
                [answer] = await waiting.candidates
        if "error" in answer:
            raise DataError(answer["error"])
        return str(answer["answer"])

    @contextmanager
    def _open(self) -> Iterator[None]:
        self._queue.open_requests += 1
        try:
            yield
        finally:
            self._queue.open_requests -= 1

    @contextmanager
    def _queued(self, waiting: Sequence[Waiting], *, accepted: bool = False) -> Iterator[None]:
        self._queue.add(waiting, accepted=accepted)
        try:
            yield
        except TimeoutError:
            raise BusyError("The translation took too long. Try again later, or send less.", 5) from None
        finally:
            self._queue.withdraw(waiting)

    @staticmethod
    def _rendering(
        text: str, spans: tuple[Span, ...], found: Sequence[tuple[Candidate, ...]], route: Sequence[Direction]
    ) -> Rendering:
        return Rendering(text, spans, tuple(found), route[-1].target if route else "")

    async def _walk(
        self, sentences: list[str], route: Sequence[Direction], wish: Wish, deadline: float
    ) -> list[tuple[Candidate, ...]]:
        """The candidates of each sentence. All but the last leg of a route give one."""
        so_far: list[Candidate] = []
        found: list[tuple[Candidate, ...]] = []
        for number, leg in enumerate(route, start=1):
            kind = Kind(leg.number, wish if number == len(route) else wish._replace(n_best=1))
            found = await self._leg(sentences, kind, deadline, accepted=bool(so_far))
            if so_far:
                found = [_through(*walked) for walked in zip(so_far, found, strict=True)]
            so_far = [candidates[0] for candidates in found]
            sentences = [candidate.text for candidate in so_far]
        return found

    async def _walk_watched(
        self, sentences: list[str], route: Sequence[Direction], wish: Wish, deadline: float
    ) -> AsyncGenerator[str | tuple[Candidate, ...]]:
        """As `_walk`, a sentence at a time; before each, if that is wished, what is said of it so far."""
        *legs, last = route
        before = wish._replace(n_best=1, watched=False)
        so_far = [candidates[0] for candidates in await self._walk(sentences, legs, before, deadline)]
        texts = [candidate.text for candidate in so_far] if legs else sentences
        waiting = [Waiting(Kind(last.number, wish), text) for text in texts]
        with self._queued(waiting, accepted=bool(legs)):
            for place, sentence in enumerate(waiting):
                if wish.watched:
                    async with aclosing(_heard(sentence, deadline)) as heard:
                        async for text in heard:
                            yield text
                async with asyncio.timeout_at(deadline):
                    found = _candidates(await sentence.candidates)
                yield _through(so_far[place], found) if legs else found

    async def _leg(
        self, sentences: list[str], kind: Kind, deadline: float, *, accepted: bool
    ) -> list[tuple[Candidate, ...]]:
        waiting = [Waiting(kind, sentence) for sentence in sentences]
        with self._queued(waiting, accepted=accepted):
            async with asyncio.timeout_at(deadline):
                return [_candidates(await sentence.candidates) for sentence in waiting]


async def _heard(sentence: Waiting, deadline: float) -> AsyncGenerator[str]:
    """What is said of a sentence so far, again and again until it is translated."""
    sentence.candidates.add_done_callback(lambda _: sentence.news.set())
    while not sentence.candidates.done():
        async with asyncio.timeout_at(deadline):
            await sentence.news.wait()
        sentence.news.clear()
        if not sentence.candidates.done():
            yield sentence.so_far


def diagonal(source: int, target: int) -> list[tuple[int, int]]:
    """Links by position alone, for a model without attention to its source."""
    return [(j * source // target, j) for j in range(target)] if source else []


def _candidates(records: list[dict[str, Any]]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(
            record["text"],
            record["score"],
            tuple((i, j) for i, j in record["links"]) if "links" in record else None,
        )
        for record in records
    )


def _through(first: Candidate, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Candidates that were made from a translation, as candidates of its source."""
    joined = []
    sources = defaultdict(list)  # of each word in between
    for i, j in first.links or ():
        sources[j].append(i)
    for candidate in candidates:
        links = None
        if first.links is not None and candidate.links is not None:
            links = tuple(sorted({(i, k) for j, k in candidate.links for i in sources.get(j, ())}))
        joined.append(Candidate(candidate.text, first.score + candidate.score, links))
    return tuple(joined)


def _shift(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by
