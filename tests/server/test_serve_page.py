"""The page, streams, explanations, the OpenAPI document and `--check`."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

import jumok
from jumok.analysis.explainer import explain
from jumok.analysis.json_format import explanation_from_json
from jumok.cli import main
from jumok.inference.shortlist import Shortlist
from jumok.storage.model_folder import store_shortlist
from jumok.text.words import split_words
from support.serve_process import serving

if TYPE_CHECKING:
    from support.serve_process import Served

LANGUAGES = {"source": "en", "target": "de"}
REQUEST = {"q": "one two. three four. five", **LANGUAGES}
SCHEMATHESIS_HOOKS = '''
import schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    """Random characters are in no language, and the server says so: the source `auto` gets a sentence."""
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


def test_the_page_has_all_languages_and_works_without_javascript(served: Served, model: Path) -> None:
    page = served.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in ("auto", "en", "de", "fr"):
        assert f'<option value="{name}"' in page.text
    answer = served.post_form("/", {"q": "one two", "source": "en", "target": "de"})
    assert html.escape(jumok.load(model).translate(["one two"])[0].text) in answer.text
    assert '<option value="de" selected>' in answer.text
    refused = served.post_form("/", {"q": "<b>", "source": "xx", "target": "de"})
    assert refused.status == 400
    assert "xx is not supported" in refused.text
    assert "&lt;b&gt;</textarea>" in refused.text


def test_the_page_without_javascript_shows_pivot_languages(served: Served) -> None:
    request = {"q": "the house is on the hill", "source": "auto", "target": "fr"}
    for language, notice in (
        ("en", "Detected: English · Translated through: German<"),
        ("ko", "감지된 언어: 영어 · 경유 언어: 독일어<"),
    ):
        assert notice in served.post_form("/", request, **{"Accept-Language": language}).text
    same = served.post_form("/", {"q": "das Haus steht auf dem Berg", "source": "auto", "target": "de"}).text
    assert "Detected: German · This is already the target language: nothing was translated.<" in same
    for target, notice in (("fr", ">Translated through: German<"), ("de", 'role="status"><')):
        assert notice in served.post_form("/", {**request, "source": "en", "target": target}).text


def test_v1_returns_scores_alternatives_and_alignments(served: Served) -> None:
    answer = served.post("/v1/translate", {**REQUEST, "n_best": 2, "alignment": True}).json
    [one] = answer["translations"]
    assert one["source"] == "en"
    assert one["pivot"] == []
    assert 0 <= one["confidence"] <= 1
    assert one["score"] <= 0
    assert len(one["alternatives"]) <= 1
    for link in one["alignment"]:
        assert REQUEST["q"][slice(*link["source"])].strip()
        assert one["text"][slice(*link["target"])].strip()
    pivoted = served.post("/v1/translate", {**REQUEST, "target": "fr"}).json
    assert pivoted["translations"][0]["pivot"] == ["de"]


def test_v1_returns_the_probability_of_each_word(served: Served) -> None:
    request = {**REQUEST, "words": True, "n_best": 2, "alignment": True}
    [one] = served.post("/v1/translate", request).json["translations"]
    for ranked in (one, *one["alternatives"]):
        words = [ranked["text"][slice(*word["span"])] for word in ranked["words"]]
        assert words == split_words(ranked["text"])
        assert all(0 <= word["probability"] <= 1 for word in ranked["words"])
        targets = {tuple(link["target"]) for link in ranked["alignment"]}
        assert targets <= {tuple(word["span"]) for word in ranked["words"]}
    [through] = served.post("/v1/translate", {**request, "target": "fr"}).json["translations"]
    assert all(0 <= word["probability"] <= 1 for word in through["words"])


def test_candidates_are_other_words_with_the_rest_of_the_translation(served: Served) -> None:
    request = {"q": "one two three", "source": "en", "target": "de"}
    text = served.post("/v1/translate", request).json["translations"][0]["text"]
    prefix = split_words(text)[0]
    found = served.post("/v1/candidates", {**request, "prefix": prefix, "count": 3}).json["candidates"]
    assert 0 < len(found) <= 3
    for one in found:
        words = split_words(one["text"])
        assert words[:2] == [prefix, one["word"]]
        assert one["words"][1]["probability"] == one["probability"]
        assert all(request["q"][slice(*link["source"])] for link in one["alignment"])
    spaced = served.post("/v1/candidates", {**request, "prefix": f"{prefix} ", "count": 3}).json["candidates"]
    assert spaced == found, "a space at the end of the prefix changes nothing"
    two = served.post("/v1/candidates", {**request, "q": "One two three. Four five six seven."})
    assert (two.status, two.json["error"].startswith("q has 2 sentences.")) == (409, True)
    refused = served.post("/v1/candidates", {**request, "target": "fr"})
    assert (refused.status, "no single model" in refused.json["error"]) == (400, True)


def test_a_tag_that_the_model_lacks_is_refused(served: Served) -> None:
    for path in ("/v1/translate", "/v1/translate/stream", "/v1/candidates"):
        answer = served.post(path, {"q": "one", "source": "en", "target": "de", "tags": ["<rude>"]})
        assert answer.status == 400
        assert "has no tag '<rude>'. It has no tags" in answer.json["error"]
    for path in ("/v1/translate", "/v1/translate/stream"):  # also where nothing is translated
        answer = served.post(path, {"q": "one", "source": "de", "target": "de", "tags": "<rude>"})
        assert answer.status == 400
        assert "this server has no tag '<rude>'. It has no tags" in answer.json["error"]
    answer = served.post("/v1/translate", {**REQUEST, "tags": "<a>" * 9 + ""})
    assert answer.status == 400
    assert served.post("/v1/translate", {**REQUEST, "tags": 3}).status == 400
    assert served.post("/v1/translate", {**REQUEST, "tags": []}).status == 200


def test_a_file_is_translated_with_its_progress(served: Served) -> None:
    answer = served.post_file("a.txt", b"one two.\nthree", path="/v1/translate_file/stream", **LANGUAGES)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *progress, file = [event.split("\n") for event in answer.text.strip().split("\n\n")]
    assert all(name == "event: progress" for name, _ in progress)
    assert file[0] == "event: file"
    url = json.loads(file[1].removeprefix("data: "))["translatedFileUrl"]
    plain = served.post_file("a.txt", b"one two.\nthree", **LANGUAGES).json["translatedFileUrl"]
    paths = [urlsplit(one).path for one in (url, plain)]
    assert served.get(paths[0]).body == served.get(paths[1]).body
    refused = served.post_file("a.xyz", b"one", path="/v1/translate_file/stream", **LANGUAGES)
    assert refused.status == 400
    assert "error" in refused.json


def test_sentences_of_a_stream_say_where_they_stand(served: Served) -> None:
    text = "  One two.  Three four.\n\nfive\n"
    events = stream(served, q=text)
    sentences = [data for name, data in events if name == "sentence"]
    assert [text[slice(*data["span"])] for data in sentences] == ["One two.", "Three four.", "five"]
    [whole] = [data["text"] for name, data in events if name == "text"]
    joined = "".join(data["before"] + data["text"] for data in sentences)
    assert whole == joined + text[sentences[-1]["span"][1] :]


def stream(served: Served, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the events of a stream with their names."""
    answer = served.post("/v1/translate/stream", {**REQUEST, **fields})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [event.split("\n") for event in answer.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in events]


