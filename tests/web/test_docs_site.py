"""The site of docs/ in a browser: every page opens in both languages, and every interactive figure works."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from support.page_browser import assert_accessible

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.web, pytest.mark.slow]

PROJECT = Path(__file__).parent.parent.parent
LANGUAGES = {"en": ".", "ko": "ko"}  # language → folder of its pages in the site
MIN_FIGURES = 15  # the number of entries of FIGURES in web/src/figures/main.ts


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("furo", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    for language, pages_folder in LANGUAGES.items():
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "-c",
            "docs/site",
            "-d",
            str(folder / f".{language}"),
        ]
        command += ["-D", f"language={language}", "docs", str(folder / pages_folder)]
        subprocess.run(command, cwd=PROJECT, check=True)
    return folder


def pages_of(site: Path, language: str) -> list[Path]:
    folder = site / LANGUAGES[language]
    pages = [
        page
        for page in folder.glob("**/*.html")
        if (language == "ko" or (site / "ko") not in page.parents) and page.name != "live.html"
    ]
    return sorted(pages)


def open_site_page(browser: Browser, path: Path, **options: object) -> tuple[Page, list[str]]:
    """Return the page and a list, to which errors of the page and its requests to other hosts are added."""
    page = browser.new_page(**options)  # type: ignore[arg-type]
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda request: None if request.url.startswith(("file:", "data:")) else problems.append(request.url),
    )
    page.goto(path.as_uri())
    return page, problems


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_opens_without_errors_and_without_requests_to_other_hosts(
    browser: Browser, site: Path, axe: str, language: str
) -> None:
    pages = pages_of(site, language)
    assert len(pages) > 40
    for path in pages:
        page, problems = open_site_page(browser, path)
        assert page.locator("h1").count() == 1 or path.stem in {"genindex", "search"}, path.name
        assert problems == [], path.name
        if path.parent.name == "explain":
            assert_accessible(page, axe)  # last, because axe causes an error on a page from disk
        page.close()


def use_first_control(figure: Locator) -> None:
    """Move the slider of a figure, press one of its buttons, or type into its field."""
    if figure.locator("input[type=range]").count():
        slider = figure.locator("input[type=range]").first
        slider.focus()
        slider.press("End" if slider.input_value() != slider.get_attribute("max") else "Home")
    elif figure.locator("button").count() > 1:
        # The first button may do nothing: the first word of a sentence cannot be moved to the left.
        figure.locator("button:not([aria-pressed=true])").nth(1).click()
    else:
        figure.locator("input[type=text]").fill("I go home.")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_figure_changes_when_it_is_used(browser: Browser, site: Path, language: str) -> None:
    num_figures = 0
    for path in pages_of(site, language):
        if "data-figure" not in path.read_text(encoding="utf-8"):
            continue
        page, problems = open_site_page(browser, path)
        for figure in page.locator(".book-figure").all():
            figure.locator("table, svg, p.translation, .figure-body p").first.wait_for()
            page.wait_for_function("figure => !figure.innerText.includes('…')", arg=figure.element_handle())
            before = figure.locator(".figure-body").inner_html()
            use_first_control(figure)
            page.wait_for_function(
                "([figure, before]) => figure.querySelector('.figure-body').innerHTML !== before",
                arg=[figure.element_handle(), before],
            )
            num_figures += 1
        assert problems == [], path.name
        page.close()
    assert num_figures >= MIN_FIGURES


def test_hiding_a_word_changes_the_translation(browser: Browser, site: Path) -> None:
    page, _ = open_site_page(browser, site / "explain" / "masks.html")
    figure = page.locator("[data-figure=hide-word]")
    translation = figure.locator(".translation")
    translation.wait_for()
    assert "학생" in translation.inner_text()
    figure.get_by_role("button", name="student", exact=True).click()
    assert "학생" not in translation.inner_text()


def test_the_end_of_a_translation_is_no_button_that_continues_the_translation(
    browser: Browser, site: Path
) -> None:
    page, problems = open_site_page(browser, site / "explain" / "decoder-and-training.html")
    figure = page.locator("[data-figure=next-tokens]")
    choices = figure.locator(".choices")
    choices.wait_for()
    for _ in range(20):
        if "</s>" in choices.inner_text():
            break
        choices.get_by_role("button").first.click()
    assert "</s>" in choices.inner_text()
    assert choices.get_by_role("button", name="</s>").count() == 0
    assert choices.get_by_role("button").count() > 0
    assert problems == []


def test_a_phone_shows_a_page_without_scrolling_sideways(browser: Browser, site: Path) -> None:
    page, _ = open_site_page(
        browser, site / "ko" / "explain" / "scaled-dot.ko.html", viewport={"width": 320, "height": 700}
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_of_the_site_link_to_panels_and_panels_link_to_the_site(
    browser: Browser, site: Path, language: str
) -> None:
    pages = [path for path in pages_of(site, language) if "live.html#" in path.read_text(encoding="utf-8")]
    assert len(pages) == 10
    for path in pages:
        page = browser.new_page()
        page.goto(path.as_uri())
        link = page.locator("a[href*='live.html']")
        panel = re.search(r"panel=(\w+)", link.get_attribute("href") or "")
        assert panel is not None
        link.click()
        page.locator("[data-word=source-0]").wait_for()
        assert page.locator("[role=tab][aria-selected=true]").get_attribute("id") == f"tab-{panel[1]}"
        assert page.locator("html").get_attribute("lang") == language
        for address in page.locator("#panel a").evaluate_all("links => links.map((link) => link.href)"):
            assert Path(url2pathname(urlsplit(address).path)).is_file(), address
        page.close()
