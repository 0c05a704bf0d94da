"""The page where no script runs: whatever becomes of its form, a person is shown a page and never JSON.

The application is asked directly, with no worker behind it: nothing here comes as far as a translation.
"""

from __future__ import annotations

import asyncio
import html
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from serve_process import Answer

from jumok.corpus.languages import LANGUAGES
from jumok.serve.application import Application
from jumok.serve.directions import read_directions
from jumok.serve.limits import Limits
from jumok.serve.service import ServeSettings, Service
from jumok.serve.words import WORDS, choose_tongue, name_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KEY = "correct-horse-battery"
WRITTEN = {"q": "<b>one</b> & two", "source": "en", "target": "de"}
KOREAN = {"Accept-Language": "ko-KR,ko;q=0.9,en;q=0.8"}
FORM = "application/x-www-form-urlencoded"


def send(
    service: Service,
    body: bytes | None,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    path: str = "/",
) -> Answer:
    """The answer to the page's form; None is a body that never arrives."""
    told: list[Any] = []
    arriving = [] if body is None else [{"type": "http.request", "body": body, "more_body": False}]
    said = {"Host": "localhost", "Content-Type": FORM, **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "scheme": "http",
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(name.lower().encode(), value.encode()) for name, value in said.items()],
    }

    async def receive() -> Any:
        return arriving.pop() if arriving else await asyncio.Event().wait()

    async def hear(message: Any) -> None:
        told.append(message)

    asyncio.run(Application(service)(scope, receive, hear))
    start, *parts = told
    return Answer(
        start["status"],
        {name.decode().lower(): value.decode() for name, value in start["headers"]},
        b"".join(part["body"] for part in parts),
    )


def serve(model: Path, keys: Path | None = None, **limits: Any) -> Service:
    return Service(
        ServeSettings(models=(model,), keys=keys, limits=Limits(**limits)), read_directions([model])
    )


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    (tmp_path / "keys").write_text(KEY, encoding="utf-8")
    return tmp_path / "keys"


def is_page(answer: Answer, *, kept: bool = True) -> bool:
    """The whole page, safe as ever, with what was written in its box."""
    policy = answer.headers["content-security-policy"]
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert answer.text.endswith("</html>\n")
    assert "<b>one" not in answer.text
    assert ('<option value="de" selected>' in answer.text) is kept
    return (html.escape(WRITTEN["q"]) + "</textarea>" in answer.text) is kept


def form(**more: str) -> bytes:
    return urlencode({**WRITTEN, **more}).encode()


def test_a_wrong_key_is_told_on_the_page_and_not_shown(model: Path, keys: Path) -> None:
    wrong = "a-wrong-key-altogether"
    answer = send(serve(model, keys), form(api_key=wrong))
    assert answer.status == 403
    assert is_page(answer)
    assert '<span lang="en">Invalid API key</span>' in answer.text
    assert wrong not in answer.text
    korean = send(serve(model, keys), form(api_key=wrong), KOREAN)
    assert '<span lang="ko">API 키가 올바르지 않습니다.</span>' in korean.text
    assert is_page(korean)


@pytest.mark.parametrize("guarded", [True, False], ids=["a key", "an address"])
def test_who_comes_too_often_is_told_on_the_page_when_to_come_again(
    model: Path, keys: Path, guarded: bool
) -> None:
    """An address is refused before anything that it sends is read; a key only after that."""
    service = serve(model, keys if guarded else None, requests_per_minute=1, answer_seconds=0)
    assert send(service, form(api_key=KEY)).status == 503
    for language, words in (("en", "Too many requests. Try again in {} s."), ("ko", "{}초 뒤에 다시")):
        answer = send(service, form(api_key=KEY), {"Accept-Language": language})
        assert answer.status == 429
        assert is_page(answer, kept=guarded)
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert words.format(answer.headers["retry-after"]) in answer.text
        assert KEY not in answer.text


def test_a_server_that_is_busy_says_so_on_the_page(model: Path) -> None:
    service = serve(model, answer_seconds=0)
    answer = send(service, form())
    assert answer.status == 503
    assert is_page(answer)
    assert answer.headers["retry-after"] == "5"
    assert "The translation took too long. Try again later, or send less." in answer.text
    assert "서버가 바쁩니다. 5초 뒤에 다시 시도하세요." in send(service, form(), KOREAN).text


@pytest.mark.parametrize(
    ("body", "kind", "status", "english", "korean"),
    [
        (b"x" * 1_001, FORM, 413, "The request is too large.", "글이 너무 깁니다."),
        (b"q=%ff", FORM, 400, "not encoded as UTF-8", "요청한 대로 할 수 없습니다."),
        (b"<q/>", "text/xml", 415, "The content type is not supported.", "이 형식은 읽을 수 없습니다."),
        (None, FORM, 408, "The request did not arrive in time.", "제때 도착하지 않았습니다."),
    ],
)
def test_what_cannot_be_read_is_told_on_the_page(
    model: Path, body: bytes | None, kind: str, status: int, english: str, korean: str
) -> None:
    service = serve(model, body_bytes=1_000, body_seconds=0.1)
    for language, words in (("en", english), ("ko", korean)):
        answer = send(service, body, {"Content-Type": kind, "Accept-Language": language})
        assert answer.status == status
        assert is_page(answer, kept=False)
        assert words in answer.text
        assert (answer.headers.get("connection") == "close") is (status == 408)


