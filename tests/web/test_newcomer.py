"""Problems that a new user of the page once had, e.g. with sliders, touch or printing, must not return."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from support.page_browser import SENTENCE, save_file, wait_for_responses

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from jumok.inference.translator import Translator

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.slow, pytest.mark.web]

PIN = {"kind": "pin", "site": "cross", "layer": None, "head": None, "queries": [1], "keys": [0], "weight": 1}
ALL_SILENT = {"kind": "silence", "site": "cross", "layer": None, "head": None}


def open_view(open_page: OpenPage, address: str, **options: Any) -> Page:
    """Open the page with the parameters `view` in its address. Then the story "First steps" stays closed."""
    view = options.pop("view", "panel=attention")
    page = open_page(f"{address}#{view}", **options)
    wait_for_responses(page)
    return page


def changes_parameter(*changes: dict[str, Any]) -> str:
    """Return the parameter of an address with these changes."""
    return f"changes={quote(json.dumps(changes))}"


def point_on_line(page: Page, row: int) -> dict[str, float]:
    """Return a point on the strongest line of a target word: x, y and `column`, the source word's index."""
    point: Any = page.evaluate(
        """row => {
          const path = [...document.querySelectorAll(`[data-line^="${row}-"]`)].at(-1);
          const at = path.getPointAtLength(0.3 * path.getTotalLength());
          const frame = path.ownerSVGElement.getBoundingClientRect();
          const column = Number(path.dataset.line.split("-")[1]);
          return { x: frame.left + at.x, y: frame.top + at.y, column };
        }""",
        row,
    )
    return dict(point)


def box(page: Page, selector: str) -> dict[str, float]:
    bounds = page.locator(selector).first.bounding_box()
    assert bounds
    return {"x": bounds["x"], "y": bounds["y"], "width": bounds["width"], "height": bounds["height"]}


def shown_changes(page: Page) -> list[str]:
    return page.locator(".changes li span").all_inner_texts()


@pytest.mark.parametrize("width", [390, 800, 1200, 1920])
def test_the_slider_of_a_weight_stays_under_the_pointer_that_holds_it(
    open_page: OpenPage, address: str, width: int
) -> None:
    """The slider must not move when the translation changes, has longer words, or wraps."""
    long = "I go home and you read a book."
    page = open_view(
        open_page, address, view=f"sentence={quote(long)}", viewport={"width": width, "height": 900}
    )
    slider = page.locator("[data-testid=line-editor] input")
    translations = set()
    for row in range(3):
        page.locator(f"[data-word=target-{row}]").click()
        slider.scroll_into_view_if_needed()
        before: Any = slider.bounding_box()
        y = before["y"] + before["height"] / 2
        # The centre of the thumb moves between 8 pixels from the left end and 8 pixels from the right end.
        page.mouse.move(before["x"] + 8 + (before["width"] - 16) * float(slider.input_value()), y)
        page.mouse.down()
        for share in (0.5, 0.2, 0.02, 0.9):
            page.mouse.move(before["x"] + 8 + (before["width"] - 16) * share, y)
            wait_for_responses(page)
            assert slider.bounding_box() == before
            assert float(slider.input_value()) == pytest.approx(share, abs=0.03)
            translations.add(page.get_by_test_id("translation").inner_text())
        page.mouse.up()
        wait_for_responses(page)
        assert shown_changes(page)[0].startswith("Weight")
        page.get_by_role("button", name="Undo all").click()
        wait_for_responses(page)
        page.keyboard.press("Escape")
    assert len(translations) > 1


