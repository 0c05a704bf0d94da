"""The queue and the workers: batching, crashes, draining, reloading, and clients that disconnect."""

from __future__ import annotations

import asyncio
import gc
import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import jumok
import jumok.server.pipeline
import jumok.server.workers.worker
from jumok.errors import ModelFolderError
from jumok.inference.shortlist import Shortlist
from jumok.server.event_log import configure_logging
from jumok.server.language_pairs import LanguagePair, read_language_pairs
from jumok.server.lifecycle import _SignalHandlers
from jumok.server.limits import Limits
from jumok.server.pipeline import MAX_AHEAD, TranslationPipeline
from jumok.server.service import ServerSettings, Service
from jumok.server.workers.heartbeat import HEARTBEAT
from jumok.server.workers.pending import (
    BatchKey,
    BusyError,
    OpenRequest,
    PendingQuestion,
    PendingSentence,
    Question,
    RequestTooLargeError,
    TranslateOptions,
    pending_items,
)
from jumok.server.workers.pool import Heartbeats, WorkerHandle
from jumok.server.workers.queue import MAX_BATCH_SENTENCES, WorkQueue
from jumok.server.workers.speed import SENTENCE_SIZE, WorkSpeed
from jumok.server.workers.worker import ServerGoneError, run_worker
from jumok.storage.folders import json_with_checksum, read_manifest
from jumok.storage.model_folder import CARD, store_shortlist
from jumok.system.messages import pack_message, read_message
from jumok.text.glossary import Glossary, TermMatch
from jumok.text.sentences import MULTIPLE_SENTENCES
from support.serve_models import make_digit_model, sentences
from support.serve_process import RunningServer, restored_logging, serving, serving_in_thread, wait_until

if TYPE_CHECKING:
    from pathlib import Path

KEY = BatchKey(0)  # the first model with default options
QUESTION = Question("explain", {"operation": "explain", "body": "{}"}, "{}")
SENTENCE = "x" * (100 - SENTENCE_SIZE)  # its cost for the queue is that of 100 letters


# --- The queue ----------------------------------------------------------------------------------------------


def open_request(queue: WorkQueue, client: str = "client", seconds: float = 0.0, **size: int) -> OpenRequest:
    """Open and admit a request whose deadline is in a minute.

    `seconds` is its work, estimated for one worker. `size` may have its numbers of sentences and characters.
    """
    request = queue.open(client, asyncio.get_running_loop().time() + 60)
    queue.admit(request, seconds, **size)
    return request


def pending_sentences(request: OpenRequest, *texts: str, key: BatchKey = KEY) -> list[PendingSentence]:
    return [PendingSentence(key, text, request) for text in texts]


def with_speed(queue: WorkQueue, letters_per_second: float) -> WorkQueue:
    """Give the queue this speed for two models. Return the queue."""
    queue.speed.set_first([letters_per_second] * 2)
    return queue


def test_a_batch_has_the_oldest_sentence_and_sentences_of_similar_length() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        request = open_request(queue)
        [oldest, *others] = pending_sentences(request, "x" * 50, *("x" * length for length in range(1, 400)))
        [for_other_model] = pending_sentences(request, "x" * 50, key=BatchKey(1))
        queue.add([oldest, *others, for_other_model])
        batch = pending_items(await queue.take())
        assert oldest in batch
        assert len(batch) == MAX_BATCH_SENTENCES
        assert for_other_model not in batch
        lengths = [len(sentence.text) for sentence in batch]
        assert max(lengths) - min(lengths) <= MAX_BATCH_SENTENCES
        assert len(queue) == (1 + 399 + 1) - MAX_BATCH_SENTENCES

    asyncio.run(run())


def test_a_batch_has_sentences_of_all_requests_and_clients() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        for number in range(40):
            queue.add(pending_sentences(open_request(queue, f"client {number % 8}"), "one", "two"))
        assert len(pending_items(await queue.take())) == 80

    asyncio.run(run())


def test_a_full_queue_refuses_a_request_and_keeps_room_for_other_clients() -> None:
    async def run() -> None:
        # A client may have at most twice as much in the queue as is still free afterwards.
        queue = WorkQueue(Limits(max_queued_sentences=30, max_queued_characters=1000), workers=1)
        queue.add(pending_sentences(open_request(queue, "greedy", sentences=19), *["one"] * 19))
        with pytest.raises(BusyError) as refused:
            open_request(queue, "greedy", sentences=2)
        assert refused.value.retry_seconds >= 1
        queue.add(pending_sentences(open_request(queue, "greedy", sentences=1), "one"))
        queue.add(pending_sentences(open_request(queue, "modest", sentences=6), *["one"] * 6))
        with pytest.raises(BusyError):
            open_request(queue, "modest", sentences=1)
        queue.add(pending_sentences(open_request(queue, "third", sentences=2), *["one"] * 2))
        with pytest.raises(BusyError):
            open_request(queue, "fourth", characters=900)
        assert len(queue) == 28

    asyncio.run(run())


def test_a_request_that_cannot_be_done_in_time_is_refused_at_once() -> None:
    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=2), 1_000)
        pipeline = TranslationPipeline(queue, Limits())
        path = (LanguagePair(0, "en", "de"),)
        # 1,200 sentences of 100 letters take 120 seconds of one worker, or 60 seconds of two.
        with pytest.raises(RequestTooLargeError, match="about 60 seconds, and at most 7 are allowed"):
            await pipeline.translate_all([SENTENCE] * 1200, [path] * 1200, TranslateOptions(), "greedy")
        assert queue.seconds_behind == 0
        greedy = open_request(queue, "greedy", seconds=70)
        assert queue.seconds_behind == 35
        with pytest.raises(BusyError) as refused:
            open_request(queue, "greedy", seconds=5)
        assert refused.value.retry_seconds >= 10
        modest = open_request(queue, "modest", seconds=5)  # there is room for another client
        for request in (greedy, modest):
            queue.close(request)
        assert queue.seconds_behind == 0
        open_request(queue, "greedy", seconds=70)  # raises no error: the queue is empty again

    asyncio.run(run())


def test_a_document_of_a_client_with_much_work_is_refused_before_it_is_read() -> None:
    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 1_000)
        pipeline = TranslationPipeline(queue, Limits())
        pipeline.check_room("greedy", 20_000)
        open_request(queue, "greedy", seconds=34)
        with pytest.raises(BusyError):
            pipeline.check_room("greedy", 20_000)
        pipeline.check_room("modest", 20_000)
        assert queue.num_open_requests == 1

    asyncio.run(run())


def test_the_room_for_a_document_does_not_depend_on_a_model_that_writes_captions() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        queue.speed.set_first([1.0, 1_000.0])  # `worker.py` reports 1 for a model that reads pictures
        open_request(queue, "other", seconds=1)
        TranslationPipeline(queue, Limits()).check_room("client", 20_000)

    asyncio.run(run())


def test_a_request_that_is_slightly_too_large_is_refused_with_two_different_numbers() -> None:
    message = str(RequestTooLargeError(7.2, 7.0))
    assert "about 8 seconds, and at most 7 are allowed" in message
    assert "at most 0.5 are allowed" in str(RequestTooLargeError(0.6, 0.5))


