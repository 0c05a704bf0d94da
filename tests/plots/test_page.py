"""The page with embedded explanations: complete, escaped, and independent of other hosts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from jumok.errors import DataError
from jumok.plots.page import iframe, live_file_page, served_page, static_page


class Scripts(HTMLParser):
    """Collects the scripts of a page with their types, and the address of every `src` and `href`."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[tuple[str, str]] = []
        self.addresses: list[str] = []
        self._kind: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]
        self._kind = named.get("type") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._kind = None

    def handle_data(self, data: str) -> None:
        if self._kind is not None:
            self.scripts.append((self._kind, data))


def data_of(page: str) -> Any:
    return json.loads(next(text for kind, text in Scripts(page).scripts if kind == "application/json"))


def test_explanations_are_embedded_as_data() -> None:
    page = static_page(['{"text": "나는 집에 간다."}\n', '{"text": "two"}'])
    assert data_of(page) == {"explanations": [{"text": "나는 집에 간다."}, {"text": "two"}]}


@pytest.mark.parametrize(
    "text", ["</script><img src=x onerror=alert(1)>", "<!--<script>", "]]>", "\u2028", "$&"]
)
def test_no_sentence_ends_the_element_of_the_data_early(text: str) -> None:
    page = served_page({"text": text})
    assert data_of(page) == {"text": text}
    assert len(Scripts(page).scripts) == 2  # the data and the program


def test_the_page_refers_to_no_other_host() -> None:
    page = static_page(["{}"])
    assert Scripts(page).addresses == ["data:,"]  # the empty icon
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in policy[1]
    assert "connect-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


@pytest.mark.parametrize("tag", ["script", "style"])
def test_the_policy_has_the_hash_of_the_script_and_of_the_style(tag: str) -> None:
    page = served_page({})
    kind = ' type="module"' if tag == "script" else ""
    [content] = re.findall(f"<{tag}{kind}>(.*?)</{tag}>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    assert f"{tag}-src 'sha256-{digest}'" in page


def test_only_a_page_of_a_server_may_send_requests() -> None:
    assert "connect-src 'self'" in served_page({})
    assert "connect-src 'self'" not in static_page(["{}"])


def test_a_page_without_explanations_is_refused() -> None:
    with pytest.raises(DataError, match="at least one"):
        static_page([])


def test_an_iframe_escapes_the_quotes_of_its_page() -> None:
    framed = iframe('<p title="x">&amp;</p>', height=300)
    assert framed.count("&quot;") == 2  # the quotes of title="x"
    assert framed.count('"') == 8  # the quotes of the iframe's four attributes
    assert "height: 300px" in framed


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "file:///home/me/jumok/site/"])
def test_the_address_of_the_documentation_is_in_every_page(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("JUMOK_DOCS", address)
    pages = [static_page(["{}"]), served_page({}), live_file_page({}, model="{}", weights="")]
    assert [data_of(page)["docs"] for page in pages] == [address.rstrip("/") + "/"] * 3


def test_pages_have_no_docs_field_if_the_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUMOK_DOCS", raising=False)
    assert [data_of(page) for page in (static_page(["{}"]), served_page({}))] == [
        {"explanations": [{}]},
        {},
    ]


def test_an_address_of_the_documentation_with_another_scheme_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUMOK_DOCS", "javascript:alert(1)")
    with pytest.raises(DataError, match="JUMOK_DOCS is the address"):
        static_page(["{}"])
