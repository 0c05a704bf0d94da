"""Statements of the page that once contradicted the model, and must agree with the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import expect

from jumok.analysis.changes import Pin, Silence
from jumok.analysis.explainer import explain
from support.page_browser import SENTENCE, save_file, wait_for_responses

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from jumok.inference.translator import Translator

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.slow, pytest.mark.web]


def test_the_translation_of_several_sentences_equals_that_of_translate(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    text = "I go home. You go home."
    page = open_page(f"{address}#sentence={quote(text)}")
    expect(page.get_by_test_id("whole-text")).to_have_text(translator.translate([text])[0].text)
    wait_for_responses(page)


def test_the_page_says_which_tokens_a_pin_changes_and_which_tokens_the_score_sums(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    """The pin changes only one token of a word. With a pin, the score sums only tokens from its step on."""
    plain = explain(translator, SENTENCE)
    page = open_page(f"{address}#sentence={quote(SENTENCE)}")
    wait_for_responses(page)
    expect(page.get_by_text("the score sums only the log-probabilities of the tokens after")).to_have_count(0)
    tokens = [step for step, word in enumerate(plain.target.word_of_token) if word == 1]
    assert len(tokens) > 1
    change = {"kind": "pin", "site": "cross", "queries": tokens[:1], "keys": [0]}
    page = open_page(f"{address}#changes={quote(json.dumps([change]))}")
    wait_for_responses(page)
    changed = explain(translator, SENTENCE, edit=Pin("cross", queries=(tokens[0],), keys=(0,)))
    expect(page.get_by_text("the score sums only the log-probabilities of the tokens after")).to_be_visible()
    word = changed.target.word_of_token[tokens[0]]
    count = changed.target.word_of_token.count(word)
    notes = page.get_by_test_id("partly-pinned")
    if count > 1:
        expect(notes).to_contain_text(
            f"The change applies to only 1 of the {count} tokens of “{changed.target.words[word]}”, "
            "because it was made for single tokens"
        )
    else:
        expect(notes).to_have_count(0)


def test_the_field_for_the_choice_of_heads_names_the_heads_of_the_map(
    open_page: OpenPage, address: str
) -> None:
    """When the chosen option is removed from the list, a browser would select the first option."""
    page = open_page(f"{address}#panel=attention")
    wait_for_responses(page)
    show = page.get_by_label("Show", exact=True)
    for choice in ("mean", "read-out"):
        show.select_option(choice)
    page.locator("#panel").get_by_label("Attention", exact=True).select_option("encoder")
    expect(page.locator("#map-part h3").first).to_contain_text("Average")
    expect(show).to_have_value("mean")


def test_words_that_are_kept_for_a_pin_are_not_called_a_prefix(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    plain = explain(translator, SENTENCE)
    pin = plain.pin_words(1, 0)
    change = {"kind": "pin", "site": "cross", "queries": list(pin.queries), "keys": list(pin.keys)}
    page = open_page(f"{address}#changes={quote(json.dumps([change]))}")
    wait_for_responses(page)
    note = page.get_by_text("Unchanged, because it was written before the change:").first
    expect(note).to_contain_text(plain.target.words[0])
    expect(page.get_by_text("Given prefix:")).to_have_count(0)
    expect(page.get_by_role("button", name="Remove the prefix")).to_have_count(0)


@pytest.mark.parametrize(
    ("choice", "layers", "heads"),
    [
        ("show=head&layer=1&head=1", [1], [1]),
        ("show=mean&head=1", [0, 1], [0, 1]),
        ("show=mean&layer=1&head=1", [1], [0, 1]),
    ],
)
def test_the_map_shows_the_weights_of_the_heads_that_it_names(
    open_page: OpenPage,
    address: str,
    translator: Translator,
    choice: str,
    layers: list[int],
    heads: list[int],
) -> None:
    page = open_page(f"{address}#{choice}&units=tokens")
    wait_for_responses(page)
    saved = json.loads(save_file(page, "JSON"))
    assert saved["heads"] == [[layer, head] for layer in layers for head in heads]
    weights = explain(translator, SENTENCE).attention["cross"].weights
    expected = np.mean([weights[layer, head] for layer, head in saved["heads"]], axis=0)
    np.testing.assert_allclose(saved["weights"], expected, atol=2e-4)
    title = page.locator("#map-part h3").inner_text()
    assert ("One head 1·1" in title) == (len(heads) == 1)


def test_steps_name_the_token_whose_embedding_they_show(open_page: OpenPage, address: str) -> None:
    page = open_page(f"{address}#panel=steps&cell=decoder,0,0,0,0")
    wait_for_responses(page)
    headings = page.locator("article h4")
    expect(headings.filter(has_text="query embedding")).to_have_text("query embedding: <s>")
    expect(headings.filter(has_text="key embedding")).to_have_text("key embedding: <s>")


def test_the_map_of_a_run_says_that_its_rows_are_the_reference(open_page: OpenPage, live: str) -> None:
    page = open_page(f"{live}#panel=run")
    attention = page.locator("div.attention")
    expect(attention).to_contain_text("The rows are the words of the reference of the first sentence")
    wait_for_responses(page)


def test_the_effect_is_that_of_the_heads_that_are_shown(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    """If the small maps of the heads show only one word, no effect is shown below the heads."""
    page = open_page(f"{address}#show=head&layer=0&head=1&word=1")
    wait_for_responses(page)
    expect(page.locator("#heads-part")).not_to_contain_text("Without")
    before = explain(translator, SENTENCE, edit=Silence("cross", 0, 1)).before
    assert before
    shown = page.get_by_test_id("effect").inner_text().replace("−", "-")
    assert float(shown) == pytest.approx(before.log_prob_changed - before.log_prob, abs=0.006)


def test_every_panel_saves_its_own_json(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    wait_for_responses(page)
    saved = []
    for panel in ("attention", "steps", "beam"):
        page.locator(f"#tab-{panel}").click()
        wait_for_responses(page)
        saved.append(save_file(page, "JSON"))
    assert len(set(saved)) == 3