def test_work_is_counted_until_it_is_done_or_nobody_waits_for_it() -> None:
    async def run() -> None:
        limits = Limits(batch_timeout=1_000)  # so that one batch may take all sentences
        letters_per_second = (1_000 + SENTENCE_SIZE) / 5  # a sentence of 1,000 letters takes 5 seconds
        queue = with_speed(WorkQueue(limits, workers=1), letters_per_second)
        request = open_request(queue, seconds=35)
        queue.add(pending_sentences(request, *["x" * 1_000] * 7))
        batch = await queue.take()
        assert len(queue) == 0
        assert queue.seconds_behind == pytest.approx(35)
        queue.requeue(pending_items(batch))
        assert queue.seconds_behind == pytest.approx(35)
        queue.complete(await queue.take(), 35.0, 35.0)  # CPU seconds, and seconds that passed
        assert queue.seconds_behind == pytest.approx(0)
        other = open_request(queue, seconds=10)
        queue.close(request)
        assert queue.seconds_behind == pytest.approx(10)
        queue.close(other)
        assert queue.seconds_behind == pytest.approx(0)
        assert queue.num_open_requests == 0

    asyncio.run(run())


def test_withdrawn_sentences_leave_the_queue_and_requeued_sentences_come_first() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        request = open_request(queue)
        first = pending_sentences(request, *["one"] * 4)
        queue.add(first)
        queue.withdraw(first[1:])
        assert len(queue) == 1
        batch = pending_items(await queue.take())
        queue.add(pending_sentences(request, *["x" * 40] * 3))
        queue.requeue([*batch, first[2]])
        assert len(queue) == 4  # the withdrawn sentence is not requeued
        assert batch[0] in pending_items(await queue.take())
        queue.close(request)
        assert len(queue) == 0

    asyncio.run(run())


def test_two_free_workers_share_the_queue() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=2)
        takers = [asyncio.create_task(queue.take()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.add(pending_sentences(open_request(queue), *["one two"] * 40))
        batches = await asyncio.gather(*takers)
        assert sorted(len(pending_items(batch)) for batch in batches) == [20, 20]

    asyncio.run(run())


def test_single_sentences_go_to_the_worker_that_was_used_last() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=3)
        takers = {name: asyncio.create_task(queue.take()) for name in "abc"}
        chosen = ""
        request = open_request(queue)
        for _ in range(5):
            await asyncio.sleep(0)
            queue.add(pending_sentences(request, "one"))
            await asyncio.wait(takers.values(), return_when=asyncio.FIRST_COMPLETED)
            [name] = [name for name, task in takers.items() if task.done()]
            chosen += name
            takers[name] = asyncio.create_task(queue.take())
        assert chosen == "ccccc"  # worker c was the last that asked for its first batch
        for task in takers.values():
            task.cancel()

    asyncio.run(run())


@pytest.mark.parametrize(("request_count", "waits"), [(2, False), (3, True)])
def test_a_worker_waits_for_more_sentences_only_if_there_are_more_requests_than_workers(
    request_count: int, waits: bool
) -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=2)
        requests = [open_request(queue) for _ in range(request_count)]
        queue.add(pending_sentences(requests[0], "one"))
        taking = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        assert taking.done() is not waits
        queue.add(pending_sentences(requests[1], "two"))
        assert len(pending_items(await taking)) == 1 + waits

    asyncio.run(run())


def test_an_explanation_is_not_batched_and_one_worker_stays_free_for_translations() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=2)
        request = open_request(queue)
        explanations = [PendingQuestion(0, QUESTION, request) for _ in range(2)]
        queue.add(explanations)
        assert await queue.take() is explanations[0]
        waiting = asyncio.create_task(queue.take())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        [sentence] = pending_sentences(open_request(queue), "one")
        queue.add([sentence])
        assert await waiting == [sentence]
        waiting = asyncio.create_task(queue.take())
        queue.complete(explanations[0], 0.1, 0.1)
        assert await waiting is explanations[1]

    asyncio.run(run())


def test_sentences_of_a_failed_batch_are_retried_in_small_batches_of_their_own() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        request = open_request(queue)
        queue.add(pending_sentences(request, *["one"] * 40))
        failed = pending_items(await queue.take())
        for sentence in failed:
            sentence.has_failed = True
        queue.requeue(failed)
        queue.add(pending_sentences(request, *["one"] * 40))
        batches = [pending_items(await queue.take()) for _ in range(6)]
        # 8 is FEW_SENTENCES // 2.
        assert [len(batch) for batch in batches] == [8, 8, 8, 8, 8, 40]
        assert all(sentence.has_failed for batch in batches[:5] for sentence in batch)

    asyncio.run(run())


def test_a_long_request_is_queued_in_slices() -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        pipeline = TranslationPipeline(queue, Limits())
        path = (LanguagePair(0, "en", "de"),)
        texts = [str(number) for number in range(10_000)]
        request = asyncio.create_task(
            pipeline.translate_all(texts, [path] * 10_000, TranslateOptions(), "client")
        )
        longest_queue = 0

        async def work() -> None:
            nonlocal longest_queue
            while True:
                longest_queue = max(longest_queue, len(queue))
                batch = await queue.take()
                queue.complete(batch, 0.01, 0.01)
                resolve(batch)
                await asyncio.sleep(0)

        worker = asyncio.create_task(work())
        await request
        worker.cancel()
        assert [translation.text() for translation in request.result()] == texts
        assert MAX_BATCH_SENTENCES < longest_queue <= MAX_AHEAD
        assert queue.num_open_requests == len(queue) == 0

    asyncio.run(run())


def resolve(batch: Any) -> None:
    """Answer the sentences of a batch as a worker does. Each translation is the sentence in capitals."""
    for sentence in pending_items(batch):
        if not sentence.future.done():
            sentence.future.set_result([{"text": sentence.text.upper(), "score": 0.0}])


async def answer_all(queue: WorkQueue) -> None:
    """Answer every batch as a worker does, until cancelled."""
    while True:
        batch = await queue.take()
        queue.complete(batch, 0.01, 0.01)
        resolve(batch)


def test_a_failed_path_ends_the_other_paths_of_its_request() -> None:
    """Once, the other paths continued to add sentences for which nobody waited."""

    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        pipeline = TranslationPipeline(queue, Limits())
        failing = (LanguagePair(0, "en", "de"),)
        pivoted = (LanguagePair(1, "en", "fr"), LanguagePair(2, "fr", "de"))
        request = asyncio.create_task(
            pipeline.translate_all(["one", "two"], [failing, pivoted], TranslateOptions(), "client")
        )
        by_model = {}
        for _ in range(2):
            [sentence] = pending_items(await queue.take())
            assert isinstance(sentence, PendingSentence)
            by_model[sentence.key.model_index] = sentence
        by_model[0].future.set_exception(BusyError("failed", 1))
        with pytest.raises(BusyError):
            await request
        resolve([by_model[1]])
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(queue) == queue.num_open_requests == 0

    asyncio.run(run())


def test_an_accepted_request_is_not_refused_at_its_second_model() -> None:
    async def run() -> None:
        limits = Limits(max_queued_sentences=4)
        queue = WorkQueue(limits, workers=1)
        path = (LanguagePair(0, "en", "de"), LanguagePair(1, "de", "fr"))
        pipeline = TranslationPipeline(queue, limits)
        request = asyncio.create_task(
            pipeline.translate_all(["one\ntwo"], [path], TranslateOptions(), "client")
        )
        first_batch = await queue.take()
        queue.add(pending_sentences(open_request(queue, "other"), *["others"] * 4))
        resolve(first_batch)
        while len(queue) < 6:  # four sentences of the other client, and two for the second model
            assert not request.done()
            await asyncio.sleep(0)
        request.cancel()

    asyncio.run(run())


def test_errors_of_withdrawn_sentences_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        sentences = pending_sentences(open_request(queue), *["one"] * 3)
        queue.add(sentences)
        for sentence in sentences[:2]:
            sentence.future.set_exception(BusyError("lost", 1))
        queue.withdraw(sentences)
        del sentence, sentences
        gc.collect()

    asyncio.run(run())
    assert "never retrieved" not in caplog.text


# --- Fairness -----------------------------------------------------------------------------------------------