def test_a_stream_has_one_event_per_sentence(served: Served, model: Path) -> None:
    events = stream(served, q=["one two three. Four five six.\nseven", "...", "eight"])
    assert [name for name, _ in events] == ["sentence"] * 3 + ["text", "text", "sentence", "text", "done"]
    expected = jumok.load(model).translate(["one two three.", "Four five six.", "seven", "eight"])
    sentences = [data for name, data in events if name == "sentence"]
    assert [data["text"] for data in sentences] == [translation.text for translation in expected]
    assert [(data["index"], data["sentence"]) for data in sentences] == [(0, 0), (0, 1), (0, 2), (2, 0)]


def test_a_stream_has_each_whole_text_too(served: Served) -> None:
    for fields in ({"source": "en"}, {"source": "auto"}, {"source": "en", "target": "en"}):
        request = {
            **REQUEST,
            "q": ["  one two three. Four five six.\n\n* seven\n", "...", "das ist nicht der Hund"],
            **fields,
        }
        whole = served.post("/v1/translate", request).json["translations"]
        streamed = [data["text"] for name, data in stream(served, **request) if name == "text"]
        assert streamed == [translation["text"] for translation in whole]


def test_a_proxy_is_asked_not_to_buffer_a_stream(served: Served) -> None:
    answer = served.post("/v1/translate/stream", REQUEST)
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-store"


def test_a_greedy_stream_has_one_event_per_token(served: Served, model: Path) -> None:
    [expected] = jumok.load(model).translate(["one two three four five"], beam=1)
    events = stream(served, q="one two three four five", greedy=True)
    *partial, sentence, text, done = events
    assert [name for name, _ in partial] == ["partial"] * len(partial)
    assert [sentence[0], text[0], done[0]] == ["sentence", "text", "done"]
    assert sentence[1]["text"] == expected.text
    texts = [data["text"] for _, data in partial]
    assert len(texts) > 2
    assert len(set(texts)) > 2
    assert all(expected.text.startswith(text) for text in texts)
    refused = served.post("/v1/translate/stream", {**REQUEST, "greedy": True, "n_best": 2})
    assert refused.status == 400
    assert "n_best" in refused.json["error"]


