"""In a real browser, the page shows effects, measures, steps, expected translations and a training run."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from jumok.analysis.explainer import explain
from jumok.analysis.live_file import model_page
from jumok.inference.engines.torch_engine import TorchEngine
from jumok.inference.loading import load
from jumok.server.viewer.run_monitor import RunMonitor
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.storage.model_folder import read_card
from support.page_browser import SENTENCE, save_file, serving, wait_for_responses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from jumok.inference.translator import OnProgress, Translator
    from jumok.server.viewer.service import OnPartial

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.slow, pytest.mark.web]


def open_view(open_page: OpenPage, address: str, **parameters: str) -> Page:
    """Open the page with parameters in its address. Then the page does not open the first steps."""
    page = open_page(f"{address}#" + "&".join(f"{name}={quote(value)}" for name, value in parameters.items()))
    wait_for_responses(page)
    return page


def test_the_effect_of_each_head_on_each_word_is_shown(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    page = open_view(open_page, address, panel="attention")
    section = page.get_by_test_id("head-words")
    expect(section.get_by_role("application")).to_be_visible()
    explanation = explain(translator, SENTENCE).with_effects()
    effects = explanation.statistics["cross"].token_effect
    assert effects is not None
    section.get_by_text("The changes as a table").click()
    expect(section.get_by_test_id("legend")).to_contain_text("nats")
    rows = section.locator("tbody tr")
    expect(rows).to_have_count(effects.shape[0] * effects.shape[1])
    words = explanation.target.word_of_token
    of_first_word = [effects[..., step] for step, word in enumerate(words) if word == 0]
    expected = np.sum(of_first_word, axis=0).reshape(-1)
    shown = [float(row.locator("td").first.inner_text().replace("−", "-")) for row in rows.all()]
    assert shown == pytest.approx(expected.tolist(), abs=6e-3)


def test_the_map_can_show_erasure_and_its_difference_from_the_weight(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    page = open_view(open_page, address, panel="attention")
    page.locator("#map-part").get_by_text("Erasure", exact=True).click()
    wait_for_responses(page)
    erasure = explain(translator, SENTENCE).measures().erasure
    assert erasure is not None
    explanation = explain(translator, SENTENCE)
    steps = [step for step, owner in enumerate(explanation.target.word_of_token) if owner == 0]
    row = erasure[steps].sum(axis=0)  # the change in the word's log-probability, with its sign
    section = page.locator("#map-part")
    section.get_by_text("The changes as a table").click()
    cells = section.locator("tbody tr").first.locator("td")
    expect(cells.last).to_have_text("–")  # </s> is not erased
    assert numbers(cells) == pytest.approx(row.tolist(), abs=1e-3)
    assert "measure=erasure" in page.url
    expect(section.get_by_test_id("legend")).to_contain_text("Change in log-probability without it (nats)")
    expect(section.locator("h3").first).to_have_text("Map: Target → source, Erasure (nats)")
    expect(section).not_to_contain_text("Without these")  # erasure is a measure of the whole model
    saved = json.loads(save_file(page, "JSON"))
    assert (saved["measure"], saved["unit"], saved["heads"]) == ("erasure", "nats", None)
    assert "weights" not in saved
    assert saved["values"][0] == pytest.approx([*row.tolist(), None], abs=1e-5)
    comments, header = read_comments(save_file(page, "CSV"))
    assert header.startswith("erasure (nats),")
    assert (comments["model"], comments["source"], comments["changes"]) == ("mine", SENTENCE, "none")
    assert (saved["model"], saved["changes"]) == ("mine", [])
    assert not {"layer", "head", "combination"} & set(saved)  # a measure of the whole model has no head
    figure = save_file(page, "SVG").decode()
    assert "Erasure (nats)" in figure
    page.get_by_label("Minus the weight").check()
    weights = saved_weights(open_page, address)
    shares = np.abs(row) / np.abs(row).sum()
    weight_shares = weights[0][:-1] / weights[0][:-1].sum()  # without </s>, which is not erased
    assert numbers(cells) == pytest.approx((shares - weight_shares).tolist(), abs=1e-3)
    assert sum(numbers(cells)) == pytest.approx(0, abs=1e-3)
    assert json.loads(save_file(page, "JSON"))["minus_weight"] is True


def read_comments(file: bytes) -> tuple[dict[str, str], str]:
    """Return the comments before the table of a CSV file, and the table's header."""
    lines = file.decode("utf-8-sig").splitlines()
    comments = [line.removeprefix("# ").partition(": ") for line in lines if line.startswith("# ")]
    return {name: text for name, _, text in comments}, lines[len(comments)]


