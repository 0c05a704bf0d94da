"""The routes of /v1 (scores, candidates, tags, streams, explanations), and the OpenAPI document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

import jumok
from jumok.analysis.explainer import explain
from jumok.analysis.json_format import explanation_from_json
from jumok.text.words import split_words
from support.serve_process import serving

if TYPE_CHECKING:
    from pathlib import Path

    from support.serve_process import RunningServer

LANGUAGES = {"source": "en", "target": "de"}
REQUEST = {"q": "one two. three four. five", **LANGUAGES}
SCHEMATHESIS_HOOKS = '''
import schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    """With the source `auto`, replace random characters, whose language the server cannot detect."""
    if not isinstance(case.body, dict) or case.body.get("source") != "auto":
        return
    sentence, q = "The house is on the hill.", case.body.get("q")
    if isinstance(q, str) and any(map(str.isalpha, q)):
        case.body["q"] = sentence
    if isinstance(q, list) and all(isinstance(text, str) for text in q):
        case.body["q"] = [sentence for text in q]
    if case.body.get("file", []) != []:
        case.body["file"] = sentence
'''


def test_v1_returns_scores_alternatives_and_alignments(shared_server: RunningServer) -> None:
    answer = shared_server.post("/v1/translate", {**REQUEST, "n_best": 2, "alignment": True}).json
    [translation] = answer["translations"]
    assert translation["source"] == "en"
    assert translation["pivot"] == []
    assert 0 <= translation["confidence"] <= 1
    assert translation["score"] <= 0
    assert len(translation["alternatives"]) <= 1
    assert translation["alignment"]
    for link in translation["alignment"]:
        assert REQUEST["q"][slice(*link["source"])].strip()
        assert translation["text"][slice(*link["target"])].strip()
    pivoted = shared_server.post("/v1/translate", {**REQUEST, "target": "fr"}).json
    assert pivoted["translations"][0]["pivot"] == ["de"]


def test_v1_returns_the_probability_of_each_word(shared_server: RunningServer) -> None:
    request = {**REQUEST, "words": True, "n_best": 2, "alignment": True}
    [best] = shared_server.post("/v1/translate", request).json["translations"]
    for ranked in (best, *best["alternatives"]):
        words = [ranked["text"][slice(*word["span"])] for word in ranked["words"]]
        assert words == split_words(ranked["text"])
        assert all(0 <= word["probability"] <= 1 for word in ranked["words"])
        targets = {tuple(link["target"]) for link in ranked["alignment"]}
        assert targets <= {tuple(word["span"]) for word in ranked["words"]}
    [pivoted] = shared_server.post("/v1/translate", {**request, "target": "fr"}).json["translations"]
    assert all(0 <= word["probability"] <= 1 for word in pivoted["words"])


def test_candidates_are_other_words_with_the_rest_of_the_translation(shared_server: RunningServer) -> None:
    request = {"q": "one two three", "source": "en", "target": "de"}
    text = shared_server.post("/v1/translate", request).json["translations"][0]["text"]
    prefix = split_words(text)[0]
    candidates = shared_server.post("/v1/candidates", {**request, "prefix": prefix, "count": 3}).json[
        "candidates"
    ]
    assert 0 < len(candidates) <= 3
    for candidate in candidates:
        words = split_words(candidate["text"])
        assert words[:2] == [prefix, candidate["word"]]
        assert candidate["words"][1]["probability"] == candidate["probability"]
        assert all(request["q"][slice(*link["source"])] for link in candidate["alignment"])
    with_space = shared_server.post("/v1/candidates", {**request, "prefix": f"{prefix} ", "count": 3})
    assert with_space.json["candidates"] == candidates
    two_sentences = shared_server.post(
        "/v1/candidates", {**request, "q": "One two three. Four five six seven."}
    )
    assert two_sentences.status == 409
    assert two_sentences.json["error"].startswith("q has 2 sentences.")
    refused = shared_server.post("/v1/candidates", {**request, "target": "fr"})
    assert (refused.status, "no single model" in refused.json["error"]) == (400, True)


def test_tags_that_the_model_lacks_and_too_many_tags_are_refused(shared_server: RunningServer) -> None:
    for path in ("/v1/translate", "/v1/translate/stream", "/v1/candidates"):
        answer = shared_server.post(path, {"q": "one", "source": "en", "target": "de", "tags": ["<rude>"]})
        assert answer.status == 400
        assert "has no tag '<rude>'. It has no tags" in answer.json["error"]
    for path in ("/v1/translate", "/v1/translate/stream"):  # tags are checked even if nothing is translated
        answer = shared_server.post(path, {"q": "one", "source": "de", "target": "de", "tags": "<rude>"})
        assert answer.status == 400
        assert "this server has no tag '<rude>'. It has no tags" in answer.json["error"]
    for tags in (["<a>"] * 9, 3):
        answer = shared_server.post("/v1/translate", {**REQUEST, "tags": tags})
        assert answer.status == 400
        assert "is not an array of at most 8 tags" in answer.json["error"]
    assert shared_server.post("/v1/translate", {**REQUEST, "tags": []}).status == 200


def test_a_stream_reports_the_progress_of_a_file(shared_server: RunningServer) -> None:
    answer = shared_server.post_file(
        "a.txt", b"one two.\nthree", path="/v1/translate_file/stream", **LANGUAGES
    )
    assert answer.headers["content-type"].startswith("text/event-stream")
    *progress, file = [event.split("\n") for event in answer.text.strip().split("\n\n")]
    assert progress
    assert all(name == "event: progress" for name, _ in progress)
    assert file[0] == "event: file"
    url = json.loads(file[1].removeprefix("data: "))["translatedFileUrl"]
    plain = shared_server.post_file("a.txt", b"one two.\nthree", **LANGUAGES).json["translatedFileUrl"]
    paths = [urlsplit(address).path for address in (url, plain)]
    assert shared_server.get(paths[0]).body == shared_server.get(paths[1]).body
    refused = shared_server.post_file("a.xyz", b"one", path="/v1/translate_file/stream", **LANGUAGES)
    assert refused.status == 400
    assert "error" in refused.json


@pytest.mark.parametrize("target", ["de", "fr"])  # fr through de
def test_the_progress_of_a_file_counts_each_sentence_once(shared_server: RunningServer, target: str) -> None:
    fields = {"source": "en", "target": target}
    answer = shared_server.post_file("a.txt", b"one two.\nthree", path="/v1/translate_file/stream", **fields)
    *progress, _ = [event.split("\n") for event in answer.text.strip().split("\n\n")]
    counts = [json.loads(data.removeprefix("data: ")) for _, data in progress]
    assert {count["total"] for count in counts} == {2}
    assert all(0 <= count["done"] <= 2 for count in counts)


def test_sentences_of_a_stream_have_their_spans_in_the_text(shared_server: RunningServer) -> None:
    text = "  One two.  Three four.\n\nfive\n"
    events = stream_events(shared_server, q=text)
    sentences = [data for name, data in events if name == "sentence"]
    assert [text[slice(*data["span"])] for data in sentences] == ["One two.", "Three four.", "five"]
    [whole] = [data["text"] for name, data in events if name == "text"]
    joined = "".join(data["before"] + data["text"] for data in sentences)
    assert whole == joined + text[sentences[-1]["span"][1] :]


def stream_events(server: RunningServer, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and the data of each event of a stream."""
    answer = server.post("/v1/translate/stream", {**REQUEST, **fields})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [event.split("\n") for event in answer.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in events]


