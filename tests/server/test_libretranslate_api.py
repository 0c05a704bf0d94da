"""The server has the API of LibreTranslate, so real clients of LibreTranslate work with it unchanged.

If a request has several errors, the server reports the error that LibreTranslate would report.
"""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import jumok
from jumok.documents.registry import DOCUMENT_FORMATS

if TYPE_CHECKING:
    from pathlib import Path

    from support.serve_process import RunningServer

REQUEST = {"q": "one two three", "source": "en", "target": "de"}


@pytest.fixture(scope="module")
def expected(model: Path) -> dict[str, str]:
    """The library's translations of some texts: text → translation."""
    texts = ["one two three", "four five", "nine"]
    return {translation.source: translation.text for translation in jumok.load(model).translate(texts)}


def test_a_text_is_translated_as_the_library_does(
    shared_server: RunningServer, expected: dict[str, str]
) -> None:
    answer = shared_server.post("/translate", REQUEST)
    assert answer.status == 200
    assert answer.json == {"translatedText": expected["one two three"]}


def test_fields_are_read_from_json_and_both_kinds_of_form_and_the_query(
    shared_server: RunningServer, expected: dict[str, str]
) -> None:
    query = "/translate?q=one%20two%20three&source=en&target=de"
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    multipart = "".join(part.format(name, value) for name, value in REQUEST.items()) + "--b--\r\n"
    answers = [
        shared_server.post("/translate", REQUEST),
        shared_server.post_form("/translate", REQUEST),
        shared_server.request("POST", query),
        shared_server.request(
            "POST", "/translate", multipart.encode(), {"Content-Type": "multipart/form-data; boundary=b"}
        ),
    ]
    assert [answer.json["translatedText"] for answer in answers] == [expected["one two three"]] * 4


def test_an_array_gives_an_array_in_order(shared_server: RunningServer, expected: dict[str, str]) -> None:
    answer = shared_server.post("/translate", {**REQUEST, "q": list(expected), "alternatives": 1}).json
    assert answer["translatedText"] == list(expected.values())
    assert len(answer["alternatives"]) == 3
    assert all(isinstance(others, list) and len(others) <= 1 for others in answer["alternatives"])


def test_the_source_language_is_detected(shared_server: RunningServer) -> None:
    single = shared_server.post("/translate", {**REQUEST, "source": "auto"}).json
    assert single["detectedLanguage"].keys() == {"confidence", "language"}
    many = shared_server.post(
        "/translate", {**REQUEST, "q": ["the house is on the hill", "wo ist der Hund"], "source": "auto"}
    ).json
    assert [detected["language"] for detected in many["detectedLanguage"]] == ["en", "de"]
    assert many["translatedText"][1] == "wo ist der Hund"  # the text is already in the target language
    [best, *_] = shared_server.post("/detect", {"q": "das ist nicht der Hund"}).json
    assert best["language"] == "de"
    assert 0 < best["confidence"] <= 100


def test_a_language_without_a_model_is_not_recognised(shared_server: RunningServer) -> None:
    arabic = "سأذهب إلى البيت بعد العمل اليوم."
    answer = shared_server.post("/translate", {**REQUEST, "q": arabic, "source": "auto"})
    assert answer.status == 400
    assert "not recognised" in answer.json["error"]
    assert {detected["confidence"] for detected in shared_server.post("/detect", {"q": arabic}).json} == {0}
    # A text without letters needs no language.
    assert shared_server.post("/translate", {**REQUEST, "q": "12:30", "source": "auto"}).status == 200


def test_alternatives_are_returned_only_if_requested(shared_server: RunningServer) -> None:
    assert "alternatives" not in shared_server.post("/translate", {**REQUEST, "alternatives": 0}).json
    answer = shared_server.post_form("/translate", {**REQUEST, "alternatives": "2"}).json
    assert 1 <= len(answer["alternatives"]) <= 2
    assert answer["translatedText"] not in answer["alternatives"]


def test_line_breaks_and_lines_without_words_are_unchanged(
    shared_server: RunningServer, expected: dict[str, str]
) -> None:
    answer = shared_server.post("/translate", {**REQUEST, "q": "  one two three\n\n---\r\n\tfour five\n"})
    first, second = expected["one two three"], expected["four five"]
    assert answer.json["translatedText"] == f"  {first}\n\n---\r\n\t{second}\n"