def test_a_finger_drags_a_line_and_scrolls_where_no_line_is(open_page: OpenPage, address: str) -> None:
    viewport = {"width": 390, "height": 600}
    page = open_view(open_page, address, viewport=viewport, has_touch=True, is_mobile=True)
    session = page.context.new_cdp_session(page)

    def swipe(start: tuple[float, float], end: tuple[float, float]) -> None:
        for step in range(14):
            kind = "touchStart" if not step else "touchEnd" if step == 13 else "touchMove"
            x, y = (a + (b - a) * min(step, 12) / 12 for a, b in zip(start, end, strict=True))
            points = [] if kind == "touchEnd" else [{"x": x, "y": y, "radiusX": 8, "radiusY": 8, "force": 1}]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            page.wait_for_timeout(30)
        page.wait_for_timeout(300)
        wait_for_responses(page)

    point = point_on_line(page, 1)
    other = box(page, f"[data-word=source-{1 if point['column'] != 1 else 0}]")
    swipe((point["x"], point["y"]), (other["x"] + other["width"] / 2, other["y"] + other["height"] / 2))
    assert shown_changes(page)[0].startswith("Pin")
    assert page.evaluate("scrollY") == 0
    pair = box(page, ".pair")
    swipe((pair["x"] + pair["width"] - 4, pair["y"] + 60), (pair["x"] + pair["width"] - 4, pair["y"] - 90))
    assert page.evaluate("scrollY") > 0
    assert len(shown_changes(page)) == 1


def test_typing_a_sentence_solves_no_challenge_of_the_story(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    wait_for_responses(page)
    story = page.get_by_test_id("story")
    for _ in range(5):  # to the step "Pin a word"
        story.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Pin one for me").click()
    wait_for_responses(page)
    story.get_by_role("button", name="Next").click()
    page.get_by_label("Sentence", exact=True).press_sequentially(" You sleep.", delay=30)
    wait_for_responses(page)
    expect(story.locator("li")).to_have_count(3)
    expect(story.locator("li.solved")).to_have_count(0)


def test_printed_steps_have_their_names_formulas_and_bars(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address, view="panel=steps")
    expect(page.locator(".step h4").first).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator(".step h4").first).to_be_visible()
    expect(page.locator(".step .formula").first).to_be_visible()
    expect(page.locator("header").first).to_be_hidden()
    bar = page.locator(".track i").first
    assert bar.evaluate("bar => getComputedStyle(bar).printColorAdjust") == "exact"


def test_a_printed_page_has_the_heads_on_narrow_paper_and_no_slider(
    open_page: OpenPage, address: str
) -> None:
    page = open_view(open_page, address)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 740, "height": 960})
    expect(page.locator("td .picture canvas").first).to_be_visible()
    expect(page.get_by_test_id("head-words").locator("canvas")).to_be_visible()
    page.emulate_media(media="screen")
    page.locator("#tab-beam").click()
    expect(page.get_by_role("slider", name="Step")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator("#step")).to_be_hidden()


@pytest.mark.parametrize("view", ["panel=attention", "panel=attention&view=lines"])
@pytest.mark.parametrize("measure", ["gradient", "erasure", "norm"])
def test_every_measure_has_lines(open_page: OpenPage, address: str, measure: str, view: str) -> None:
    page = open_view(open_page, address, view=f"{view}&measure={measure}")
    expect(page.locator("path.line").first).to_be_attached()
    words = page.locator("[data-word^=target-]").count()
    assert page.locator("path.line").count() >= words / 2  # the lines of some words are too weak to be drawn
    if "lines" in view:
        expect(page.locator("#map-part svg line").first).to_be_attached()


def test_a_live_file_that_is_saved_again_has_its_sentence_and_its_changes(
    open_page: OpenPage, live: str, tmp_path: Path
) -> None:
    page = open_view(
        open_page, live, view=f"panel=attention&sentence={quote(SENTENCE)}&{changes_parameter(PIN)}"
    )
    for name in ("first", "second"):
        file = tmp_path / f"{name}.html"
        file.write_bytes(save_file(page, "With the model in it"))
        saved = open_page(file.as_uri())
        wait_for_responses(saved)
        expect(saved.get_by_label("Sentence", exact=True)).to_have_value(
            page.get_by_label("Sentence", exact=True).input_value()
        )
        assert shown_changes(saved) == shown_changes(page)
        page = saved
        page.get_by_label("Sentence", exact=True).fill("You sleep.")
        expect(page.locator("[data-word=source-1]")).to_have_text("sleep")
        wait_for_responses(page)
        page.locator("td .picture").first.click()
        wait_for_responses(page)
    page.reload()
    wait_for_responses(page)
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("You sleep.")


