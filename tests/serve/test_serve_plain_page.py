"""The page where no script runs: whatever becomes of its form, a person is shown a page and never JSON.

The application is asked directly, with no worker behind it: nothing here comes as far as a translation.
"""

from __future__ import annotations

import asyncio
import html
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from serve_process import Answer

from jumok.serve.application import Application
from jumok.serve.directions import read_directions
from jumok.serve.limits import Limits
from jumok.serve.service import ServeSettings, Service

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KEY = "correct-horse-battery"
WRITTEN = {"q": "<b>one</b> & two", "source": "en", "target": "de"}
KOREAN = {"Accept-Language": "ko-KR,ko;q=0.9,en;q=0.8"}
FORM = "application/x-www-form-urlencoded"


def send(service: Service, body: bytes | None, headers: Mapping[str, str] | None = None) -> Answer:
    """The answer to the page's form; None is a body that never arrives."""
    told: list[Any] = []
    arriving = [] if body is None else [{"type": "http.request", "body": body, "more_body": False}]
    said = {"Host": "localhost", "Content-Type": FORM, **(headers or {})}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
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
        (b"q=%ff", FORM, 400, "not encoded as UTF-8", "번역할 수 없습니다."),
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


def test_what_is_said_of_a_text_is_escaped(model: Path) -> None:
    answer = send(serve(model), form(source="<i>"), KOREAN)
    assert answer.status == 400
    assert '<span lang="ko">번역할 수 없습니다. &lt;i&gt; is not supported</span>' in answer.text
    assert "<i>" not in answer.text


def test_who_does_not_come_from_the_page_is_told_in_json(model: Path) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        answer = send(serve(model), form(), headers)
        assert answer.status == 403
        assert list(answer.json) == ["error"]
