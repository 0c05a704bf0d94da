"""The page and its saved files name the model, translation, change and prefix that a number belongs to."""

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

OTHER_TRANSLATION = "나는 학교에 간다."
ALL_SILENT = '[{"kind":"silence","site":"cross","layer":null,"head":null}]'


def open_view(open_page: OpenPage, address: str, **parameters: str) -> Page:
    """Open the page with these parameters in its address."""
    page = open_page(f"{address}#" + "&".join(f"{name}={quote(value)}" for name, value in parameters.items()))
    wait_for_responses(page)
    return page


def saved_page(open_page: OpenPage, page: Page, folder: Path, **parameters: str) -> Page:
    """Save the page as it is and open the file."""
    file = folder / "saved.html"
    file.write_bytes(save_file(page, "As it is"))
    return open_view(open_page, file.as_uri(), **parameters)


def compared_texts(page: Page) -> list[str]:
    return page.locator("#panel .maps .text").all_inner_texts()


def test_the_comparison_with_an_expected_translation_is_hidden_when_the_model_is_changed(
    open_page: OpenPage, address: str
) -> None:
    page = open_view(open_page, address, panel="attention", sentence=SENTENCE)
    section = page.get_by_test_id("why-not")
    section.get_by_label("Expected translation").fill(OTHER_TRANSLATION)
    section.get_by_role("button", name="Compare").click()
    status = section.get_by_role("status")
    expect(status).to_contain_text("The translations diverge here")
    first = status.inner_text()
    wait_for_responses(page)
    text = page.get_by_test_id("translation").inner_text()
    for head in range(4):  # silence one head after another, until the text stays the same
        page.locator("td .picture").nth(head).click()
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


def test_a_saved_comparison_says_whose_translation_each_model_reads(
    open_page: OpenPage, live: str, tmp_path: Path
) -> None:
    page = open_view(open_page, live, panel="compare")
    note = "Here this model reads the translation that transformer wrote."
    expect(page.get_by_test_id("read-translation")).to_contain_text([note])
    expect(page.get_by_test_id("read-translation")).to_contain_text(["To see the translation"])
    saved = saved_page(open_page, page, tmp_path, panel="compare")
    # The saved page does not advise the user to use a switch, because a saved page has no switch.
    expect(saved.get_by_test_id("read-translation")).to_have_text([note])
    expect(saved.locator("#panel .maps section").nth(1)).to_contain_text(note)
    saved.locator("header").get_by_label("Model", exact=True).select_option(index=1)
    expect(saved.get_by_test_id("origin")).to_have_text(note)
    expect(saved.locator("#panel .maps section").first).to_contain_text(note)


def test_all_models_read_a_given_translation(open_page: OpenPage, live: str) -> None:
    page = open_view(open_page, live, panel="compare", sentence=SENTENCE, target=OTHER_TRANSLATION)
    expect(page.get_by_test_id("origin")).to_have_text("This translation was given.")
    assert compared_texts(page) == [OTHER_TRANSLATION, OTHER_TRANSLATION]
    notes = page.get_by_test_id("read-translation")
    expect(notes).to_contain_text(["This translation was given."] * 2)
    page.get_by_text("Each model's own", exact=True).click()
    wait_for_responses(page)
    expect(notes).to_have_count(0)
    assert OTHER_TRANSLATION not in compared_texts(page)
    page.get_by_text("The given one", exact=True).click()
    wait_for_responses(page)
    assert compared_texts(page) == [OTHER_TRANSLATION, OTHER_TRANSLATION]


def test_all_compared_models_use_the_chosen_beam(open_page: OpenPage, live: str) -> None:
    page = open_page("about:blank")
    requests: list[Any] = []
    page.on(
        "request",
        lambda request: (
            requests.append(json.loads(request.post_data)) if request.url.endswith("explain") else None
        ),
    )
    page.goto(f"{live}#panel=compare&beam=1")
    wait_for_responses(page)
    assert {request["model"] for request in requests} == {0, 1}
    assert {request.get("beam") for request in requests} == {1}


def test_the_caption_of_a_comparison_names_the_compared_models_and_translation(
    open_page: OpenPage, live: str
) -> None:
    page = open_view(open_page, live, panel="compare", sentence=SENTENCE, changes=ALL_SILENT)
    changed, [text, other] = page.get_by_test_id("translation").inner_text(), compared_texts(page)
    assert text == other != changed
    captions = page.locator("main > .caption")
    expect(captions).to_have_text(
        [f"{SENTENCE} → {text}", re.compile(r"^transformer, recurrent · jumok, \d{4}-\d\d-\d\d$")]
    )
    figure_texts = [line.strip() for line in ElementTree.fromstring(save_file(page, "SVG")).itertext()]
    assert f"{SENTENCE} → {changed}" not in figure_texts
    assert f"{SENTENCE} → {text}" in figure_texts


def test_a_missing_difference_has_its_true_reason(open_page: OpenPage, live: str, tmp_path: Path) -> None:
    page = open_view(open_page, live, panel="compare", site="decoder")
    reason = page.get_by_test_id("no-difference")
    missing = "recurrent has no such attention, so there is no difference to show."
    expect(reason).to_have_text(missing)
    saved = saved_page(open_page, page, tmp_path, panel="compare", site="decoder")
    expect(saved.get_by_test_id("no-difference")).to_have_text(missing)
    page = open_view(open_page, live, panel="compare", translations="own")
    [text, other] = compared_texts(page)
    assert text != other
    different = "The models read different translations, so the difference of their maps cannot be computed."
    advice = " Let all models read the same translation to see the difference."
    expect(page.get_by_test_id("no-difference")).to_have_text(different + advice)
    saved = saved_page(open_page, page, tmp_path, panel="compare")
    expect(saved.get_by_test_id("no-difference")).to_have_text(different)