@pytest.mark.parametrize("viewport", [(1200, 700), (390, 760)])
def test_the_head_that_the_story_asks_for_is_in_view_with_the_instruction(
    open_page: OpenPage, address: str, viewport: tuple[int, int]
) -> None:
    page = open_page(address, viewport={"width": viewport[0], "height": viewport[1]})
    wait_for_responses(page)
    story = page.get_by_test_id("story")
    for _ in range(3):
        story.get_by_role("button", name="Next").click()
    expect(page.locator("td.suggested .picture")).to_be_in_viewport(ratio=0.99)
    expect(story.get_by_role("heading")).to_be_in_viewport()
    page.locator("td.suggested .picture").click()
    wait_for_responses(page)
    assert shown_changes(page)[0].startswith("Silence")


def test_checkpoints_of_a_run_are_shown_with_the_heads_of_its_model(
    open_page: OpenPage, live: str, translator: Translator
) -> None:
    assert translator.read_out
    heads = ", ".join(f"{layer}·{head}" for layer, head in translator.read_out.heads)
    page = open_view(open_page, live, view=f"panel=run&sentence={quote(SENTENCE)}")
    note = page.get_by_text("Word alignments are read from these heads")
    expect(note).to_have_text(re.compile(rf"\(layer·head\): {heads}$"))
    caption = page.locator("div.attention > .note").inner_text()
    assert caption.startswith("Cross-attention")


def test_back_leads_to_a_sentence_with_its_pin(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address, view=f"sentence={quote(SENTENCE)}&{changes_parameter(PIN)}")
    pins = shown_changes(page)
    assert len(pins) == 1
    page.get_by_label("Sentence", exact=True).fill("You sleep.")
    expect(page.locator("[data-word=source-1]")).to_have_text("sleep")
    wait_for_responses(page)
    assert shown_changes(page) == []
    page.go_back()
    expect(page.locator("[data-word=source-1]")).to_have_text("go")
    wait_for_responses(page)
    assert shown_changes(page) == pins


def test_the_highlight_of_the_button_point_for_me_ends_with_its_step_and_with_the_story(
    open_page: OpenPage, address: str
) -> None:
    page = open_page(address)
    wait_for_responses(page)
    story = page.get_by_test_id("story")
    highlighted = page.locator(".pair .pointed")
    for button in ("Next", "Skip"):
        while not story.get_by_role("button", name="Point for me").count():
            story.get_by_role("button", name="Next").click()
        story.get_by_role("button", name="Point for me").click()
        expect(highlighted).to_have_count(1)
        story.get_by_role("button", name=button).click()
        expect(highlighted).to_have_count(0)
        if button == "Next":
            story.get_by_role("button", name="Skip").click()
            page.get_by_role("button", name="First steps").click()


def test_the_page_says_that_heads_are_silenced_instead_of_showing_their_effect(
    open_page: OpenPage, address: str
) -> None:
    page = open_view(open_page, address, view=changes_parameter(ALL_SILENT))
    effect = page.locator("#map-part .effect")
    expect(effect).to_contain_text("silenced already")
    expect(effect).not_to_contain_text("likely")


def test_the_part_below_the_pair_keeps_its_height_when_a_word_is_pinned(
    open_page: OpenPage, address: str
) -> None:
    """The note on scores is shown with the changes, because below the pair it would move the panels."""
    page = open_view(open_page, address, viewport={"width": 1200, "height": 900})
    height = box(page, ".under")["height"]
    page.goto(f"{page.url.split('#')[0]}#sentence={quote(SENTENCE)}&{changes_parameter(PIN)}")
    wait_for_responses(page)
    expect(page.locator(".bar")).to_contain_text("the score sums only the log-probabilities of the tokens")
    assert box(page, ".under")["height"] == height


