"""The queue and the workers: batches with strangers, deaths, drains, reloads, and clients that leave."""

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
from serve_models import make_digits, sentences
from serve_process import Served, own_journal, serving, serving_here

import jumok
import jumok.serve.worker
from jumok.decoding import Shortlist
from jumok.errors import ModelFolderError
from jumok.serve.directions import Direction, read_directions
from jumok.serve.frames import pack, read_frame
from jumok.serve.journal import write_journal
from jumok.serve.limits import Limits
from jumok.serve.pool import Post
from jumok.serve.queueing import BATCH_SENTENCES, BusyError, Kind, SentenceQueue, Waiting, Wish
from jumok.serve.service import ServeSettings, Service
from jumok.serve.translating import Renderer
from jumok.serve.worker import work
from jumok.storage import store_shortlist

if TYPE_CHECKING:
    from pathlib import Path

KIND = Kind(0)


# --- The queue ----------------------------------------------------------------------------------------------


def test_a_batch_holds_the_oldest_and_those_of_like_length() -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(), workers=1)
        oldest = Waiting(KIND, "x" * 50)
        others = [Waiting(KIND, "x" * length) for length in range(1, 400)]
        foreign = Waiting(Kind(1), "x" * 50)
        queue.add([oldest, *others, foreign])
        batch = await queue.take()
        assert oldest in batch
        assert len(batch) == BATCH_SENTENCES
        assert foreign not in batch
        lengths = [len(one.text) for one in batch]
        assert max(lengths) - min(lengths) <= BATCH_SENTENCES
        assert len(queue) == 401 - BATCH_SENTENCES

    asyncio.run(run())


def test_a_full_queue_refuses_all_of_a_request_or_none() -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(waiting_sentences=10, waiting_characters=1000), workers=1)
        queue.add([Waiting(KIND, "one") for _ in range(8)])
        with pytest.raises(BusyError) as refused:
            queue.add([Waiting(KIND, "two") for _ in range(3)])
        assert refused.value.seconds >= 1
        assert len(queue) == 8
        queue.add([Waiting(KIND, "two")])
        with pytest.raises(BusyError):
            queue.add([Waiting(KIND, "x" * 1000)])

    asyncio.run(run())


def test_what_workers_hold_counts_towards_how_far_behind_the_server_is() -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(answer_seconds=60), workers=1)
        queue.add([Waiting(KIND, "x" * 1_000) for _ in range(7)])
        queue.note_done(await queue.take(), 35.0)
        assert queue.seconds_behind == 0
        queue.add([Waiting(KIND, "x" * 1_000) for _ in range(7)])
        held = await queue.take()
        assert len(queue) == 0
        assert queue.seconds_behind == pytest.approx(35)
        with pytest.raises(BusyError):
            queue.add([Waiting(KIND, "one")])
        queue.put_back(held)
        assert queue.seconds_behind == pytest.approx(35)
        queue.note_done(await queue.take(), 35.0)
        queue.add([Waiting(KIND, "one")])

    asyncio.run(run())


def test_what_is_withdrawn_frees_its_place_and_what_is_put_back_comes_first() -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(waiting_sentences=4), workers=1)
        first = [Waiting(KIND, "one") for _ in range(4)]
        queue.add(first)
        queue.withdraw(first[1:])
        assert len(queue) == 1
        held = await queue.take()
        queue.add([Waiting(KIND, "x" * 40) for _ in range(3)])
        queue.put_back([*held, first[2]])
        assert len(queue) == 4  # the one that nobody waits for did not come back
        assert held[0] in await queue.take()

    asyncio.run(run())


