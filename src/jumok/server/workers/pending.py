"""The items of the queue: sentences and questions. An item belongs to a request, a request to a client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jumok.errors import JumokError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jumok.text.glossary import TermMatch

__all__ = [
    "BatchKey",
    "BusyError",
    "Client",
    "OpenRequest",
    "Pending",
    "PendingQuestion",
    "PendingSentence",
    "Question",
    "RequestTooLargeError",
    "TranslateOptions",
    "Work",
    "pending_items",
]


class BusyError(JumokError):
    """The server cannot accept or answer a request now; the client may retry after `retry_seconds`."""

    def __init__(self, message: str, retry_seconds: float) -> None:
        super().__init__(message)
        self.retry_seconds = max(1, round(retry_seconds))


class RequestTooLargeError(JumokError):
    """A request that is too much work even for an idle server."""

    def __init__(self, seconds: float, limit: float) -> None:
        super().__init__(
            f"This request would take about {ceil(seconds):,} seconds, and at most {limit:,g} are allowed. "
            "Send less text, or fewer alternatives, per request."
        )


class TranslateOptions(NamedTuple):
    """How a sentence is translated."""

    n_best: int = 1
    align: bool = False
    words: bool = False
    """Whether the probability of each word is computed."""
    greedy: bool = False
    """Take the most likely token at each step, instead of the model's own search."""
    stream: bool = False
    """Report the translation while it is being generated."""
    tags: tuple[str, ...] = ()
    """Tags such as `<polite>`, which are put before each source sentence before a worker receives it."""

    def without_tags(self) -> TranslateOptions:
        """Return the options for a batch, which may contain sentences with different tags."""
        return self._replace(tags=())


class BatchKey(NamedTuple):
    """The properties that all sentences of a batch have in common."""

    model_index: int
    options: TranslateOptions = TranslateOptions()


@dataclass(eq=False, slots=True)
class Client:
    """The holder of an API key. If the server has no keys, an IPv4 address or an IPv6 /64 network."""

    last_seen: float
    """When a request of the client was last opened or closed, as a time of the event loop."""
    virtual_time: float
    """Seconds of work that the client has received, as fair queueing counts them.

    The client with the smallest virtual time is next."""
    num_open_requests: int = 0
    seconds: float = 0.0
    """Estimated seconds that one worker needs for the remaining work of the client's open requests."""
    long_seconds: float = 0.0
    """The part of `seconds` that belongs to long requests."""
    waiting_items: int = 0
    """Number of the client's sentences and questions in the queue."""
    waiting_characters: int = 0


@dataclass(eq=False, slots=True)
class OpenRequest:
    """A request that is being answered: its remaining work, and its items in the queue."""

    client: Client
    turn: float
    """Among the requests of a client, the request with the smallest `turn` is next. `turn` begins as the time
    at which the request was opened, and grows with the work that the request receives."""
    deadline: float
    """A time of the event loop."""
    seconds: float = 0.0
    """Estimated seconds that one worker needs for the remaining work of the request."""
    done_seconds: float = 0.0
    """Seconds of work that workers have done for the request."""
    is_long: bool = False
    """Whether the request was estimated to take longer than `LONG_SECONDS` of `queue.py`."""
    slowness: float = 1.0
    """Measured seconds of the request's sentences, divided by their estimated seconds; smoothed."""
    waiting: dict[Pending, None] = field(default_factory=dict)
    """The items of the request that are in the queue: an ordered set."""


def _new_future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False, slots=True)
class PendingSentence:
    """A sentence that waits for its translations.

    Its `future` receives the worker's records of the translations, best first.
    """

    key: BatchKey
    text: str
    request: OpenRequest
    terms: Sequence[TermMatch] = ()
    """The terms and protected strings that the translation must contain."""
    future: asyncio.Future[list[dict[str, Any]]] = field(default_factory=_new_future)
    seconds: float = 0.0
    """The estimated seconds of work for this sentence."""
    charged_seconds: float = 0.0
    """The seconds that the client was charged for this sentence. They are fewer than `seconds` if the request
    was urgent."""
    in_batch_of_long_work: bool = False
    """Whether the last batch with this sentence was for a client with much work, while the client shared the
    workers with other clients. Such a batch has few sentences."""
    has_failed: bool = False
    """Whether a worker has failed on this sentence once. After a second failure it is not tried again."""
    partial: str = ""
    """The translation so far, if it is streamed."""
    updated: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when `partial` has changed."""

    def update(self, partial: str) -> None:
        self.partial = partial
        self.updated.set()


@dataclass(frozen=True, slots=True)
class Question:
    """A request to a worker for anything but a translation.

    A worker answers one question at a time, in JSON.
    """

    kind: Literal["explain", "candidates", "caption"]
    fields: Mapping[str, Any]
    """The fields of the message to the worker, as `worker.py` describes them."""
    text: str = ""
    """The text that counts towards the limit on characters in the queue.

    It is empty for a picture, because `BodyMemoryBudget` limits the bytes of pictures."""

    @property
    def operation(self) -> str:
        """The name under which the time is estimated: operations of "explain" take very different times."""
        return str(self.fields.get("operation", self.kind))

    @property
    def noun(self) -> str:
        """The noun for the answer in messages to the user."""
        return {"explain": "explanation", "candidates": "list of words", "caption": "caption"}[self.kind]


@dataclass(eq=False, slots=True)
class PendingQuestion:
    """A question that waits for its answer. It is tried only once."""

    model_index: int
    question: Question
    request: OpenRequest
    future: asyncio.Future[str] = field(default_factory=_new_future)
    seconds: float = 0.0
    charged_seconds: float = 0.0

    @property
    def text(self) -> str:
        return self.question.text


Pending = PendingSentence | PendingQuestion
Work = list[PendingSentence] | PendingQuestion
"""The work that a worker takes at a time: a batch of sentences with one key, or one question."""


def pending_items(work: Work) -> Sequence[Pending]:
    return [work] if isinstance(work, PendingQuestion) else work