def test_a_stream_has_one_event_per_sentence(shared_server: RunningServer, model: Path) -> None:
    events = stream_events(shared_server, q=["one two three. Four five six.\nseven", "...", "eight"])
    assert [name for name, _ in events] == ["sentence"] * 3 + ["text", "text", "sentence", "text", "done"]
    expected = jumok.load(model).translate(["one two three.", "Four five six.", "seven", "eight"])
    sentences = [data for name, data in events if name == "sentence"]
    assert [data["text"] for data in sentences] == [translation.text for translation in expected]
    assert [(data["index"], data["sentence"]) for data in sentences] == [(0, 0), (0, 1), (0, 2), (2, 0)]


def test_a_stream_has_an_event_with_each_whole_text(shared_server: RunningServer) -> None:
    for fields in ({"source": "en"}, {"source": "auto"}, {"source": "en", "target": "en"}):
        request = {
            **REQUEST,
            "q": ["  one two three. Four five six.\n\n* seven\n", "...", "das ist nicht der Hund"],
            **fields,
        }
        whole = shared_server.post("/v1/translate", request).json["translations"]
        streamed = [data["text"] for name, data in stream_events(shared_server, **request) if name == "text"]
        assert streamed == [translation["text"] for translation in whole]


def test_a_proxy_is_asked_not_to_buffer_a_stream(shared_server: RunningServer) -> None:
    answer = shared_server.post("/v1/translate/stream", REQUEST)
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-store"


