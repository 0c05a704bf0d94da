"""For a picture, the page shows a map per word of the caption, or the attention roll-out of the class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from jumok.analysis.class_explanation import explain_class
from jumok.analysis.explainer import explain
from jumok.analysis.explanation_files import save_explanation
from jumok.pictures.reading import write_picture
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from support.page_browser import assert_accessible, serving, wait_for_responses
from support.picture_files import half_bright
from support.random_translators import TARGET, picture_classifier, picture_translator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.medium, pytest.mark.web]
MAPS = ".bench li svg"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    write_picture(tmp_path / "half.png", half_bright("left", 3))
    return tmp_path / "half.png"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_saved_page_has_one_map_per_word(
    open_page: OpenPage, picture: Path, tmp_path: Path, language: str, axe: str
) -> None:
    explanation = explain(picture_translator(), str(picture), target=TARGET)
    save_explanation(explanation, tmp_path / "page.html")
    page = open_page(f"{(tmp_path / 'page.html').as_uri()}#language={language}&panel=translate")
    maps = page.locator(MAPS)
    expect(maps).to_have_count(len(explanation.target.words))
    weights = picture_translator().word_attention(str(picture), TARGET).weights[0, 0]
    for word, row in enumerate(weights):
        # The label names the row and the column of the patch with the largest weight, in a grid of 4 × 4.
        place = [row.argmax() // 4 + 1, row.argmax() % 4 + 1]
        label = maps.nth(word).get_attribute("aria-label")
        assert place == [
            int(text) for text in label.split(": ")[1].replace(",", " ").split() if text.isdigit()
        ]
        opacity = [
            float(rect.get_attribute("fill-opacity"))
            for rect in maps.nth(word).locator("rect[shape-rendering]").all()
        ]
        # The smaller the weight, the more the patch is darkened. A patch with weight 0 is darkened by 85%.
        assert opacity == pytest.approx((0.85 * (1 - row / row.max())).tolist(), abs=0.02)
    assert page.locator("main image").first.get_attribute("href") == explanation.picture.image
    assert_accessible(page, axe)
    for panel in ("attention", "steps", "beam"):
        page.locator(f"#tab-{panel}").click()
        expect(page.locator("main")).not_to_be_empty()


def test_a_saved_page_shows_the_roll_out_of_a_class(
    open_page: OpenPage, picture: Path, tmp_path: Path
) -> None:
    explanation = explain_class(picture_classifier(), str(picture))
    save_explanation(explanation, tmp_path / "page.html")
    page = open_page(f"{(tmp_path / 'page.html').as_uri()}#panel=translate")
    expect(page.get_by_test_id("class")).to_have_text(explanation.text)
    row = explanation.roll_out("encoder")[0, 1:]  # from the class token to the patches
    rects = page.locator(".large rect[shape-rendering]").all()
    opacity = [float(rect.get_attribute("fill-opacity")) for rect in rects]
    assert opacity == pytest.approx((0.85 * (1 - row / row.max())).tolist(), abs=0.02)
    # A classifier writes no tokens, so steps and beam are missing.
    expect(page.locator("[role=tab]")).to_have_count(1)


def test_a_picture_that_is_chosen_on_a_live_page_gets_a_caption_and_a_class(
    open_page: OpenPage, picture: Path
) -> None:
    models = [
        NamedTranslator("captioner", picture_translator()),
        NamedTranslator("classifier", picture_classifier()),
    ]
    with serving(ExplanationService(models)) as address:
        page = open_page(address)
        page.get_by_label("Choose a picture").set_input_files(picture)
        expect(page.get_by_test_id("translation")).to_have_text(
            picture_translator().translate([str(picture)])[0].text
        )
        wait_for_responses(page)
        page.get_by_label("Model", exact=True).select_option(index=1)
        expect(page.get_by_test_id("class")).to_have_text(
            picture_classifier().classify([str(picture)])[0].name
        )
        expect(page.locator("#map-part .effect")).to_contain_text("was not measured")
        assert "data:image" not in page.url
        page.locator("#tab-compare").click()
        expect(page.locator("main .pictures")).to_have_count(2)
        wait_for_responses(page)


def test_a_file_that_is_not_a_picture_is_refused(open_page: OpenPage, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"hello")
    with serving(ExplanationService([NamedTranslator("captioner", picture_translator())])) as address:
        page = open_page(address, refused=True)
        page.get_by_label("Choose a picture").set_input_files(tmp_path / "a.png")
        expect(page.get_by_role("alert")).to_contain_text("is not a picture that jumok reads")
