"""The work queue: sentences of all requests wait in it, and leave it in batches of similar length.

A free worker takes a batch immediately. But if there are more short requests than workers, and few sentences
are waiting, the worker waits a moment (`GATHER_SECONDS`) for more sentences, because a large batch costs
little more than a small batch. Questions (explanations, captions, …) wait in the same queue. A worker takes
one question at a time. If there are several workers, the last free worker takes only sentences.

Clients take turns: the next batch begins with a sentence of the client that has received the least work, and
is filled with similar sentences of all clients. A client that sends nothing for a while does not catch up
later (weighted fair queueing: Demers, Keshav & Shenker 1989). The requests of one client take turns too.
While a client with much work shares the workers with other clients, batches are short. If there are several
workers, the last free worker then takes only sentences of the other clients, so that nobody waits long.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING

from jumok.server.workers.pending import (
    BusyError,
    Client,
    OpenRequest,
    PendingQuestion,
    PendingSentence,
    RequestTooLargeError,
    pending_items,
)
from jumok.server.workers.speed import SMOOTHING, WorkSpeed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from jumok.server.limits import Limits
    from jumok.server.workers.pending import Pending, Work

GATHER_SECONDS = 0.003
FEW_SENTENCES = 16
"""If fewer sentences than this are waiting, a free worker may wait for more. Speed is measured on batches
with at least this many sentences, and on batches that take long."""
MAX_BATCH_SENTENCES = 128
MAX_BATCH_CHARACTERS = 12_000
MAX_COMPARED_SENTENCES = 512
"""The largest number of sentences from which a batch is chosen. Comparing all sentences of a long queue would
take longer than translating a batch."""
BATCH_SECONDS, MIN_BATCH_SENTENCES = 0.15, 16
"""A batch of at least MIN_BATCH_SENTENCES gets no more sentences once its estimate exceeds BATCH_SECONDS."""
MAX_TIMEOUT_SHARE = 0.25
"""A batch gets no sentence with which it is estimated to take more than this share of `batch_timeout`. This
limit is stronger than MIN_BATCH_SENTENCES."""
SHORT_BATCH_SECONDS, MIN_SHORT_BATCH_SENTENCES = 0.01, 2
"""BATCH_SECONDS and MIN_BATCH_SENTENCES while a client with much work shares the workers with others."""
LONG_SECONDS = 0.5
"""A request is long, and a client has much work, if the estimated work is more than this."""
RECENT_SECONDS = 5.0
"""A client counts as present until this long after its last request, because its next request may arrive
while a batch of another client is being translated."""
URGENT_SHARE, URGENT_FACTOR = 0.7, 3.0
"""A request is urgent if its work takes more than URGENT_SHARE of the time until its deadline. It then gets
turns URGENT_FACTOR times as often."""
TURN_FACTOR = 4.0
"""Each second of work delays the next turn of a request by this many seconds, so that newer requests can come
first."""
TOO_LARGE_FACTOR = 1.25
"""A long request is ended with an error while it runs, if it turns out to need more than this many times
`max_request_seconds`. The factor is above 1, because estimates are not exact."""
MAX_CROWDING = 20.0
"""A higher measurement of `_crowding` counts as this value."""
USABLE_SHARE = 0.9
"""Work is accepted up to this share of the work that fits into `request_timeout`. The share is below 1,
because estimates are not exact."""


class WorkQueue:
    """A queue with limits on its sentences, its characters, and the time that the workers need for them."""

    def __init__(self, limits: Limits, *, workers: int) -> None:
        self._limits = limits
        self.num_workers = workers
        self._clients: dict[str, Client] = {}  # with open requests, or seen recently
        # The requests with waiting items, in the order in which each began to wait. The values are not used.
        self._requests: dict[OpenRequest, None] = {}
        self._virtual_time = 0.0  # the virtual time of a new client
        self._virtual_time_updated_at = 0.0
        self._num_long_requests = 0
        self._last_short_request = -RECENT_SECONDS  # a time of the event loop; at first long ago
        self._waiting_items = 0
        self._waiting_characters = 0
        self._seconds = 0.0  # of remaining work of all open requests
        self._crowding = 1.0  # elapsed seconds per CPU second; above 1 if the machine has other work
        self._num_questions = 0  # that are being answered
        self._num_batches_of_long_work = 0  # that are being translated, for clients with much work
        self._num_free_workers = 0
        # One future per worker that waits. The last worker in the list has worked most recently.
        self._idle: list[asyncio.Future[None]] = []
        self.speed = WorkSpeed()
        self.num_open_requests = 0

    def __len__(self) -> int:
        return self._waiting_items

    @property
    def seconds_behind(self) -> float:
        """Estimated seconds that the workers need for all open requests."""
        return self._seconds * self._crowding / self.num_workers

    # --- Requests -------------------------------------------------------------------------------------------

    def open(self, client_name: str, deadline: float) -> OpenRequest:
        """Open a request that must be answered by `deadline`, a time of the event loop."""
        now = _now()
        self._advance_virtual_time(now)
        for name in [name for name, client in self._clients.items() if _is_gone(client, now)]:
            del self._clients[name]
        client = self._clients.setdefault(client_name, Client(now, self._virtual_time))
        if not client.waiting_items:
            client.virtual_time = max(client.virtual_time, self._virtual_time)
        client.last_seen = now
        client.num_open_requests += 1
        self.num_open_requests += 1
        return OpenRequest(client, turn=now, deadline=deadline)

    def _advance_virtual_time(self, now: float) -> None:
        """Update the virtual time.

        It passes as if all waiting clients were served at the same time, at equal speed.
        """
        waiting = [client.virtual_time for client in self._clients.values() if client.waiting_items]
        passed = (now - self._virtual_time_updated_at) * self.num_workers / max(1, len(waiting))
        self._virtual_time = max(self._virtual_time, min([self._virtual_time + passed, *waiting]))
        self._virtual_time_updated_at = now

    def check_size(self, seconds: float) -> None:
        """Raise a RequestTooLargeError for a request that would be too much work even for an empty queue."""
        if seconds > self._limits.max_request_seconds * self.num_workers:
            raise RequestTooLargeError(seconds / self.num_workers, self._limits.max_request_seconds)

    def check_room(
        self, request: OpenRequest, seconds: float, *, sentences: int = 1, characters: int = 0
    ) -> None:
        """Raise a BusyError if the client of this request may not add so much work to the queue.

        If there is other work, a client may have at most twice as much as is still free (Choudhury & Hahne
        1998), so that there is always room for another client.
        """
        limits, client = self._limits, request.client
        capacity = USABLE_SHARE * limits.request_timeout * self.num_workers / self._crowding
        fits = (
            _may_add(capacity, self._seconds, client.seconds, seconds)
            and _may_add(limits.max_queued_sentences, self._waiting_items, client.waiting_items, sentences)
            and _may_add(
                limits.max_queued_characters, self._waiting_characters, client.waiting_characters, characters
            )
        )
        if not fits:
            raise BusyError("The server is busy. Try again later.", self.seconds_behind / 2)

    def admit(self, request: OpenRequest, seconds: float, *, sentences: int = 1, characters: int = 0) -> None:
        """Accept a request with this estimated work, or raise a BusyError."""
        self.check_room(request, seconds, sentences=sentences, characters=characters)
        request.seconds = seconds
        request.client.seconds += seconds
        self._seconds += seconds
        request.is_long = seconds > LONG_SECONDS
        if request.is_long:
            self._num_long_requests += 1
            request.client.long_seconds += seconds
        else:
            self._last_short_request = _now()

    def close(self, request: OpenRequest) -> None:
        """Forget a request, and its items that still wait."""
        self.withdraw(list(request.waiting))
        self._subtract_work(request, request.seconds)
        self._num_long_requests -= request.is_long
        request.client.last_seen = _now()
        request.client.num_open_requests -= 1
        self.num_open_requests -= 1
        # Rounding errors could leave a small rest, and an empty queue would seem to have work.
        if not request.client.num_open_requests:
            request.client.seconds = request.client.long_seconds = 0.0
        if not self.num_open_requests:
            self._seconds = 0.0

    def _subtract_work(self, request: OpenRequest, seconds: float) -> None:
        """Subtract work that is done, or that is no longer needed, from the remaining work."""
        seconds = min(seconds, request.seconds)
        request.seconds -= seconds
        request.client.seconds -= seconds
        request.client.long_seconds -= seconds * request.is_long
        self._seconds -= seconds

    # --- Items ----------------------------------------------------------------------------------------------

    def add(self, pending: Sequence[Pending]) -> None:
        """Add items of requests that have been admitted."""
        for item in pending:
            item.seconds = self.speed.seconds(item)
            item.request.waiting[item] = None
            self._count(item, 1)
        self._requests.update(dict.fromkeys(item.request for item in pending))
        self.wake_workers()

    def requeue(self, pending: Sequence[PendingSentence]) -> None:
        """Put items back before the other items of their requests. Items that have ended are left out."""
        self._release_batch(pending)
        for item in reversed(pending):
            if item.future.done():
                continue
            request = item.request
            request.client.virtual_time -= item.charged_seconds  # the client got nothing for this turn
            request.waiting = {item: None, **request.waiting}
            self._requests[request] = None
            self._count(item, 1)
        self.wake_workers()

    def withdraw(self, pending: Collection[Pending]) -> None:
        """Remove items that no request waits for any more, and cancel their futures."""
        for item in pending:
            self._remove(item)
            if not item.future.cancel() and not item.future.cancelled():
                item.future.exception()  # asyncio would log an exception that is never retrieved

    async def take(self, has_ended: Callable[[], bool] = lambda: False) -> Work:
        """Wait for the next work for a free worker.

        Raise an EOFError if the worker's process has ended. A waiting worker checks this again whenever
        `wake_workers` wakes it.
        """
        self._num_free_workers += 1
        try:
            while True:
                if (
                    self._requests
                    and self._waiting_items < FEW_SENTENCES
                    and self.num_open_requests - self._num_long_requests > self.num_workers
                ):
                    await asyncio.sleep(GATHER_SECONDS)
                if has_ended():
                    raise EOFError
                if work := self._next_work():
                    return work
                self._idle.append(asyncio.get_running_loop().create_future())
                await self._idle[-1]
        finally:
            self._num_free_workers -= 1

    def complete(self, work: Work, cpu_seconds: float, elapsed_seconds: float) -> None:
        """Record that a worker has done this work."""
        items = pending_items(work)
        estimated = sum(item.seconds for item in items)
        for item in items:
            self._subtract_work(item.request, item.seconds)
            if estimated:
                share = item.seconds / estimated
                item.request.done_seconds += share * cpu_seconds
                # A client pays for the time that its sentences took, not for the estimate.
                item.request.client.virtual_time += item.charged_seconds * (cpu_seconds / estimated - 1)
        if isinstance(work, PendingQuestion):
            self.release_question()
            self.speed.measure_question(work.question.operation, cpu_seconds)
            return
        self._release_batch(work)
        if estimated:
            self._correct_estimates(dict.fromkeys(item.request for item in items), cpu_seconds / estimated)
        if len(items) >= FEW_SENTENCES or cpu_seconds >= BATCH_SECONDS / 2:
            self.speed.measure_batch(work, cpu_seconds)
            crowding = min(max(elapsed_seconds / max(cpu_seconds, 1e-3), 1.0), MAX_CROWDING)
            self._crowding += SMOOTHING * (crowding - self._crowding)

    def _correct_estimates(self, requests: Iterable[OpenRequest], slowness: float) -> None:
        """Correct the estimates of requests. End a long request that turns out to be far too large.

        `slowness` is the measured time of a batch with sentences of these requests, divided by its estimate.
        """
        limit = self._limits.max_request_seconds * self.num_workers
        for request in requests:
            request.slowness += (min(max(slowness, 0.25), 100.0) - request.slowness) / 2
            expected_seconds = request.done_seconds + request.seconds * request.slowness
            if request.is_long and expected_seconds > TOO_LARGE_FACTOR * limit:
                for item in request.waiting:
                    if not item.future.done():
                        item.future.set_exception(
                            RequestTooLargeError(
                                expected_seconds / self.num_workers, self._limits.max_request_seconds
                            )
                        )

    def release_question(self) -> None:
        """Record that a question has ended, so that a worker can take another question."""
        self._num_questions -= 1
        self.wake_workers()

    def _release_batch(self, batch: Sequence[PendingSentence]) -> None:
        """Record that a batch has ended, so that a client with much work can get another batch."""
        if any(item.in_batch_of_long_work for item in batch):
            self._num_batches_of_long_work -= 1
            self.wake_workers()

    # --- Turns ----------------------------------------------------------------------------------------------

    def wake_workers(self) -> None:
        """Wake idle workers, the most recently used first: a single sentence then finds warm caches."""
        while self._idle:
            worker = self._idle.pop()
            if not worker.done():
                worker.set_result(None)

    def _next_work(self) -> Work | None:
        """Remove the next work from the queue, and charge it. Return None if no work may be taken now."""
        is_shared = self._is_shared()
        request = self._next_request(is_shared)
        if request is None:
            return None
        self._virtual_time = max(self._virtual_time, request.client.virtual_time)
        oldest = next(iter(request.waiting))
        is_long_work = is_shared and _makes_others_wait(request)
        if isinstance(oldest, PendingQuestion):
            self._num_questions += 1
            work: Work = oldest
        else:
            self._num_batches_of_long_work += is_long_work
            work = self._next_batch(oldest, is_shared=is_shared, is_long_work=is_long_work)
            for sentence in work:
                sentence.in_batch_of_long_work = is_long_work
        now = _now()
        for item in pending_items(work):
            self._remove(item)
            self._charge(item, now)
        return work

    def _next_request(self, is_shared: bool) -> OpenRequest | None:
        """Return the request whose turn it is.

        If there are several workers, and all except one are busy with questions, the last worker takes only
        sentences. If the workers are shared (`_is_shared`), batches of clients with much work count like
        questions, and the last worker takes only sentences of the other clients and of urgent requests.
        """
        requests: Iterable[OpenRequest] = self._requests
        num_occupied = self._num_questions + (self._num_batches_of_long_work if is_shared else 0)
        if num_occupied >= max(1, self.num_workers - 1):
            now = _now()
            requests = [
                request
                for request in requests
                if isinstance(next(iter(request.waiting)), PendingSentence)
                and not (is_shared and _makes_others_wait(request) and not self._is_urgent(request, now))
            ]
        return min(requests, key=lambda one: (one.client.virtual_time, one.turn), default=None)

    def _is_urgent(self, request: OpenRequest, now: float) -> bool:
        return request.seconds / self.num_workers > URGENT_SHARE * (request.deadline - now)

    def _charge(self, item: Pending, now: float) -> None:
        """Charge the work of an item to its request and its client, so that others have their turn next."""
        request = item.request
        seconds = item.seconds / (URGENT_FACTOR if self._is_urgent(request, now) else 1.0)
        request.turn += TURN_FACTOR * seconds
        request.client.virtual_time += seconds
        item.charged_seconds = seconds

    def _next_batch(
        self, oldest: PendingSentence, *, is_shared: bool, is_long_work: bool
    ) -> list[PendingSentence]:
        if self._waiting_items == 1:
            return [oldest]
        sentences = self._sentences_for_batch(oldest)
        if is_shared and not is_long_work and self.num_workers > 1:  # the other workers do the long work
            sentences = [item for item in sentences if not _makes_others_wait(item.request)]
        share = -(-len(sentences) // max(1, self._num_free_workers))  # free workers share the queue
        length = len(oldest.text)
        sentences.sort(key=lambda item: abs(len(item.text) - length))  # stable: older ones come first
        sentences.remove(oldest)
        max_sentences = min(MAX_BATCH_SENTENCES, max(share, FEW_SENTENCES // 2))
        if oldest.has_failed:
            max_sentences = FEW_SENTENCES // 2
        target_seconds, min_sentences = BATCH_SECONDS, MIN_BATCH_SENTENCES
        if is_shared:
            target_seconds, min_sentences = SHORT_BATCH_SECONDS, MIN_SHORT_BATCH_SENTENCES
        max_seconds = MAX_TIMEOUT_SHARE * self._limits.batch_timeout / self._crowding
        batch, characters, seconds = [oldest], length, oldest.seconds * oldest.request.slowness
        for item in sentences[: max_sentences - 1]:
            characters += len(item.text)
            seconds += item.seconds * item.request.slowness
            if characters > MAX_BATCH_CHARACTERS or seconds > max_seconds:
                break
            if seconds > target_seconds and len(batch) >= min_sentences:
                break
            batch.append(item)
        return batch

    def _sentences_for_batch(self, oldest: PendingSentence) -> list[PendingSentence]:
        """Return sentences that may be in a batch with `oldest`, beginning with those of the same request.

        Sentences of a failed batch are retried apart from other sentences, and in small batches: if one of
        them makes its batch fail again, few sentences fail with it.
        """
        sentences: list[PendingSentence] = []
        for request in (oldest.request, *self._requests):
            if request is oldest.request and sentences:
                continue
            sentences += [
                item
                for item in islice(request.waiting, MAX_COMPARED_SENTENCES - len(sentences))
                if isinstance(item, PendingSentence)
                and item.key == oldest.key
                and item.has_failed == oldest.has_failed
            ]
            if len(sentences) >= MAX_COMPARED_SENTENCES:
                break
        return sentences

    def _is_shared(self) -> bool:
        """Return whether a client with much work shares the workers with other clients or short requests.

        Clients that have sent a request recently count, because they may soon send another.
        """
        if not self._num_long_requests and self._seconds <= LONG_SECONDS:
            return False  # nobody has much work
        now = _now()
        if self._num_long_requests and now - self._last_short_request < RECENT_SECONDS:
            return True
        recent = [client for client in self._clients.values() if not _is_gone(client, now)]
        return len(recent) > 1 and any(client.seconds > LONG_SECONDS for client in recent)

    def _count(self, item: Pending, change: int) -> None:
        self._waiting_items += change
        self._waiting_characters += change * len(item.text)
        item.request.client.waiting_items += change
        item.request.client.waiting_characters += change * len(item.text)

    def _remove(self, item: Pending) -> None:
        request = item.request
        if item in request.waiting:
            del request.waiting[item]
            self._count(item, -1)
            if not request.waiting:
                self._requests.pop(request, None)


def _may_add(limit: float, total: float, client_total: float, new: float) -> bool:
    """Return whether a client may add `new` to a total with this limit.

    If the total is 0, the client may add any amount. Otherwise the client may afterwards have at most twice
    as much as is still free.
    """
    return not total or client_total + new <= 2 * (limit - total - new)


def _makes_others_wait(request: OpenRequest) -> bool:
    """Return whether a request is long, or the short requests of its client are much work together."""
    client = request.client
    return request.is_long or client.seconds - client.long_seconds > LONG_SECONDS


def _is_gone(client: Client, now: float) -> bool:
    return not client.num_open_requests and now - client.last_seen > RECENT_SECONDS


def _now() -> float:
    return asyncio.get_running_loop().time()
