"""The browser tests that `make test` includes: the page opens, and every panel has content.

As in all tests with `open_page`, a page that logs an error or sends a request to another host fails the test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from jumok.analysis.explainer import explain
from jumok.analysis.explanation_files import save_explanation
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from support.page_browser import (
    PANELS,
    MonitoredPage,
    assert_every_panel_has_content,
    serving,
    wait_for_responses,
)
from support.random_translators import SENTENCE, SMALL_MODELS, make_translator, small_translator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.medium, pytest.mark.web]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_saved_page_shows_every_panel(open_page: OpenPage, tmp_path: Path, language: str) -> None:
    file = tmp_path / "page.html"
    save_explanation(explain(small_translator("transformer"), SENTENCE), file)
    page = open_page(f"{file.as_uri()}#language={language}")
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.locator("[role=tab]")).to_have_count(len(PANELS))
    assert_every_panel_has_content(page)


def test_a_live_page_translates_what_is_typed_and_shows_every_panel(open_page: OpenPage) -> None:
    models = [NamedTranslator(name, small_translator(name)) for name in ("transformer", "bahdanau")]
    with serving(ExplanationService(models, sentence=SENTENCE)) as address:
        page = open_page(address)
        page.get_by_label("Sentence", exact=True).fill("a river")
        expect(page.locator("[data-word=source-1]")).to_have_text("river")
        expect(page.get_by_test_id("translation")).not_to_be_empty()
        assert_every_panel_has_content(page)
        page.locator("#tab-compare").click()
        expect(page.get_by_role("application").first).to_be_visible()
        wait_for_responses(page)


def test_a_text_is_shown_from_its_beginning_if_another_model_does_not_divide_it(open_page: OpenPage) -> None:
    dividing, whole = (make_translator(SMALL_MODELS[name]) for name in ("transformer", "bahdanau"))
    whole.sentences = "keep"
    models = [NamedTranslator("dividing", dividing), NamedTranslator("whole", whole)]
    with serving(ExplanationService(models, sentence="The tree. A river.")) as address:
        page = open_page(f"{address}#panel=attention&index=1")
        expect(page.locator("[data-word=source-1]")).to_have_text("river")
        wait_for_responses(page)
        page.get_by_label("Model", exact=True).select_option(index=1)
        expect(page.locator("[data-word=source-1]")).to_have_text("tree")
        wait_for_responses(page)
        assert "index" not in page.url


def test_a_page_says_that_effects_were_not_measured_if_the_server_refuses_them(open_page: OpenPage) -> None:
    """The server refuses to measure the effects of heads on a long text, because they need many passes."""
    models = [NamedTranslator("transformer", small_translator("transformer"))]
    with serving(ExplanationService(models, sentence=SENTENCE)) as address:
        page = open_page("about:blank", refused=True)
        page.route("**/rank-heads", lambda route: route.fulfill(status=400, json={"error": "too long"}))
        page.goto(f"{address}#panel=attention")
        wait_for_responses(page)
        expect(page.locator("#map-part .effect")).to_contain_text("was not measured")
        expect(page.get_by_test_id("head-words")).to_contain_text("was not measured")
        expect(page.locator("td .value").first).to_have_text("–")


def test_a_page_does_not_wait_for_a_measure_that_the_server_refuses(open_page: OpenPage) -> None:
    models = [NamedTranslator("transformer", small_translator("transformer"))]
    with serving(ExplanationService(models, sentence=SENTENCE)) as address:
        page = open_page("about:blank", refused=True)
        page.route("**/measures", lambda route: route.fulfill(status=400, json={"error": "too long"}))
        page.goto(f"{address}#panel=attention&measure=erasure")
        expect(page.get_by_role("alert")).to_contain_text("too long")
        expect(page.locator("#map-part .measure")).to_contain_text("there is no map")
        expect(page.locator("#map-part .measure")).not_to_contain_text("working")
        wait_for_responses(page)


def test_a_page_says_if_the_browser_has_no_clipboard(open_page: OpenPage, tmp_path: Path) -> None:
    """Browsers give no clipboard to a page that another machine has sent without TLS."""
    file = tmp_path / "page.html"
    save_explanation(explain(small_translator("transformer"), SENTENCE), file)
    page = open_page(file.as_uri())
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("the browser does not allow copying")


def test_a_monitored_page_records_errors_and_requests_to_other_hosts(browser: Browser) -> None:
    """All tests with `open_page` rely on this."""
    page = browser.new_page()
    monitored = MonitoredPage(page, expects_refusal=False)
    with page.expect_event("requestfailed"):
        page.set_content("<script>console.error('oops')</script><img src='http://elsewhere.invalid/'>")
    page.close()
    assert "error: oops" in monitored.problems
    assert "request to another host: http://elsewhere.invalid/" in monitored.problems