def test_after_back_and_forward_the_header_names_the_model_that_is_shown(
    open_page: OpenPage, live: str
) -> None:
    page = open_view(open_page, live, view=f"panel=attention&sentence={quote(SENTENCE)}")
    model = page.get_by_label("Model", exact=True)
    name_of_chosen_model = "select => select.selectedOptions[0].textContent.split(' ')[0]"
    model.select_option(index=1)
    wait_for_responses(page)
    for go, name in ((page.go_back, "transformer"), (page.go_forward, "recurrent")):
        go()
        expect(page.locator(".caption").last).to_have_text(re.compile(f"^{name}"))
        assert model.evaluate(name_of_chosen_model) == name
        wait_for_responses(page)


def test_back_leads_to_another_view_and_not_to_another_language_or_theme(
    open_page: OpenPage, address: str
) -> None:
    page = open_view(open_page, address, color_scheme="light")
    page.locator("#tab-beam").click()
    page.get_by_label("Appearance").select_option("Dark")
    page.get_by_label("Language").select_option("ko")
    for go, tab in ((page.go_back, "attention"), (page.go_forward, "beam"), (page.go_back, "attention")):
        go()
        expect(page.locator(f"#tab-{tab}")).to_have_attribute("aria-selected", "true")
        expect(page.locator("html[data-theme=dark][lang=ko]")).to_be_attached()
        expect(page.get_by_label("테마")).to_have_value("dark")
        expect(page).to_have_url(re.compile("language=ko&theme=dark"))
    # A changed fragment does not load the page. The page keeps its language and writes it back into the
    # address, so it also keeps its language when it is loaded again.
    page.goto(f"{page.url.split('#')[0]}#language=en")
    page.reload()
    expect(page.locator("html[data-theme=dark][lang=ko]")).to_be_attached()
    wait_for_responses(page)


@pytest.mark.parametrize("types_sentence", [False, True])
def test_undo_solves_no_challenge_of_the_story_but_silencing_heads_does(
    open_page: OpenPage, address: str, types_sentence: bool
) -> None:
    """Undo only restores an earlier state, so a challenge that this state fulfils is not solved."""
    page = open_page(address)
    wait_for_responses(page)
    story = page.get_by_test_id("story")
    # The button to press in each step. In a step with the empty name, only "Next" is pressed.
    for name in ("", "", "", "Silence it", "Silence them all", "Pin one for me"):
        if name:
            story.get_by_role("button", name=name).click()
            wait_for_responses(page)
        story.get_by_role("button", name="Next").click()
    if types_sentence:
        page.get_by_label("Sentence", exact=True).fill("I read a book.")
        wait_for_responses(page)
    undo = page.locator(".bar").get_by_role("button", name="↶ Undo", exact=True)
    num_undone = 0
    while undo.count() and undo.is_enabled():
        undo.click()
        num_undone += 1
        wait_for_responses(page)
        expect(story.locator("li.solved")).to_have_count(0)
    assert num_undone
    for head in page.locator("td .picture").all():
        head.click()
        wait_for_responses(page)
    expect(story.locator("li.solved").filter(has_text="as few heads")).to_have_count(1)


@pytest.mark.parametrize("viewport", [(1440, 900), (390, 844)])
def test_the_story_stays_in_view_when_the_head_is_silenced(
    open_page: OpenPage, address: str, viewport: tuple[int, int]
) -> None:
    page = open_page(address, viewport={"width": viewport[0], "height": viewport[1]})
    wait_for_responses(page)
    story = page.get_by_test_id("story")
    next_button = story.get_by_role("button", name="Next")
    for _ in range(3):
        next_button.click()
    page.locator("td.suggested .picture").click()
    wait_for_responses(page)
    expect(story.get_by_text("✓ Done")).to_be_in_viewport(ratio=0.99)
    expect(next_button).to_be_in_viewport(ratio=0.99)
    next_button.click()
    expect(story.get_by_role("heading")).to_have_text("Watch it break")
    expect(story.get_by_role("heading")).to_be_in_viewport(ratio=0.99)
    expect(next_button).to_be_in_viewport(ratio=0.99)