def test_two_free_workers_share_what_waits() -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(), workers=2)
        takers = [asyncio.create_task(queue.take()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.add([Waiting(KIND, "one two") for _ in range(40)])
        batches = await asyncio.gather(*takers)
        assert sorted(len(batch) for batch in batches) == [20, 20]

    asyncio.run(run())


def test_single_sentences_go_to_the_worker_that_has_worked_last() -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(), workers=3)
        takers = {name: asyncio.create_task(queue.take()) for name in "abc"}
        chosen = ""
        for _ in range(5):
            await asyncio.sleep(0)
            queue.add([Waiting(KIND, "one")])
            await asyncio.wait(takers.values(), return_when=asyncio.FIRST_COMPLETED)
            [name] = [name for name, task in takers.items() if task.done()]
            chosen += name
            takers[name] = asyncio.create_task(queue.take())
        assert chosen == "ccccc"
        for task in takers.values():
            task.cancel()

    asyncio.run(run())


@pytest.mark.parametrize(("requests", "gathered"), [(2, False), (3, True)])
def test_others_are_waited_for_only_where_there_are_more_requests_than_workers(
    requests: int, gathered: bool
) -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(), workers=2)
        queue.open_requests = requests
        queue.add([Waiting(KIND, "one")])
        taking = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        assert taking.done() is not gathered
        queue.add([Waiting(KIND, "two")])
        assert len(await taking) == 1 + gathered

    asyncio.run(run())


def test_an_explanation_is_alone_in_its_batch() -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(), workers=1)
        queue.add([Waiting(Kind(0, Wish(view="explain")), "{}") for _ in range(3)])
        assert [len(await queue.take()) for _ in range(3)] == [1, 1, 1]

    asyncio.run(run())


def test_what_came_to_nothing_is_tried_again_in_small_batches_of_its_own() -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(), workers=1)
        queue.add([Waiting(KIND, "one") for _ in range(40)])
        held = await queue.take()
        for sentence in held:
            sentence.tried = True
        queue.put_back(held)
        queue.add([Waiting(KIND, "one") for _ in range(40)])
        batches = [await queue.take() for _ in range(6)]
        assert [len(batch) for batch in batches] == [8, 8, 8, 8, 8, 40]
        assert all(sentence.tried for batch in batches[:5] for sentence in batch)

    asyncio.run(run())


def test_what_was_accepted_is_not_refused_in_the_middle_of_its_way() -> None:
    async def run() -> None:
        limits = Limits(waiting_sentences=4)
        queue = SentenceQueue(limits, workers=1)
        way = [Direction(0, "en", "de"), Direction(1, "de", "fr")]
        asking = asyncio.create_task(Renderer(queue, limits).render(["one\ntwo"], way, Wish()))
        first_leg = await queue.take()
        queue.add([Waiting(KIND, "strangers") for _ in range(4)])
        for sentence in first_leg:
            sentence.candidates.set_result([{"text": sentence.text.upper(), "score": 0.0}])
        while len(queue) < 6:
            assert not asking.done()
            await asyncio.sleep(0)
        asking.cancel()

    asyncio.run(run())