def numbers(cells: Locator) -> list[float]:
    """Return the numbers in the cells of a row. Cells with a dash are skipped."""
    return [float(text.replace("−", "-")) for text in cells.all_inner_texts() if text != "–"]


def saved_weights(open_page: OpenPage, address: str) -> Any:
    """Return the weights of the map that the page shows when it opens, one row per word."""
    page = open_view(open_page, address, panel="attention")
    return np.array(json.loads(save_file(page, "JSON"))["weights"])


def test_numbers_beside_the_lines_are_the_weights_of_the_token_that_is_pointed_at(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    """One of the two tokens here is the second token of its word. The other is the special token </s>."""
    sentence = "My friends read old books."
    parameters = {"panel": "attention", "site": "encoder", "show": "head", "layer": "0", "units": "tokens"}
    page = open_view(open_page, address, **parameters, view="lines", sentence=sentence)
    explanation = explain(translator, sentence)
    words = explanation.source.word_of_token
    second = next(i for i in range(1, len(words)) if words[i] == words[i - 1])
    weights = explanation.attention["encoder"].weights[0, 0]
    rows = page.locator("#map-part svg text[role=button]")
    for index in (second, len(words)):  # the second token of a word, and </s>
        rows.nth(index).hover()
        expect(page.locator("#map-part tspan.weight").first).to_be_visible()
        shown = [float(text) for text in page.locator("#map-part tspan.weight").all_text_contents()]
        # The page shows no number beside a weaker line.
        expected = [weight for weight in weights[index].tolist() if weight >= 0.02]
        assert shown == pytest.approx(expected, abs=2e-4)


def test_lines_of_a_difference_have_both_signs(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address, panel="attention", measure="erasure", minus="weight", view="lines")
    values = json.loads(save_file(page, "JSON"))["values"]
    # The page draws no line for a weaker value.
    strong = [value for row in values for value in row if value is not None and abs(value) >= 0.02]
    lines = page.locator("#map-part svg line")
    expect(lines).to_have_count(len(strong))
    expect(page.locator("#map-part svg line.positive")).to_have_count(sum(value > 0 for value in strong))
    assert 0 < sum(value > 0 for value in strong) < len(strong)


@pytest.mark.parametrize("measure", ["gradient", "erasure"])
def test_the_legend_of_lines_ends_at_the_number_of_the_strongest_line(
    open_page: OpenPage, address: str, measure: str
) -> None:
    page = open_view(open_page, address, panel="attention", measure=measure, view="lines", theme="light")
    values = json.loads(save_file(page, "JSON"))["values"]
    largest = max(abs(value) for row in values for value in row if value is not None)
    legend = page.locator("#map-part").get_by_test_id("legend")
    ends = [float(text.replace("−", "-")) for text in legend.locator("span").all_inner_texts()]
    assert ends == pytest.approx([-largest, -largest / 2, 0, largest / 2, largest], rel=0.06)
    thickest = max(
        page.locator("#map-part line").all(), key=lambda line: float(line.get_attribute("stroke-width") or 0)
    )
    end = (
        legend.locator("rect").last
        if "positive" in (thickest.get_attribute("class") or "")
        else legend.locator("rect").first
    )
    assert end.get_attribute("height") == thickest.get_attribute("stroke-width") == "6"
    colour = "e => [getComputedStyle(e).fill, getComputedStyle(e).stroke]"
    assert end.evaluate(colour)[0] == thickest.evaluate(colour)[1]


def test_the_lines_of_the_pair_show_the_measure_of_the_map(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address, panel="attention")
    weights = page.locator("#pair path.line").count()
    page.locator("#map-part").get_by_text("Erasure", exact=True).click()
    wait_for_responses(page)
    values = json.loads(save_file(page, "JSON"))["values"]
    largest = max(abs(value) for row in values for value in row if value is not None)
    # The pair has no lines of </s>, and no line whose number is below 8% of the largest number of the map.
    strong = [value for row in values[:-1] for value in row[:-1] if abs(value) >= 0.08 * largest]
    expect(page.locator("#pair path.line")).to_have_count(len(strong))
    expect(page.locator("#pair path.positive")).to_have_count(sum(value > 0 for value in strong))
    page.locator("#tab-beam").click()  # on this tab, the lines show the weights
    expect(page.locator("#pair path.line")).to_have_count(weights)


def test_a_translation_of_another_engine_is_not_called_given(
    open_page: OpenPage, runs: dict[str, Path], tmp_path: Path
) -> None:
    """The page says "was given" only about a translation that the user has entered."""
    translator, rounded_translator = (load(runs["transformer"] / "model", engine="torch") for _ in range(2))
    with torch.no_grad():
        for weight in rounded_translator.model.parameters():
            weight.copy_((weight * 2).round() / 2)
    engine = TorchEngine(rounded_translator.model)
    engine.name = "rounded"  # type: ignore[misc]  # as if it were another engine
    translator.engine = engine
    with serving(ExplanationService([NamedTranslator("mine", translator)], sentence=SENTENCE)) as url:
        page = open_view(open_page, url, panel="attention")
        expect(page.get_by_test_id("origin")).to_contain_text("The engine rounded wrote this translation")
        expect(page.get_by_text("was given")).to_have_count(0)
        expect(page.get_by_test_id("why-not")).to_be_visible()
        page.locator("#tab-beam").click()
        expect(page.locator("#panel")).to_contain_text("the engine rounded wrote this translation")


def test_the_figure_of_the_steps_has_no_overlapping_texts(open_page: OpenPage, address: str) -> None:
    """On the page, a long list of bars scrolls. The figure has all bars, and the next step is below them."""
    sentence = " ".join(["My friends read old books and I go home"] * 3) + "."
    page = open_view(open_page, address, panel="steps", sentence=sentence)
    expect(page.locator("ol[aria-label='weights']")).to_be_visible()
    figure = ElementTree.fromstring(save_file(page, "SVG"))
    texts = [
        (float(element.get("x", 0)), float(element.get("y", 0)), element.text or "")
        for element in figure.findall("{http://www.w3.org/2000/svg}text")
    ]
    # The texts of the column that come before the heading must also be above it in the figure. Texts that are
    # much further up belong to another part of the figure.
    heading = next(i for i, (_, _, text) in enumerate(texts) if text == "weights")
    x, y, _ = texts[heading]
    earlier = [other_y for other_x, other_y, _ in texts[:heading] if x - 1 <= other_x < x + 200]
    assert max(other_y for other_y in earlier if other_y > y - 2000) < y - 5
    others = texts[:heading] + texts[heading + 1 :]
    assert min(abs(y - other_y) for other_x, other_y, _ in others if abs(other_x - x) < 60) > 8


def test_an_expected_translation_is_compared_with_the_models_own(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    page = open_view(open_page, address, panel="attention")
    section = page.get_by_test_id("why-not")
    section.get_by_label("Expected translation").fill("나는 학교에 간다.")
    section.get_by_role("button", name="Compare").click()
    expect(section.get_by_role("status")).to_contain_text("The translations diverge here")
    expect(section.locator(".first-difference").first).to_be_visible()
    expect(section.locator("ol[aria-label^='Which of the two tokens']").locator("li")).to_have_count(4)
    section.get_by_label("Expected translation").fill(explain(translator, SENTENCE).text)
    section.get_by_role("button", name="Compare").click()
    expect(section.get_by_role("status")).to_have_text("This is the translation that the model wrote.")


def test_steps_are_a_flow_and_name_the_token_that_the_query_reads(open_page: OpenPage, address: str) -> None:
    """The query here is the step that reads <s> and writes the first word. Its embedding is that of <s>."""
    page = open_view(open_page, address, panel="steps", cell="decoder,0,0,0,0")
    stages = page.locator(".flow > li")
    expect(stages).to_have_count(10)
    embeddings = stages.first.locator("h4 .token")
    expect(embeddings.first).to_have_text("<s>")
    expect(page.get_by_label("Query", exact=True).locator("option:checked")).to_contain_text(
        "reads <s>, writes"
    )
    expect(page.locator(".computed").filter(has_text="q · kᵢ / √d")).to_have_text(
        re.compile(r"= −?[\d.]+ / [\d.]+ = −?[\d.]+$")
    )
    expect(stages.last.locator(".computed")).to_contain_text("log p =")
    expect(page.get_by_text("the logit lens").first).to_be_visible()
    expect(page.locator("td.written").last).to_be_visible()


def test_a_long_list_of_keys_says_that_it_can_be_scrolled(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address, panel="steps", sentence="I go home " * 6)
    weights = page.locator("#panel ol[aria-label=weights]").first
    expect(weights).to_be_visible()
    count = weights.locator("li").count()
    assert count > 13
    note = page.locator("#panel article").get_by_text(f"{count} in all: scroll to see the others.").first
    expect(note).to_be_visible()
    assert "in all: scroll" not in save_file(page, "SVG").decode()  # a figure has all bars
    page.get_by_label("Sentence", exact=True).fill("I go home.")
    expect(note).to_have_count(0)


def test_the_steps_panel_opens_on_a_weight_near_one_half(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    page = open_view(open_page, address, panel="steps")
    shown = page.locator(".computed").filter(has_text="exp(eᵢ)")
    weight = float(shown.inner_text().rsplit("= ", 1)[1])
    weights = explain(translator, SENTENCE).attention["cross"].weights[:, :, :-1, :-1]
    closest = float(np.abs(weights - 0.5).min())
    # Any weight of the preferred head within 0.2 of 0.5 is good enough (MAX_DISTANCE_FROM_HALF in steps.ts).
    # The page shows the weight with four decimals.
    assert abs(weight - 0.5) <= max(0.2, closest + 0.01)


def test_the_steps_panel_keeps_its_cell_when_the_head_of_the_cell_is_changed(
    open_page: OpenPage, address: str
) -> None:
    page = open_view(open_page, address, panel="steps")
    fields = [
        page.locator("#panel").get_by_label(name, exact=True) for name in ("Layer", "Head", "Query", "Key")
    ]
    before = [field.input_value() for field in fields]
    page.locator("#panel").get_by_role("button", name="Try it").click()
    wait_for_responses(page)
    assert [field.input_value() for field in fields] == before
    edited = page.get_by_role("heading", name="edited weights")
    expect(edited).to_have_count(1)
    saved = json.loads(save_file(page, "JSON"))
    assert (saved["model"], saved["source"]) == ("mine", SENTENCE)
    assert saved["changes"][0]["kind"] == "silence"
    comments, header = read_comments(save_file(page, "CSV"))
    assert (comments["changes"].split(":")[0], header) == ("Silence", "step,index,value")
    fields[1].select_option("1" if before[1] == "0" else "0")
    wait_for_responses(page)
    expect(edited).to_have_count(0)  # the other head is not changed


def test_the_steps_of_a_recurrent_model_have_the_names_of_its_own_computation(
    open_page: OpenPage, live: str
) -> None:
    page = open_view(open_page, live, panel="steps", model="1")
    stages = page.locator("#panel ol.flow h3")
    expect(stages.first).to_contain_text("Embedding")
    titles = " ".join(stages.all_inner_texts())
    assert "position" not in titles
    assert "W_O" not in titles
    assert "q · k" not in titles
    expect(page.locator(".computed").filter(has_text="eᵢ = v · tanh")).to_have_count(1)


def test_the_first_steps_can_be_finished_and_are_remembered(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    wait_for_responses(page)
    story = page.get_by_test_id("story")
    for step in range(1, 8):
        expect(story.locator(".count")).to_have_text(f"{step} of 7")
        action_button = story.locator(".buttons").get_by_role(
            "button", name=re.compile("Translate it|for me|Silence")
        )
        if step == 4:
            head = re.fullmatch(
                r".*Without head (\d) of layer (\d), the model finds this translation (.*?)\..*",
                story.locator("p").nth(1).inner_text(),
            )
            assert head
            expect(page.locator("td.suggested .picture")).to_have_attribute(
                "aria-label", re.compile(f"Layer {head[2]}, Head {head[1]}")
            )
            assert "likely" in head[3]
        if action_button.count():
            action_button.click()
            wait_for_responses(page)
            expect(story.locator(".done").first).to_be_visible()
        if step == 4:
            expect(page.locator("td.suggested")).to_have_count(0)  # this head is silent now
        if step == 5:
            expect(page.get_by_test_id("translation")).not_to_be_empty()
        if step == 3:
            page.get_by_role("button", name="One word").click()  # hides the maps; step 4 shows them again
        if step < 7:
            story.get_by_role("button", name="Next").click()
    expect(story.locator("li")).to_have_count(3)
    expect(story.locator("li.solved")).to_have_count(0)  # no challenge is solved by the earlier steps
    story.get_by_role("button", name="Finish").click()
    expect(story).to_have_count(0)
    page.goto("about:blank")
    page.goto(address)
    wait_for_responses(page)
    expect(story).to_have_count(0)
    page.get_by_role("button", name="First steps").click()
    expect(story).to_be_visible()
    story.get_by_role("button", name="Next").click()
    story.get_by_role("button", name="The word order changes").click()
    expect(story.get_by_role("note")).to_contain_text("docs of jumok: explain/look-up.md")


def test_a_file_with_a_model_computes_every_measure_except_gradients(
    open_page: OpenPage, translator: Translator, runs: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "live.html"
    settings = read_card(runs["transformer"] / "model").recipe.model
    file.write_text(model_page(translator, settings, name="mine", sentence=SENTENCE), encoding="utf-8")
    page = open_page(file.as_uri() + "#panel=attention&measure=gradient")
    expect(page.get_by_text("A model in a file computes no gradients")).to_be_visible()
    expect(page.locator("#heads-part canvas").first).to_be_visible()
    # The page does not show the weights in place of gradients.
    expect(page.locator("#map-part").get_by_role("application")).to_have_count(0)
    expect(page.locator("#map-part").get_by_test_id("legend")).to_have_count(0)
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.locator("#share").get_by_role("button", name="CSV")).to_have_count(0)
    page.get_by_role("button", name="Share", exact=True).click()
    page.locator("#map-part").get_by_text("Weight × ‖value‖", exact=True).click()
    expect(page.get_by_text("Kobayashi")).to_be_visible()
    expect(page.locator("#map-part").get_by_role("application")).to_be_visible()
    page.locator("#map-part").get_by_text("Erasure", exact=True).click()
    expect(page.get_by_text("A real measurement")).to_be_visible()
    expect(page.locator("#map-part").get_by_role("application")).to_be_visible()
    expect(page.get_by_test_id("head-words").get_by_role("application")).to_be_visible()


def test_a_run_lists_its_validation_sentences_and_shows_the_profile_of_a_head(
    open_page: OpenPage, live: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    """The list and the profile remain after another panel was open. A saved page has both of them."""
    page = open_view(open_page, live, panel="run")
    sentence_list, profile = page.get_by_test_id("sentences"), page.get_by_test_id("head-profile")
    sentence_list.get_by_role("button", name="Score sentences").click()
    expect(sentence_list.locator("tbody tr").first).to_be_visible(timeout=60_000)
    _, available = RunMonitor(runs["transformer"]).validation_pairs(50)
    count = min(50, available)
    expect(sentence_list.locator("tbody tr")).to_have_count(count)
    expect(sentence_list.get_by_test_id("sample")).to_contain_text(
        f"{count} of the validation set's {available} sentences · translated by the finished model"
    )
    sentence_list.get_by_role("button", name="Loss").click()
    losses = [float(cell.inner_text()) for cell in sentence_list.locator("tbody td:nth-child(4)").all()]
    assert losses == sorted(losses, reverse=True)
    profile.get_by_role("button", name="Measure this head").click()
    expect(profile.get_by_text("BLEU without the head")).to_be_visible(timeout=60_000)
    measured = profile.locator("dl").inner_text()
    source = sentence_list.locator("tbody tr .open").first.inner_text()
    sentence_list.locator("tbody tr .open").first.click()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(source)
    page.locator("#tab-run").click()
    expect(sentence_list.locator("tbody tr")).to_have_count(count)
    wait_for_responses(page)
    file = tmp_path / "saved.html"
    file.write_bytes(save_file(page, "As it is"))
    saved = open_page(file.as_uri() + "#panel=run")
    expect(saved.get_by_test_id("head-profile").locator("dl")).to_have_text(measured, use_inner_text=True)
    expect(saved.get_by_test_id("sentences").locator("tbody tr")).to_have_count(count)
    expect(saved.locator("#panel .curves svg[role=img]")).to_have_count(3)
    expect(saved.get_by_text("New ones are added while this page is open")).to_have_count(0)
    expect(saved.get_by_role("button", name="Measure this head")).to_have_count(0)


class SlowService(ExplanationService):
    """A service that waits for a second after each part of long work. A test can act during this time."""

    def _progress_callback(self, on_partial: OnPartial | None) -> OnProgress:
        on_progress = super()._progress_callback(on_partial)

        def report_and_wait(done: int, total: int) -> None:
            on_progress(done, total)
            time.sleep(1)

        return report_and_wait


@pytest.fixture(scope="module")
def slow_address(translator: Translator, runs: dict[str, Path]) -> Iterator[str]:
    """Yield the address of a live page with a run and a `SlowService`."""
    models, run = [NamedTranslator("mine", translator)], RunMonitor(runs["transformer"])
    with serving(SlowService(models, sentence=SENTENCE, run=run)) as url:
        yield url


def test_a_sentence_is_translated_while_a_head_is_measured_and_measuring_can_be_cancelled(
    open_page: OpenPage, slow_address: str
) -> None:
    page = open_view(open_page, slow_address, panel="run")
    profile = page.get_by_test_id("head-profile")
    profile.get_by_role("button", name="Measure this head").click()
    expect(profile.get_by_role("progressbar")).to_be_visible()
    page.get_by_label("Sentence", exact=True).fill("I like the old book.")
    page.get_by_role("button", name="Translate", exact=True).click()
    expect(page.locator("[data-word=source-4]")).to_be_visible()
    expect(profile.get_by_role("progressbar")).to_be_visible()
    profile.get_by_role("button", name="Cancel").click()
    expect(profile.get_by_role("button", name="Measure this head")).to_be_visible()
    expect(profile.locator("dl")).to_have_count(0)
    expect(profile.get_by_role("alert")).to_have_count(0)