def test_a_greedy_stream_has_events_with_partial_texts(shared_server: RunningServer, model: Path) -> None:
    [expected] = jumok.load(model).translate(["one two three four five"], beam=1)
    events = stream_events(shared_server, q="one two three four five", greedy=True)
    *partial, sentence, text, done = events
    assert [name for name, _ in partial] == ["partial"] * len(partial)
    assert [sentence[0], text[0], done[0]] == ["sentence", "text", "done"]
    assert sentence[1]["text"] == expected.text
    texts = [data["text"] for _, data in partial]
    assert len(texts) > 2
    assert len(set(texts)) > 2
    assert all(expected.text.startswith(text) for text in texts)
    refused = shared_server.post("/v1/translate/stream", {**REQUEST, "greedy": True, "n_best": 2})
    assert refused.status == 400
    assert "n_best" in refused.json["error"]


def test_a_stream_names_pivots_and_detected_languages(shared_server: RunningServer) -> None:
    events = stream_events(shared_server, target="fr", greedy=True)
    assert events[-2][1]["pivot"] == ["de"]
    mixed = stream_events(
        shared_server, q=["the house is on the hill", "das ist nicht der Hund"], source="auto"
    )
    assert [data["source"] for name, data in mixed if name == "text"] == ["en", "de"]
    assert [data["text"] for name, data in mixed if name == "sentence"][1] == "das ist nicht der Hund"


def test_an_explanation_over_http_equals_that_of_the_library(
    shared_server: RunningServer, model: Path
) -> None:
    from jumok.analysis.changes import Silence

    request = {"q": "one two three", "source": "en", "target": "de"}
    translator = jumok.load(model)
    answer = shared_server.post("/v1/explain", request)
    assert answer.status == 200
    assert explanation_from_json(answer.text).text == explain(translator, "one two three").text
    change = {"kind": "silence", "site": "cross", "layer": 0, "head": 1}
    changed = explanation_from_json(shared_server.post("/v1/explain", {**request, "changes": [change]}).text)
    expected = explain(translator, "one two three", edit=Silence("cross", 0, 1))
    assert changed.text == expected.text
    assert changed.score == pytest.approx(expected.score, abs=1e-3)
    with_translation = shared_server.post("/v1/explain", {**request, "translation": "vier neun"}).json
    assert with_translation["target"]["text"] == "vier neun"


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"q": ""}, 400, "missing q parameter"),
        ({"q": ["one"]}, 400, "q parameter is not a string"),
        ({"q": "x" * 1001}, 400, "at most 1000"),
        ({"target": "fr"}, 400, "no single model translates from en to fr"),
        ({"source": "xx"}, 400, "no single model translates from xx"),
        ({"changes": [{"kind": "shout", "site": "cross"}]}, 400, "changes.0"),
        ({"changes": [{"kind": "silence", "site": ["cross"]}]}, 400, "changes.0"),
        ({"changes": {"a": "b"}}, 400, "changes"),
        ({"surprise": 1}, 400, "surprise"),
        ({"changes": [{"kind": "silence", "site": "cross", "head": 7}]}, 409, "no head 7"),
        ({"translation": "😀" * 2000}, 409, "attention weights; at most 4,000,000 are allowed"),
        ({"q": "😀" * 1000, "translation": "eins"}, 409, "attention weights; at most 4,000,000 are allowed"),
    ],
)
def test_invalid_explain_requests_are_refused_with_a_reason(
    shared_server: RunningServer, fields: dict[str, Any], status: int, words: str
) -> None:
    answer = shared_server.post("/v1/explain", {"q": "one", "source": "en", "target": "de", **fields})
    assert answer.status == status
    assert words in answer.json["error"]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("schemathesis") is None, reason="missing optional part: schemathesis")
def test_the_openapi_document_matches_the_server(model: Path, second_model: Path, tmp_path: Path) -> None:
    (tmp_path / "language_hooks.py").write_text(SCHEMATHESIS_HOOKS, encoding="utf-8")
    with serving(tmp_path, model, second_model, "--workers", "1", "--requests-per-minute", "0") as server:
        arguments = ["--checks", "all", "--max-examples", "10", "--seed", "1", "--request-timeout", "60"]
        program = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]
        result = subprocess.run(
            [*program, "run", f"{server.url}/spec", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            cwd=tmp_path,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "language_hooks", "PYTHONPATH": str(tmp_path)},
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert "No issues found" in result.stdout
