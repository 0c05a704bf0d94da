"""A model that answers with a script, in a real browser: on the page, from the API and in files."""

from __future__ import annotations

import html
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect, sync_playwright
from serve_models import sentences
from serve_process import serving_here

import jumok
from digit_lines import TINY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from serve_process import Served

ATTACK = "<img src=x onerror=document.title='taken'>"
ASK = {"q": "one two", "source": "en", "target": "de"}
SOON = 15_000  # milliseconds
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
POST = """([action, fields]) => {
  const form = Object.assign(document.createElement("form"), { method: "post", action });
  for (const [name, value] of Object.entries(fields)) {
    form.append(Object.assign(document.createElement("input"), { name, value }));
  }
  document.body.append(form);
  form.submit();
}"""


@pytest.fixture(scope="module")
def attacking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose model has learned to answer anything with a script."""
    folder = tmp_path_factory.mktemp("attacking")
    pairs = folder / "pairs.en-de.tsv"
    pairs.write_text("".join(f"{one}\t{ATTACK}\n" for one in sorted(set(sentences(80)))), encoding="utf-8")
    settings = {
        **TINY,
        "model.dropout": 0.0,
        "text.pieces": 290,
        "training.steps": 120,
        "training.batch_tokens": 512,
        "training.learning_rate": 0.02,
        "training.warmup": 10,
        "training.label_smoothing": 0.0,
        "search.longest": 20.0,
    }
    trained = jumok.train(pairs, out=folder / "run", **settings)
    with serving_here(folder, trained) as found:
        assert ATTACK in found.post("/translate", ASK).json["translatedText"]
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("no browser is installed: `make browser` installs one")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def page(attacking: Served, browser: Browser) -> Iterator[Page]:
    """The server's page in a browser. At the end nothing that the model said may have been run or built."""
    opened = browser.new_page(locale="en-GB")
    opened.set_default_timeout(30_000)
    opened.goto(attacking.url)
    yield opened
    assert opened.locator("img").count() == 0
    assert opened.title() != "taken"
    opened.close()


def test_the_browser_would_run_the_script_if_it_were_let(page: Page) -> None:
    """Otherwise the tests below would show nothing."""
    page.goto("about:blank")
    page.set_content(f"<p>{ATTACK}</p>")
    expect(page).to_have_title("taken", timeout=SOON)
    page.goto("about:blank")


def test_the_page_shows_what_a_model_says_as_text(page: Page) -> None:
    page.fill("#text", "one two")
    expect(page.locator("#result")).to_have_value(re.compile(re.escape(ATTACK)), timeout=SOON)


def test_the_page_as_a_form_shows_it_as_text(page: Page, attacking: Served) -> None:
    page.evaluate(POST, ["/", ASK])
    expect(page.locator("#result")).to_have_value(re.compile(re.escape(ATTACK)), timeout=SOON)
    assert html.escape(ATTACK) in attacking.post_form("/", ASK).text


@pytest.mark.parametrize("path", ["/translate", "/v1/translate", "/v1/translate/stream", "/v1/explain"])
def test_what_the_api_says_is_no_page(page: Page, attacking: Served, path: str) -> None:
    said = attacking.post(path, ASK)
    assert b"onerror" in said.body
    assert said.headers["content-type"] in ("application/json", "text/event-stream; charset=utf-8")
    page.evaluate(POST, [path, ASK])
    page.wait_for_url(attacking.url + path)
    expect(page.locator("body")).to_contain_text("onerror", timeout=SOON)


def test_markup_in_html_is_what_was_sent_and_nothing_more(page: Page, attacking: Served) -> None:
    fields = {**ASK, "q": "<p>one <b>two</b></p>", "format": "html"}
    translated = attacking.post("/translate", fields).json["translatedText"]
    assert html.escape(ATTACK.split()[0]) in translated
    page.goto("about:blank")
    page.set_content(translated)  # where no policy protects it
    assert page.locator("p").count() == 1
    assert "onerror" in page.inner_text("p")


