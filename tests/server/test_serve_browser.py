"""Tests of the security and the layout of the translation page in a real browser.

A page that shows translations of a malicious model does not run the script in these translations. Other tests
check the layout, the notice about pivot languages and the page without JavaScript. The tests of what users do
on the page are in `test_translation_page.py`.
"""

from __future__ import annotations

import html
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect, sync_playwright

import jumok
from support.digit_lines import TINY
from support.serve_models import sentences
from support.serve_process import serving_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from support.serve_process import RunningServer

pytestmark = [pytest.mark.medium, pytest.mark.web]

ATTACK = "<img src=x onerror=document.title='taken'>"
REQUEST = {"q": "one two", "source": "en", "target": "de"}
TIMEOUT_MS = 15_000
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SUBMIT_FORM = """([action, fields]) => {
  const form = Object.assign(document.createElement("form"), { method: "post", action });
  for (const [name, value] of Object.entries(fields)) {
    form.append(Object.assign(document.createElement("input"), { name, value }));
  }
  document.body.append(form);
  form.submit();
}"""


@pytest.fixture(scope="module")
def malicious_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose model has learned to translate everything into ATTACK."""
    folder = tmp_path_factory.mktemp("malicious-server")
    pairs = folder / "pairs.en-de.tsv"
    pairs.write_text(
        "".join(f"{sentence}\t{ATTACK}\n" for sentence in sorted(set(sentences(80)))), encoding="utf-8"
    )
    settings = {
        **TINY,
        "model.dropout": 0.0,
        "text.vocab_size": 290,
        "training.steps": 120,
        "training.batch_tokens": 512,
        "training.learning_rate": 0.02,
        "training.warmup_steps": 10,
        "training.label_smoothing": 0.0,
        "search.max_length_ratio": 20.0,
    }
    trained = jumok.train(pairs, out=folder / "run", **settings)
    with serving_in_thread(folder, trained) as server:
        assert ATTACK in server.post("/translate", REQUEST).json["translatedText"]
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("no browser is installed: `make browser` installs one")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(malicious_server: RunningServer, browser: Browser) -> Iterator[Page]:
    """The malicious server's page in a browser. After the test, check that the attack did not run."""
    new_page = browser.new_page(locale="en-GB")
    new_page.set_default_timeout(30_000)
    new_page.goto(malicious_server.url)
    yield new_page
    assert new_page.locator("img").count() == 0
    assert new_page.title() != "taken"
    new_page.close()


def test_the_browser_would_run_an_unescaped_attack(page: Page) -> None:
    """If the browser did not run the attack, the tests below could not fail."""
    page.goto("about:blank")
    page.set_content(f"<p>{ATTACK}</p>")
    expect(page).to_have_title("taken", timeout=TIMEOUT_MS)
    page.goto("about:blank")  # because the fixture checks the title and the images at the end


def test_the_page_shows_translations_as_text(page: Page) -> None:
    page.fill("#text", "one two")
    expect(page.locator("#result")).to_contain_text(ATTACK, timeout=TIMEOUT_MS)


def test_the_page_without_javascript_shows_translations_as_text(
    page: Page, malicious_server: RunningServer
) -> None:
    page.evaluate(SUBMIT_FORM, ["/", REQUEST])
    expect(page.locator("#result")).to_contain_text(ATTACK, timeout=TIMEOUT_MS)
    assert html.escape(ATTACK) in malicious_server.post_form("/", REQUEST).text


@pytest.mark.parametrize("path", ["/translate", "/v1/translate", "/v1/translate/stream", "/v1/explain"])
def test_api_responses_are_not_rendered_as_html(
    page: Page, malicious_server: RunningServer, path: str
) -> None:
    answer = malicious_server.post(path, REQUEST)
    assert b"onerror" in answer.body
    assert answer.headers["content-type"] in ("application/json", "text/event-stream; charset=utf-8")
    page.evaluate(SUBMIT_FORM, [path, REQUEST])
    page.wait_for_url(malicious_server.url + path)
    expect(page.locator("body")).to_contain_text("onerror", timeout=TIMEOUT_MS)


def test_translated_html_has_only_the_tags_that_were_sent(
    page: Page, malicious_server: RunningServer
) -> None:
    fields = {**REQUEST, "q": "<p>one <b>two</b></p>", "format": "html"}
    translated = malicious_server.post("/translate", fields).json["translatedText"]
    # The tags <b> and </b> may be between words of the attack, so only the first word is searched for.
    assert html.escape(ATTACK.split()[0]) in translated
    page.goto("about:blank")
    page.set_content(translated)  # without a content security policy
    assert page.locator("p").count() == 1
    assert "onerror" in page.inner_text("p")


