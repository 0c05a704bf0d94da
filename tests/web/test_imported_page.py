"""The live page of an imported model, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from jumok.inference.loading import load
from jumok.interop.conversion import ImportChoices
from jumok.interop.import_worker import import_package
from jumok.interop.package import open_package
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from support.page_browser import serving, wait_for_responses

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = [pytest.mark.medium, pytest.mark.web]

PACKAGE = Path(__file__).parent.parent / "interop" / "stored" / "marian.zip"


def test_silencing_a_head_of_an_imported_model_shows_the_difference(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    choices = ImportChoices(source_language="en", target_language="ko", code="ko")
    import_package(open_package(PACKAGE), PACKAGE, tmp_path / "model", choices)
    model = NamedTranslator("opus", load(tmp_path / "model", engine="torch"))
    with serving(ExplanationService([model], sentence="I want to read the book.")) as address:
        page = open_page(address)
        wait_for_responses(page)
        expect(page.locator("[data-word=source-0]")).to_have_text("I")
        translation = page.get_by_test_id("translation").inner_text()
        page.locator("td .picture").first.click()
        expect(page.locator(".changes")).to_contain_text("Silence")
        difference = page.get_by_test_id("difference")
        expect(difference).to_be_visible()
        wait_for_responses(page)
        assert (
            difference.inner_text() != "0.00"
            or page.get_by_test_id("translation").inner_text() != translation
        )
