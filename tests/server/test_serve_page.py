"""The pages of a server: the translation page without JavaScript, and the live attention page."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import jumok

if TYPE_CHECKING:
    from pathlib import Path

    from support.serve_process import RunningServer


def test_the_page_has_all_languages_and_works_without_javascript(
    shared_server: RunningServer, model: Path
) -> None:
    page = shared_server.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for code in ("auto", "en", "de", "fr"):
        assert f'<option value="{code}"' in page.text
    answer = shared_server.post_form("/", {"q": "one two", "source": "en", "target": "de"})
    assert html.escape(jumok.load(model).translate(["one two"])[0].text) in answer.text
    assert '<option value="de" selected>' in answer.text
    refused = shared_server.post_form("/", {"q": "<b>", "source": "xx", "target": "de"})
    assert refused.status == 400
    assert "xx is not supported" in refused.text
    assert "&lt;b&gt;</textarea>" in refused.text


def test_the_page_without_javascript_shows_pivot_languages(shared_server: RunningServer) -> None:
    request = {"q": "the house is on the hill", "source": "auto", "target": "fr"}
    for language, notice in (
        ("en", "Detected: English · Translated through: German<"),
        ("ko", "감지된 언어: 영어 · 경유 언어: 독일어<"),
    ):
        assert notice in shared_server.post_form("/", request, **{"Accept-Language": language}).text
    untranslated = shared_server.post_form(
        "/", {"q": "das Haus steht auf dem Berg", "source": "auto", "target": "de"}
    ).text
    assert "Detected: German · This is already the target language: nothing was translated.<" in untranslated
    no_notice = 'role="status"><'  # an empty element
    for target, notice in (("fr", ">Translated through: German<"), ("de", no_notice)):
        assert notice in shared_server.post_form("/", {**request, "source": "en", "target": target}).text


def test_the_attention_page_and_its_requests_are_answered(shared_server: RunningServer) -> None:
    page = shared_server.post_form("/attention/en_de/", {"q": "one </script> two", "source": "auto"})
    assert page.status == 200
    assert '"sentence": "one \\u003c/script> two"' in page.text
    assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert shared_server.get("/attention/en_de/").status == 200
    request = {"model": 0, "sentence": "one two", "changes": [], "prefix": []}
    explanation = shared_server.post("/attention/en_de/explain", request).json
    assert explanation["format"] == "jumok-explanation"
    cell = {"site": "cross", "layer": 0, "head": 0, "query": 0, "key": 0}
    assert shared_server.post("/attention/en_de/steps", {**request, "cell": cell}).json["steps"]
    assert "cross" in shared_server.post("/attention/en_de/rank-heads", request).json["effect"]
    assert "value_norms" in shared_server.post("/attention/en_de/measures", request).json
    assert "layers" in shared_server.post("/attention/en_de/layers", request).json
    # No single model translates from English to French, and the live page of a server has no operation `run`.
    assert shared_server.get("/attention/en_fr/").status == 400
    assert shared_server.post("/attention/en_de/run", {}).status == 404
    invalid = {**request, "changes": [{"kind": "silence", "site": {"a": "b"}}]}
    assert shared_server.post("/attention/en_de/explain", invalid).status == 400
    nested = b'{"changes": ' + b"[" * 900 + b"]" * 900 + b"}"  # JSON, but no list of changes
    headers = {"Content-Type": "application/json"}
    assert shared_server.request("POST", "/attention/en_de/explain", nested, headers).status == 400
    for operation in ("explain", "rank-heads", "steps"):
        large = shared_server.post(  # each emoji has four tokens
            f"/attention/en_de/{operation}", {**request, "target": "😀" * 2000, "cell": cell}
        )
        assert large.status == 400
        assert "attention weights; at most 4,000,000 are allowed" in large.json["error"]
        unused = shared_server.post(f"/attention/en_de/{operation}", {**request, "unused": "x" * 70_000})
        assert (unused.status, "65,536" in unused.json["error"]) == (413, True)
    assert shared_server.post("/attention/en_de/explain", request).status == 200  # the worker still runs
    # The translation page knows each model and its tags. These models have no tags.
    tags_of_models = '"tagsByPair": {"en_de": [], "de_fr": []}'
    assert html.escape(tags_of_models) in shared_server.get("/").text