def test_pivot_languages_are_named(shared_server: RunningServer) -> None:
    answer = shared_server.post("/translate", {**REQUEST, "target": "fr"}).json
    assert answer["pivot"] == ["de"]
    # From English to English, nothing is translated.
    assert shared_server.post("/translate", {**REQUEST, "target": "en"}).json == {
        "translatedText": "one two three"
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": "x"}, "Invalid request: missing source parameter"),
        ({"q": "x", "source": "en"}, "Invalid request: missing target parameter"),
        ({**REQUEST, "alternatives": "many"}, "Invalid request: alternatives parameter is not a number"),
        ({**REQUEST, "alternatives": 99}, "Invalid request: alternatives parameter must be from 0 to 10"),
        (
            {**REQUEST, "q": "x" * 100_001, "source": "xx"},
            "Invalid request: request (100001) exceeds text limit (100000)",
        ),
        ({**REQUEST, "q": ["x"] * 1001}, "Invalid request: request (1001) exceeds text limit (1000)"),
        ({**REQUEST, "source": "xx", "format": "pdf"}, "xx is not supported"),
        ({**REQUEST, "target": "auto"}, "auto is not supported"),
        ({**REQUEST, "source": "fr", "target": "en", "format": "pdf"}, "pdf format is not supported"),
        (
            {**REQUEST, "source": "fr", "target": "en"},
            "English (en) is not available as a target language from French (fr)",
        ),
        ({**REQUEST, "q": 7}, "Invalid request: q parameter is not a string or an array of strings"),
        (
            {**REQUEST, "q": ["x", None]},
            "Invalid request: q parameter is not a string or an array of strings",
        ),
        ({**REQUEST, "source": 1}, "Invalid request: source parameter is not a string"),
    ],
)
def test_an_invalid_request_gets_the_message_of_its_first_error(
    shared_server: RunningServer, fields: dict[str, Any], message: str
) -> None:
    """The first error is the one that LibreTranslate would find first."""
    answer = shared_server.post("/translate", fields)
    assert (answer.status, answer.json) == (400, {"error": message})


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/translate", 405, "POST"),
        ("POST", "/languages", 405, "GET, HEAD"),
        ("DELETE", "/v1/translate", 405, "POST"),
        ("GET", "/nowhere", 404, None),
        ("GET", "/translate/", 404, None),
    ],
)
def test_404_and_405_are_json(
    shared_server: RunningServer, method: str, path: str, status: int, allowed: str | None
) -> None:
    answer = shared_server.request(method, path)
    assert answer.status == status
    assert list(answer.json) == ["error"]
    assert answer.headers.get("allow") == allowed


def test_languages_settings_health_and_metrics(shared_server: RunningServer) -> None:
    assert shared_server.get("/languages").json[0] == {
        "code": "en",
        "name": "English",
        "targets": ["en", "de", "fr"],
    }
    settings = shared_server.get("/frontend/settings").json
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert settings["charLimit"] == 100_000
    assert settings["supportedFilesFormat"] == [known_format.suffix for known_format in DOCUMENT_FORMATS]
    assert shared_server.get("/health").json == {"status": "ok"}
    shared_server.post("/translate", REQUEST)
    metrics = shared_server.get("/metrics")
    assert 'jumok_requests_total{method="POST",route="/translate",status="200"}' in metrics.text
    assert metrics.headers["content-type"].startswith("text/plain")
    assert shared_server.get("/docs").status == 200
    assert shared_server.get("/spec").json == shared_server.get("/openapi.json").json


def test_the_api_page_lists_no_language_that_is_translated_only_into_itself(
    shared_server: RunningServer,
) -> None:
    fields = re.findall(
        r"<code>(source|target)</code><td>[^<]*<td><code>([^<]*)</code>", shared_server.get("/docs").text
    )
    values: dict[str, set[str]] = {"source": set(), "target": set()}
    for name, text in fields:
        values[name].update(html.unescape(text).replace('"', "").split(", "))
    assert values == {"source": {"auto", "en", "de"}, "target": {"de", "fr"}}


def test_unpaired_surrogates_and_odd_characters_are_accepted(shared_server: RunningServer) -> None:
    body = b'{"q": "one \\ud800 two \\u0000 \\ufeff", "source": "en", "target": "de", "format": "html"}'
    answer = shared_server.request("POST", "/translate", body, {"Content-Type": "application/json"})
    assert answer.status == 200
    assert json.loads(answer.body.decode("utf-8"))


def test_the_client_libretranslatepy_works_unchanged(
    shared_server: RunningServer, expected: dict[str, str]
) -> None:
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(shared_server.url, api_key="whatever")
    assert client.translate("one two three", "en", "de") == expected["one two three"]
    assert client.detect("das ist nicht der Hund")[0]["language"] == "de"
    assert {language["code"] for language in client.languages()} == {"en", "de", "fr"}


def test_the_client_deep_translator_works_unchanged(
    shared_server: RunningServer, expected: dict[str, str]
) -> None:
    from deep_translator import LibreTranslator

    client = LibreTranslator(source="en", target="de", api_key="whatever", custom_url=shared_server.url + "/")
    assert client.translate("one two three") == expected["one two three"]
    assert client.translate_batch(["four five", "nine"]) == [expected["four five"], expected["nine"]]


def test_requests_as_mastodon_sends_them_work(shared_server: RunningServer) -> None:
    """Mastodon sends a null `api_key` if it has no key. Other clients send an empty `format` for text."""
    fields = {"q": ["<p>one two</p>"], "source": "auto", "target": "de", "format": "html", "api_key": None}
    answer = shared_server.post("/translate", fields)
    assert answer.status == 200, answer.text
    assert answer.json["translatedText"][0].startswith("<p>")
    for empty in ({"format": None, "alternatives": None}, {"format": ""}):
        assert (
            shared_server.post("/translate", {**REQUEST, **empty}).json
            == shared_server.post("/translate", REQUEST).json
        )
    assert shared_server.post("/detect", {"q": "one", "api_key": None}).status == 200
    assert shared_server.post("/translate", {**REQUEST, "api_key": 7}).status == 400


def test_requests_as_weblate_sends_them_work(shared_server: RunningServer, expected: dict[str, str]) -> None:
    fields = {"q": "one two three", "source": "en", "target": "de", "api_key": ""}
    assert shared_server.post("/translate", fields).json["translatedText"] == expected["one two three"]
    assert {language["code"] for language in shared_server.get("/languages").json} >= {"en", "de"}
