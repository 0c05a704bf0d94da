"""Changes of attention by hand in a real browser: drag lines, set weights, silence heads, undo."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect

from jumok.analysis.changes import Pin, Silence, change_to_json
from jumok.analysis.explainer import explain
from support.page_browser import SENTENCE, assert_accessible, save_file, wait_for_responses

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from jumok.inference.translator import Translator

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.slow, pytest.mark.web]

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def page(open_page: OpenPage, address: str) -> Page:
    page = open_page(address)
    wait_for_responses(page)
    return page


def changes(page: Page) -> list[dict[str, Any]]:
    """Return the changes in the address of the page."""
    match = re.search(r"[#&]changes=([^&]*)", page.url)
    return (
        []
        if match is None
        else page.evaluate("text => JSON.parse(new URLSearchParams(`a=${text}`).get('a'))", match[1])
    )


def word(page: Page, side: str, index: int) -> Locator:
    return page.locator(f"[data-word={side}-{index}]")


def strongest_line(page: Page, row: int) -> tuple[float, float, int]:
    """Return x and y of a point on the strongest line of a target word, and the index of the source word.

    The point is nearer to the source word, so a drag that begins there moves the line's end at this word.
    """
    point: Any = page.evaluate(
        """row => {
          const path = [...document.querySelectorAll(`[data-line^="${row}-"]`)].at(-1);
          const at = path.getPointAtLength(0.3 * path.getTotalLength());
          const frame = path.ownerSVGElement.getBoundingClientRect();
          return [frame.left + at.x, frame.top + at.y, Number(path.dataset.line.split("-")[1])];
        }""",
        row,
    )
    return point[0], point[1], point[2]


def centre(locator: Locator) -> tuple[float, float]:
    box = locator.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Page, start: tuple[float, float], end: tuple[float, float], *, drop: bool = True) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=3)
    page.mouse.move(*end, steps=3)
    if drop:
        page.mouse.up()


def test_a_line_is_dragged_to_another_word(page: Page, translator: Translator) -> None:
    """The translation is updated while the line is dragged. A line that is dropped on a word is pinned."""
    x, y, column = strongest_line(page, 1)
    other = 1 if column != 1 else 0
    plain = explain(translator, SENTENCE)
    expected = explain(translator, SENTENCE, edit=plain.pin_words(1, other))
    drag(page, (x, y), centre(word(page, "source", other)), drop=False)
    # The mouse button is still pressed.
    expect(page.get_by_test_id("translation")).to_have_text(expected.text)
    page.mouse.up()
    wait_for_responses(page)
    expect(page.locator(".word.pointed")).to_have_count(0)  # the old word is no longer highlighted
    [change] = changes(page)
    tokens = [position for position, index in enumerate(plain.target.word_of_token) if index == 1]
    assert (change["kind"], change["queries"], change["weight"]) == ("pin", tokens, 1)
    expect(page.locator(f"[data-held='1-{other}']")).to_have_count(1)
    expect(page.get_by_test_id("translation")).to_have_text(expected.text)
    if expected.text != plain.text:
        expect(page.get_by_test_id("before")).to_have_text(plain.text)
        expect(page.locator(".pair del").first).to_be_visible()
        expect(page.locator(".pair .new").first).to_be_visible()
    assert expected.before
    difference = expected.before.log_prob_changed - expected.before.log_prob
    shown = page.get_by_test_id("difference").inner_text().replace("−", "-")
    assert float(shown) == pytest.approx(difference, abs=0.006)


def test_a_line_that_is_held_below_another_word_can_be_dropped_on_this_word(page: Page) -> None:
    """The first, small movement of the pointer is still a click, although another word is near."""
    held: Any = page.evaluate(
        """() => {
          const words = [...document.querySelectorAll("[data-word^=source-]")];
          const boxes = words.map((word) => word.getBoundingClientRect());
          for (const path of document.querySelectorAll("[data-line]")) {
            const frame = path.ownerSVGElement.getBoundingClientRect();
            const [row, column] = path.dataset.line.split("-").map(Number);
            for (let share = 0.04; share < 0.4; share += 0.02) {
              const { x, y } = path.getPointAtLength(share * path.getTotalLength());
              const [left, top] = [frame.left + x, frame.top + y];
              const isBelow = (box) => left > box.left + 4 && left < box.right - 4 && top - box.bottom < 24;
              const other = boxes.findIndex(isBelow);
              const isHit = document.elementFromPoint(left, top)?.dataset.line === path.dataset.line;
              if (isHit && other >= 0 && other !== column) return { start: [left, top], row, other };
            }
          }
        }"""
    )
    assert held, "no line passes below another word"
    x, y = held["start"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 2)
    page.mouse.move(x, y - 8)
    page.mouse.up()
    wait_for_responses(page)
    [change] = changes(page)
    assert (change["kind"], change["weight"]) == ("pin", 1)
    expect(page.locator(f"[data-held='{held['row']}-{held['other']}']")).to_have_count(1)


def test_escape_cancels_a_drag_and_a_line_that_is_dropped_outside_is_cut(page: Page) -> None:
    x, y, _ = strongest_line(page, 1)
    drag(page, (x, y), (x, 5), drop=False)
    page.keyboard.press("Escape")
    page.mouse.up()
    wait_for_responses(page)
    assert changes(page) == []
    drag(page, (x, y), (x, 5))
    wait_for_responses(page)
    [change] = changes(page)
    assert (change["kind"], change["weight"]) == ("pin", 0)
    expect(page.locator(".changes")).to_contain_text("Cut")


def test_a_slider_changes_a_weight_and_undo_takes_the_change_back(page: Page, translator: Translator) -> None:
    x, y, column = strongest_line(page, 1)
    page.mouse.click(x, y)
    editor = page.get_by_test_id("line-editor")
    slider = editor.get_by_role("slider", name="weight")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("PageDown")
    value = float(slider.input_value())
    expect(page.get_by_test_id("difference")).to_be_visible()
    wait_for_responses(page)
    [change] = changes(page)
    assert change["weight"] == pytest.approx(value)
    pin = Pin("cross", queries=tuple(change["queries"]), keys=tuple(change["keys"]), weight=change["weight"])
    assert page.get_by_test_id("translation").inner_text() == explain(translator, SENTENCE, edit=pin).text
    assert column in {explain(translator, SENTENCE).source.word_of_token[key] for key in change["keys"]}
    while page.get_by_role("button", name="Undo", exact=False).first.is_enabled():
        page.get_by_role("button", name=re.compile("↶ Undo")).click()
        wait_for_responses(page)
    assert changes(page) == []


def test_a_slider_that_returns_to_its_weight_is_no_longer_moved_when_the_mouse_button_is_released(
    page: Page,
) -> None:
    """In this case, browsers send no event `change`. While a slider is moved, effects are not measured."""
    word(page, "target", 0).click()
    slider = page.get_by_test_id("line-editor").get_by_role("slider", name="weight")
    for _ in range(2):  # first without, then with an earlier change of this weight
        slider.scroll_into_view_if_needed()
        bounds: Any = slider.bounding_box()
        weight = float(slider.input_value())
        # The centre of the thumb moves between 8 pixels from the left end and 8 pixels from the right end.
        start = (
            bounds["x"] + 8 + (bounds["width"] - 16) * weight,
            bounds["y"] + bounds["height"] / 2,
        )
        page.mouse.move(*start)
        page.mouse.down()
        page.mouse.move(bounds["x"] + bounds["width"] * (0.9 if weight < 0.5 else 0.1), start[1])
        page.mouse.move(*start)
        page.mouse.up()
        wait_for_responses(page)
        assert float(slider.input_value()) == weight
        assert len(changes(page)) == 1
        expect(page.locator("td .value").first).not_to_have_text("…")
        expect(page.locator(".history").get_by_role("button", name=re.compile("↶ Undo$"))).to_be_enabled()


def test_everything_can_be_done_with_the_keyboard(page: Page, axe: str) -> None:
    word(page, "target", 0).focus()
    page.keyboard.press("ArrowRight")
    expect(word(page, "target", 1)).to_be_focused()
    page.keyboard.press("Enter")
    editor = page.get_by_test_id("line-editor")
    editor.get_by_label("reads").select_option("0")
    editor.get_by_role("button", name="Read only this").press("Enter")
    wait_for_responses(page)
    assert [change["weight"] for change in changes(page)] == [1]
    editor.get_by_role("button", name="Cut").press("Enter")
    wait_for_responses(page)
    assert [change["weight"] for change in changes(page)] == [0]
    assert_accessible(page, axe)
    editor.get_by_role("button", name="Restore").press("Enter")
    wait_for_responses(page)
    assert changes(page) == []
    page.locator("td .picture").first.press("Enter")
    wait_for_responses(page)
    assert [change["kind"] for change in changes(page)] == ["silence"]


def test_undo_and_redo_go_step_by_step(page: Page) -> None:
    pictures = page.locator("td .picture")
    for index in range(3):
        pictures.nth(index).click()
        wait_for_responses(page)
    assert len(changes(page)) == 3
    page.locator("body").press("Control+z")
    wait_for_responses(page)
    assert len(changes(page)) == 2
    page.locator("body").press("Control+Shift+z")
    wait_for_responses(page)
    assert len(changes(page)) == 3
    for remaining in (2, 1, 0):
        page.locator(".history").get_by_role("button", name=re.compile("Undo$")).click()
        wait_for_responses(page)
        assert len(changes(page)) == remaining
    expect(page.locator(".history").get_by_role("button", name=re.compile("Undo$"))).to_be_disabled()


def test_undo_takes_back_a_dragged_line_and_not_the_sentence_that_was_typed(page: Page) -> None:
    field = page.get_by_label("Sentence", exact=True)
    field.fill("You go home.")
    field.press("Enter")
    expect(word(page, "source", 0)).to_have_text("You")
    wait_for_responses(page)
    x, y, column = strongest_line(page, 1)
    drag(page, (x, y), centre(word(page, "source", 1 if column != 1 else 0)))
    wait_for_responses(page)
    assert [change["kind"] for change in changes(page)] == ["pin"]
    page.keyboard.press("Control+z")
    wait_for_responses(page)
    assert changes(page) == []
    expect(field).to_have_value("You go home.")


def test_the_choice_of_the_number_below_a_head_stays_while_a_line_is_dragged(page: Page) -> None:
    """Effects are not measured while a line moves, but the page does not switch to another number."""
    statistic = page.get_by_label("Number below")
    expect(statistic).to_have_value("effect")
    x, y, column = strongest_line(page, 1)
    drag(page, (x, y), centre(word(page, "source", 1 if column != 1 else 0)), drop=False)
    wait_for_responses(page)
    expect(statistic).to_have_value("effect")
    expect(page.locator("td .value").first).to_have_text("…")
    page.mouse.up()
    wait_for_responses(page)
    expect(page.locator("td .value").first).not_to_have_text("…")


def test_a_key_opens_the_editor_with_the_focus_and_escape_closes_it(page: Page) -> None:
    word(page, "target", 1).focus()
    page.keyboard.press("Enter")
    editor = page.get_by_test_id("line-editor")
    expect(editor.get_by_label("reads")).to_be_focused()
    assert editor.get_by_label("reads").locator("option").last.inner_text() == "</s>"
    expect(editor).to_contain_text(re.compile(r"the mean of the \d heads of the map is [01]\.\d\d"))
    page.keyboard.press("Escape")
    expect(editor).to_have_count(0)
    expect(word(page, "target", 1)).to_be_focused()


def test_the_translation_stays_in_view_when_a_head_below_is_silenced(
    open_page: OpenPage, address: str
) -> None:
    page = open_page(address + "#panel=attention", viewport={"width": 360, "height": 500})
    wait_for_responses(page)
    compact = page.get_by_test_id("compact-pair")
    expect(compact).to_have_count(0)
    page.get_by_role("button", name="Heads", exact=True).click()
    page.locator("td .picture").last.evaluate("picture => picture.scrollIntoView({block: 'center'})")
    expect(compact).to_contain_text(page.get_by_test_id("translation").inner_text())
    page.locator("td .picture").last.click()
    wait_for_responses(page)
    expect(compact).to_contain_text("log-probability")
    compact.get_by_role("button", name="Undo").click()
    wait_for_responses(page)
    assert changes(page) == []


def pin_that_changes_a_later_word(translator: Translator) -> tuple[Pin, int, str]:
    """Return a pin, and the index and the text of a word of the new translation.

    At the steps of this word, the translation without the pin has other tokens.
    """
    plain = explain(translator, SENTENCE)
    for target in range(len(plain.target.words)):
        for source in range(len(plain.source.words)):
            pin = plain.pin_words(target, source)
            after = explain(translator, SENTENCE, edit=pin).target
            for index, name in enumerate(after.words):
                steps = [step for step, owner in enumerate(after.word_of_token) if owner == index]
                old = [plain.target.tokens[step] for step in steps if step < len(plain.target.tokens)]
                if steps and steps[0] > pin.first_step and old != [after.tokens[step] for step in steps]:
                    return pin, index, name
    raise AssertionError("no pin moves a word of the translation to other steps")


def silence_that_changes_the_last_two_tokens(translator: Translator) -> Silence:
    """Return a silenced head that keeps the translation but changes the probabilities of its last tokens."""
    plain = explain(translator, SENTENCE)
    for site, packed in plain.attention.items():
        for layer, head in np.ndindex(packed.weights.shape[:2]):
            silence = Silence(site, layer, head)
            after = explain(translator, SENTENCE, edit=silence)
            if after.target.text == plain.target.text:
                differences = np.abs(np.exp(after.log_probs) - np.exp(plain.log_probs))
                # The last entry is of </s>. The page shows a change of 0.015 as one or two percentage points.
                if min(differences[-3:-1]) > 0.015:
                    return silence
    raise AssertionError("no head changes the probabilities of the last two tokens and keeps the translation")


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_labels_of_changes_of_neighbouring_words_do_not_overlap(
    open_page: OpenPage, address: str, translator: Translator, language: str
) -> None:
    change = silence_that_changes_the_last_two_tokens(translator)
    page = open_page(f"{address}#language={language}&changes={quote(json.dumps([change_to_json(change)]))}")
    wait_for_responses(page)
    labels = page.locator("#pair .change")
    expect(labels.nth(1)).to_be_visible()
    boxes: list[Any] = labels.evaluate_all("all => all.map(label => label.getBoundingClientRect().toJSON())")
    assert all(left["right"] < right["left"] for left, right in pairwise(boxes))


def test_a_second_change_is_named_by_the_word_that_was_chosen(
    open_page: OpenPage, address: str, translator: Translator
) -> None:
    """In the translation without any change, the steps of this word wrote another word."""
    pin, index, name = pin_that_changes_a_later_word(translator)
    page = open_page(f"{address}#changes={quote(json.dumps([change_to_json(pin)]))}")
    wait_for_responses(page)
    expect(word(page, "target", index)).to_have_text(name)
    word(page, "target", index).focus()
    page.keyboard.press("Enter")
    editor = page.get_by_test_id("line-editor")
    expect(editor.locator("b").first).to_have_text(name)
    editor.get_by_role("button", name="Cut").click()
    wait_for_responses(page)
    expect(page.locator(".changes li").last).to_contain_text(f"Cut: {name} →")
    expect(editor.locator("b").first).to_have_text(name)
    assert changes(page)[-1]["words"][0] == name
    assert f"Cut: {name} →" in save_file(page, "SVG").decode()


def test_a_change_at_a_step_that_no_longer_exists_is_marked_as_without_effect(
    open_page: OpenPage, address: str
) -> None:
    change = {
        "kind": "pin",
        "site": "cross",
        "queries": [99],  # the translation is shorter
        "keys": [1],
        "weight": 0,
        "words": ["책을", "book"],
    }
    page = open_page(f"{address}#changes={quote(json.dumps([change]))}")
    wait_for_responses(page)
    expect(page.locator(".changes li")).to_contain_text("Cut: 책을 → book")
    expect(page.locator(".changes li")).to_contain_text("no effect now")


def test_half_a_syllable_is_not_translated(page: Page) -> None:
    field = page.get_by_label("Sentence", exact=True)
    field.evaluate(
        """field => {
          field.value = "ㄴ";
          field.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing: true }));
        }"""
    )
    page.wait_for_timeout(600)  # the page translates 400 ms after the last key
    expect(word(page, "source", 0)).to_have_text("I")
    field.evaluate("field => field.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true }))")
    expect(word(page, "source", 0)).to_have_text("ㄴ")
    expect(page.get_by_test_id("unfamiliar")).to_contain_text("Not in the script")
    wait_for_responses(page)


def test_a_silenced_head_stays_silent_for_other_sentences_and_a_pin_does_not(page: Page) -> None:
    page.locator("td .picture").first.click()
    wait_for_responses(page)
    word(page, "target", 0).click()
    page.get_by_role("button", name="Read only this").click()
    wait_for_responses(page)
    assert [change["kind"] for change in changes(page)] == ["silence", "pin"]
    page.get_by_label("Sentence", exact=True).fill("You sleep.")
    expect(word(page, "source", 1)).to_have_text("sleep")
    wait_for_responses(page)
    assert [change["kind"] for change in changes(page)] == ["silence"]
    expect(page.locator("td .picture").first).to_have_attribute("aria-pressed", "true")


def test_one_head_of_a_silenced_site_is_restored(open_page: OpenPage, address: str) -> None:
    silent = quote(json.dumps([{"kind": "silence", "site": "cross", "layer": None, "head": None}]))
    page = open_page(f"{address}#changes={silent}")
    wait_for_responses(page)
    pictures = page.locator("td .picture")
    pictures.first.click()
    wait_for_responses(page)
    pressed = [picture.get_attribute("aria-pressed") for picture in pictures.all()]
    assert pressed == ["false", *["true"] * (len(pressed) - 1)]


def test_a_word_is_highlighted_everywhere(page: Page) -> None:
    word(page, "target", 1).hover()
    expect(word(page, "target", 1)).to_have_class(re.compile("pointed"))
    expect(page.locator("path.line.lit").first).to_be_attached()
    expect(page.locator("#map-part [role=application]").locator("rect.lit")).to_have_count(1)
    for picture in page.locator("td .picture").all():
        expect(picture.locator("rect").first).to_be_attached()
    page.locator("#map-part [role=application]").scroll_into_view_if_needed()
    box = page.locator("#map-part [role=application]").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    expect(page.locator(".pair .pointed").first).to_be_visible()
    page.locator("td .picture").first.hover()
    expect(page.locator("#map-part [role=application]").locator("rect.lit").first).to_be_attached()
    page.locator("#tab-beam").click()
    word(page, "target", 1).hover()
    expect(page.locator("g.node.best.lit").first).to_be_visible()


def test_the_translation_is_text_that_can_be_selected_and_copied(open_page: OpenPage, address: str) -> None:
    page = open_page(address, permissions=["clipboard-read", "clipboard-write"])
    wait_for_responses(page)
    translated = page.get_by_test_id("translation").inner_text()
    selected: Any = page.evaluate(
        """() => {
          getSelection().selectAllChildren(document.querySelector("[data-testid=target-text]"));
          return String(getSelection());
        }"""
    )
    assert selected.strip() == translated
    page.evaluate("getSelection().removeAllRanges()")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == translated


@pytest.mark.parametrize("width", [1440, 390, 320])
def test_lines_are_drawn_when_words_wrap(open_page: OpenPage, address: str, width: int) -> None:
    long = "I go home and you read a book and I sleep and you go home and I read a book and you sleep."
    page = open_page(f"{address}#sentence={quote(long)}", viewport={"width": width, "height": 900})
    wait_for_responses(page)
    drawn = page.locator("path.line")
    expect(drawn.first).to_be_attached()
    # 0.1 is the smallest opacity of a line while no word is pointed at. Every word of the translation has its
    # strongest line, unless that line is too weak to be drawn.
    assert all(float(path.get_attribute("opacity")) >= 0.1 for path in drawn.all())
    assert drawn.count() >= page.locator("[data-word^=target-]").count() / 2


def test_back_and_forward_lead_through_panels_and_sentences(page: Page) -> None:
    page.locator("#tab-beam").click()
    page.get_by_label("Sentence", exact=True).fill("You sleep.")
    expect(word(page, "source", 1)).to_have_text("sleep")
    wait_for_responses(page)
    page.go_back()
    expect(word(page, "source", 1)).to_have_text("go")
    expect(page.locator("#tab-beam")).to_have_attribute("aria-selected", "true")
    page.go_back()
    expect(page.locator("#tab-attention")).to_have_attribute("aria-selected", "true")
    page.go_forward()
    expect(page.locator("#tab-beam")).to_have_attribute("aria-selected", "true")
    wait_for_responses(page)


def test_a_word_is_no_longer_highlighted_when_the_element_under_the_pointer_is_gone(page: Page) -> None:
    page.locator("#tab-beam").click()
    page.locator("#tab-attention").click()
    page.locator("td .picture").first.hover()
    expect(page.locator(".pair .pointed").first).to_be_visible()
    page.go_back()
    expect(page.locator("#tab-beam")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".pair .pointed")).to_have_count(0)


def test_a_figure_outlines_highlighted_words_and_marks_removed_words_and_silenced_heads(
    open_page: OpenPage, address: str
) -> None:
    silence = quote(json.dumps([{"kind": "silence", "site": "cross", "layer": None, "head": None}]))
    page = open_page(f"{address}#panel=attention&changes={silence}")
    wait_for_responses(page)
    lost = page.locator(".pair del").all_inner_texts()
    assert lost
    word(page, "target", 0).hover()
    expect(page.locator("td .picture rect").first).to_be_attached()
    with page.expect_download() as download:  # clicks by script, because the pointer must stay on the word
        page.get_by_role("button", name="Share", exact=True).evaluate("button => button.click()")
        page.locator("#share button", has_text="SVG").evaluate("button => button.click()")
    figure = ElementTree.fromstring(download.value.path().read_bytes())
    rects = [rect for rect in figure.iter(f"{SVG}rect") if rect.get("fill") == "none"]
    outlines = [rect for rect in rects if rect.get("vector-effect") == "non-scaling-stroke"]
    assert len(outlines) == page.locator("td .picture rect").count()
    struck = [text for text in figure.iter(f"{SVG}text") if text.get("text-decoration") == "line-through"]
    assert [text.text for text in struck] == lost
    # save.ts draws the map of a silenced head with this opacity, and hatches it with lines of this width.
    silenced = [group for group in figure.iter(f"{SVG}g") if group.get("opacity") == "0.25"]
    hatched = [path for path in figure.iter(f"{SVG}path") if path.get("stroke-width") == "6"]
    assert len(silenced) == len(hatched) == page.locator("td.off").count()


def test_a_new_tab_has_the_theme_and_the_language_that_were_chosen_before(
    open_page: OpenPage, address: str
) -> None:
    page = open_page(address)
    page.get_by_label("Appearance").select_option("Dark")
    page.get_by_label("Language").select_option("ko")
    other = page.context.new_page()
    other.goto(address)
    expect(other.locator("html[data-theme=dark][lang=ko]")).to_be_attached()
    wait_for_responses(other)


def test_back_does_not_restore_a_theme_after_the_theme_of_the_system_was_chosen(
    open_page: OpenPage, address: str
) -> None:
    page = open_page(address, color_scheme="light")
    page.get_by_label("Appearance").select_option("Dark")
    wait_for_responses(page)
    page.goto(address)  # the page starts with the remembered theme
    expect(page.locator("html[data-theme=dark]")).to_be_attached()
    page.get_by_label("Appearance").select_option("System")
    expect(page.locator("html[data-theme=light]")).to_be_attached()
    page.locator("#tab-beam").click()
    page.go_back()
    expect(page.locator("#tab-attention")).to_have_attribute("aria-selected", "true")
    expect(page.locator("html[data-theme=light]")).to_be_attached()
    wait_for_responses(page)


def test_a_sentence_that_was_deleted_stays_empty(page: Page) -> None:
    sentence = page.get_by_label("Sentence", exact=True)
    sentence.fill("")
    expect(page.get_by_text("There is no sentence yet")).to_be_visible()
    page.locator("#tab-beam").click()
    page.go_back()
    expect(page.locator("#tab-attention")).to_have_attribute("aria-selected", "true")
    expect(sentence).to_have_value("")
    page.reload()
    expect(page.get_by_text("There is no sentence yet")).to_be_visible()
    expect(sentence).to_have_value("")


def test_a_saved_page_can_be_opened_and_saved_again(open_page: OpenPage, live: str, tmp_path: Path) -> None:
    """A page without a model shows the same translation. A page with a model can also translate."""
    page = open_page(live + "#panel=attention&show=head&layer=1&sentence=I+go+home.")
    wait_for_responses(page)
    translation = page.get_by_test_id("translation").inner_text()
    for kind, is_live in (("As it is", False), ("With the model in it", True)):
        file = tmp_path / f"{is_live}.html"
        file.write_bytes(save_file(page, kind))
        saved_page = open_page(file.as_uri())
        expect(saved_page.get_by_test_id("translation")).to_have_text(translation)
        expect(saved_page.locator("td canvas").first).to_be_visible()
        expect(saved_page.get_by_label("Sentence", exact=True)).to_have_count(int(is_live))
        file.write_bytes(save_file(saved_page, kind))
        expect(open_page(file.as_uri()).get_by_test_id("translation")).to_have_text(translation)


def test_only_figures_are_printed(page: Page) -> None:
    page.emulate_media(media="print")
    for hidden in ("header", "form", ".tabs", ".under", "select", "details"):
        expect(page.locator(hidden).first).to_be_hidden()
    for visible in (".pair", "[role=application] canvas", "td canvas"):
        expect(page.locator(visible).first).to_be_visible()
    expect(page.locator(".caption").last).to_have_text(re.compile(r"^mine · jumok, \d{4}-\d\d-\d\d$"))
    assert page.locator("main").evaluate("main => getComputedStyle(main).padding") == "0px"


def test_on_paper_the_caption_comes_first(page: Page) -> None:
    """Below the figures, the caption could be alone on the last sheet."""
    ends = "main => [main.firstElementChild, main.lastElementChild].map(end => end.matches('.caption'))"
    assert page.locator("main").evaluate(ends) == [False, True]
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("main").evaluate(ends) == [True, False]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("main").evaluate(ends) == [False, True]


def test_a_given_translation_is_explained(page: Page, translator: Translator) -> None:
    page.get_by_text("Search and given translation").click()
    page.get_by_label("Look at this translation").fill("너는 집에 간다.")
    page.get_by_label("Look at this translation").press("Enter")
    expect(page.get_by_test_id("translation")).to_have_text("너는 집에 간다.")
    expect(page.get_by_text("This translation was given.")).to_be_visible()
    expected = explain(translator, SENTENCE, target="너는 집에 간다.").log_prob
    expect(page.locator(".under")).to_contain_text(f"{expected:.2f}".replace("-", "−"))
    assert "target=" in page.url