async def work_for(queue: WorkQueue, count: int, letters_per_second: float) -> list[list[PendingSentence]]:
    """Take and complete `count` batches as a worker of this speed does. Return the batches."""
    batches = []
    for _ in range(count):
        batch = await queue.take()
        assert isinstance(batch, list)
        seconds = sum(len(sentence.text) + SENTENCE_SIZE for sentence in batch) / letters_per_second
        queue.complete(batch, seconds, seconds)
        batches.append(batch)
    return batches


def test_a_modest_client_is_served_next_however_many_sentences_a_greedy_client_has_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine, time passes between the steps of this test, and the greedy client's turn comes again.
    started = time.monotonic()  # the clock of the event loop
    monkeypatch.setattr("jumok.server.workers.queue._now", lambda: started)

    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 10_000)
        greedy = open_request(queue, "greedy", seconds=10)
        queue.add(pending_sentences(greedy, *[SENTENCE] * 1000))
        await work_for(queue, 20, 10_000)
        for _ in range(10):
            for _ in range(5):  # older requests of the greedy client, which have not been served
                queue.add(pending_sentences(open_request(queue, "greedy", seconds=0.01), SENTENCE))
            modest = open_request(queue, "modest", seconds=0.01)
            [sentence] = pending_sentences(modest, "short")
            queue.add([sentence])
            [batch] = await work_for(queue, 1, 10_000)
            assert batch[0] is sentence
            assert len(batch) <= 3  # the batch is short, so that the modest client does not wait long
            queue.close(modest)

    asyncio.run(run())


@pytest.mark.parametrize("actual_speed", [10_000, 1_000])
def test_two_greedy_clients_receive_the_same_work_even_if_the_estimate_is_wrong(actual_speed: float) -> None:
    """First, only the first client sends a large request. Then the second client sends small requests."""

    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(request_timeout=1e6), workers=1), 10_000)
        first = open_request(queue, "first", seconds=100)
        first.deadline = float("inf")  # so that the request never becomes urgent
        queue.add(pending_sentences(first, *[SENTENCE] * 2_000))
        await work_for(queue, 30, actual_speed)
        waiting: list[PendingSentence] = []
        received = {"first": 0, "second": 0}
        for _ in range(300):
            if not [sentence for sentence in waiting if sentence in sentence.request.waiting]:
                # One letter more than the sentences of the first client: a batch prefers sentences of similar
                # length, and so those of the client whose turn it is.
                waiting = pending_sentences(
                    open_request(queue, "second", seconds=0.3), *[SENTENCE + "x"] * 30
                )
                queue.add(waiting)
            [batch] = await work_for(queue, 1, actual_speed)
            for sentence in batch:
                received["first" if sentence.request is first else "second"] += 1
        assert 0.8 < received["first"] / received["second"] < 1.25

    asyncio.run(run())


def test_a_short_request_is_served_before_a_long_request_of_the_same_client() -> None:
    """All users behind one proxy or in one office network are one client for the server."""

    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 10_000)
        queue.add(pending_sentences(open_request(queue, seconds=10), *[SENTENCE] * 1000))
        await work_for(queue, 20, 10_000)
        short = open_request(queue, seconds=0.01)
        [sentence] = pending_sentences(short, "short")
        queue.add([sentence])
        [batch] = await work_for(queue, 1, 10_000)
        assert batch[0] is sentence
        queue.close(short)
        # Batches stay short for some time, because another short request may arrive.
        assert all(len(batch) <= 2 for batch in await work_for(queue, 5, 10_000))

    asyncio.run(run())


def test_one_worker_stays_free_for_other_clients_while_a_client_has_much_work() -> None:
    """A long request gets only one of two workers if a short request was sent within the last seconds."""

    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=2), 10_000)
        greedy = open_request(queue, "greedy", seconds=6)
        queue.add(pending_sentences(greedy, *[SENTENCE] * 600))
        modest = open_request(queue, "modest", seconds=0.01)
        long_batch = await queue.take()
        assert {item.request for item in pending_items(long_batch)} == {greedy}
        other_worker = asyncio.create_task(queue.take())
        await asyncio.sleep(0.01)
        assert not other_worker.done()
        queue.add(pending_sentences(modest, SENTENCE))
        short_batch = await asyncio.wait_for(other_worker, 1)
        assert {item.request for item in pending_items(short_batch)} == {modest}
        queue.complete(short_batch, 0.01, 0.01)
        other_worker = asyncio.create_task(queue.take())
        await asyncio.sleep(0.01)
        assert not other_worker.done()
        # The next long batch may begin when the long batch ends or its worker is lost.
        assert isinstance(long_batch, list)
        queue.requeue(long_batch)
        long_batch = await asyncio.wait_for(other_worker, 1)
        assert {item.request for item in pending_items(long_batch)} == {greedy}
        queue.complete(long_batch, 0.01, 0.01)
        assert {item.request for item in pending_items(await queue.take())} == {greedy}

    asyncio.run(run())


def test_one_worker_stays_free_for_other_clients_until_a_long_request_ends() -> None:
    """Once, full batches with the last half second of a long request occupied all workers."""

    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=2), 10_000)
        greedy = open_request(queue, "greedy", seconds=6)
        queue._subtract_work(greedy, 5.8)  # 0.2 seconds are left
        queue.add(pending_sentences(greedy, *[SENTENCE] * 20))
        open_request(queue, "modest", seconds=0.01)
        assert len(pending_items(await queue.take())) <= 2
        other_worker = asyncio.create_task(queue.take())
        await asyncio.sleep(0.01)
        assert not other_worker.done()
        other_worker.cancel()

    asyncio.run(run())


def test_all_workers_translate_a_long_request_that_is_alone_or_urgent() -> None:
    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=2), 10_000)
        greedy = open_request(queue, "greedy", seconds=6)
        queue.add(pending_sentences(greedy, *[SENTENCE] * 600))
        batches = [await asyncio.wait_for(queue.take(), 1) for _ in range(2)]
        assert {item.request for batch in batches for item in pending_items(batch)} == {greedy}
        for batch in batches:
            queue.complete(batch, 0.01, 0.01)
        open_request(queue, "modest", seconds=0.01)
        # 6 seconds of work take two workers 3 seconds, which makes the request urgent (URGENT_SHARE).
        greedy.deadline = asyncio.get_running_loop().time() + 3
        urgent_batches = [await asyncio.wait_for(queue.take(), 1) for _ in range(2)]
        assert {item.request for batch in urgent_batches for item in pending_items(batch)} == {greedy}

    asyncio.run(run())


