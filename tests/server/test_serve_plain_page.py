"""The translation page without JavaScript shows the errors of its form as a page instead of JSON.

The tests call the application directly, without workers, so nothing is translated.
"""

from __future__ import annotations

import asyncio
import html
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from jumok.documents.registry import DOCUMENT_FORMATS
from jumok.server.application import Application
from jumok.server.language_pairs import read_language_pairs
from jumok.server.limits import Limits
from jumok.server.service import ServerSettings, Service
from jumok.server.ui_strings import STRINGS, localized_language_name, negotiate_language
from jumok.text.languages import LANGUAGES
from support.serve_process import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KEY = "correct-horse-battery"
FIELDS = {"q": "<b>one</b> & two", "source": "en", "target": "de"}
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
    """Return the response to a request, by default to the page's form.

    If `body` is None, the body never arrives.
    """
    response_messages: list[Any] = []
    request_messages = [] if body is None else [{"type": "http.request", "body": body, "more_body": False}]
    all_headers = {"Host": "localhost", "Content-Type": FORM, **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "scheme": "http",
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(name.lower().encode(), value.encode()) for name, value in all_headers.items()],
    }

    async def receive() -> Any:
        return request_messages.pop() if request_messages else await asyncio.Event().wait()

    async def send_message(message: Any) -> None:
        response_messages.append(message)

    asyncio.run(Application(service)(scope, receive, send_message))
    start, *parts = response_messages
    return Answer(
        start["status"],
        {name.decode().lower(): value.decode() for name, value in start["headers"]},
        b"".join(part["body"] for part in parts),
    )


def make_service(model: Path, keys: Path | None = None, **limits: Any) -> Service:
    return Service(
        ServerSettings(models=(model,), api_keys=keys, limits=Limits(**limits)), read_language_pairs([model])
    )


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    (tmp_path / "keys").write_text(KEY, encoding="utf-8")
    return tmp_path / "keys"


def assert_is_page(answer: Answer, *, has_text: bool = True) -> None:
    """Assert that the answer is the page.

    If `has_text`, the page must show the entered text and the chosen language, otherwise neither.
    """
    policy = answer.headers["content-security-policy"]
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert answer.text.endswith("</html>\n")
    assert "<b>one" not in answer.text
    assert ('<option value="de" selected>' in answer.text) is has_text
    assert (html.escape(FIELDS["q"]) + "</textarea>" in answer.text) is has_text


def form(**more: str) -> bytes:
    return urlencode({**FIELDS, **more}).encode()


def test_a_wrong_key_is_an_error_on_the_page_and_not_shown(model: Path, keys: Path) -> None:
    wrong = "a-wrong-key-altogether"
    answer = send(make_service(model, keys), form(api_key=wrong))
    assert answer.status == 403
    assert_is_page(answer)
    assert '<span lang="en">Invalid API key</span>' in answer.text
    assert wrong not in answer.text
    korean = send(make_service(model, keys), form(api_key=wrong), KOREAN)
    assert '<span lang="ko">API 키가 올바르지 않습니다.</span>' in korean.text
    assert_is_page(korean)


@pytest.mark.parametrize("requires_key", [True, False], ids=["a key", "an address"])
def test_the_page_shows_the_rate_limit(model: Path, keys: Path, requires_key: bool) -> None:
    """If a key is required, the limit is per key and a client is refused after its body is read.

    Otherwise the limit is per address and a client is refused before its body is read.
    """
    service = make_service(model, keys if requires_key else None, requests_per_minute=1, request_timeout=0)
    assert send(service, form(api_key=KEY)).status == 503  # it times out, but it counts as a request
    for language, words in (("en", "Too many requests. Try again in {} s."), ("ko", "{}초 후에 다시")):
        answer = send(service, form(api_key=KEY), {"Accept-Language": language})
        assert answer.status == 429
        assert_is_page(answer, has_text=requires_key)
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert words.format(answer.headers["retry-after"]) in answer.text
        assert KEY not in answer.text


def test_the_page_shows_that_the_server_is_busy(model: Path) -> None:
    service = make_service(model, request_timeout=0)
    answer = send(service, form())
    assert answer.status == 503
    assert_is_page(answer)
    assert answer.headers["retry-after"] == "5"
    assert "The request took too long. Try again later, or send less." in answer.text
    assert (
        "서버가 지금 요청을 처리할 수 없습니다. 5초 후에 다시 시도하세요."
        in send(service, form(), KOREAN).text
    )


@pytest.mark.parametrize(
    ("body", "content_type", "status", "english", "korean"),
    [
        (b"x" * 1_001, FORM, 413, "The request is too large.", "텍스트가 너무 깁니다."),
        (b"q=%ff", FORM, 400, "not encoded as UTF-8", "요청을 처리할 수 없습니다."),
        (b"<q/>", "text/xml", 415, "The content type is not supported.", "지원하지 않는 형식입니다."),
        (None, FORM, 408, "The request did not arrive in time.", "요청 시간이 초과되었습니다."),
    ],
)
def test_the_page_shows_why_a_request_cannot_be_read(
    model: Path, body: bytes | None, content_type: str, status: int, english: str, korean: str
) -> None:
    service = make_service(model, max_body_bytes=1_000, body_timeout=0.1)
    for language, words in (("en", english), ("ko", korean)):
        answer = send(service, body, {"Content-Type": content_type, "Accept-Language": language})
        assert answer.status == status
        assert_is_page(answer, has_text=False)
        assert words in answer.text
        assert (answer.headers.get("connection") == "close") is (status == 408)


