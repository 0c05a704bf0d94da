"""Pages that are opened from disk without a server show models of every family and every mechanism."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from jumok.analysis.changes import Silence
from jumok.analysis.explainer import explain
from jumok.analysis.explanation_files import save_explanation, show_explanation
from jumok.analysis.json_format import explanation_to_json
from jumok.attention import CATALOGUE
from jumok.config.recipe import (
    AttentionSettings,
    DecoderOnlySettings,
    RecurrentSettings,
    SearchSettings,
    TransformerSettings,
)
from jumok.models.validate import ATTENTION_NEEDS
from jumok.plots.page import static_page
from support.page_browser import HEADS, PANELS, assert_every_panel_has_content
from support.random_translators import (
    SENTENCE,
    SMALL,
    SMALL_MODELS,
    WORDS,
    make_translator,
    small_translator,
    tokenizers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from jumok.inference.translator import Translator

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.slow, pytest.mark.web]


def save_page(tmp_path: Path, *translators: Any) -> str:
    """Write a page with one explanation per translator. Return the address of the page."""
    explanations = [
        explanation_to_json(explain(translator, SENTENCE).with_effects().with_steps())
        for translator in translators
    ]
    file = tmp_path / "page.html"
    file.write_text(static_page(explanations), encoding="utf-8")
    return file.as_uri()


def every_model() -> Iterator[tuple[str, Any]]:
    """Yield a name and the settings of a model for each family and each mechanism that the family can use.

    The last model is recurrent and has no attention.
    """
    for name, entry in CATALOGUE.items():
        kind = AttentionSettings(kind=name)
        missing = entry.supports.missing
        sites = {
            setting: kind for setting, needs in ATTENTION_NEEDS["transformer"].items() if not missing(*needs)
        }
        if sites:
            yield (
                f"transformer {name}",
                TransformerSettings(encoder_layers=1, decoder_layers=1, **sites, **SMALL),
            )
        if not missing(*ATTENTION_NEEDS["recurrent"]["attention"]):
            yield f"recurrent {name}", RecurrentSettings(width=16, embedding=12, attention=kind)
        if not missing(*ATTENTION_NEEDS["decoder-only"]["attention"]):
            yield f"decoder-only {name}", DecoderOnlySettings(layers=1, attention=kind, **SMALL)
    yield (
        "recurrent none",
        RecurrentSettings(width=16, embedding=12, attention=AttentionSettings(kind="none")),
    )


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_every_family_shows_every_panel(open_page: OpenPage, tmp_path: Path, name: str) -> None:
    page = open_page(save_page(tmp_path, small_translator(name)))
    expect(page.locator("[role=tab]")).to_have_count(len(PANELS))
    assert_every_panel_has_content(page)
    page.locator("#tab-attention").click()
    sites = page.get_by_role("combobox", name="Attention")
    for site in sites.locator("option").all():
        sites.select_option(site.get_attribute("value"))
        expect(page.locator("#map-part [role=application]")).to_be_visible()


def test_every_mechanism_shows_every_panel(open_page: OpenPage, tmp_path: Path) -> None:
    models = dict(every_model())
    page = open_page(save_page(tmp_path, *(make_translator(settings) for settings in models.values())))
    for index, name in enumerate(models):
        page.get_by_label("Model", exact=True).select_option(index=index)
        assert_every_panel_has_content(page, has_attention=name != "recurrent none")


def test_two_saved_models_are_compared(open_page: OpenPage, tmp_path: Path) -> None:
    explanations = [
        explanation_to_json(replace(explanation, facts={**explanation.facts, "name": name}))
        for name in ("first", "second")
        for explanation in [explain(small_translator("transformer"), SENTENCE)]
    ]
    file = tmp_path / "page.html"
    file.write_text(static_page(explanations), encoding="utf-8")
    page = open_page(file.as_uri())
    page.locator("#tab-compare").click()
    expect(page.get_by_role("application").nth(1)).to_be_visible()
    expect(page.locator("#panel section h3")).to_have_text(["first", "second", "Difference: second − first"])
    page.locator("#tab-steps").click()
    expect(page.get_by_text("This page contains no steps.")).to_be_visible()


def test_an_explanation_of_another_version_shows_an_error(open_page: OpenPage, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(static_page(['{"format": "jumok-explanation", "version": 9}']), encoding="utf-8")
    error = "This page reads explanations of version 2. Received: jumok-explanation 9."
    expect(open_page(file.as_uri()).get_by_role("alert")).to_contain_text(error)


def test_weights_are_shown_to_four_decimals_in_the_table_and_at_a_cell(
    open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(save_page(tmp_path, small_translator("bahdanau")) + "#panel=map&show=head")
    page.locator("#map-part").get_by_text("The weights as a table").click()
    weights = explain(small_translator("bahdanau"), SENTENCE).words("cross").weights[0, 0]
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#map-part details tbody tr").all()]
    numbers = [[float(cell) for cell in row] for row in rows]
    assert numbers == [pytest.approx(row, abs=0.0001) for row in weights.tolist()]
    page.locator("#map-part [role=application]").focus()
    for key in ("ArrowDown", "ArrowRight"):  # the first key selects the first cell, the second key moves
        page.keyboard.press(key)
    expect(page.locator(".tip b")).to_have_text(rows[0][1])


@pytest.mark.parametrize("positions", ["alibi", "relative-keys", "relative-bias"])
def test_the_position_bias_of_scores_is_one_of_the_steps(
    open_page: OpenPage, tmp_path: Path, positions: str
) -> None:
    settings = TransformerSettings(encoder_layers=1, decoder_layers=1, positions=positions, **SMALL)
    page = open_page(save_page(tmp_path, make_translator(settings)) + "#panel=steps&site=encoder")
    page.get_by_label("Cell", exact=True).select_option(index=0)

    def bars(name: str) -> list[float]:
        numbers = page.get_by_label(name, exact=True).locator(".number").all_inner_texts()
        return [float(number.replace("−", "-")) for number in numbers]

    root = float(page.locator("article", has_text="√d").locator(".value").first.inner_text())
    expected = [
        product / root + bias for product, bias in zip(bars("products"), bars("position bias"), strict=True)
    ]
    assert bars("scores") == pytest.approx(expected, abs=0.002)


def test_every_view_shows_the_effect_of_silencing_its_heads(open_page: OpenPage, tmp_path: Path) -> None:
    translator = small_translator("transformer")
    page = open_page(save_page(tmp_path, translator))
    # The panel opens with the alignment heads. In this untrained model, they are all heads of one layer.
    [(layer, _), *_] = explain(translator, SENTENCE).alignments[0].heads
    for address, silence in (
        ("panel=map&site=encoder&show=mean", Silence("encoder")),
        ("panel=map&site=decoder&show=maximum&layer=1", Silence("decoder", 1)),
        ("panel=map&site=encoder&show=roll-out", Silence("encoder")),
        ("panel=attention", Silence("cross", layer)),
    ):
        page.evaluate("address => { location.hash = address }", address)
        effect = page.get_by_test_id("effect")
        before = explain(translator, SENTENCE, edit=silence).before
        assert before
        expected = before.log_prob_changed - before.log_prob
        expect(effect).to_have_text(re.compile(r"^[+−]?\d"))
        assert float(effect.inner_text().replace("−", "-")) == pytest.approx(expected, abs=0.0051)
    page.evaluate("location.hash = 'panel=attention&order=entropy'")
    expect(page.locator("#panel")).to_contain_text("Below each head: Entropy.")


def test_several_pages_fit_into_one_notebook(open_page: OpenPage, tmp_path: Path) -> None:
    """A notebook shows the HTML of each cell. Every page has an iframe and a state of its own."""
    cells = [
        show_explanation(explain(small_translator(name), sentence))._repr_html_()
        for name, sentence in [("transformer", SENTENCE), ("bahdanau", f"{SENTENCE} {SENTENCE}")]
    ]
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><body>{''.join(cells)}</body>", encoding="utf-8")
    page = open_page(notebook.as_uri())
    first, second = (page.frame_locator("iframe").nth(index) for index in range(2))
    second.locator("#tab-beam").click()
    expect(first.locator(HEADS).first).to_be_visible()
    expect(second.locator("g.node").first).to_be_visible()
    expect(first.locator(".pair")).to_contain_text(SENTENCE)
    expect(second.locator(".pair")).to_contain_text(f"{SENTENCE} {SENTENCE}")


def large_translator() -> Translator:
    settings = TransformerSettings(
        encoder_layers=6, decoder_layers=6, width=512, heads=8, feed_forward=64, dropout=0.0
    )
    return make_translator(settings, search=SearchSettings(beam=4, max_length_ratio=1.0))


def text_of(num_tokens: int) -> str:
    """Return a sentence with this number of tokens."""
    words = [word for word in WORDS if len(tokenizers().target.encode(word)) == 1]
    return " ".join(words[index % len(words)] for index in range(num_tokens))


def test_a_page_of_60_tokens_6_layers_and_8_heads_is_small(
    open_page: OpenPage, axe: str, tmp_path: Path
) -> None:
    """The page includes the search, the effect of every head and the steps of one cell per site."""
    explanation = explain(large_translator(), text_of(60)).with_effects().with_steps()
    assert len(explanation.source.tokens) == 60
    assert len(explanation.target.tokens) >= 50
    file = tmp_path / "page.html"
    save_explanation(explanation, file)
    assert file.stat().st_size < 1_500_000
    page = open_page(file.as_uri())
    assert_every_panel_has_content(page, axe=axe)
    page.locator("#tab-attention").click()
    expect(page.locator(HEADS)).to_have_count(48)


def test_a_page_of_128_tokens_responds_within_50_ms(open_page: OpenPage, tmp_path: Path) -> None:
    """Measures the median time of hovering over a cell and of changing the layer, for 6 layers of 8 heads."""
    file = tmp_path / "long.html"
    explanation = explain(large_translator(), text_of(128), target=text_of(128))
    assert explanation.attention["cross"].weights.shape == (6, 8, 129, 129)
    save_explanation(explanation, file)
    page = open_page(file.as_uri() + "#panel=map&units=tokens&show=head&layer=0")
    page.locator("#map-part [role=application]").hover(position={"x": 200, "y": 200})
    # A map of this size stores one byte per weight, so the page shows two decimals (three below 0.05).
    expect(page.locator(".tip b")).to_have_text(re.compile(r"^0\.\d{2,3}$"))
    layer = page.get_by_label("Layer", exact=True)
    for index in (1, 2, 3, 4, 5):
        layer.select_option(str(index))
    frame = page.locator("#map-part [role=application]")
    for index in range(200, 400, 20):
        frame.hover(position={"x": index, "y": index})
    for action in ("change", "hover"):
        durations = page.evaluate(
            f"performance.getEntriesByName('jumok:{action}').map(e => e.duration).sort((a, b) => a - b)"
        )
        assert len(durations) >= 5
        assert durations[len(durations) // 2] < 50, durations  # the median


def test_content_wider_than_a_narrow_screen_scrolls_in_its_own_box(
    open_page: OpenPage, tmp_path: Path
) -> None:
    file = tmp_path / "long.html"
    save_explanation(explain(large_translator(), text_of(128), target=text_of(128)), file)
    page = open_page(file.as_uri() + "#units=tokens", viewport={"width": 320, "height": 640})
    root = "document.documentElement"
    for panel in ("attention", "steps"):  # without the beam panel, which is empty for a given translation
        page.locator(f"#tab-{panel}").click()
        expect(page.locator("#panel").locator(PANELS[panel]).first).to_be_visible()
        assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), f"{panel} is wider than its screen"


def test_a_definition_stays_open_while_the_focus_is_on_its_link_and_closes_when_the_focus_leaves(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMOK_DOCS", "https://docs.invalid/")
    page = open_page(save_page(tmp_path, small_translator("transformer")))
    term = page.locator("#map-part h3").get_by_role("button").first
    definition = page.get_by_role("note")
    term.click()
    page.keyboard.press("Tab")
    expect(definition.get_by_role("link")).to_be_focused()
    page.keyboard.press("Tab")
    expect(definition).to_have_count(0)
    term.click()
    page.locator("#view > [role=tabpanel] > div a").first.focus()  # a link outside the definition
    expect(definition).to_have_count(0)
    term.click()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(definition).to_have_count(0)