@pytest.mark.parametrize(("name", "data"), [("a.html", b"<p>one two</p>"), ("a.txt", b"one two")])
def test_a_file_is_downloaded_and_never_shown(
    page: Page, malicious_server: RunningServer, tmp_path: Path, name: str, data: bytes
) -> None:
    address = malicious_server.post_file(name, data, source="en", target="de").json["translatedFileUrl"]
    with page.expect_download() as download:
        page.evaluate("address => { location.href = address }", address)
    path = tmp_path / name
    download.value.save_as(path)
    assert b"onerror" in path.read_bytes()
    page.goto(path.as_uri())
    assert "onerror" in page.inner_text("body")


def test_the_attention_page_shows_translations_as_text(page: Page) -> None:
    page.fill("#text", "one two")
    page.wait_for_selector("#show-attention", state="visible")
    with page.expect_popup() as popup:
        page.click("#show-attention")
    attention_page = popup.value
    expect(attention_page.locator("body")).to_contain_text("onerror", timeout=TIMEOUT_MS)
    assert attention_page.locator("img").count() == 0
    assert attention_page.title() != "taken"


@pytest.mark.parametrize("without_javascript", [False, True])
def test_the_layout_has_two_columns_on_wide_screens_and_never_overflows(
    shared_server: RunningServer, browser: Browser, without_javascript: bool
) -> None:
    context = browser.new_context(java_script_enabled=not without_javascript)
    new_page = context.new_page()
    new_page.goto(shared_server.url)
    for width in (320, 1100):
        new_page.set_viewport_size({"width": width, "height": 800})
        source, target, text, result = (
            new_page.locator(f"#{name}").bounding_box() or pytest.fail(f"{name} is not visible")
            for name in ("source", "target", "text", "result")
        )
        has_two_columns = width > 1000
        assert target["y"] == source["y"]
        assert (result["x"] > text["x"] + text["width"]) is has_two_columns
        assert (result["y"] > text["y"] + text["height"]) is not has_two_columns
        if not without_javascript:
            expect(new_page.locator("#drop")).to_be_visible(timeout=TIMEOUT_MS)
        assert new_page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    context.close()


PIVOT_NOTICE = {"en": "Translated through: German", "ko": "경유 언어: 독일어"}


@pytest.mark.parametrize(
    ("locale", "language", "other_language"), [("en-GB", "en", "ko"), ("ko-KR", "ko", "en")]
)
def test_the_page_shows_pivot_languages(
    shared_server: RunningServer, browser: Browser, locale: str, language: str, other_language: str
) -> None:
    """The notice appears for a text and for a file, in the browser's language or the chosen language."""
    new_page = browser.new_page(locale=locale)
    new_page.goto(shared_server.url)
    new_page.select_option("#source", "en")
    new_page.select_option("#target", "fr")
    new_page.fill("#text", "one two")
    expect(new_page.locator("#notice")).to_have_text(PIVOT_NOTICE[language], timeout=TIMEOUT_MS)
    expect(new_page.locator("#show-attention")).to_be_hidden()
    new_page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"one two"})
    expect(new_page.locator("#file-status")).to_contain_text(PIVOT_NOTICE[language], timeout=TIMEOUT_MS)
    new_page.select_option("#language", other_language)
    expect(new_page.locator("#notice")).to_have_text(PIVOT_NOTICE[other_language])
    new_page.select_option("#target", "de")
    expect(new_page.locator("#notice")).to_be_empty(timeout=TIMEOUT_MS)
    expect(new_page.locator("#show-attention")).to_be_visible()
    new_page.close()


@pytest.mark.parametrize(
    ("locale", "language", "button"), [("en-GB", "en", "Translate"), ("ko-KR", "ko", "번역")]
)
def test_the_page_works_without_javascript_in_a_browser(
    shared_server: RunningServer, browser: Browser, locale: str, language: str, button: str
) -> None:
    context = browser.new_context(locale=locale, java_script_enabled=False)
    new_page = context.new_page()
    new_page.goto(shared_server.url)
    expect(new_page.locator("html")).to_have_attribute("lang", language)
    new_page.select_option("#source", "en")
    new_page.select_option("#target", "fr")
    new_page.fill("#text", "one two")
    new_page.get_by_role("button", name=button, exact=True).click()
    expect(new_page.locator("#notice")).to_have_text(PIVOT_NOTICE[language], timeout=TIMEOUT_MS)
    expect(new_page.locator("#text")).to_have_value("one two")
    expect(new_page.locator("#target")).to_have_value("fr")
    context.close()