def test_the_keyboard_focus_stays_in_the_story_and_returns_to_its_button(
    open_page: OpenPage, address: str
) -> None:
    page = open_page(address)
    wait_for_responses(page)
    story = page.get_by_test_id("story")
    next_button = story.get_by_role("button", name="Next")
    for name in ("Translate it", "", "Point for me", "Silence it", "Silence them all", "Pin one for me"):
        if name:
            story.get_by_role("button", name=name).press("Enter")
            wait_for_responses(page)
            expect(next_button).to_be_focused()
        next_button.press("Enter")
    finish = story.get_by_role("button", name="Finish")
    expect(finish).to_be_focused()
    finish.press("Enter")
    reopen = page.get_by_role("button", name="First steps")
    expect(reopen).to_be_focused()
    reopen.press("Enter")
    expect(story.get_by_role("button").first).to_be_focused()


def test_escape_in_the_share_menu_returns_to_its_button_and_tab_closes_the_menu(
    open_page: OpenPage, address: str
) -> None:
    page = open_view(open_page, address)
    share, menu = page.get_by_role("button", name="Share"), page.locator("#share")
    share.press("Enter")
    menu.get_by_role("button", name="SVG").focus()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(share).to_be_focused()
    share.press("Enter")
    menu.get_by_role("button").last.focus()
    page.keyboard.press("Tab")
    expect(menu).to_have_count(0)


def test_escape_restores_the_weight_of_a_slider_that_is_held(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address)
    page.locator("[data-word=target-0]").click()
    slider = page.locator("[data-testid=line-editor] input")
    before = slider.input_value()
    slider.scroll_into_view_if_needed()
    bounds: Any = slider.bounding_box()
    y = bounds["y"] + bounds["height"] / 2
    page.mouse.move(bounds["x"] + 8 + (bounds["width"] - 16) * float(before), y)
    page.mouse.down()
    page.mouse.move(bounds["x"] + bounds["width"] * 0.3, y)
    wait_for_responses(page)
    assert len(shown_changes(page)) == 1
    page.keyboard.press("Escape")
    wait_for_responses(page)
    assert shown_changes(page) == []
    page.mouse.move(bounds["x"] + bounds["width"] * 0.6, y)  # the mouse button is still pressed
    page.mouse.up()
    wait_for_responses(page)
    assert shown_changes(page) == []
    expect(slider).to_have_value(before)
    page.keyboard.press("Escape")
    expect(slider).to_have_count(0)


def test_a_mouse_that_rests_on_a_term_shows_its_definition(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address)
    term = page.locator(".under .term").first
    definition = term.locator(".definition")
    term.get_by_role("button").hover()
    expect(definition).to_be_visible()
    definition.hover()
    page.wait_for_timeout(400)  # a definition without the mouse on it would close earlier
    expect(definition).to_be_visible()
    page.keyboard.press("Escape")
    expect(definition).to_have_count(0)
    page.mouse.move(2, 2)
    term.get_by_role("button").hover()
    expect(definition).to_be_visible()
    page.mouse.move(2, 2)
    expect(definition).to_have_count(0)
    term.get_by_role("button").hover()
    expect(definition).to_be_visible()
    term.get_by_role("button").click()  # keeps it open
    page.mouse.move(2, 2)
    page.wait_for_timeout(400)
    expect(definition).to_be_visible()
    term.get_by_role("button").click()
    expect(definition).to_have_count(0)


def test_a_definition_covers_at_most_half_of_a_small_screen(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address, viewport={"width": 320, "height": 640}, has_touch=True)
    for term in page.locator(".under .term button").all():
        term.tap()
        assert box(page, ".definition")["height"] <= 320
        term.tap()
        expect(page.locator(".definition")).to_have_count(0)


def test_a_sentence_of_invisible_characters_counts_as_empty(open_page: OpenPage, address: str) -> None:
    page = open_view(open_page, address)
    page.get_by_label("Sentence", exact=True).fill("\u200b\u200d")
    expect(page.get_by_text("There is no sentence yet")).to_be_visible()
    expect(page.get_by_test_id("unfamiliar")).to_have_count(0)
