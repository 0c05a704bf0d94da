"""A page opened from disk, with no server: every family, every mechanism, and the longest sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from page_browser import assert_nothing_serious
from playwright.sync_api import expect

from explain_translators import (
    FAMILIES,
    SENTENCE,
    SMALL,
    WORDS,
    family_translator,
    make_translator,
    vocabularies,
)
from jumok.attention import CATALOGUE
from jumok.explain import Silence
from jumok.look import frozen_page
from jumok.models import NEEDS, NEEDS_DECODER_ONLY
from jumok.recipe import (
    AttentionSettings,
    DecoderOnlySettings,
    RecurrentSettings,
    SearchSettings,
    TransformerSettings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from jumok.decoding import Translator


pytestmark = pytest.mark.slow

# What each panel shows of a model that attends.
PANELS = {
    "translate": "[data-word=source-0]",
    "map": "[role=application]",
    "heads": "li canvas",
    "steps": "article h4",
    "beam": "g.node",
}
Open = "Callable[..., Page]"


def save(tmp_path: Path, *translators: Any) -> str:
    explanations = [one.explain(SENTENCE).with_effects().with_steps().to_json() for one in translators]
    file = tmp_path / "page.html"
    file.write_text(frozen_page(explanations), encoding="utf-8")
    return file.as_uri()


def assert_every_panel_shows(page: Page, *, attends: bool = True, axe: str = "") -> None:
    for panel, part in PANELS.items():
        page.locator(f"#tab-{panel}").click()
        if attends or panel in {"translate", "beam"}:
            expect(page.locator("#panel").locator(part).first).to_be_visible()
        else:
            expect(page.get_by_text("This model has no attention to show here.")).to_be_visible()
        assert_nothing_serious(page, axe)


def every_model() -> Iterator[tuple[str, Any]]:
    """A settings object for each mechanism in each place where it goes."""
    for name, entry in CATALOGUE.items():
        kind = AttentionSettings(kind=name)
        missing = entry.supports.missing
        places = {f"{site}_attention": kind for site, needs in NEEDS.items() if not missing(*needs)}
        if places:
            yield (
                f"transformer {name}",
                TransformerSettings(encoder_layers=1, decoder_layers=1, **places, **SMALL),
            )
        if not missing(*NEEDS["cross"]):
            yield f"recurrent {name}", RecurrentSettings(width=16, embedding=12, attention=kind)
        if not missing(*NEEDS_DECODER_ONLY):
            yield f"decoder-only {name}", DecoderOnlySettings(layers=1, attention=kind, **SMALL)
    yield (
        "recurrent none",
        RecurrentSettings(width=16, embedding=12, attention=AttentionSettings(kind="none")),
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_shows_every_panel(open_page: Open, tmp_path: Path, name: str) -> None:
    page = open_page(save(tmp_path, family_translator(name)))
    expect(page.locator("[role=tab]")).to_have_count(len(PANELS))
    assert_every_panel_shows(page, attends=name != "none")
    page.locator("#tab-map").click()
    for site in page.get_by_label("Attention", exact=True).locator("option").all():
        page.get_by_label("Attention", exact=True).select_option(site.get_attribute("value"))
        expect(page.get_by_role("application")).to_be_visible()


def test_every_mechanism_opens_in_the_page(open_page: Open, tmp_path: Path) -> None:
    models = dict(every_model())
    page = open_page(save(tmp_path, *(make_translator(settings) for settings in models.values())))
    for place, name in enumerate(models):
        page.get_by_label("Model", exact=True).select_option(index=place)
        assert_every_panel_shows(page, attends=name != "recurrent none")


def test_two_saved_models_are_compared(open_page: Open, tmp_path: Path) -> None:
    named = [
        replace(explanation, facts={**explanation.facts, "name": name}).to_json()
        for name in ("first", "second")
        for explanation in [family_translator("transformer").explain(SENTENCE)]
    ]
    file = tmp_path / "page.html"
    file.write_text(frozen_page(named), encoding="utf-8")
    page = open_page(file.as_uri())
    page.locator("#tab-compare").click()
    expect(page.get_by_role("application").nth(1)).to_be_visible()
    expect(page.locator("section h3")).to_have_text(["first", "second", "Difference: second − first"])
    page.locator("#tab-steps").click()
    expect(page.get_by_text("No steps were written into this page.")).to_be_visible()


def test_a_damaged_page_says_so(open_page: Open, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(frozen_page(['{"format": "jumok-explanation", "version": 9}']), encoding="utf-8")
    expect(open_page(file.as_uri()).get_by_role("alert")).to_contain_text("version 1")


def test_exact_numbers_stand_in_a_table_and_at_the_pointer(open_page: Open, tmp_path: Path) -> None:
    page = open_page(save(tmp_path, family_translator("bahdanau")) + "#panel=map&show=head")
    page.get_by_text("The numbers as a table").click()
    weights = family_translator("bahdanau").explain(SENTENCE).words("cross").weights[0, 0]
    rows = [row.locator("td").all_inner_texts() for row in page.locator("tbody tr").all()]
    shown = [[float(cell) for cell in row] for row in rows]
    assert shown == [pytest.approx(row, abs=0.0001) for row in weights.tolist()]
    page.get_by_role("application").focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".tip b")).to_have_text(rows[0][1])


@pytest.mark.parametrize("positions", ["alibi", "relative-keys", "relative-bias"])
def test_what_positions_add_to_scores_is_one_of_the_steps(
    open_page: Open, tmp_path: Path, positions: str
) -> None:
    settings = TransformerSettings(encoder_layers=1, decoder_layers=1, positions=positions, **SMALL)
    page = open_page(save(tmp_path, make_translator(settings)) + "#panel=steps&site=encoder")
    page.get_by_label("Cell", exact=True).select_option(index=0)

    def bars(name: str) -> list[float]:
        shown = page.get_by_label(name, exact=True).locator(".number").all_inner_texts()
        return [float(bar.replace("−", "-")) for bar in shown]

    root = float(page.locator("article", has_text="√d").locator(".value").first.inner_text())
    expected = [
        product / root + added for product, added in zip(bars("products"), bars("position bias"), strict=True)
    ]
    assert bars("scores") == pytest.approx(expected, abs=0.002)


def test_what_stands_in_a_page_is_said_of_every_view_when_its_heads_are_silenced(
    open_page: Open, tmp_path: Path
) -> None:
    translator = family_translator("transformer")
    page = open_page(save(tmp_path, translator))
    plain = translator.explain(SENTENCE)
    for address, silence in (
        ("panel=map&site=encoder&show=mean", Silence("encoder")),
        ("panel=map&site=decoder&show=maximum&layer=1", Silence("decoder", 1)),
        ("panel=map&site=encoder&show=roll-out", Silence("encoder")),
        ("panel=heads&site=encoder&word=1", Silence("encoder")),
        ("panel=translate", Silence("cross", plain.alignments[0].heads[0][0])),
    ):
        page.evaluate("address => { location.hash = address }", address)
        told = page.get_by_text("Silencing what is shown changes").locator("b").first
        before = translator.explain(SENTENCE, edit=silence).before
        assert before
        expected = before.log_prob_changed - before.log_prob
        expect(told).to_have_text(re.compile(r"^[+−]?\d"))
        assert float(told.inner_text().replace("−", "-")) == pytest.approx(expected, abs=0.0051)
    page.evaluate("location.hash = 'panel=heads&order=entropy'")
    expect(page.locator("#panel")).to_contain_text("Below each map: Entropy · Effect of silencing.")


def test_several_pages_stand_in_one_notebook(open_page: Open, tmp_path: Path) -> None:
    """A notebook shows the HTML of each cell; every page is in a frame of its own and keeps its own state."""
    cells = [
        family_translator(name).explain(sentence).show()._repr_html_()
        for name, sentence in [("transformer", SENTENCE), ("bahdanau", f"{SENTENCE} {SENTENCE}")]
    ]
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><body>{''.join(cells)}</body>", encoding="utf-8")
    page = open_page(notebook.as_uri())
    first, second = (page.frame_locator("iframe").nth(place) for place in range(2))
    first.locator("#tab-heads").click()
    second.locator("#tab-beam").click()
    expect(first.locator("li canvas").first).to_be_visible()
    expect(second.locator("g.node").first).to_be_visible()
    expect(first.locator(".pair")).to_contain_text(SENTENCE)
    expect(second.locator(".pair")).to_contain_text(f"{SENTENCE} {SENTENCE}")


def large_translator() -> Translator:
    settings = TransformerSettings(
        encoder_layers=6, decoder_layers=6, width=512, heads=8, feed_forward=64, dropout=0.0
    )
    return make_translator(settings, search=SearchSettings(beam=4, longest=1.0))


def text_of(pieces: int) -> str:
    """A sentence, or a translation, of that many pieces."""
    whole = [word for word in WORDS if len(vocabularies().target.encode(word)) == 1]
    return " ".join(whole[place % len(whole)] for place in range(pieces))


def test_60_pieces_of_6_layers_and_8_heads_stay_small(open_page: Open, axe: str, tmp_path: Path) -> None:
    """With the search, the effect of every head and the steps of a cell a site; and it shows all of them."""
    explanation = large_translator().explain(text_of(60)).with_effects().with_steps()
    assert len(explanation.source.pieces) == 60
    assert len(explanation.target.pieces) >= 50
    file = tmp_path / "page.html"
    explanation.save(file)
    assert file.stat().st_size < 1_500_000
    page = open_page(file.as_uri())
    assert_every_panel_shows(page, axe=axe)
    page.locator("#tab-heads").click()
    expect(page.locator("li canvas")).to_have_count(48)


def test_128_pieces_stay_fluid(open_page: Open, tmp_path: Path) -> None:
    """6 layers, 8 heads: hovering and changing the layer are answered in under 50 ms."""
    file = tmp_path / "long.html"
    explanation = large_translator().explain(text_of(128), target=text_of(128))
    assert explanation.attention["cross"].weights.shape == (6, 8, 129, 129)
    explanation.save(file)
    page = open_page(file.as_uri() + "#panel=map&units=pieces&show=head&layer=0")
    page.get_by_role("application").hover(position={"x": 200, "y": 200})
    expect(page.locator(".tip b")).to_have_text(re.compile(r"^0\.\d{2,3}$"))  # four decimals are not known
    layer = page.get_by_label("Layer", exact=True)
    for place in (1, 2, 3, 4, 5):
        layer.select_option(str(place))
    frame = page.get_by_role("application")
    for place in range(200, 400, 20):
        frame.hover(position={"x": place, "y": place})
    for what in ("change", "hover"):
        took = page.evaluate(
            f"performance.getEntriesByName('jumok:{what}').map(one => one.duration).sort((a, b) => a - b)"
        )
        assert len(took) >= 5
        assert took[len(took) // 2] < 50, took


def test_what_is_wider_than_a_narrow_screen_scrolls_in_its_own_frame(open_page: Open, tmp_path: Path) -> None:
    file = tmp_path / "long.html"
    large_translator().explain(text_of(128), target=text_of(128)).save(file)
    page = open_page(file.as_uri() + "#units=pieces", viewport={"width": 320, "height": 640})
    root = "document.documentElement"
    for panel in ("map", "heads", "steps", "translate"):
        page.locator(f"#tab-{panel}").click()
        expect(page.locator("#panel").locator(PANELS[panel]).first).to_be_visible()
        assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), f"{panel} is wider than its screen"