def test_a_stream_with_pivots_and_detected_languages_ends_with_done(served: Served) -> None:
    events = stream(served, target="fr", greedy=True)
    assert events[-2][1]["pivot"] == ["de"]
    mixed = stream(served, q=["the house is on the hill", "das ist nicht der Hund"], source="auto")
    assert [data["source"] for name, data in mixed if name == "text"] == ["en", "de"]
    assert [data["text"] for name, data in mixed if name == "sentence"][1] == "das ist nicht der Hund"


def test_an_explanation_equals_that_of_the_library(served: Served, model: Path) -> None:
    from jumok.analysis.changes import Silence

    request = {"q": "one two three", "source": "en", "target": "de"}
    translator = jumok.load(model)
    answer = served.post("/v1/explain", request)
    assert answer.status == 200
    assert explanation_from_json(answer.text).text == explain(translator, "one two three").text
    change = {"kind": "silence", "site": "cross", "layer": 0, "head": 1}
    changed = explanation_from_json(served.post("/v1/explain", {**request, "changes": [change]}).text)
    expected = explain(translator, "one two three", edit=Silence("cross", 0, 1))
    assert changed.text == expected.text
    assert changed.score == pytest.approx(expected.score, abs=1e-3)
    given = served.post("/v1/explain", {**request, "translation": "vier neun"}).json
    assert given["target"]["text"] == "vier neun"


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
    served: Served, fields: dict[str, Any], status: int, words: str
) -> None:
    answer = served.post("/v1/explain", {"q": "one", "source": "en", "target": "de", **fields})
    assert answer.status == status
    assert words in answer.json["error"]


def test_the_attention_page_is_live(served: Served) -> None:
    page = served.post_form("/attention/en_de/", {"q": "one </script> two", "source": "auto"})
    assert page.status == 200
    assert '"sentence": "one \\u003c/script> two"' in page.text
    assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert served.get("/attention/en_de/").status == 200
    request = {"model": 0, "sentence": "one two", "changes": [], "prefix": []}
    explanation = served.post("/attention/en_de/explain", request).json
    assert explanation["format"] == "jumok-explanation"
    cell = {"site": "cross", "layer": 0, "head": 0, "query": 0, "key": 0}
    assert served.post("/attention/en_de/steps", {**request, "cell": cell}).json["steps"]
    assert "cross" in served.post("/attention/en_de/rank-heads", request).json["effect"]
    assert "value_norms" in served.post("/attention/en_de/measures", request).json
    assert "layers" in served.post("/attention/en_de/layers", request).json
    assert served.get("/attention/en_fr/").status == 400
    assert served.post("/attention/en_de/run", {}).status == 404
    invalid = {**request, "changes": [{"kind": "silence", "site": {"a": "b"}}]}
    assert served.post("/attention/en_de/explain", invalid).status == 400
    nested = b'{"changes": ' + b"[" * 900 + b"]" * 900 + b"}"
    headers = {"Content-Type": "application/json"}
    assert served.ask("POST", "/attention/en_de/explain", nested, headers).status == 400
    for operation in ("explain", "rank-heads", "steps"):
        large = served.post(f"/attention/en_de/{operation}", {**request, "target": "😀" * 2000, "cell": cell})
        assert large.status == 400
        assert "attention weights; at most 4,000,000 are allowed" in large.json["error"]
        unused = served.post(f"/attention/en_de/{operation}", {**request, "unused": "x" * 70_000})
        assert (unused.status, "65,536" in unused.json["error"]) == (413, True)
    assert served.post("/attention/en_de/explain", request).status == 200  # the worker is still there
    assert html.escape('"models": {"en_de": [], "de_fr": []}') in served.get("/").text


