"""Tests of the live page in a real browser.

A user types sentences, opens every panel, changes attention, saves files and follows a training run.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect

import jumok
from jumok.analysis.packing import unpack_weights
from jumok.config.recipe import TrainingSettings
from jumok.inference.loading import load
from jumok.server.viewer.run_monitor import RunMonitor
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.training.loop.schedule import Plan, learning_rate
from support.digit_lines import digit_lines
from support.page_browser import assert_accessible, save_file, serving, wait_for_responses

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page, Route

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.slow, pytest.mark.web]

HANGUL = re.compile("[가-힣]")
PANELS = ["attention", "steps", "beam", "compare", "run"]  # addresses with old names (map, change) still work
ATTENTION = "#panel=attention"  # without a panel in its address, a page with a run opens the panel of the run
# JavaScript that collects every later text of the element with this test id in `window.seen`.
COLLECT_TEXTS = """name => {
  window.seen = [];
  new MutationObserver(() => {
    const text = document.querySelector(`[data-testid=${name}]`)?.textContent;
    if (text && text !== window.seen.at(-1)) window.seen.push(text);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
ALL_SILENT = """[{"kind":"silence","site":"cross","layer":null,"head":null}]"""


def open_panel(page: Page, panel: str) -> None:
    page.locator(f"#tab-{panel}").click()
    expect(page.locator("#panel h2")).to_be_visible()
    wait_for_responses(page)


def type_sentence(page: Page, sentence: str) -> None:
    page.get_by_label("Sentence", exact=True).fill("")
    page.get_by_label("Sentence", exact=True).press_sequentially(sentence, delay=20)


def translation(page: Page) -> Locator:
    return page.get_by_test_id("translation")


def head_map(page: Page, layer: int = 0, head: int = 0) -> Locator:
    """Return the small map of a head."""
    return page.locator("#heads-part .scroll tbody tr").nth(layer).locator("td .picture").nth(head)


def test_each_sentence_of_a_text_can_be_looked_at(open_page: OpenPage, live: str) -> None:
    page = open_page(live + ATTENTION)
    wait_for_responses(page)
    type_sentence(page, "I go home. You go home.")
    wait_for_responses(page)
    expect(page.get_by_test_id("whole-text")).to_have_text(HANGUL)
    expect(page.locator("[data-word=source-0]")).to_have_text("I")
    page.get_by_role("button", name="You go home. →").click()
    expect(page.locator("[data-word=source-0]")).to_have_text("You")
    wait_for_responses(page)
    assert translation(page).inner_text() in page.get_by_test_id("whole-text").inner_text()
    assert "index=1" in page.url
    type_sentence(page, "I go home.")
    expect(page.get_by_test_id("whole-text")).not_to_be_attached()


@pytest.mark.parametrize("page_fixture", ["live", "demo"])
def test_a_session_of_translating_changing_comparing_and_saving_has_no_error(
    open_page: OpenPage, page_fixture: str, axe: str, request: pytest.FixtureRequest
) -> None:
    """A request to another host is an error, too."""
    page = open_page(request.getfixturevalue(page_fixture) + ATTENTION)
    wait_for_responses(page)
    page.evaluate(COLLECT_TEXTS, "partial")
    type_sentence(page, "I go home.")
    expect(page.locator("[data-word=source-1]")).to_have_text("go")
    expect(translation(page)).to_have_text(HANGUL)
    translated = translation(page).inner_text()
    partial_texts = page.evaluate("seen")
    assert len(partial_texts) > 1
    if page_fixture == "live":
        # The partial texts are of greedy search. For this model, beam search has the same result.
        # Earlier partial texts may belong to a sentence that was not typed to its end.
        assert any(translated.startswith(partial) for partial in partial_texts[:-1])
        assert partial_texts[-1].strip() == translated

    page.locator("[data-word=target-0]").hover()
    expect(page.locator("path.lit").first).to_be_attached()

    for panel in PANELS:
        open_panel(page, panel)
        assert_accessible(page, axe)

    open_panel(page, "attention")
    figure = save_file(page, "SVG").decode()
    assert ElementTree.fromstring(figure).tag == "{http://www.w3.org/2000/svg}svg"
    assert HANGUL.search(figure)

    head_map(page).click()
    difference = page.get_by_test_id("difference")
    expect(difference).to_be_visible()
    assert difference.inner_text() != "0.00" or translation(page).inner_text() != translated
    expect(page.locator(".changes")).to_contain_text("Silence")
    for theme in ("Dark", "Light"):
        page.get_by_label("Appearance").select_option(theme)
        wait_for_responses(page)
        assert_accessible(page, axe)
    page.get_by_role("button", name="Undo all").click()
    expect(page.locator(".changes")).to_have_count(0)
    expect(translation(page)).to_have_text(translated)

    open_panel(page, "beam")
    page.get_by_role("slider", name="Step").fill("0")
    other = page.locator("li:not(.produced) button", has_text=HANGUL).first
    token = other.inner_text().strip("·")
    other.click()
    expect(page.get_by_text("Given prefix:").first).to_be_visible()
    wait_for_responses(page)
    assert translation(page).inner_text().startswith(token)
    assert translation(page).inner_text() != translated

    open_panel(page, "compare")
    expect(page.locator("#panel section h3")).to_contain_text(["transformer", "recurrent", "Difference"])
    expect(page.get_by_role("application", name="Difference")).to_be_visible()


# Panel → beginning of a caption of its saved figure.
CAPTIONS = {
    "attention": "cross-attention: from the translation to the sentence · One head 1·1 · Weight",
    "steps": "Target → source · Layer 1 · Head 0",
    "beam": "What this hypothesis attended to",
}


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_is_saved_as_svg_png_json_and_csv(open_page: OpenPage, live: str, panel: str) -> None:
    page = open_page(
        f"{live}#panel={panel}&show=head&layer=1&head=1&rows=0,1&cell=cross,1,0,0,1&changes={ALL_SILENT}"
    )
    wait_for_responses(page)
    figure = ElementTree.fromstring(save_file(page, "SVG"))
    texts = [text.strip() for text in figure.itertext()]
    assert page.locator("#panel h2").inner_text() in texts
    assert any("I read a book." in text for text in texts) or panel == "run"
    assert any(text.startswith(CAPTIONS.get(panel, "")) for text in texts)
    models = "transformer, recurrent" if panel == "compare" else "transformer"
    assert any(re.fullmatch(rf"{models} · jumok, \d{{4}}-\d\d-\d\d", text) for text in texts)
    assert not {"Copy", "Clear", "Undo all", "Share", "Translate", "×"} & set(texts)
    assert not [text for text in texts if "Drag a line" in text or "Click" in text or "Choose a row" in text]
    assert any(text.startswith("Sum of") for text in texts) == (panel == "attention")
    assert float(figure.get("width", 0)) > 100
    assert save_file(page, "PNG").startswith(b"\x89PNG")
    assert json.loads(save_file(page, "JSON"))
    lines = save_file(page, "CSV").decode("utf-8-sig").splitlines()
    table = list(csv.reader(line for line in lines if not line.startswith("# ")))
    assert any(line.startswith("# date: ") for line in lines)
    assert len(table) > 1
    assert len({len(row) for row in table}) == 1


def test_a_saved_page_names_its_model(open_page: OpenPage, live: str, tmp_path: Path) -> None:
    page = open_page(f"{live}#panel=attention&show=mean&layer=1")
    wait_for_responses(page)
    file = tmp_path / "saved.html"
    file.write_bytes(save_file(page, "As it is"))
    saved = open_page(f"{file.as_uri()}#panel=attention&show=mean&layer=1")
    captions = saved.locator("main > .caption").all_text_contents()
    assert any(re.fullmatch(r"transformer · jumok, \d{4}-\d\d-\d\d", line) for line in captions)
    assert any(line.endswith("· Average, Layer 1 · Weight") for line in captions)


def test_a_word_highlights_the_map_of_a_hypothesis_and_a_cell_highlights_its_words(
    open_page: OpenPage, live: str
) -> None:
    page = open_page(f"{live}#panel=beam")
    wait_for_responses(page)
    page.locator("[data-word=source-1]").hover()
    lit = page.locator("#panel rect.lit")
    expect(lit.first).to_be_visible()
    assert lit.first.evaluate("element => getComputedStyle(element).fill") == "none"  # an outline only
    frame = page.locator("#panel [role=application]")
    page.mouse.move(0, 0)  # the focus scrolls the page, which moves a word away from the pointer
    frame.focus()
    page.keyboard.press("ArrowDown")  # the first cell
    expect(page.locator("[data-word=target-0]")).to_have_class(re.compile("pointed"))
    expect(page.locator("[data-word=source-0]")).to_have_class(re.compile("pointed"))
    expect(page.locator("g.node.lit").first).to_be_visible()


def test_the_map_of_a_hypothesis_names_its_heads_and_has_a_legend(open_page: OpenPage, live: str) -> None:
    page = open_page(f"{live}#panel=beam")
    wait_for_responses(page)
    expect(page.locator("#panel")).to_contain_text(
        re.compile(r"What this hypothesis attended to: Alignment heads \d·\d")
    )
    expect(page.locator("#panel").get_by_test_id("legend")).to_contain_text("1.00")


def test_the_heads_of_a_long_sentence_are_high_enough_to_be_seen(open_page: OpenPage, live: str) -> None:
    page = open_page(f"{live}#panel=attention&sentence={'I go home ' * 12}&target=집에")
    wait_for_responses(page)
    heights: list[int] = page.locator("td .picture").evaluate_all(
        "all => all.map(picture => picture.clientHeight)"
    )
    assert heights
    assert min(heights) >= 40  # pixels: Thumbnail.svelte sets a minimum of 2.5rem


def test_a_word_is_not_highlighted_in_the_map_of_another_translation(open_page: OpenPage, live: str) -> None:
    page = open_page(f"{live}#panel=compare&translations=own")
    wait_for_responses(page)
    texts = page.locator("#panel .text").all_text_contents()
    assert texts[0] != texts[1]
    first, second = (page.locator("#panel section").nth(index) for index in range(2))
    page.locator("[data-word=target-0]").hover()
    expect(first.locator("rect.lit")).to_have_count(1)
    expect(second.locator("rect.lit")).to_have_count(0)


def test_compared_heads_are_named_and_saved_with_the_page(
    open_page: OpenPage, live: str, tmp_path: Path
) -> None:
    page = open_page(f"{live}#panel=compare&show=head&layer=1&head=1")
    wait_for_responses(page)
    heads = page.get_by_test_id("compared-heads")
    expect(heads).to_have_text(["Target → source, One head 1·1", "Target → source, One head 0·0"])
    legend = page.get_by_test_id("legend").last
    expect(legend).to_contain_text("Difference of weights")
    assert legend.locator("span").all_inner_texts() == ["−1.00", "−0.50", "0.00", "0.50", "1.00"]
    saved = tmp_path / "compared.html"
    saved.write_bytes(save_file(page, "As it is"))
    frozen = open_page(f"{saved.as_uri()}#panel=compare&show=head&layer=1&head=1")
    expect(frozen.locator("#panel .maps h3")).to_have_text(["transformer", "recurrent"])
    expect(frozen.get_by_test_id("compared-heads")).to_have_count(2)


def test_the_chosen_model_comes_first_in_a_comparison(open_page: OpenPage, live: str) -> None:
    page = open_page(f"{live}#panel=compare")
    wait_for_responses(page)
    page.locator("header").get_by_label("Model", exact=True).select_option(index=1)
    wait_for_responses(page)
    expect(page.locator("#panel .maps h3")).to_have_text(["recurrent", "transformer"])
    expect(
        page.locator("#panel .maps .note").filter(
            has_text="Here this model reads the translation that recurrent wrote."
        )
    ).to_have_count(1)


def test_a_new_request_aborts_the_previous_one(open_page: OpenPage, live: str) -> None:
    page = open_page(live)
    for sentence in ("You sleep.", "You go."):
        page.get_by_label("Sentence", exact=True).fill(sentence)
        page.get_by_role("button", name=re.compile("Translate|working")).click(force=True)
    wait_for_responses(page)
    expect(page.locator("[data-word=source-1]")).to_have_text("go")


def test_a_live_page_shows_the_steps_of_any_cell(open_page: OpenPage, live: str) -> None:
    page = open_page(live + "#panel=steps")
    expect(page.locator("article h4").first).to_have_text(re.compile("^query embedding"))
    page.get_by_label("Attention", exact=True).select_option("encoder")
    page.get_by_label("Key", exact=True).select_option("2")
    token = page.get_by_label("Key", exact=True).locator("option").nth(2).inner_text().split()[-1]
    expect(page.locator("article li.chosen").first).to_contain_text(token)


def test_the_mask_the_scaling_the_positions_and_the_learning_rate_are_shown_with_the_steps(
    open_page: OpenPage, live: str
) -> None:
    page = open_page(live + "#panel=steps")
    page.get_by_label("Attention", exact=True).select_option("decoder")
    page.get_by_label("Query", exact=True).select_option("1")
    mask = page.locator("article", has=page.get_by_role("heading", name="Mask"))
    mask.get_by_text("The weights as a table").click()
    expect(mask.locator("tbody tr")).not_to_have_count(0)
    rows = [row.locator("td").all_inner_texts() for row in mask.locator("tbody tr").all()]
    assert [[float(cell) for cell in row] for row in rows] == [
        [float(key <= query) for key in range(len(rows))] for query in range(len(rows))
    ]

    def bars(name: str) -> list[float]:
        return [
            float(bar) for bar in page.get_by_label(name, exact=True).locator(".number").all_inner_texts()
        ]

    assert bars("with ÷ √d") == bars("weights")
    assert bars("without") != bars("weights")
    # The mask hides the keys after the query, whose index is 1.
    assert bars("without")[2:] == bars("weights")[2:] == [0.0] * (len(rows) - 2)
    expect(page.get_by_role("img", name="Sinusoidal position encoding")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Learning rate"))).to_be_visible()
    expect(page.get_by_text("Warm-up:")).to_be_visible()


def test_a_run_shows_its_curves_and_checkpoints(open_page: OpenPage, live: str) -> None:
    page = open_page(live + "#panel=run")
    expect(page.locator("figure")).to_have_count(3)
    expect(page.locator("article h4").last).to_contain_text("250 updates")
    checkpoints = page.locator("section", has=page.locator("article h4"))
    expect(checkpoints.get_by_test_id("legend")).to_contain_text("1.00")


def validation_lines(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["kind"] == "validation"]


def expect_validation(page: Page, line: dict[str, Any]) -> None:
    """Assert that the samples, the map and the slider show this line of metrics.jsonl."""
    slider = page.get_by_role("slider", name="validation")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"{line['step']:,} updates, BLEU"))
    samples = page.get_by_test_id("samples").locator("li")
    for item, sample in zip(samples.all(), line["samples"], strict=True):
        text = re.sub(r"\s+", " ", item.inner_text())
        assert text.endswith(f"Reference: {sample['reference']}")
        assert sample["source"] in text
        assert sample["hypothesis"] in text
        if sample["hypothesis"] == sample["reference"]:
            expect(item.locator("mark")).to_have_count(0)
    attention = page.locator("div.attention")
    rows = [row.locator("td").all_inner_texts() for row in attention.locator("tbody tr").all()]
    weights = np.array([[float(cell) for cell in row] for row in rows])
    assert np.allclose(weights, unpack_weights(line["attention"]["weights"]), atol=1e-4)
    assert attention.locator("tbody th").all_inner_texts() == line["attention"]["queries"]


def test_one_slider_moves_the_samples_and_the_map_of_a_run(
    open_page: OpenPage, live: str, runs: dict[str, Path]
) -> None:
    lines = validation_lines(runs["transformer"])
    assert len(lines) > 2
    page = open_page(live + "#panel=run")
    page.locator("div.attention").get_by_text("The weights as a table").click()
    expect_validation(page, lines[-1])
    slider = page.get_by_role("slider", name="validation")
    slider.focus()
    page.keyboard.press("Home")
    expect_validation(page, lines[0])
    expect(page.get_by_test_id("samples").locator("mark").first).to_be_visible()
    assert f"validation={lines[0]['step']}&" in page.url
    page.keyboard.press("ArrowRight")
    expect_validation(page, lines[1])
    marker = page.locator("figure line.marked").first
    expect(marker).to_be_attached()
    second_page = open_page(page.url)
    second_page.locator("div.attention").get_by_text("The weights as a table").click()
    expect_validation(second_page, lines[1])
    page.keyboard.press("End")
    expect_validation(page, lines[-1])
    assert "validation" not in page.url, "the page would not follow later validations"
    expect(marker).to_have_count(0)


def test_a_run_is_played_from_its_first_validation_to_its_last(
    open_page: OpenPage, live: str, runs: dict[str, Path]
) -> None:
    lines = validation_lines(runs["transformer"])
    page = open_page(live + "#panel=run")
    page.evaluate(COLLECT_TEXTS, "samples")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    slider = page.get_by_role("slider", name="validation")
    expect(slider).to_have_value("0")
    expect(page.get_by_role("button", name="Play")).to_be_visible(timeout=30_000)
    expect(slider).to_have_value(str(len(lines) - 1))
    shown_texts = page.evaluate("seen")
    hypotheses = [line["samples"][0]["hypothesis"] for line in lines]
    assert all(any(hypothesis in text for text in shown_texts) for hypothesis in hypotheses)


def test_a_plain_text_run_shows_its_attention(open_page: OpenPage, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{english}\n" for english, *_ in digit_lines(60)), encoding="utf-8")
    small = {"model.width": 16, "model.feed_forward": 16, "model.heads": 2, "model.layers": 1}
    small |= {"text.vocab_size": 300, "training.steps": 4, "training.validate_every": 2}
    jumok.train(text, out=tmp_path / "run", **{"model.family": "decoder-only"}, **small)
    with serving(ExplanationService([], run=RunMonitor(tmp_path / "run"))) as address:
        page = open_page(address)
        expect(page.get_by_role("img", name=re.compile("^perplexity: "))).to_be_visible()
        expect(page.get_by_role("application", name=re.compile("within the sentence"))).to_be_visible()
        expect(page.get_by_test_id("samples")).to_have_count(0)


@pytest.mark.parametrize(
    "malformed",
    [
        {"samples": [{"source": 7}], "attention": None},
        {"samples": "none", "attention": {"site": "cross", "queries": [], "keys": []}},
        {"attention": {"site": "cross", "queries": ["a"], "keys": ["b"], "weights": {"shape": [2, 2]}}},
        {
            "attention": {
                "site": "cross",
                "queries": ["a"],
                "keys": ["b"],
                "weights": {"shape": [1, 1], "layout": "full", "scale": 1, "codes": "%"},
            }
        },
    ],
)
def test_malformed_metrics_are_not_shown(
    open_page: OpenPage, runs: dict[str, Path], tmp_path: Path, malformed: dict[str, Any]
) -> None:
    unfinished = tmp_path / "unfinished"
    later_files = shutil.ignore_patterns("model", "checkpoints", "metrics.jsonl")
    shutil.copytree(runs["transformer"], unfinished, ignore=later_files)
    line = {"kind": "validation", "step": 10, "loss": 2.0, "bleu": 1.0, "chrf": 2.0, **malformed}
    (unfinished / "metrics.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    with serving(ExplanationService([], run=RunMonitor(unfinished))) as address:
        page = open_page(address)
        expect(page.locator("figure")).to_have_count(3)
        expect(page.locator("[data-testid=samples], [role=application]")).to_have_count(0)


def test_the_learning_rate_follows_the_revised_plan(open_page: OpenPage, runs: dict[str, Path]) -> None:
    translator = load(runs["transformer"] / "model", engine="torch")
    # At step 120, the planned number of steps was changed from 400 to 300, and at step 200 to 250.
    plan = Plan(((0, 400), (120, 300), (200, 250)))
    peak, warmup, steps = 0.01, 40, 230
    settings = TrainingSettings(schedule="cosine", learning_rate=peak, warmup_steps=warmup)
    training = {
        "schedule": "cosine",
        "learning_rate": peak,
        "warmup": warmup,
        "steps": steps,
        "plan": plan.revisions,
    }
    translator.facts = replace(translator.facts, training=training)
    with serving(
        ExplanationService([NamedTranslator("mine", translator)], sentence="I read a book.")
    ) as address:
        page = open_page(address + "#panel=steps")
        label = page.get_by_role("img", name=re.compile("Learning rate")).get_attribute("aria-label")
    last = float(str(label).split()[-1])
    assert last == pytest.approx(learning_rate(steps, settings, plan), rel=0.005)
    assert last != pytest.approx(learning_rate(steps, settings, Plan(((0, steps),))), abs=1e-4)


def test_the_page_follows_a_run_while_it_trains(
    open_page: OpenPage, runs: dict[str, Path], tmp_path: Path
) -> None:
    """Files appear in the run folder in the order of training: the record, the metrics, the checkpoints."""
    finished, unfinished = runs["transformer"], tmp_path / "unfinished"
    later_files = shutil.ignore_patterns("model", "checkpoints", "metrics.jsonl")
    shutil.copytree(finished, unfinished, ignore=later_files)
    models = [NamedTranslator("finished", load(finished / "model", engine="torch"))]
    with serving(ExplanationService(models, run=RunMonitor(unfinished))) as address:
        page = open_page(address + "#panel=run")
        expect(page.get_by_text("The run has no metrics yet.")).to_be_visible()
        shutil.copy(finished / "metrics.jsonl", unfinished)
        expect(page.locator("figure")).to_have_count(3)
        expect(page.get_by_test_id("samples").locator("li")).to_have_count(3)
        expect(page.locator("article")).to_have_count(0)
        shutil.copytree(finished / "checkpoints", unfinished / "checkpoints")
        expect(page.locator("article h4").last).to_contain_text("250 updates")
        expect(page.get_by_role("application").first).to_be_visible()
        # The page keeps the checkpoints that it has loaded, even if their files are deleted.
        num_checkpoints = page.locator("article").count()
        shutil.rmtree(unfinished / "checkpoints")
        open_panel(page, "attention")
        open_panel(page, "run")
        expect(page.locator("article")).to_have_count(num_checkpoints)


def test_the_address_of_a_page_restores_its_state(open_page: OpenPage, live: str) -> None:
    page = open_page(live + "#panel=attention&sentence=You+sleep.")
    page.get_by_label("Show", exact=True).select_option("head")
    page.get_by_label("Layer", exact=True).select_option("1")
    page.get_by_role("button", name="Tokens").click()
    address = page.url
    assert "layer=1" in address
    other = open_page(address)
    expect(other.get_by_label("Layer", exact=True)).to_have_value("1")
    expect(other.locator(".pair")).to_contain_text("You sleep.")
    expect(other.get_by_role("button", name="Tokens")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize(
    ("address", "selector"),
    [
        ("panel=attention&rows=0,1", "section h3:has-text('Sum of')"),
        ("panel=steps&cell=encoder,0,1,2,1", "article li:nth-child(2).chosen"),
        ("panel=beam&step=1&candidate=1", "g.node.chosen[aria-label*='Step 1']"),
        ("panel=beam&forced=5", "p:has-text('Given prefix:')"),
    ],
)
def test_the_selection_in_an_address_is_shown(
    open_page: OpenPage, live: str, address: str, selector: str
) -> None:
    page = open_page(f"{live}#{address}")
    expect(page.locator(selector).first).to_be_visible()
    for parameter in address.split("&"):
        assert parameter in page.url.replace("%2C", ",")


def test_an_address_in_an_open_tab_replaces_the_whole_state(open_page: OpenPage, live: str) -> None:
    page = open_page(live + "#panel=map&show=head&layer=1&sentence=You+sleep.")
    expect(page.locator(".pair")).to_contain_text("You sleep.")
    page.evaluate("location.hash = 'panel=beam&sentence=You+go.&step=1&candidate=1'")
    expect(page.locator(".pair")).to_contain_text("You go.")
    expect(page.locator("g.node.chosen[aria-label*='Step 1']")).to_be_visible()
    assert "layer" not in page.url
    open_panel(page, "attention")
    expect(page.get_by_label("Show", exact=True)).to_have_value("read-out")


def test_invalid_parameters_of_an_address_are_ignored(open_page: OpenPage, live: str) -> None:
    page = open_page(live)
    for address in (
        "panel=beam&step=2.5&candidate=x",
        "panel=change&changes=null",
        'panel=change&changes=[{"kind":"paint","site":"cross","query":1.5,"key":1,"weight":1}]',
        "panel=map&show=head&head=-3&rows=x,1&cell=cross,1,a&model=9&order=no",
    ):
        page.evaluate("address => { location.hash = address }", address)
        wait_for_responses(page)
        expect(page.locator("[role=application], g.node").first).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_changes_and_prefix_are_shown_on_every_panel(open_page: OpenPage, live: str) -> None:
    page = open_page(f"{live}#panel=beam&sentence=I+go+home.&changes={ALL_SILENT}")
    wait_for_responses(page)
    page.get_by_role("slider", name="Step").fill("0")
    page.get_by_role("button", name="Continue from this prefix").click()
    wait_for_responses(page)
    for panel in PANELS:
        open_panel(page, panel)
        changes = page.get_by_role("region", name="Changes")
        expect(changes).to_contain_text("Silence: Target → source, all layers")
        expect(changes).to_contain_text("Given prefix:")
    page.get_by_role("button", name="Remove the prefix").click()
    expect(page.get_by_text("Given prefix:")).to_have_count(0)
    page.get_by_role("button", name="Undo all").click()
    expect(page.locator(".changes")).to_have_count(0)


def test_a_refused_change_is_reverted(open_page: OpenPage, live: str) -> None:
    change = ALL_SILENT.replace('"layer":null', '"layer":7')
    page = open_page(f"{live}#panel=attention&changes={change}", refused=True)
    expect(page.get_by_role("alert")).to_contain_text("no layer 7")
    expect(page.locator(".changes")).to_have_count(0)
    page.get_by_label("Model", exact=True).select_option(index=1)
    wait_for_responses(page)
    expect(page.get_by_role("alert")).to_have_count(0)
    head_map(page).click()
    expect(page.locator(".changes span")).to_contain_text(["Layer 0, Head 0"])
    wait_for_responses(page)
    page.evaluate(f"location.hash = 'panel=attention&sentence={'a' * 1200}'")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("[role=application], .pair")).to_have_count(0)


def test_rows_selected_in_one_part_of_a_text_do_not_stay_in_another(open_page: OpenPage, live: str) -> None:
    page = open_page(live + "#panel=attention&sentence=I+go+home.+You+go+home.&rows=0,1")
    expect(page.locator("section h3", has_text="Sum of")).to_be_visible()
    wait_for_responses(page)
    page.get_by_role("button", name="You go home. →").click()
    expect(page.locator("[data-word=source-0]")).to_have_text("You")
    expect(page.locator("section h3", has_text="Sum of")).to_have_count(0)
    assert "rows" not in page.url


def test_the_page_stays_at_the_old_part_of_a_text_if_another_part_is_refused(
    open_page: OpenPage, live: str
) -> None:
    page = open_page(live + "#panel=attention&sentence=I+go+home.+You+go+home.", refused=True)
    wait_for_responses(page)

    def refuse(route: Route) -> None:
        if (route.request.post_data_json or {}).get("index"):
            route.fulfill(status=400, json={"error": "no such part"})
        else:
            route.continue_()

    page.route("**/explain", refuse)
    page.get_by_role("button", name="You go home. →").click()
    expect(page.get_by_role("alert")).to_contain_text("no such part")
    assert "index" not in page.url
    head_map(page).click()  # this changes the part that is still shown
    expect(page.locator(".changes span")).to_contain_text(["Layer 0, Head 0"])
    wait_for_responses(page)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator("[data-word=source-0]")).to_have_text("I")


def test_an_error_is_not_shown_beside_the_answer_to_a_newer_request(open_page: OpenPage, live: str) -> None:
    """After a refused change, the page requests the sentence without the change.

    This request is delayed here until another sentence has been typed and answered.
    """
    page = open_page(live + ATTENTION, refused=True)
    wait_for_responses(page)
    delayed: list[Route] = []

    def delay(route: Route) -> None:
        request = route.request.post_data_json or {}
        if request.get("sentence") == "You sleep." and not request.get("changes"):
            delayed.append(route)
        else:
            route.continue_()

    page.route("**/explain", delay)
    change = ALL_SILENT.replace('"layer":null', '"layer":7')
    with page.expect_request(
        lambda request: request.url.endswith("/explain") and '"changes":[]' in (request.post_data or "")
    ):
        page.evaluate(
            "hash => { location.hash = hash }", f"panel=attention&sentence=You+sleep.&changes={change}"
        )
    page.get_by_label("Sentence", exact=True).fill("You go.")
    expect(page.locator("[data-word=source-1]")).to_have_text("go")
    wait_for_responses(page)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(delayed) == 1


def test_an_empty_sentence_shows_nothing_and_a_long_one_is_cut(open_page: OpenPage, live: str) -> None:
    page = open_page(live + ATTENTION)
    wait_for_responses(page)
    page.get_by_label("Sentence", exact=True).fill("")
    expect(page.locator("[data-word]")).to_have_count(0)
    expect(page.get_by_text("There is no sentence yet")).to_be_visible()
    expect(page.get_by_role("list", name="Example sentences").get_by_role("button")).to_have_count(6)
    page.get_by_role("button", name="The student reads a book.").click()
    expect(page.locator("[data-word=source-1]")).to_have_text("student")
    page.get_by_label("Sentence", exact=True).fill("I go home. " * 100)  # 1,100 characters; 1,000 are allowed
    expect(page.get_by_role("alert")).to_contain_text("cut off at its end: 100")


def test_the_score_the_candidates_and_the_effect_belong_to_the_selected_hypothesis(
    open_page: OpenPage, live: str
) -> None:
    page = open_page(live + "#sentence=I+go+home.")
    wait_for_responses(page)
    score = page.get_by_test_id("score").inner_text()
    open_panel(page, "beam")
    expect(page.locator("g.node.chosen")).to_have_attribute("aria-label", re.compile(f"score {score},"))
    expect(page.locator("#panel ol")).to_be_visible()
    expect(page.get_by_text(re.compile("Without (this head|these . heads), the model"))).to_be_visible()
    page.locator("g.node:not(.best)").last.click()
    expect(page.get_by_text("not for this hypothesis")).to_be_visible()
    expect(page.get_by_text(re.compile("Without (this head|these . heads), the model"))).to_have_count(0)
    lists = []
    # Begin at the last step, because choosing a node fades nodes of later steps.
    for node in reversed(page.locator("g.node:not(.best)").all()):
        node.click()
        lists.append(page.locator("#panel ol").count())
    # The candidates are listed only for hypotheses that begin as the translation does.
    assert sorted(set(lists)) == [0, 1]


LIMIT_ADDRESS_CHANGES = """() => {
  let count = 0;
  for (const name of ["replaceState", "pushState"]) {
    const write = history[name].bind(history);
    history[name] = (...address) => {
      if (++count > 100) throw new DOMException("more than 100 times in 30 seconds", "SecurityError");
      write(...address);
    };
  }
}"""


def test_the_address_changes_no_more_often_than_browsers_allow(open_page: OpenPage, live: str) -> None:
    """Safari allows 100 changes within 30 seconds. One change per typed character would be more."""
    page = open_page(live)
    wait_for_responses(page)
    page.evaluate(LIMIT_ADDRESS_CHANGES)
    sentence = "You go. " * 20
    type_sentence(page, sentence.strip())
    wait_for_responses(page)
    expect(page).to_have_url(re.compile(re.escape("+".join(["You+go."] * 20))))


@pytest.mark.parametrize("letter", ["\x01", "\x1b", "\ufffe"])
def test_characters_that_xml_cannot_contain_do_not_break_a_picture(
    open_page: OpenPage, live: str, letter: str
) -> None:
    page = open_page(f"{live}#panel=attention&sentence=I+{quote(letter)}go{quote(letter)}+home.")
    wait_for_responses(page)
    assert ElementTree.fromstring(save_file(page, "SVG")).tag.endswith("svg")
    assert save_file(page, "PNG").startswith(b"\x89PNG")


def test_a_page_that_is_too_high_for_a_png_file_is_still_saved_as_png(open_page: OpenPage, live: str) -> None:
    page = open_page(live)
    wait_for_responses(page)
    page.evaluate("document.getElementById('panel').style.minHeight = '40000px'")
    assert save_file(page, "PNG").startswith(b"\x89PNG")


def test_all_white_space_is_normalised(open_page: OpenPage, live: str) -> None:
    page = open_page(live + "#sentence=I+go+home.")
    expect(translation(page)).to_have_text(HANGUL)
    translated = translation(page).inner_text()
    page.get_by_label("Sentence", exact=True).fill("\tI go\n\u00a0home. ")
    wait_for_responses(page)
    page.wait_for_timeout(600)  # the page sends the request some time after the last key
    wait_for_responses(page)
    expect(translation(page)).to_have_text(translated)
    expect(page.locator(".stale")).to_have_count(0)


def test_a_text_is_not_cut_inside_a_surrogate_pair(open_page: OpenPage, live: str) -> None:
    page = open_page(live)
    wait_for_responses(page)
    page.get_by_label("Sentence", exact=True).fill("I go home." + " 😀" * 500)  # 1,010 characters
    expect(page.get_by_role("alert")).to_contain_text("cut off at its end: 10")
    assert page.get_by_label("Sentence", exact=True).input_value().endswith(" 😀")


def test_right_to_left_text_is_laid_out_right_to_left(open_page: OpenPage, live: str) -> None:
    page = open_page(f"{live}#sentence={quote('אני הולך הביתה')}")
    wait_for_responses(page)
    first, second = (page.locator(f"[data-word=source-{word}]").bounding_box() for word in (0, 1))
    assert first
    assert second
    assert first["x"] > second["x"]


def test_a_server_that_does_not_respond_is_reported(browser: Any, live: str) -> None:
    page = browser.new_page(locale="en-GB")
    page.goto(live)
    wait_for_responses(page)
    page.route("**/explain", lambda route: route.abort("connectionrefused"))
    page.get_by_label("Sentence", exact=True).fill("You sleep.")
    expect(page.get_by_role("alert")).to_contain_text("does not respond. Start it again")
    page.close()


def test_a_selection_from_an_address_is_cleared_for_another_sentence(open_page: OpenPage, live: str) -> None:
    page = open_page(live + "#panel=attention&sentence=I+go+home.")
    wait_for_responses(page)
    page.evaluate("location.hash = 'panel=attention&sentence=I+go+home.&rows=0,1'")
    expect(page.locator("section h3", has_text="Sum of")).to_be_visible()
    type_sentence(page, "You sleep.")
    expect(page.locator("[data-word=source-1]")).to_have_text("sleep")
    expect(page.locator("section h3", has_text="Sum of")).to_have_count(0)


def test_touch_and_screen_readers_and_input_methods_are_supported(open_page: OpenPage, live: str) -> None:
    page = open_page(live + ATTENTION, has_touch=True)
    wait_for_responses(page)
    page.locator("#map-part [role=application]").tap(position={"x": 90, "y": 90})
    expect(page.locator(".tip")).to_contain_text("→")
    # A screen reader speaks a new text of this element only if the element itself stays.
    page.evaluate("window.spoken = document.querySelector('[role=status]')")
    page.get_by_label("Sentence", exact=True).fill("You sleep.")
    composing = (
        "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true})"
    )
    # `dispatchEvent` returns true if the page does not handle the key, which belongs to the input method.
    assert page.get_by_label("Sentence", exact=True).evaluate(f"field => field.dispatchEvent({composing})")
    expect(page.locator("[data-word=source-1]")).to_have_text("sleep")
    assert page.evaluate("spoken.isConnected && spoken.textContent") == translation(page).inner_text()


def test_arrow_keys_move_between_tabs_and_between_cells(open_page: OpenPage, live: str) -> None:
    page = open_page(live + "#panel=run")
    page.locator("#tab-run").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-attention")).to_be_focused()
    page.locator("#map-part [role=application]").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("[aria-live=polite]").first).to_have_text(re.compile("→ read: 0\\.\\d{4}"))
    page.keyboard.press("Space")
    assert "rows=1" in page.url
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("line-editor")).to_be_visible()


def test_html_in_a_sentence_is_shown_as_text(open_page: OpenPage, live: str) -> None:
    page = open_page(live)
    page.get_by_label("Sentence", exact=True).fill("<img src=x onerror=alert(1)></script><b>go</b>")
    page.get_by_role("button", name="Translate", exact=True).click()
    expect(page.locator("[data-word=source-0]")).to_be_visible()
    assert page.locator("img, .pair b, .pair img").count() == 0


def test_the_page_fits_a_phone_in_dark_mode_and_korean(open_page: OpenPage, live: str, axe: str) -> None:
    page = open_page(f"{live}#theme=dark&language=ko", viewport={"width": 390, "height": 800})
    for panel in PANELS:
        open_panel(page, panel)
        assert_accessible(page, axe)
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), f"{panel} is wider than its screen"
