"""The live page as a person uses it, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

HANGUL = re.compile("[가-힣]")
PANELS = ["translate", "map", "heads", "steps", "beam", "change", "compare", "run"]
Open = "Callable[..., Page]"


def go(page: Page, panel: str) -> None:
    page.locator(f"#tab-{panel}").click()
    expect(page.locator("#panel h2")).to_be_visible()


def translation(page: Page) -> Any:
    return page.get_by_test_id("translation")


def test_a_person_types_looks_changes_forces_compares_and_saves(
    open_page: Open, live: str, tmp_path: Path
) -> None:
    page = open_page(live)
    page.get_by_label("Sentence", exact=True).fill("")
    page.get_by_label("Sentence", exact=True).type("I go home.")
    expect(translation(page)).to_have_text(HANGUL)
    expect(page.locator("[data-word^=target]").first).to_be_visible()
    written = translation(page).inner_text()

    page.locator("[data-word=target-0]").hover()
    expect(page.locator("path.lit").first).to_be_attached()

    go(page, "map")
    with page.expect_download() as saved:
        page.get_by_role("button", name="SVG").click()
    file = tmp_path / "map.svg"
    saved.value.save_as(file)
    assert file.read_text(encoding="utf-8").startswith("<svg xmlns=")
    assert HANGUL.search(file.read_text(encoding="utf-8"))
    with page.expect_download() as picture:
        page.get_by_role("button", name="PNG").click()
    assert Path(picture.value.path()).read_bytes().startswith(b"\x89PNG")

    go(page, "change")
    page.locator("table button").first.click()
    expect(page.get_by_test_id("after")).to_be_visible()
    changed = page.locator(".result b").inner_text()
    assert changed not in {"0.00", ""} or page.get_by_test_id("after").inner_text() != written
    expect(page.locator(".changes")).to_contain_text("Silence")
    page.get_by_role("button", name="Undo all").click()
    expect(page.get_by_text("Nothing is changed yet.")).to_be_visible()

    go(page, "beam")
    page.get_by_role("slider", name="Step").fill("0")
    other = page.locator("li:not(.written) button", has_text=HANGUL).first
    piece = other.inner_text()
    other.click()
    expect(page.get_by_text("Begun as told:")).to_be_visible()
    go(page, "translate")
    expect(translation(page)).to_have_text(re.compile(re.escape(piece.strip("·"))))
    assert translation(page).inner_text().startswith(piece.strip("·"))

    go(page, "compare")
    expect(page.locator("section h3")).to_contain_text(["transformer", "recurrent", "Difference"])
    expect(page.get_by_role("application", name="Difference")).to_be_visible()


def test_a_weight_is_painted_and_a_word_is_pinned(open_page: Open, live: str) -> None:
    page = open_page(live + "#panel=change")
    page.get_by_role("button", name="Paint a weight").click()
    page.get_by_role("application").click(position={"x": 90, "y": 90})
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".changes")).to_contain_text("= 0.90")
    expect(page.get_by_test_id("after")).to_be_visible()
    page.get_by_role("button", name="Pin a word").click()
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".changes span")).to_have_count(2)


def test_steps_are_live_for_any_cell(open_page: Open, live: str) -> None:
    page = open_page(live + "#panel=steps")
    expect(page.locator("article h4").first).to_have_text("query embedding")
    page.get_by_label("Attention", exact=True).select_option("encoder")
    page.get_by_label("Key", exact=True).select_option("2")
    piece = page.get_by_label("Key", exact=True).locator("option").nth(2).inner_text().split()[-1]
    expect(page.locator("article li.chosen").first).to_contain_text(piece)


def test_a_run_shows_its_curves_and_checkpoints(open_page: Open, live: str) -> None:
    page = open_page(live + "#panel=run")
    expect(page.locator("figure")).to_have_count(3)
    expect(page.locator("article h4").last).to_contain_text("250 updates")


def test_the_state_is_in_the_address(open_page: Open, live: str) -> None:
    page = open_page(live + "#panel=map&sentence=I+read+a+book.")
    page.get_by_label("Show", exact=True).select_option("head")
    page.get_by_label("Layer", exact=True).select_option("1")
    page.get_by_role("button", name="Pieces").click()
    address = page.url
    assert "layer=1" in address
    other = open_page(address)
    expect(other.get_by_label("Layer", exact=True)).to_have_value("1")
    expect(other.locator(".pair")).to_contain_text("I read a book.")
    expect(other.get_by_role("button", name="Pieces")).to_have_attribute("aria-pressed", "true")


def test_the_keyboard_is_enough(open_page: Open, live: str) -> None:
    page = open_page(live + "#panel=translate")
    page.locator("#tab-translate").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-map")).to_be_focused()
    page.get_by_role("application").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("[aria-live=polite]").first).to_have_text(re.compile("→ go: 0\\.\\d{4}"))
    page.keyboard.press("Enter")
    assert "rows=1" in page.url


def test_a_model_that_writes_html_writes_text(open_page: Open, live: str) -> None:
    page = open_page(live)
    page.get_by_label("Sentence", exact=True).fill("<img src=x onerror=alert(1)></script><b>go</b>")
    page.get_by_role("button", name="Translate", exact=True).click()
    expect(page.locator("[data-word=source-0]")).to_be_visible()
    assert page.locator("img, #panel b").count() == 0


@pytest.mark.parametrize(("theme", "language", "width"), [("light", "en", 1200), ("dark", "ko", 390)])
def test_nothing_serious_keeps_people_from_using_it(
    open_page: Open, live: str, axe: str, theme: str, language: str, width: int
) -> None:
    page = open_page(f"{live}#theme={theme}&language={language}", viewport={"width": width, "height": 800})
    page.evaluate(axe)  # beside the page's own policy, which allows no other script
    for panel in PANELS:
        go(page, panel)
        page.wait_for_load_state("networkidle")
        serious = [
            (panel, fault["id"], fault["nodes"][0]["html"], fault["nodes"][0].get("failureSummary"))
            for fault in page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
            if fault["impact"] in {"serious", "critical"}
        ]
        assert serious == []
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), f"{panel} is wider than its screen"