def test_a_large_text_is_split_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splitting a large text in the event loop would delay the requests of all clients."""
    in_main_thread: dict[int, bool] = {}  # length of a text → whether it was split in the main thread
    split = jumok.server.pipeline.text_spans

    def text_spans(text: str, *arguments: Any) -> Any:
        in_main_thread[len(text)] = threading.current_thread() is threading.main_thread()
        return split(text, *arguments)

    monkeypatch.setattr(jumok.server.pipeline, "text_spans", text_spans)

    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 1e6)
        pipeline = TranslationPipeline(queue, Limits())
        path = (LanguagePair(0, "en", "de"),)
        worker = asyncio.create_task(answer_all(queue))
        for text in ("One. Two.", "One. Two. " * 1_000):
            [translated] = await pipeline.translate_all([text], [path], TranslateOptions(), "client")
            assert len(translated.sentences) == text.count(".")
        worker.cancel()

    asyncio.run(run())
    # The limit is MAX_LOOP_CHARACTERS, 4,000.
    assert in_main_thread == {9: True, 10_000: False}


def test_batches_are_full_if_there_are_only_short_requests() -> None:
    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 100_000)
        for number in range(8):
            queue.add(
                pending_sentences(open_request(queue, f"client {number}", seconds=0.032), *[SENTENCE] * 32)
            )
        assert [len(batch) for batch in await work_for(queue, 2, 100_000)] == [128, 128]

    asyncio.run(run())


def test_a_request_that_is_about_to_be_late_gets_more_turns() -> None:
    async def run(seconds_left: float) -> float:
        queue = with_speed(WorkQueue(Limits(request_timeout=1e6), workers=1), 10_000)
        now = asyncio.get_running_loop().time()
        requests = [queue.open("late", now + seconds_left), queue.open("other", now + 1e6)]
        for request in requests:
            queue.admit(request, 10)
            queue.add(pending_sentences(request, *[SENTENCE] * 1000))
        batches = await work_for(queue, 100, 10_000)
        late_sentences = sum(sentence.request is requests[0] for batch in batches for sentence in batch)
        return late_sentences / sum(map(len, batches))

    assert asyncio.run(run(1e6)) == pytest.approx(0.5, abs=0.1)
    assert asyncio.run(run(11)) > 0.6


def test_an_urgent_client_is_charged_a_third_of_its_work_and_refunded_the_same_third() -> None:
    """Once, an urgent client was refunded the whole estimate of a lost batch and was then always next."""

    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(request_timeout=1e6), workers=1), 100)
        request = queue.open("late", asyncio.get_running_loop().time() + 1)
        queue.admit(request, 6)
        # Each sentence takes a second. A third of it is charged.
        queue.add(pending_sentences(request, *[SENTENCE] * 6))
        before = request.client.virtual_time
        batch = await queue.take()
        queue.requeue(pending_items(batch))
        assert request.client.virtual_time == pytest.approx(before)
        queue.complete(await queue.take(), 12.0, 12.0)
        assert request.client.virtual_time == pytest.approx(before + 12 / 3)

    asyncio.run(run())


def test_the_estimated_work_of_an_empty_queue_is_exactly_zero() -> None:
    """Only an empty queue accepts a request of any size. A rounding error once made it refuse a large one."""

    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        requests = [open_request(queue, seconds=seconds) for seconds in (0.1, 0.2, 0.3)]
        for request in requests:
            queue.close(request)
        assert (queue.seconds_behind, requests[0].client.seconds) == (0.0, 0.0)

    asyncio.run(run())


def test_a_batch_of_slow_sentences_fits_into_the_batch_timeout() -> None:
    async def run(crowding: float) -> int:
        queue = with_speed(WorkQueue(Limits(batch_timeout=30), workers=1), 100)  # a sentence per second
        queue._crowding = crowding
        queue.add(pending_sentences(open_request(queue), *[SENTENCE] * 40))
        return len(pending_items(await queue.take()))

    # A batch may take a quarter of the timeout (MAX_TIMEOUT_SHARE): 7.5 seconds, divided by the crowding,
    # which is the number of elapsed seconds per CPU second.
    assert asyncio.run(run(1.0)) == 7
    assert asyncio.run(run(3.0)) == 2
    assert asyncio.run(run(20.0)) == 1


def test_the_speed_is_measured_for_each_kind_of_batch() -> None:
    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 10_000)
        eleven_best = BatchKey(0, TranslateOptions(n_best=11))
        assert queue.speed.seconds_of_texts(KEY, [SENTENCE]) == pytest.approx(0.01)
        # No batch with eleven translations per sentence was measured yet, so this is a guess.
        assert queue.speed.seconds_of_texts(eleven_best, [SENTENCE]) > 0.02
        assert queue.speed.seconds_of_texts(KEY, ["a"] * 10_000) > 5  # each sentence has a cost
        by_lines = queue.speed.seconds_of_texts(KEY, ["a\n" * 10_000])
        assert by_lines == pytest.approx(queue.speed.seconds_of_texts(KEY, ["a"] * 10_000), rel=0.1)
        assert queue.speed.seconds_of_texts(KEY, ["\n" * 10_000]) < by_lines / 10  # no sentences
        request = open_request(queue)
        for _ in range(30):
            queue.add(pending_sentences(request, *[SENTENCE] * 20, key=eleven_best))
            batch = await queue.take()
            queue.complete(batch, 0.2 * len(pending_items(batch)), 0.2)
        assert queue.speed.seconds_of_texts(eleven_best, [SENTENCE]) == pytest.approx(0.2, rel=0.1)

    asyncio.run(run())


def test_characters_that_the_vocabulary_lacks_cost_more() -> None:
    """Each byte of such a character is a token, and the model often writes nonsense of the maximum length."""
    speed = WorkSpeed()
    speed.set_first([10_000.0] * 2, ["한글", "é漢"])  # the speeds and the alphabets of two models
    hangul, chinese, accents = "한글" * 50, "漢字" * 50, "é" * 100
    hangul_seconds = speed.seconds_of_texts(KEY, [hangul])
    # 300 bytes, and SENTENCE_SIZE = 16 for each of the two sentences that a text of this length may have.
    assert hangul_seconds == pytest.approx(0.0332)
    # A byte of a character that the vocabulary lacks counts as 10 bytes: 10 · 300 + 2 · 16 = 3,032.
    assert speed.seconds_of_texts(KEY, [chinese]) == pytest.approx(0.3032)
    assert speed.seconds_of_texts(KEY, [hangul + " ok"]) < 1.1 * hangul_seconds
    other_model = BatchKey(1, KEY.options)
    assert speed.seconds_of_texts(other_model, [accents]) < speed.seconds_of_texts(KEY, [accents]) / 5
    assert speed.seconds_of_texts(KEY, ["😀" * 100]) > 0.4


def test_work_for_terms_is_counted_before_a_request_is_accepted() -> None:
    async def run() -> None:
        limits = Limits()
        queue = with_speed(WorkQueue(limits, workers=1), 10_000)
        pipeline = TranslationPipeline(queue, limits)
        paths = [(LanguagePair(0, "en", "de"),)] * 600
        plain = [SENTENCE] * 600  # they take 6 seconds, and 7 are allowed
        with pipeline.open_request("client") as request:
            await pipeline.admit(request, plain, paths, TranslateOptions())
        glossaries = {paths[0]: Glossary({"xx": "yy"})}
        with_placeholders = ["{a} " + SENTENCE[4:]] * 600
        for texts, terms in ((plain, glossaries), (with_placeholders, {})):
            with pipeline.open_request("client") as request, pytest.raises(RequestTooLargeError):
                await pipeline.admit(request, texts, paths, TranslateOptions(), terms)

    asyncio.run(run())


def test_sentences_with_terms_have_a_speed_of_their_own() -> None:
    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 10_000)
        request = open_request(queue)
        for _ in range(30):
            sentences = pending_sentences(request, *[SENTENCE] * 20)
            for sentence in sentences:
                sentence.terms = [TermMatch((0, 2), "yy", protected=False)]
            queue.add(sentences)
            batch = await queue.take()
            queue.complete(batch, 0.05 * len(pending_items(batch)), 0.05)
        assert queue.speed.seconds_of_texts(KEY, [SENTENCE], terms=True) == pytest.approx(0.05, rel=0.1)
        assert queue.speed.seconds_of_texts(KEY, [SENTENCE]) < 0.025

    asyncio.run(run())


def test_a_request_that_turns_out_to_be_too_large_ends_with_an_error() -> None:
    """The estimate accepts the request, but its first batches take four times as long as estimated."""

    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 10_000)
        pipeline = TranslationPipeline(queue, Limits())
        path = (LanguagePair(0, "en", "de"),)
        texts = [SENTENCE] * 600  # 6 seconds by estimate
        request = asyncio.create_task(
            pipeline.translate_all(texts, [path] * 600, TranslateOptions(), "client")
        )
        for _ in range(3):
            batch = await queue.take()
            queue.complete(batch, 0.04 * len(pending_items(batch)), 0.1)
            resolve(batch)
        with pytest.raises(RequestTooLargeError, match=r"about \d\d seconds, and at most 7 are allowed"):
            await request
        assert queue.seconds_behind == queue.num_open_requests == len(queue) == 0

    asyncio.run(run())


def test_a_busy_machine_makes_the_server_busy_but_no_request_too_large() -> None:
    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(), workers=1), 10_000)
        request = open_request(queue)
        for _ in range(30):
            queue.add(pending_sentences(request, *[SENTENCE] * 16))
            queue.complete(await queue.take(), 0.16, 1.6)  # CPU seconds, and seconds that passed
        queue.check_size(7)  # raises an error if a request of 7 seconds is too large
        open_request(queue, "first", seconds=2)
        assert queue.seconds_behind == pytest.approx(20, rel=0.1)
        with pytest.raises(BusyError):
            open_request(queue, "second", seconds=7)

    asyncio.run(run())


def test_virtual_time_passes_so_that_new_clients_cannot_keep_an_old_client_waiting() -> None:
    async def run() -> None:
        queue = with_speed(WorkQueue(Limits(request_timeout=1e6), workers=1), 1_000)
        old = open_request(queue, "old", seconds=5)
        queue.add(pending_sentences(old, *[SENTENCE] * 50))
        await work_for(queue, 2, 1_000)
        waiting_before = len(old.waiting)
        for number in range(100):
            queue.add(pending_sentences(open_request(queue, f"new {number}", seconds=0.1), SENTENCE))
            await asyncio.sleep(0.005)
            await work_for(queue, 1, 1_000)
        assert len(old.waiting) < waiting_before

    asyncio.run(run())


# --- The code of a worker, run in this process --------------------------------------------------------------


def answers_of(load: dict[str, Any], *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers of a worker to `load`, the message that starts it, and to `messages`."""
    defaults = {"kind": "translate", "model": 0, "needs_torch": False, **TranslateOptions()._asdict()}
    load = {"kind": "load", "shortlist": False, "language_pairs": ["en_de"], **load}
    no_terms = ([[]] * len(message.get("texts", ())) for message in messages)
    all_messages = [
        load,
        *({**defaults, "terms": terms, **message} for terms, message in zip(no_terms, messages, strict=True)),
    ]
    answers = io.BytesIO()
    run_worker(io.BytesIO(b"".join(map(pack_message, all_messages))), answers)
    answers.seek(0)
    return list(iter(lambda: read_message(answers), None))


