"""What the page says about its numbers: of which model, translation, change and prefix they are."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from jumok.analysis.explainer import explain
from support.page_browser import SENTENCE, save_file, wait_for_responses

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from jumok.inference.translator import Translator

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.slow, pytest.mark.web]

OTHER = "나는 학교에 간다."
ALL_SILENT = '[{"kind":"silence","site":"cross","layer":null,"head":null}]'


def opened(open_page: OpenPage, address: str, **parameters: str) -> Page:
    """Open a view of the page."""
    page = open_page(f"{address}#" + "&".join(f"{name}={quote(value)}" for name, value in parameters.items()))
    wait_for_responses(page)
    return page


def saved_page(open_page: OpenPage, page: Page, folder: Path, **parameters: str) -> Page:
    """Save the page as it is and open the file."""
    file = folder / "saved.html"
    file.write_bytes(save_file(page, "As it is"))
    return opened(open_page, file.as_uri(), **parameters)


def test_an_expected_translation_is_not_compared_with_a_changed_model(
    open_page: OpenPage, address: str
) -> None:
    page = opened(open_page, address, panel="attention", sentence=SENTENCE)
    section = page.get_by_test_id("why-not")
    section.get_by_label("Expected translation").fill(OTHER)
    section.get_by_role("button", name="Compare").click()
    status = section.get_by_role("status")
    expect(status).to_contain_text("They part here")
    first = status.inner_text()
    wait_for_responses(page)
    text = page.get_by_test_id("translation").inner_text()
    for change in range(4):  # silence one head after another, until the text stays the same
        page.locator("td .picture").nth(change).click()
        wait_for_responses(page)
        if page.get_by_test_id("translation").inner_text() == text:
            break
        page.locator(".history").get_by_role("button", name=re.compile("Undo$")).click()
        wait_for_responses(page)
    assert page.get_by_test_id("translation").inner_text() == text
    expect(status).to_have_count(0)
    section.get_by_role("button", name="Compare").click()
    expect(status).to_be_visible()
    assert status.inner_text() != first
    page.locator(".history").get_by_role("button", name="Undo all").click()
    wait_for_responses(page)
    expect(status).to_have_count(0)


def test_a_given_prefix_stays_named_and_removable_under_a_later_change(
    open_page: OpenPage, address: str, translator: Translator, tmp_path: Path
) -> None:
    target = explain(translator, SENTENCE).target
    last = len(target.ids) - 1
    given, kept = target.tokens[0].strip("▁"), "".join(target.tokens[1:last]).replace("▁", " ").strip()
    pin = {"kind": "pin", "site": "cross", "layer": None, "head": None, "queries": [last], "keys": [0]}
    view = {"panel": "attention", "sentence": SENTENCE}
    page = opened(open_page, address, **view, forced=str(target.ids[0]), changes=json.dumps([pin]))
    bar = page.locator(".deviation")
    for shown in (bar, saved_page(open_page, page, tmp_path, panel="attention").locator(".deviation")):
        expect(shown).to_contain_text("Given prefix:")
        expect(shown.locator("b")).to_have_text([given, kept])
    captions = page.locator("main > .caption").all_inner_texts()
    assert f"Given prefix: {given}" in captions
    assert f"Unchanged, because it was written before the change: {kept}" in captions
    bar.get_by_role("button", name="Remove the prefix").click()
    wait_for_responses(page)
    expect(bar).not_to_contain_text("Given prefix:")
    expect(page.locator(".changes li")).to_have_count(1)