def test_faults_that_nobody_waits_for_any_more_are_no_errors(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        queue = SentenceQueue(Limits(), workers=1)
        sentences = [Waiting(KIND, "one") for _ in range(3)]
        queue.add(sentences)
        for sentence in sentences[:2]:
            sentence.candidates.set_exception(BusyError("lost", 1))
        queue.withdraw(sentences)
        del sentence, sentences
        gc.collect()

    asyncio.run(run())
    assert "never retrieved" not in caplog.text


# --- A worker -----------------------------------------------------------------------------------------------


def ordered(*orders: dict[str, Any]) -> list[dict[str, Any]]:
    """What a worker answers to these orders."""
    plain = {"model": 0, **Wish()._asdict()}
    first, *more = orders
    told = [{"shortlist": False, "directions": ["en_de"], **first}, *({**plain, **order} for order in more)]
    answers = io.BytesIO()
    work(io.BytesIO(b"".join(map(pack, told))), answers)
    answers.seek(0)
    return list(iter(lambda: read_frame(answers), None))


def test_a_worker_translates_links_explains_and_tells_what_it_says(model: Path) -> None:
    ready, plain, linked, *said, greedy, shown, odd = ordered(
        {"models": [str(model)]},
        {"texts": ["one two", ""], "n_best": 2},
        {"texts": ["one two", "three " * 250], "align": True},
        {"texts": ["one two three"], "greedy": True, "watched": True},
        {"texts": ["{}"], "view": "page"},
        {"texts": ["[]"], "view": "explain"},
    )
    assert ready == {"ready": os.getpid()}
    expected = jumok.load(model).translate(["one two"], n_best=2)[0]
    texts = [[candidate["text"] for candidate in row] for row in plain["candidates"]]
    assert texts == [[expected.text, *(text for text, _ in expected.alternatives)], [""]]
    assert all(row[0]["links"] for row in linked["candidates"])
    assert said[-1]["said"] == [0, greedy["candidates"][0][0]["text"]]
    assert len(said) > 2
    assert json.loads(shown["candidates"][0][0]["answer"])["live"]["models"][0]["name"] == "en → de"
    assert "cannot be answered" in odd["candidates"][0][0]["error"]


def test_a_text_that_cannot_be_translated_does_not_cost_the_worker(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What no known text does, an unknown one may: the same batch without it must go on."""
    whole = jumok.serve.worker._candidates

    def fail_sometimes(translator: Any, order: dict[str, Any], said: Any) -> Any:
        if "poison" in order["texts"]:
            raise ValueError("a secret text")
        return whole(translator, order, said)

    monkeypatch.setattr("jumok.serve.worker._candidates", fail_sometimes)
    with own_journal():
        write_journal(sys.stderr)
        _, failed, done = ordered({"models": [str(model)]}, {"texts": ["one", "poison"]}, {"texts": ["one"]})
    assert failed == {"failed": "ValueError"}
    assert done["candidates"]
    assert "secret" not in capsys.readouterr().err


def test_a_worker_says_why_it_has_no_model(tmp_path: Path) -> None:
    [answer] = ordered({"models": [str(tmp_path / "nowhere")]})
    assert "nowhere" in answer["error"]


def test_a_worker_keeps_to_the_shortlist_where_it_is_told_to(model: Path, tmp_path: Path) -> None:
    first = {"models": [str(shutil.copytree(model, tmp_path / "model"))], "shortlist": True}
    [answer] = ordered(first)
    assert "has no shortlist. Learn one with `jumok shortlist" in answer["error"]
    store_shortlist(tmp_path / "model", Shortlist(tuple(range(260, 290)), {}).to_bytes(), {})
    _, limited = ordered(first, {"texts": ["one two three"]})
    _, whole = ordered({**first, "shortlist": False}, {"texts": ["one two three"]})
    [expected] = jumok.load(tmp_path / "model", shortlist=True).translate(["one two three"])
    assert limited["candidates"][0][0]["text"] == expected.text
    assert whole["candidates"][0][0]["text"] != expected.text


# --- Workers ------------------------------------------------------------------------------------------------


def test_batched_with_strangers_a_sentence_gets_the_same_text_as_alone(served: Served, model: Path) -> None:
    texts = sentences(500)
    translator = jumok.load(model)
    alone = [translator.translate([text])[0].text for text in texts]

    def ask(start: int) -> list[str]:
        answer = served.post("/translate", {"q": texts[start::50], "source": "en", "target": "de"})
        assert answer.status == 200, answer.text
        translated: list[str] = answer.json["translatedText"]
        return translated

    with ThreadPoolExecutor(50) as clients:
        together = list(clients.map(ask, range(50)))
    assert [together[number % 50][number // 50] for number in range(500)] == alone


@pytest.mark.medium
def test_a_worker_that_dies_is_replaced(model: Path, tmp_path: Path) -> None:
    with serving_here(tmp_path, model, workers=1) as served:
        [victim] = served.worker_pids()
        os.kill(victim, signal.SIGKILL)
        answer = served.post("/translate", {"q": "one", "source": "en", "target": "de"})
        assert answer.status == 200
        served.wait_for("worker_ready", 2)
        assert "jumok_worker_deaths_total 1\n" in served.get("/metrics").text
        assert victim not in served.worker_pids()


@pytest.mark.medium
def test_a_worker_leaves_the_end_to_the_front(model: Path, tmp_path: Path) -> None:
    """systemd sends SIGTERM to every process of a service: what workers hold must not be lost by that."""
    with serving_here(tmp_path, model, workers=1) as served:
        [worker] = served.worker_pids()
        os.kill(worker, signal.SIGTERM)
        assert served.post("/translate", {"q": "one", "source": "en", "target": "de"}).status == 200
        assert served.worker_pids() == [worker]
        assert not [line for line in served.events() if line["event"] == "worker_lost"]


def test_a_worker_that_cannot_start_is_tried_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 8:
            raise asyncio.CancelledError

    async def fail(self: Post) -> None:
        raise ModelFolderError("damaged")

    monkeypatch.setattr("jumok.serve.pool.asyncio.sleep", pause)
    monkeypatch.setattr(Post, "_start", fail)

    async def run() -> None:
        post = Post(SentenceQueue(Limits(), workers=1), {}, lambda *_, **__: None)
        with pytest.raises(asyncio.CancelledError):
            await post._restart()

    asyncio.run(run())
    assert pauses == [0, 1, 2, 4, 8, 16, 30, 30]


@pytest.mark.medium
def test_where_no_worker_can_be_started_health_says_so(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    with serving_here(tmp_path, folder, workers=1) as served:
        assert served.get("/health").json == {"status": "ok"}
        (folder / "weights.safetensors").write_bytes(b"damaged")
        os.kill(served.worker_pids()[0], signal.SIGKILL)
        served.wait_for("worker_not_started")
        answer = served.get("/health")
        assert (answer.status, answer.json) == (503, {"error": "No worker is ready."})
        assert answer.headers["retry-after"] == "5"


@pytest.mark.medium
def test_signals_are_heard_while_models_are_loaded(model: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "jumok", "serve", str(model), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=stream,
        )
        with process:
            starting = Served("http://127.0.0.1:1", log, process)
            starting.wait_for("loading")
            starting.signal(signal.SIGHUP)
            time.sleep(0.1)
            assert process.poll() is None
            assert starting.stop() == 0
    assert starting.events()[-1]["event"] == "drained"


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_every_request_is_answered(model: Path, tmp_path: Path) -> None:
    with serving(tmp_path, model, "--workers", "2") as served:
        victims = served.worker_pids()
        assert len(victims) == 2
        stop = threading.Event()
        statuses: list[int] = []

        def ask(number: int) -> None:
            while not stop.is_set():
                fields = {"q": sentences(16, seed=number), "source": "en", "target": "de"}
                statuses.append(served.post("/translate", fields).status)

        with ThreadPoolExecutor(8) as clients:
            running = [clients.submit(ask, number) for number in range(8)]
            try:
                time.sleep(1)
                os.kill(victims[0], signal.SIGKILL)
                served.wait_for("worker_lost")
                served.wait_for("worker_ready", 3)
            finally:
                stop.set()
            for one in running:
                one.result()
        assert set(statuses) <= {200, 503}
        assert statuses.count(200) > len(statuses) / 2
        assert victims[0] not in served.worker_pids()
        assert len(served.worker_pids()) == 2


@pytest.mark.slow
def test_sigterm_answers_what_was_accepted_then_ends_well(model: Path, tmp_path: Path) -> None:
    with serving(tmp_path, model, "--workers", "1") as served:
        texts = sentences(1000)
        answers: list[int] = []

        def ask(_: int) -> None:
            answer = served.post("/translate", {"q": texts, "source": "en", "target": "de"})
            answers.append(len(answer.json["translatedText"]))

        with ThreadPoolExecutor(6) as clients:
            running = [clients.submit(ask, number) for number in range(6)]
            end = time.monotonic() + 30
            while "jumok_open_requests 6" not in served.get("/metrics").text and time.monotonic() < end:
                assert len(answers) < 6
                time.sleep(0.05)
            code = served.stop()
            for one in running:
                one.result()
        assert code == 0
        assert answers == [1000] * 6
        assert served.events()[-1]["event"] == "drained"
        assert not served.worker_pids()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", served.port), timeout=5)


@pytest.mark.slow
def test_sigterm_cuts_off_nobody_who_has_connected(model: Path, tmp_path: Path) -> None:
    for number in range(5):
        with serving(tmp_path / str(number), model, "--workers", "1") as served:
            answered: list[int] = []

            def ask(_: int, served: Served = served, answered: list[int] = answered) -> None:
                fields = {"q": sentences(2), "source": "en", "target": "de"}
                while True:
                    try:
                        answered.append(served.post("/translate", fields).status)
                    except ConnectionRefusedError:  # it is closed; a connection that is reset fails the test
                        return

            with ThreadPoolExecutor(16) as clients:
                running = [clients.submit(ask, client) for client in range(16)]
                time.sleep(1)
                served.signal(signal.SIGTERM)
                for one in running:
                    one.result()
            assert set(answered) == {200}
            assert served.process is not None
            assert served.process.wait(timeout=60) == 0


@pytest.mark.slow
def test_sighup_reads_the_models_anew_without_dropping_a_request(
    model: Path, second_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    with serving(tmp_path, folder, "--workers", "1") as served:
        before = served.worker_pids()
        stop = threading.Event()
        statuses: list[int] = []

        def ask() -> None:
            fields = {"q": "one two", "source": "en", "target": "de"}
            while not stop.is_set():
                statuses.append(served.post("/translate", fields).status)
                time.sleep(0.05)

        with ThreadPoolExecutor(1) as clients:
            running = clients.submit(ask)
            try:
                served.signal(signal.SIGHUP)
                served.wait_for("reloaded")
                (folder / "weights.safetensors").write_bytes(b"damaged")
                served.signal(signal.SIGHUP)
                served.wait_for("reload_failed")
            finally:
                stop.set()
            running.result()
        assert set(statuses) == {200}
        after = served.worker_pids()
        assert len(after) == 1
        assert not set(before) & set(after)
        assert served.get("/health").status == 200


def test_models_that_change_places_are_not_taken_for_one_another(
    model: Path, second_model: Path, tmp_path: Path
) -> None:
    """The languages stay the same, but each model is asked by its place."""
    other = make_digits(tmp_path / "other", "de", "en")
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder, made in zip(folders, (model, second_model, other), strict=True):
        shutil.copytree(made, folder)

    async def run() -> list[str]:
        told: list[str] = []
        service = Service(ServeSettings(models=tuple(folders)), read_directions(folders))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jumok.serve.service.note", lambda event, **_: told.append(event))
            for one, place in ((second_model, folders[2]), (other, folders[1])):
                shutil.rmtree(place)
                shutil.copytree(one, place)
            await service.reload()
        return told

    assert asyncio.run(run()) == ["reload_refused"]


@pytest.mark.medium
def test_a_folder_that_was_exchanged_does_not_serve_another_language(
    model: Path, second_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    with serving_here(tmp_path, folder, workers=1) as served:
        shutil.rmtree(folder)
        shutil.copytree(second_model, folder)
        os.kill(served.worker_pids()[0], signal.SIGKILL)
        served.wait_for("worker_not_started")
        assert served.get("/health").status == 503


@pytest.mark.medium
def test_a_client_that_leaves_frees_its_place(model: Path, tmp_path: Path) -> None:
    with serving_here(tmp_path, model) as served:
        body = json.dumps({"q": sentences(1000), "source": "en", "target": "de"}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        end = time.monotonic() + 30
        while "jumok_open_requests 1" not in served.get("/metrics").text and time.monotonic() < end:
            time.sleep(0.05)
        assert "jumok_waiting_sentences 0\n" not in served.get("/metrics").text
        connection.close()
        served_499 = []
        end = time.monotonic() + 5
        while not served_499 and time.monotonic() < end:
            time.sleep(0.05)
            served_499 = [line for line in served.events() if line.get("status") == 499]
        assert served_499
        metrics = served.get("/metrics").text
        assert "jumok_open_requests 0\n" in metrics
        assert "jumok_waiting_sentences 0\n" in metrics


def test_a_listener_that_leaves_a_stream_frees_its_place(served: Served) -> None:
    body = json.dumps({"q": sentences(1000), "source": "en", "target": "de", "greedy": True}).encode()
    for size in (1, 5_000, 50_000):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        connection.request("POST", "/v1/translate/stream", body, {"Content-Type": "application/json"})
        assert connection.getresponse().read(size)
        connection.close()
    gone = ("jumok_open_requests 0\n", "jumok_waiting_sentences 0\n")
    end = time.monotonic() + 20
    while not all(line in served.get("/metrics").text for line in gone):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_model_that_cannot_be_loaded_is_told_before_anything_is_served(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from jumok.cli import main

    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    (folder / "weights.safetensors").write_bytes(b"damaged")
    with own_journal(), pytest.raises(SystemExit) as end:
        main(["serve", str(folder), "--port", "0"])
    assert end.value.code == 2
    assert "jumok serve:" in capfd.readouterr().err