def test_a_fault_of_the_server_is_told_on_the_page(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = serve(model)
    monkeypatch.delattr(service, "renderer")
    answer = send(service, form())
    assert answer.status == 500
    assert is_page(answer)
    assert f"Request {answer.headers['x-request-id']}." in answer.text


def test_who_wrote_nothing_is_asked_for_a_text(model: Path) -> None:
    for tongue, words in (("en", "Write something to translate first."), ("ko", "번역할 글을 먼저 쓰세요.")):
        answer = send(serve(model), form(q=""), {"Accept-Language": tongue})
        assert answer.status == 400
        assert f'<span lang="{tongue}">{words}</span>' in answer.text


def test_what_is_said_of_a_text_is_escaped(model: Path) -> None:
    answer = send(serve(model), form(source="<i>"), KOREAN)
    assert answer.status == 400
    assert '<span lang="ko">요청한 대로 할 수 없습니다. &lt;i&gt; is not supported</span>' in answer.text
    assert "<i>" not in answer.text


def test_who_does_not_come_from_the_page_is_told_in_json(model: Path) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        answer = send(serve(model), form(), headers)
        assert answer.status == 403
        assert list(answer.json) == ["error"]


@pytest.mark.parametrize(
    ("accepted", "tongue"),
    [
        ("", "en"), ("ko", "ko"), ("ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7", "ko"), ("en-GB,ko;q=0.5", "en"),
        ("en;q=0.3, KO ; q=0.8", "ko"), ("fr, ko;q=0.8, en;q=0.5", "ko"), ("fr", "en"), ("*", "en"),
        ("en;q=0, ko;q=0.1", "ko"), ("ko;q=0", "en"), ("kok", "en"), ("ko;q=x", "ko"), (";;,=,q", "en"),
    ],
)  # fmt: skip
def test_the_page_speaks_what_a_browser_asks_for(accepted: str, tongue: str) -> None:
    assert choose_tongue(accepted) == tongue


def test_everything_on_the_plain_page_is_korean_for_who_reads_korean(model: Path, keys: Path) -> None:
    pages = {
        tongue: send(serve(model, keys), b"", {"Accept-Language": tongue}, method="GET").text
        for tongue in WORDS
    }
    assert {'<html lang="ko">' in pages["ko"], '<html lang="en">' in pages["en"]} == {True}
    for tongue, words in WORDS.items():
        named = re.findall(r'<[^<]*data-(?:word|label)="(\w+)"[^<]*', pages[tongue])
        elements = re.findall(r'<[^<]*data-(?:word|label)="\w+"[^<]*', pages[tongue])
        assert len(named) > 10
        assert all(words[name] in element for name, element in zip(named, elements, strict=True))
    names = {"en": ("English", "영어"), "de": ("German", "독일어")}
    for code, (english, korean) in names.items():
        assert f'<option value="{code}">{english}<' in pages["en"]
        assert f'<option value="{code}">{korean}<' in pages["ko"]
    assert '<option value="auto">언어 감지<' in pages["ko"]
    visible = re.sub(r"<script>.*</script>|<style>.*</style>|<[^>]*>", "", pages["ko"], flags=re.DOTALL)
    assert set(re.findall(r"[A-Za-z]{2,}", visible)) == {"jumok", "API", "English"}


def test_both_tongues_have_the_same_words_and_names_for_all_languages() -> None:
    assert WORDS["en"].keys() == WORDS["ko"].keys()
    assert all(re.search("[가-힣]어", name_in("ko", code)) for code in LANGUAGES)
    assert (name_in("ko", "pt-BR"), name_in("ko", "hsb"), name_in("en", "ko")) == (
        "포르투갈어 (pt-BR)",
        "hsb",
        "Korean",
    )


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_who_wants_to_see_attention_and_cannot_is_told_on_a_page(
    model: Path, keys: Path, method: str
) -> None:
    def see(service: Service, direction: str = "en_de", **headers: str) -> Answer:
        body = form(api_key=KEY) if method == "POST" else b""
        return send(service, body, headers, method=method, path=f"/attention/{direction}/")

    kept = method == "POST"
    busy = serve(model, answer_seconds=0, requests_per_minute=2)
    for tongue, words in (("en", "Try again later"), ("ko", "서버가 바쁩니다.")):
        answer = see(busy, **{"Accept-Language": tongue})
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert is_page(answer, kept=kept)
        assert words in answer.text
    often = see(busy)
    assert (often.status, is_page(often, kept=False)) == (429, True)
    assert f"Try again in {often.headers['retry-after']} s." in often.text
    for tongue, words in (
        ("en", "No single model translates in this direction"),
        ("ko", "보여 줄 주목이 없습니다."),
    ):
        unknown = see(serve(model), "en_fr", **{"Accept-Language": tongue})
        assert (unknown.status, is_page(unknown, kept=kept)) == (400, True)
        assert words in unknown.text
    guarded = see(serve(model, keys), **KOREAN)
    assert (guarded.status, is_page(guarded, kept=kept)) == (404 if kept else 403, True)
    assert ("주목 페이지가 없습니다" if kept else "API 키가 올바르지 않습니다") in guarded.text
    assert KEY not in guarded.text


def test_what_the_live_page_asks_is_answered_in_json(model: Path) -> None:
    """Its script shows the sentence."""
    answer = send(serve(model), form(), path="/attention/en_fr/explain")
    assert (answer.status, list(answer.json)) == (400, ["error"])