def test_models_are_compared_on_an_attention_that_the_first_model_has(open_page: OpenPage, live: str) -> None:
    # The recurrent model is first.
    page = open_view(open_page, live, panel="compare", site="decoder", model="1")
    expect(page.get_by_test_id("compared-heads")).to_contain_text(["Target → source"] * 2)
    expect(page.get_by_role("application", name="Difference")).to_be_visible()


def test_checkpoints_translate_the_sentence_that_is_shown(
    open_page: OpenPage, live: str, tmp_path: Path
) -> None:
    page = open_view(open_page, live, panel="run", sentence="I go home. You go home.", index="1")
    expect(page.locator("[data-word=source-0]")).to_have_text("You")
    expect(page.locator(".snapshots article").first).to_be_visible()
    expect(page.get_by_text("Each map is one checkpoint")).to_contain_text("“You go home.”")
    wait_for_responses(page)
    file = tmp_path / "saved.html"
    file.write_bytes(save_file(page, "As it is"))
    data = re.search(r'id="jumok-data"[^>]*>(.*?)</script>', file.read_text("utf-8"), re.DOTALL)
    assert data is not None
    checkpoints = json.loads(data[1])["run"]["checkpoints"]
    texts = {checkpoint["explanation"]["source"]["text"] for checkpoint in checkpoints}
    assert texts == {"You go home."}


def test_a_given_prefix_is_named_and_can_be_removed_after_a_later_change(
    open_page: OpenPage, address: str, translator: Translator, tmp_path: Path
) -> None:
    target = explain(translator, SENTENCE).target
    last = len(target.ids) - 1
    prefix, unchanged = target.tokens[0].strip("▁"), "".join(target.tokens[1:last]).replace("▁", " ").strip()
    pin = {"kind": "pin", "site": "cross", "layer": None, "head": None, "queries": [last], "keys": [0]}
    view = {"panel": "attention", "sentence": SENTENCE}
    page = open_view(open_page, address, **view, forced=str(target.ids[0]), changes=json.dumps([pin]))
    bar = page.locator(".bar .prefix")
    saved_bar = saved_page(open_page, page, tmp_path, panel="attention").locator(".bar .prefix")
    for shown_bar in (bar, saved_bar):
        expect(shown_bar).to_contain_text("Given prefix:")
        expect(shown_bar.locator("b")).to_have_text([prefix, unchanged])
    captions = page.locator("main > .caption").all_inner_texts()
    assert f"Given prefix: {prefix}" in captions
    assert f"Unchanged, because it was written before the change: {unchanged}" in captions
    bar.get_by_role("button", name="Remove the prefix").click()
    wait_for_responses(page)
    expect(bar).not_to_contain_text("Given prefix:")
    expect(page.locator(".changes li")).to_have_count(1)


def read_table(content: bytes) -> list[dict[str, str]]:
    """Return the rows of a saved CSV file, without its comments."""
    lines = [line for line in content.decode("utf-8-sig").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def test_the_curves_the_sentences_and_the_measured_heads_of_a_run_are_saved(
    open_page: OpenPage, live: str
) -> None:
    page = open_view(open_page, live, panel="run")
    assert "learning_rate" in read_table(save_file(page, "CSV"))[0]
    page.get_by_test_id("sentences").get_by_role("button", name="Score sentences").click()
    expect(page.get_by_test_id("sentences").locator("tbody tr").first).to_be_visible(timeout=60_000)
    profile = page.get_by_test_id("head-profile")
    profile.get_by_role("button", name="Measure this head").click()
    expect(profile.get_by_text("BLEU without the head")).to_be_visible(timeout=60_000)
    assert "learning_rate" in read_table(save_file(page, "CSV ?Metrics of the run"))[0]
    assert "chrf" in read_table(save_file(page, "CSV ?Validation sentences"))[0]
    [head] = read_table(save_file(page, "CSV ?Measured heads"))
    assert (head["site"], head["layer"], head["head"]) == ("cross", "0", "0")
    [saved] = json.loads(save_file(page, "JSON ?Measured heads"))
    assert saved["strongest"]
    assert float(head["bleu_without"]) == saved["bleu_without"]
    assert json.loads(save_file(page, "JSON ?Metrics of the run"))["metrics"]


def test_the_steps_are_saved_as_numbers(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address, panel="steps", cell="cross,0,0,0,0")
    steps = json.loads(save_file(page, "JSON"))["steps"]
    saved = [(step["name"], value) for step in steps for value in step["values"]]
    assert not any("float32" in step for step in steps)
    rows = read_table(save_file(page, "CSV"))
    assert [name for name, _ in saved] == [row["step"] for row in rows]
    assert [value for _, value in saved] == [float(row["value"]) for row in rows]


def test_a_saved_view_with_its_model_opens_without_the_first_steps(
    open_page: OpenPage, live: str, tmp_path: Path
) -> None:
    page = open_view(open_page, live, panel="attention", sentence=SENTENCE, changes=ALL_SILENT)
    file = tmp_path / "live.html"
    file.write_bytes(save_file(page, "With the model in it"))
    saved = open_page(file.as_uri())
    wait_for_responses(saved)
    expect(saved.locator(".changes li")).to_have_count(1)
    expect(saved.get_by_test_id("story")).to_have_count(0)