def test_a_worker_translates_aligns_streams_and_explains(model: Path) -> None:
    ready, plain, aligned, *partial, greedy, page, refused = answers_of(
        {"models": [str(model)]},
        {"texts": ["one two", ""], "n_best": 2},
        # The second text is longer than the model allows, so it is translated in parts.
        {"texts": ["one two", "three " * 250], "align": True, "needs_torch": True},
        {"texts": ["one two three"], "greedy": True, "stream": True},
        {"kind": "explain", "operation": "page", "body": "{}"},
        {"kind": "explain", "operation": "explain", "body": "[]"},
    )
    assert (ready["kind"], ready["pid"]) == ("ready", os.getpid())
    assert [speed > 0 for speed in ready["speeds"]] == [True]
    expected = jumok.load(model).translate(["one two"], n_best=2)[0]
    texts = [[candidate["text"] for candidate in row] for row in plain["translations"]]
    assert texts == [[expected.text, *(text for text, _ in expected.alternatives)], [""]]
    assert all(row[0]["links"] for row in aligned["translations"])
    final = greedy["translations"][0][0]["text"]
    assert partial[-1] == {"kind": "partial", "index": 0, "text": final}
    assert len(partial) > 2
    assert json.loads(page["answer"])["live"]["models"][0]["name"] == "en → de"
    assert refused["kind"] == "refused"
    assert refused["message"]


@pytest.mark.parametrize("error", [ValueError, OSError, BrokenPipeError])
def test_a_text_that_cannot_be_translated_does_not_end_the_worker(
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: type[Exception],
) -> None:
    """No text is known to fail. If one does, the next batch must still be translated."""
    translate = jumok.server.workers.worker._translate

    def fail_sometimes(translator: Any, message: dict[str, Any], on_partial: Any) -> Any:
        if "poison" in message["texts"]:
            raise error("a secret text")
        return translate(translator, message, on_partial)

    monkeypatch.setattr("jumok.server.workers.worker._translate", fail_sometimes)
    with restored_logging():
        configure_logging(sys.stderr)
        _, failure, translation = answers_of(
            {"models": [str(model)]}, {"texts": ["one", "poison"]}, {"texts": ["one"]}
        )
    assert (failure["kind"], failure["message"]) == ("failed", error.__name__)
    assert translation["translations"]
    assert "secret" not in capsys.readouterr().err