def test_the_page_shows_an_internal_error(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service(model)
    monkeypatch.delattr(service, "pipeline")  # so that the handler raises an AttributeError
    answer = send(service, form())
    assert answer.status == 500
    assert_is_page(answer)
    assert f"Request {answer.headers['x-request-id']}." in answer.text


def test_an_empty_form_asks_for_a_text(model: Path) -> None:
    for language, words in (("en", "Enter a text to translate."), ("ko", "번역할 텍스트를 입력하세요.")):
        answer = send(make_service(model), form(q=""), {"Accept-Language": language})
        assert answer.status == 400
        assert f'<span lang="{language}">{words}</span>' in answer.text


def test_error_messages_are_escaped(model: Path) -> None:
    answer = send(make_service(model), form(source="<i>"), KOREAN)
    assert answer.status == 400
    assert '<span lang="ko">요청을 처리할 수 없습니다. &lt;i&gt; is not supported</span>' in answer.text
    assert "<i>" not in answer.text


def test_errors_for_other_hosts_and_origins_are_json(model: Path) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        answer = send(make_service(model), form(), headers)
        assert answer.status == 403
        assert list(answer.json) == ["error"]


@pytest.mark.parametrize(
    ("accept_language", "language"),
    [
        ("", "en"), ("ko", "ko"), ("ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7", "ko"), ("en-GB,ko;q=0.5", "en"),
        ("en;q=0.3, KO ; q=0.8", "ko"), ("fr, ko;q=0.8, en;q=0.5", "ko"), ("fr", "en"), ("*", "en"),
        ("en;q=0, ko;q=0.1", "ko"), ("ko;q=0", "en"), ("kok", "en"), ("ko;q=x", "ko"), (";;,=,q", "en"),
    ],
)  # fmt: skip
def test_the_language_of_the_page_is_negotiated(accept_language: str, language: str) -> None:
    """`kok` is Konkani. A language whose quality is malformed (`q=x`) has the quality 1."""
    assert negotiate_language(accept_language) == language


def test_everything_on_the_korean_page_is_korean(model: Path, keys: Path) -> None:
    pages = {
        language: send(make_service(model, keys), b"", {"Accept-Language": language}, method="GET").text
        for language in STRINGS
    }
    assert '<html lang="ko">' in pages["ko"]
    assert '<html lang="en">' in pages["en"]
    for language, strings in STRINGS.items():
        elements = re.findall(r'(<[^<]*data-(?:string|label)="([\w-]+)"[^<]*)', pages[language])
        assert len(elements) > 10
        assert all(html.escape(strings[name]) in element for element, name in elements)
    names = {"en": ("English", "영어"), "de": ("German", "독일어")}
    for code, (english, korean) in names.items():
        assert f'<option value="{code}">{english}<' in pages["en"]
        assert f'<option value="{code}">{korean}<' in pages["ko"]
    assert '<option value="auto">언어 감지<' in pages["ko"]
    visible = re.sub(r"<script>.*</script>|<style>.*</style>|<[^>]*>", "", pages["ko"], flags=re.DOTALL)
    formats = {document_format.suffix[1:].upper() for document_format in DOCUMENT_FORMATS}
    expected_latin_words = {"jumok", "API", "English", "Ctrl", "Enter", "Esc", *formats}
    assert set(re.findall(r"[A-Za-z]{2,}", html.unescape(visible))) == expected_latin_words


def test_both_languages_have_the_same_strings_and_names_for_all_languages() -> None:
    assert STRINGS["en"].keys() == STRINGS["ko"].keys()
    assert all(re.search("[가-힣]어", localized_language_name("ko", code)) for code in LANGUAGES)
    assert localized_language_name("ko", "pt-BR") == "포르투갈어 (pt-BR)"
    assert localized_language_name("ko", "hsb") == "hsb"  # Upper Sorbian, of which jumok knows no name
    assert localized_language_name("en", "ko") == "Korean"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_errors_of_the_attention_page_are_shown_on_the_translation_page(
    model: Path, keys: Path, method: str
) -> None:
    def open_attention_page(service: Service, direction: str = "en_de", **headers: str) -> Answer:
        body = form(api_key=KEY) if method == "POST" else b""
        return send(service, body, headers, method=method, path=f"/attention/{direction}/")

    sends_form = method == "POST"  # with the text and the key
    busy = make_service(model, request_timeout=0, requests_per_minute=2)
    for language, words in (("en", "Try again later"), ("ko", "서버가 지금 요청을 처리할 수 없습니다.")):
        answer = open_attention_page(busy, **{"Accept-Language": language})
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert_is_page(answer, has_text=sends_form)
        assert words in answer.text
    limited = open_attention_page(busy)  # the third request in a minute, refused before its body is read
    assert limited.status == 429
    assert_is_page(limited, has_text=False)
    assert f"Try again in {limited.headers['retry-after']} s." in limited.text
    for language, words in (
        ("en", "No single model translates in this direction"),
        ("ko", "어텐션을 볼 수 없습니다."),
    ):
        unknown = open_attention_page(make_service(model), "en_fr", **{"Accept-Language": language})
        assert unknown.status == 400
        assert_is_page(unknown, has_text=sends_form)
        assert words in unknown.text
    # A server with keys has no attention page.
    with_keys = open_attention_page(make_service(model, keys), **KOREAN)
    assert with_keys.status == (404 if sends_form else 403)
    assert_is_page(with_keys, has_text=sends_form)
    message = "어텐션 페이지를 쓸 수 없습니다" if sends_form else "API 키가 올바르지 않습니다"
    assert message in with_keys.text
    assert KEY not in with_keys.text


def test_errors_of_the_live_page_are_json(model: Path) -> None:
    answer = send(make_service(model), form(), path="/attention/en_fr/explain")
    assert (answer.status, list(answer.json)) == (400, ["error"])