@pytest.mark.slow
@pytest.mark.skipif(find_spec("schemathesis") is None, reason="missing optional part: schemathesis")
def test_the_openapi_document_matches_the_server(model: Path, second_model: Path, tmp_path: Path) -> None:
    (tmp_path / "language_hooks.py").write_text(SCHEMATHESIS_HOOKS, encoding="utf-8")
    with serving(tmp_path, model, second_model, "--workers", "1", "--requests-per-minute", "0") as served:
        arguments = ["--checks", "all", "--max-examples", "10", "--seed", "1", "--request-timeout", "60"]
        program = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]
        ran = subprocess.run(
            [*program, "run", f"{served.url}/spec", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            cwd=tmp_path,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "language_hooks", "PYTHONPATH": str(tmp_path)},
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "No issues found" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            [],
            [
                "listens   http://127.0.0.1:5000, reachable from this machine only",
                "English → German",
                "keys      none",
            ],
        ),
        (
            ["--host", "0.0.0.0"],
            ["OTHER MACHINES TOO", "unsafe    Other machines can reach it and it requires no key"],
        ),
        (["--requests-per-minute", "0"], ["unsafe    Requests per minute are not limited"]),
        (["--allow-origin", "*"], ["unsafe    --allow-origin takes origins"]),
        (["--host", "::1"], ["listens   http://[::1]:5000, reachable from this machine only"]),
        (["--proxy", "nginx", "--proxy", "10.0.0.0/8"], ["unsafe    --proxy takes an address or a network"]),
        (["--allow-host", "*"], ["unsafe    --allow-host takes a name"]),
        (["--host", "0.0.0.0"], ["hosts     localhost, 0.0.0.0, any IP address\n"]),
        (
            ["--host", "0.0.0.0", "--proxy", "*"],
            ["cross the network unencrypted", "lets every client choose its own address"],
        ),
    ],
)
def test_check_describes_the_server_and_what_is_unsafe(
    model: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: list[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", str(model), "--check", *arguments])
    output = capsys.readouterr().out
    assert end.value.code == 0
    assert all(line in output for line in expected), output


def test_check_describes_shortlists_and_refuses_a_model_without_one(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    with pytest.raises(SystemExit) as end:
        main(["serve", str(folder), "--check", "--shortlist"])
    assert end.value.code == 2
    assert "has no shortlist. Learn one with `jumok shortlist" in capsys.readouterr().err
    store_shortlist(folder, Shortlist((4, 5), {}).to_bytes(), {})
    for arguments, expected in (
        (["--shortlist"], "shortlist used: a translation can depend"),
        ([], "shortlist not used"),
    ):
        with pytest.raises(SystemExit):
            main(["serve", str(folder), "--check", *arguments])
        assert expected in capsys.readouterr().out


@pytest.mark.medium
def test_a_server_uses_the_shortlist_of_its_model(model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    not_bytes = range(260, 290)  # after 4 special tokens and 256 bytes
    store_shortlist(folder, Shortlist(tuple(not_bytes), {}).to_bytes(), {})
    with serving(tmp_path, folder, "--workers", "1", "--shortlist") as served:
        answer = served.post("/translate", REQUEST | {"q": "one two three"}).json["translatedText"]
    limited, unlimited = (
        jumok.load(folder, shortlist=shortlist).translate(["one two three"])[0].text
        for shortlist in (True, False)
    )
    assert answer == limited != unlimited


def test_check_warns_about_keys_that_others_can_read(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("a-long-enough-secret\n", encoding="utf-8")
    keys.chmod(0o644)
    with pytest.raises(SystemExit):
        main(["serve", str(model), "--check", "--api-keys", str(keys)])
    output = capsys.readouterr().out
    assert f"unsafe    Others can read or write {keys}" in output
    assert "a-long-enough-secret" not in output


def test_check_trusts_keys_that_systemd_passes_to_the_service(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their access control list is shown as the permissions of the group."""
    keys = tmp_path / "keys"
    keys.write_text("a-long-enough-secret\n", encoding="utf-8")
    keys.chmod(0o440)
    for folder, trusted in ((tmp_path, True), (tmp_path / "other", False)):
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
        with pytest.raises(SystemExit):
            main(["serve", str(model), "--check", "--api-keys", str(keys)])
        assert ("unsafe" not in capsys.readouterr().out) is trusted


@pytest.mark.parametrize(
    ("source", "target"), [("en", "en"), ("auto", "de"), ("en", "d\r\ne"), ("en", "d/e")]
)
def test_a_model_with_invalid_language_codes_is_refused(tmp_path: Path, source: str, target: str) -> None:
    from jumok.errors import ModelFolderError
    from jumok.server.language_pairs import read_language_pairs
    from support.serve_models import DIGITS, make_digit_model

    with pytest.MonkeyPatch.context() as patch:
        for code in (source, target):
            patch.setitem(DIGITS, code, DIGITS["en"])
        folder = make_digit_model(tmp_path, source, target)
    with pytest.raises(ModelFolderError, match="needs two languages"):
        read_language_pairs([folder])


def test_a_model_of_plain_text_is_refused_for_the_true_reason() -> None:
    from jumok.errors import ModelFolderError
    from jumok.server.language_pairs import read_language_pairs

    stored = Path(__file__).parent.parent / "stored" / "models" / "language-model"
    with pytest.raises(
        ModelFolderError, match=r"model of plain text \(language-model\), which does not trans"
    ):
        read_language_pairs([stored])


def test_two_models_of_one_language_pair_are_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", str(model), str(model), "--check"])
    assert end.value.code == 2
    assert "both translate en → de" in capsys.readouterr().err