@pytest.mark.parametrize(("name", "data"), [("a.html", b"<p>one two</p>"), ("a.txt", b"one two")])
def test_a_file_is_saved_and_never_shown(
    page: Page, attacking: Served, tmp_path: Path, name: str, data: bytes
) -> None:
    address = attacking.post_file(name, data, source="en", target="de").json["translatedFileUrl"]
    with page.expect_download() as started:
        page.evaluate("address => { location.href = address }", address)
    saved = tmp_path / name
    started.value.save_as(saved)
    assert b"onerror" in saved.read_bytes()
    page.goto(saved.as_uri())
    assert "onerror" in page.inner_text("body")


def test_the_page_about_attention_shows_it_as_text(page: Page) -> None:
    page.fill("#text", "one two")
    page.wait_for_selector("#see", state="visible")
    with page.expect_popup() as opened:
        page.click("#see")
    shown = opened.value
    expect(shown.locator("body")).to_contain_text("onerror", timeout=SOON)
    assert shown.locator("img").count() == 0
    assert shown.title() != "taken"


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
def test_the_boxes_stand_side_by_side_or_below_each_other_and_nothing_sticks_out(
    served: Served, browser: Browser, script: bool
) -> None:
    context = browser.new_context(java_script_enabled=script)
    opened = context.new_page()
    opened.goto(served.url)
    for width in (320, 1100):
        opened.set_viewport_size({"width": width, "height": 800})
        source, target, text, result = (
            opened.locator(f"#{name}").bounding_box() or pytest.fail(f"{name} is not seen")
            for name in ("source", "target", "text", "result")
        )
        assert source["x"] == text["x"] < 30
        assert target["x"] == result["x"]
        assert source["width"] == text["width"] == target["width"] == result["width"]
        wide = width > 1000
        assert (target["y"] == source["y"], result["y"] == text["y"]) == (wide, wide)
        if script:
            expect(opened.locator("#drop")).to_be_visible(timeout=SOON)
            assert opened.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    context.close()


THROUGH = {"en": "Translated through: German", "ko": "거쳐 간 언어: 독일어"}


@pytest.mark.parametrize(("locale", "tongue", "other"), [("en-GB", "en", "ko"), ("ko-KR", "ko", "en")])
def test_the_page_tells_of_a_third_language(
    served: Served, browser: Browser, locale: str, tongue: str, other: str
) -> None:
    """For a text and for a file, in the language of the browser and in the one that is chosen."""
    opened = browser.new_page(locale=locale)
    opened.goto(served.url)
    opened.select_option("#source", "en")
    opened.select_option("#target", "fr")
    opened.fill("#text", "one two")
    expect(opened.locator("#found")).to_have_text(THROUGH[tongue], timeout=SOON)
    expect(opened.locator("#see")).to_be_hidden()
    opened.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"one two"})
    expect(opened.locator("#way")).to_have_text(THROUGH[tongue], timeout=SOON)
    opened.click("#tongue")
    expect(opened.locator("#found")).to_have_text(THROUGH[other])
    opened.select_option("#target", "de")
    expect(opened.locator("#found")).to_be_empty(timeout=SOON)
    expect(opened.locator("#see")).to_be_visible()
    opened.close()


@pytest.mark.parametrize(
    ("locale", "tongue", "button"), [("en-GB", "en", "Translate"), ("ko-KR", "ko", "번역")]
)
def test_the_page_needs_no_script_in_a_browser(
    served: Served, browser: Browser, locale: str, tongue: str, button: str
) -> None:
    context = browser.new_context(locale=locale, java_script_enabled=False)
    opened = context.new_page()
    opened.goto(served.url)
    expect(opened.locator("html")).to_have_attribute("lang", tongue)
    opened.select_option("#source", "en")
    opened.select_option("#target", "fr")
    opened.fill("#text", "one two")
    opened.get_by_role("button", name=button, exact=True).click()
    expect(opened.locator("#found")).to_have_text(THROUGH[tongue], timeout=SOON)
    expect(opened.locator("#text")).to_have_value("one two")
    expect(opened.locator("#target")).to_have_value("fr")
    context.close()