def test_an_explanation_that_fails_does_not_end_the_worker(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(translator: Any) -> None:
        raise OSError("a secret text")

    monkeypatch.setattr("jumok.server.workers.worker._explanation_service", fail)
    request = {"kind": "explain", "operation": "page", "body": "{}"}
    candidates = {"kind": "candidates", "sentence": "one two", "prefix": "", "count": 2}
    with restored_logging():
        configure_logging(sys.stderr)
        _, refusal, words, translation = answers_of(
            {"models": [str(model)]}, request, candidates, {"texts": ["one"]}
        )
    assert (refusal["kind"], "see the server log" in refusal["message"]) == ("refused", True)
    assert len(json.loads(words["answer"])) == 2  # the candidates do not need the explanation service
    assert translation["translations"]
    assert "secret" not in capsys.readouterr().err


def test_a_worker_ends_when_the_server_reads_no_more_answers(model: Path) -> None:
    class ClosedPipe(io.BytesIO):
        """A pipe that the server closes after the message `ready`."""

        def write(self, data: Any) -> int:
            if b"ready" in data:
                return super().write(data)
            raise BrokenPipeError

    options = {**TranslateOptions()._asdict(), "greedy": True, "stream": True}
    messages = [
        {"kind": "load", "shortlist": False, "language_pairs": ["en_de"], "models": [str(model)]},
        {"kind": "translate", "model": 0, "texts": ["one two three"], **options},
    ]
    with pytest.raises(ServerGoneError):
        run_worker(io.BytesIO(b"".join(map(pack_message, messages))), ClosedPipe())


def test_a_worker_reports_why_a_model_cannot_be_loaded(tmp_path: Path) -> None:
    [answer] = answers_of({"models": [str(tmp_path / "nowhere")]})
    assert answer["kind"] == "failed"
    assert "nowhere" in answer["message"]


def test_a_worker_uses_the_shortlist_if_requested(model: Path, tmp_path: Path) -> None:
    load = {"models": [str(shutil.copytree(model, tmp_path / "model"))], "shortlist": True}
    [answer] = answers_of(load)
    assert "has no shortlist. Learn one with `jumok shortlist" in answer["message"]
    token_ids = range(260, 290)  # ids 0 to 259 are 4 special tokens and 256 bytes
    store_shortlist(tmp_path / "model", Shortlist(tuple(token_ids), {}).to_bytes(), {})
    _, limited = answers_of(load, {"texts": ["one two three"]})
    _, unlimited = answers_of({**load, "shortlist": False}, {"texts": ["one two three"]})
    [expected] = jumok.load(tmp_path / "model", shortlist=True).translate(["one two three"])
    assert limited["translations"][0][0]["text"] == expected.text
    assert unlimited["translations"][0][0]["text"] != expected.text


# --- Workers of a running server, and how the server monitors and replaces them -----------------------------


def test_a_sentence_gets_the_same_translation_in_a_batch_as_alone(
    shared_server: RunningServer, model: Path
) -> None:
    texts = sentences(500)
    translator = jumok.load(model)
    translated_alone = [translator.translate([text])[0].text for text in texts]

    def translate_every_50th_text(start: int) -> list[str]:
        answer = shared_server.post("/translate", {"q": texts[start::50], "source": "en", "target": "de"})
        assert answer.status == 200, answer.text
        translated: list[str] = answer.json["translatedText"]
        return translated

    with ThreadPoolExecutor(50) as clients:
        by_client = list(clients.map(translate_every_50th_text, range(50)))
    # Client i sent the texts i, i + 50, i + 100, …
    assert [by_client[number % 50][number // 50] for number in range(500)] == translated_alone


@pytest.mark.medium
def test_a_worker_that_dies_is_replaced(model: Path, tmp_path: Path) -> None:
    with serving_in_thread(tmp_path, model, workers=1) as server:
        [victim] = server.worker_pids()
        os.kill(victim, signal.SIGKILL)
        answer = server.post("/translate", {"q": "one", "source": "en", "target": "de"})
        assert answer.status == 200
        server.wait_for("worker_ready", 2)  # the victim and its replacement
        assert "jumok_worker_deaths_total 1.0\n" in server.get("/metrics").text
        assert victim not in server.worker_pids()


@pytest.mark.medium
def test_a_stopped_worker_is_replaced_in_time_for_its_batch(model: Path, tmp_path: Path) -> None:
    """Once, the replacement took a minute, during which /health answered ok."""
    with serving_in_thread(tmp_path, model, workers=1) as server, ThreadPoolExecutor(1) as clients:
        [victim] = server.worker_pids()
        os.kill(victim, signal.SIGSTOP)
        request = clients.submit(server.post, "/translate", {"q": "one", "source": "en", "target": "de"})
        wait_until(lambda: server.get("/health").status == 503)
        assert request.result().status == 200
        assert victim not in server.worker_pids()
        [lost] = server.wait_for("worker_lost")
        assert (lost["pid"], lost["reason"]) == (victim, "no heartbeat")
        assert server.get("/health").status == 200
        [idle] = server.worker_pids()
        os.kill(idle, signal.SIGSTOP)
        server.wait_for("worker_ready", 3)  # the third is the replacement of `idle`
        assert idle not in server.worker_pids()


HANGING_WORKER = """
import time
import jumok.server.workers.worker as worker
translate = worker._translate
def hang(translator, message, on_partial):
    if "deadlock" in message["texts"]:
        {hang}
    return translate(translator, message, on_partial)
worker._translate = hang
worker.main()
"""


@pytest.mark.parametrize(
    ("hang", "reason"),
    [
        pytest.param("time.sleep(1000)", "no progress", marks=pytest.mark.medium),
        pytest.param("while True: pass", "endless batch", marks=pytest.mark.slow),
    ],
)
def test_a_worker_whose_batch_hangs_is_replaced(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hang: str, reason: str
) -> None:
    """The worker still sends heartbeats, from another thread. A batch that hangs twice is not tried again."""
    monkeypatch.setattr("jumok.server.workers.pool.WORKER_CODE", HANGING_WORKER.format(hang=hang))
    monkeypatch.setattr("jumok.server.workers.pool.MAX_STANDSTILL", 1.0)
    monkeypatch.setattr("jumok.server.workers.pool.MAX_CPU_SECONDS", 1.0)
    monkeypatch.setattr("jumok.server.workers.pool.MAX_SLOWNESS", 0.0)
    with serving_in_thread(tmp_path, model, workers=1) as server:
        answer = server.post("/translate", {"q": "deadlock", "source": "en", "target": "de"})
        assert (answer.status, "failed twice" in answer.text) == (503, True)
        assert [lost["reason"] for lost in server.wait_for("worker_lost", 2)] == [reason] * 2
        assert server.post("/translate", {"q": "one", "source": "en", "target": "de"}).status == 200


@pytest.mark.medium
def test_an_explanation_has_less_time_than_a_batch_and_is_not_tried_again(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The explanation itself may be the reason why the worker was lost."""
    assert Limits().question_timeout < Limits().batch_timeout <= Limits().request_timeout / 2
    code = "import time; import jumok.server.workers.worker as w; w._explanation_service = {}; w.main()"
    monkeypatch.setattr("jumok.server.workers.pool.WORKER_CODE", code.format("lambda _: time.sleep(99)"))
    limits = Limits(question_timeout=0.5)
    with serving_in_thread(tmp_path, model, workers=1, limits=limits) as server:
        answer = server.post("/v1/explain", {"q": "one", "source": "en", "target": "de"})
        assert (answer.status, "its worker was lost" in answer.text) == (503, True)
        assert server.post("/translate", {"q": "one", "source": "en", "target": "de"}).status == 200
        assert [lost["reason"] for lost in server.wait_for("worker_lost")] == ["TimeoutError"]


def test_hanging_workers_are_detected_but_excused_if_the_server_itself_did_not_run() -> None:
    async def run() -> None:
        heartbeats = Heartbeats()
        heartbeats.data_received(HEARTBEAT.pack(1.0))
        with heartbeats.working(0.1):
            assert not heartbeats.hang_reason()
            heartbeats._last_beat -= 10
            heartbeats._progress = (1.0, heartbeats._progress[1] - 10)
            assert heartbeats.hang_reason() == "no heartbeat"
            heartbeats.data_received(HEARTBEAT.pack(1.001))  # less than MIN_PROGRESS
            assert heartbeats.hang_reason() == "no progress"
            heartbeats.data_received(HEARTBEAT.pack(1.1))
            assert not heartbeats.hang_reason()
            heartbeats.data_received(HEARTBEAT.pack(99.0))  # more than MAX_CPU_SECONDS
            assert heartbeats.hang_reason() == "endless batch"
        assert not heartbeats.hang_reason()  # the CPU time of a worker without a batch does not matter
        heartbeats._last_beat -= 10
        heartbeats.restart_timers()
        assert not heartbeats.hang_reason()

    asyncio.run(run())


def test_a_worker_that_may_load_torch_is_not_reported_as_hanging_until_its_batch_ends() -> None:
    async def run() -> None:
        heartbeats = Heartbeats()
        heartbeats.data_received(HEARTBEAT.pack(1.0))
        with heartbeats.working(0.1, may_load=True):
            heartbeats._last_beat -= 10
            heartbeats._progress = (1.0, heartbeats._progress[1] - 10)
            assert not heartbeats.hang_reason()
        assert not heartbeats.hang_reason()  # the missing heartbeats during the batch are excused
        with heartbeats.working(0.1):
            heartbeats._last_beat -= 10
            assert heartbeats.hang_reason() == "no heartbeat"

    asyncio.run(run())


def test_only_the_first_batch_with_torch_may_load_it_and_explanations_have_no_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches: list[tuple[float, bool]] = []  # (estimate, may_load)
    working = Heartbeats.working

    def record(self: Heartbeats, estimate: float, *, timeout: float, may_load: bool = False) -> Any:
        batches.append((estimate, may_load))
        return working(self, estimate, timeout=timeout, may_load=may_load)

    async def answer(self: WorkerHandle, message: dict[str, Any]) -> dict[str, Any]:
        if message["kind"] == "explain":
            return {"kind": "answer", "answer": "{}", "cpu_seconds": 0.2, "seconds": 2.0}
        translations = [[{"text": text, "score": 0.0}] for text in message["texts"]]
        return {"kind": "translations", "translations": translations, "cpu_seconds": 0.2, "seconds": 2.0}

    monkeypatch.setattr(Heartbeats, "working", record)
    monkeypatch.setattr(WorkerHandle, "_request", answer)

    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        handle = WorkerHandle(queue, {}, Limits(), lambda *_, **__: None)
        request = open_request(queue)
        aligned = BatchKey(0, TranslateOptions(align=True))
        await handle._execute(pending_sentences(request, "one"))
        await handle._execute(pending_sentences(request, "one", key=aligned))
        await handle._execute(pending_sentences(request, "one", key=aligned))
        await handle._execute(PendingQuestion(0, QUESTION, request))
        assert queue._crowding > 2  # the queue is told the seconds that the worker measured

    asyncio.run(run())
    assert batches == [(0.0, False), (0.0, True), (0.0, False), (float("inf"), False)]


def test_a_question_is_not_counted_as_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(self: WorkerHandle, message: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "answer", "answer": "{}", "cpu_seconds": 0.2, "seconds": 0.2}

    monkeypatch.setattr(WorkerHandle, "_request", answer)
    events: list[str] = []

    async def run() -> None:
        queue = WorkQueue(Limits(), workers=1)
        handle = WorkerHandle(queue, {}, Limits(), lambda event, **_: events.append(event))
        question = PendingQuestion(0, QUESTION, open_request(queue))
        await handle._execute(question)
        assert question.future.result() == "{}"

    asyncio.run(run())
    assert events == []


def test_loading_torch_does_not_count_as_other_work_on_the_machine(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker measures how long a batch took after its warm-up, and the queue is told this time."""

    def warm_up(translator: Any) -> None:
        time.sleep(0.2)
        ended.append(time.monotonic())

    ended: list[float] = []
    monkeypatch.setattr("jumok.server.workers.worker._warm_up_alignment", warm_up)
    _, aligned = answers_of(
        {"models": [str(model)]}, {"texts": ["one two"], "align": True, "needs_torch": True}
    )
    assert 0 < aligned["seconds"] <= time.monotonic() - ended[0]


def test_a_worker_whose_first_message_is_not_json_is_an_error_at_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # This worker writes a message of two bytes, `??`, which is not JSON.
    code = "import os, sys; os.write(1, b'\\x02\\x00\\x00\\x00??'); sys.stdin.read()"
    monkeypatch.setattr("jumok.server.workers.pool.WORKER_CODE", code)

    async def run() -> None:
        handle = WorkerHandle(WorkQueue(Limits(), workers=1), {}, Limits(), lambda *_, **__: None)
        try:
            with pytest.raises(ModelFolderError, match="JSONDecodeError"):
                await handle.start()
        finally:
            await handle.stop()

    asyncio.run(run())


@pytest.mark.medium
def test_a_worker_ignores_sigterm(model: Path, tmp_path: Path) -> None:
    """systemd sends SIGTERM to every process of a service, but batches in progress must not be lost."""
    with serving_in_thread(tmp_path, model, workers=1) as server:
        [worker] = server.worker_pids()
        os.kill(worker, signal.SIGTERM)
        assert server.post("/translate", {"q": "one", "source": "en", "target": "de"}).status == 200
        assert server.worker_pids() == [worker]
        assert not [line for line in server.events() if line["event"] == "worker_lost"]


@pytest.mark.parametrize("error", [ModelFolderError, OSError, EOFError, ValueError])
def test_restarts_of_a_failing_worker_back_off(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    pauses: list[float] = []
    sleep, this_thread = asyncio.sleep, threading.current_thread()

    async def pause(seconds: float) -> None:
        if threading.current_thread() is not this_thread:  # a server that another test runs in a thread
            return await sleep(seconds)
        pauses.append(seconds)
        if len(pauses) == 8:
            raise asyncio.CancelledError
        return None

    async def fail(self: WorkerHandle) -> None:
        raise error("damaged")

    monkeypatch.setattr("jumok.server.workers.pool.asyncio.sleep", pause)
    monkeypatch.setattr(WorkerHandle, "_start_process", fail)

    async def run() -> None:
        handle = WorkerHandle(WorkQueue(Limits(), workers=1), {}, Limits(), lambda *_, **__: None)
        with pytest.raises(asyncio.CancelledError):
            await handle._restart()

    asyncio.run(run())
    assert pauses == [0, 1, 2, 4, 8, 16, 30, 30]


@pytest.mark.medium
def test_health_is_503_if_no_worker_can_be_started(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    with serving_in_thread(tmp_path, folder, workers=1) as server:
        assert server.get("/health").json == {"status": "ok"}
        (folder / "weights.safetensors").write_bytes(b"damaged")
        os.kill(server.worker_pids()[0], signal.SIGKILL)
        server.wait_for("worker_not_started")
        answer = server.get("/health")
        assert (answer.status, answer.json) == (503, {"error": "No worker is ready."})
        assert answer.headers["retry-after"] == "5"


@pytest.mark.medium
def test_signals_are_handled_while_models_are_loaded(model: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "jumok", "serve", str(model), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=stream,
        )
        with process:
            starting = RunningServer("http://127.0.0.1:1", log, process)  # its port is not used here
            starting.wait_for("loading")
            starting.signal(signal.SIGHUP)
            time.sleep(0.1)
            assert process.poll() is None
            assert starting.stop() == 0
    assert starting.events()[-1]["event"] == "drained"


def test_a_cancelled_start_is_not_taken_for_a_drained_server_after_a_sighup() -> None:
    async def run() -> None:
        signals = _SignalHandlers()
        signals._on_signal(signal.SIGHUP)
        starting = asyncio.create_task(signals.unless_terminated(asyncio.sleep(60)))
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(run())


@pytest.mark.medium
def test_a_port_of_a_server_that_is_still_loading_models_is_reported_at_once(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Once, two servers that started together both bound the port. One failed after it had loaded models."""
    from jumok.cli import main

    port = free_port()
    log = tmp_path / "log.jsonl"
    with log.open("wb") as stream:
        command = [sys.executable, "-m", "jumok", "serve", str(model), "--port", str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream) as process:
            first = RunningServer(f"http://127.0.0.1:{port}", log, process)
            try:
                first.wait_for("loading")
                with restored_logging(), pytest.raises(SystemExit) as end:
                    main(["serve", str(model), "--port", str(port)])
                assert end.value.code == 2
                error = capfd.readouterr().err
                assert f"Cannot listen on 127.0.0.1:{port}" in error
                assert "loading" not in error
                # A request that arrives while models are loading is answered after they are loaded.
                assert first.get("/health").status == 200
            finally:
                assert first.stop() == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_worker_is_replaced_and_every_request_is_answered(
    model: Path, tmp_path: Path, signal_number: int
) -> None:
    with serving(tmp_path, model, "--workers", "2") as server:
        victims = server.worker_pids()
        assert len(victims) == 2
        stop = threading.Event()
        statuses: list[int] = []

        def ask(number: int) -> None:
            while not stop.is_set():
                fields = {"q": sentences(16, seed=number), "source": "en", "target": "de"}
                statuses.append(server.post("/translate", fields).status)

        with ThreadPoolExecutor(8) as clients:
            running = [clients.submit(ask, number) for number in range(8)]
            try:
                time.sleep(1)
                os.kill(victims[0], signal_number)
                server.wait_for("worker_lost")
                server.wait_for("worker_ready", 3)
            finally:
                stop.set()
            for future in running:
                future.result()
        assert set(statuses) == {200}
        assert victims[0] not in server.worker_pids()
        assert len(server.worker_pids()) == 2


@pytest.mark.slow
def test_sigterm_answers_accepted_requests_then_exits_with_0(model: Path, tmp_path: Path) -> None:
    with serving(tmp_path, model, "--workers", "1") as server:
        texts = sentences(1000)
        answers: list[int] = []

        def ask(_: int) -> None:
            answer = server.post("/translate", {"q": texts, "source": "en", "target": "de"})
            answers.append(len(answer.json["translatedText"]))

        with ThreadPoolExecutor(6) as clients:
            running = [clients.submit(ask, number) for number in range(6)]
            wait_until(lambda: "jumok_open_requests 6.0\n" in server.get("/metrics").text)
            code = server.stop()
            for future in running:
                future.result()
        assert code == 0
        assert answers == [1000] * 6
        assert server.events()[-1]["event"] == "drained"
        assert not server.worker_pids()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port), timeout=5)


@pytest.mark.slow
def test_sigterm_resets_no_connection(model: Path, tmp_path: Path) -> None:
    for number in range(5):
        with serving(tmp_path / str(number), model, "--workers", "1") as server:
            answered: list[int] = []

            def ask(_: int, server: RunningServer = server, answered: list[int] = answered) -> None:
                fields = {"q": sentences(2), "source": "en", "target": "de"}
                while True:
                    try:
                        answered.append(server.post("/translate", fields).status)
                    except ConnectionRefusedError:  # the port is closed; a reset connection fails the test
                        return

            with ThreadPoolExecutor(16) as clients:
                running = [clients.submit(ask, client) for client in range(16)]
                time.sleep(1)
                server.signal(signal.SIGTERM)
                for future in running:
                    future.result()
            assert set(answered) == {200}
            assert server.process is not None
            assert server.process.wait(timeout=60) == 0


@pytest.mark.slow
def test_sighup_reloads_the_models_without_dropping_a_request(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    with serving(tmp_path, folder, "--workers", "1") as server:
        before = server.worker_pids()
        stop = threading.Event()
        statuses: list[int] = []

        def ask() -> None:
            fields = {"q": "one two", "source": "en", "target": "de"}
            while not stop.is_set():
                statuses.append(server.post("/translate", fields).status)
                time.sleep(0.05)

        with ThreadPoolExecutor(1) as clients:
            running = clients.submit(ask)
            try:
                server.signal(signal.SIGHUP)
                server.wait_for("reloaded")
                (folder / "weights.safetensors").write_bytes(b"damaged")
                server.signal(signal.SIGHUP)
                server.wait_for("reload_failed")
            finally:
                stop.set()
            running.result()
        assert set(statuses) == {200}
        after = server.worker_pids()
        assert len(after) == 1
        assert not set(before) & set(after)
        assert server.get("/health").status == 200


def test_a_thread_of_a_cancelled_request_keeps_its_slot_until_it_ends(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        service = Service(ServerSettings(models=(model,)), read_language_pairs([model]))
        started, end = threading.Event(), threading.Event()

        def fail_later() -> None:
            started.set()
            end.wait(30)
            raise ValueError("nobody waits for this")

        cancelled = asyncio.create_task(service.thread_slot.run(fail_later))
        await asyncio.to_thread(started.wait, 30)
        cancelled.cancel()
        following = asyncio.create_task(service.thread_slot.run(int, "7"))
        _, unfinished = await asyncio.wait([following], timeout=0.2)
        assert unfinished, "two threads ran at the same time"
        assert cancelled.cancelled()
        end.set()
        assert await following == 7
        with pytest.raises(ValueError, match="invalid literal"):
            await service.thread_slot.run(int, "seven")
        assert await service.thread_slot.run(int, "8") == 8

    asyncio.run(run())
    gc.collect()
    # asyncio logs an exception that nobody retrieves.
    assert "nobody waits for this" not in caplog.text


def test_a_reload_with_models_in_another_order_is_refused(
    model: Path, second_model: Path, tmp_path: Path
) -> None:
    """The set of languages is the same, but the server addresses models by index."""
    other = make_digit_model(tmp_path / "other", "de", "en")
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder, original in zip(folders, (model, second_model, other), strict=True):
        shutil.copytree(original, folder)

    async def run() -> list[str]:
        events: list[str] = []
        service = Service(ServerSettings(models=tuple(folders)), read_language_pairs(folders))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jumok.server.service.log_event", lambda event, **_: events.append(event))
            for replacement, folder in ((second_model, folders[2]), (other, folders[1])):
                shutil.rmtree(folder)
                shutil.copytree(replacement, folder)
            await service.reload()
        return events

    assert asyncio.run(run()) == ["reload_refused"]


def test_a_reload_accepts_a_model_that_divides_texts_differently(model: Path, tmp_path: Path) -> None:
    """The new model has the same languages, but was trained on paragraphs, so texts are not split for it."""
    folder = tmp_path / "model"
    shutil.copytree(model, folder)

    async def run() -> list[str]:
        events: list[str] = []
        service = Service(ServerSettings(models=(folder,)), read_language_pairs([folder]))
        assert [pair.sentences for pair in service.language_pairs.model_pairs] == ["split"]
        card = read_manifest(folder / CARD)
        card["facts"][MULTIPLE_SENTENCES] = 1.0
        (folder / CARD).write_bytes(json_with_checksum(card))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jumok.server.service.log_event", lambda event, **_: events.append(event))
            patch.setattr(service.pool, "reload", lambda: asyncio.sleep(0))  # the workers are not started
            await service.reload()
        assert [pair.sentences for pair in service.language_pairs.model_pairs] == ["keep"]
        return events

    assert asyncio.run(run()) == ["reloaded"]


@pytest.mark.medium
def test_a_replaced_model_folder_is_not_served_under_the_old_languages(
    model: Path, second_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    with serving_in_thread(tmp_path, folder, workers=1) as server:
        shutil.rmtree(folder)
        shutil.copytree(second_model, folder)
        os.kill(server.worker_pids()[0], signal.SIGKILL)
        server.wait_for("worker_not_started")
        assert server.get("/health").status == 503


@pytest.mark.medium
def test_a_disconnected_client_leaves_the_queue(model: Path, tmp_path: Path) -> None:
    with serving_in_thread(tmp_path, model) as server:
        body = json.dumps({"q": sentences(1000), "source": "en", "target": "de"}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        wait_until(lambda: "jumok_open_requests 1.0\n" in server.get("/metrics").text)
        wait_until(lambda: "jumok_waiting_sentences 0.0\n" not in server.get("/metrics").text)
        connection.close()
        # The log has status 499 for a request whose client has disconnected.
        wait_until(lambda: any(line.get("status") == 499 for line in server.events()))
        metrics = server.get("/metrics").text
        assert "jumok_open_requests 0.0\n" in metrics
        assert "jumok_waiting_sentences 0.0\n" in metrics


def test_a_client_that_disconnects_from_a_stream_leaves_the_queue(shared_server: RunningServer) -> None:
    body = json.dumps({"q": sentences(1000), "source": "en", "target": "de", "greedy": True}).encode()
    for size in (1, 5_000, 50_000):  # bytes that the client reads before it disconnects
        connection = http.client.HTTPConnection("127.0.0.1", shared_server.port, timeout=30)
        connection.request("POST", "/v1/translate/stream", body, {"Content-Type": "application/json"})
        assert connection.getresponse().read(size)
        connection.close()
    empty_queue = ("jumok_open_requests 0.0\n", "jumok_waiting_sentences 0.0\n")
    wait_until(lambda: all(line in shared_server.get("/metrics").text for line in empty_queue))


def test_a_model_that_cannot_be_loaded_ends_the_server_at_start(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from jumok.cli import main

    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    (folder / "weights.safetensors").write_bytes(b"damaged")
    with restored_logging(), pytest.raises(SystemExit) as end:
        main(["serve", str(folder), "--port", "0"])
    assert end.value.code == 2
    assert "jumok serve:" in capfd.readouterr().err
