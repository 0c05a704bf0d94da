"""Tests of what users do on the translation page, in a real browser.

The tests use the words of a translation, other candidates for a word, single sentences and files. Some tests
check what the browser stores: texts, the history and settings. The tests of security and layout are in
`test_serve_browser.py`.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Error as BrowserError
from playwright.sync_api import expect

from jumok.text.words import split_words
from support.office_files import make_xlsx
from support.page_browser import browser_or_skip
from support.serve_models import make_digit_model, sentences
from support.serve_process import serving_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page, Route

    from support.serve_process import RunningServer

pytestmark = [pytest.mark.slow, pytest.mark.web]

TWO_SENTENCES = "One two three. Four five six seven."
TIMEOUT_MS = 45_000
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that translates from English to German, with a tag, and from German to French."""
    first = make_digit_model(tmp_path_factory.mktemp("first"), "en", "de", tag="<polite>")
    second = make_digit_model(tmp_path_factory.mktemp("second"), "de", "fr")
    with serving_in_thread(tmp_path_factory.mktemp("server"), first, second) as server:
        # The first request with `words` makes the worker load torch. No test has to wait for this.
        server.post("/v1/translate", {"q": "one", "source": "en", "target": "de", "words": True})
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_or_skip() as chromium:
        yield chromium


@pytest.fixture
def open_page(server: RunningServer, browser: Browser) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens the page in a new context. A JavaScript error fails the test."""
    errors: list[str] = []
    contexts = []

    def open_new_page(path: str = "", **options: Any) -> Page:
        context = browser.new_context(**{"locale": "en-GB", **options})
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{server.url}/{path}")
        return page

    yield open_new_page
    for context in contexts:
        context.close()
    assert errors == []


def translate(page: Page, text: str, source: str = "en", target: str = "de") -> str:
    """Type a text, wait for the translation, and return the translation."""
    page.select_option("#source", source)
    page.select_option("#target", target)
    page.fill("#text", text)
    expect(page.locator("#sentence-view")).to_be_visible(timeout=TIMEOUT_MS)
    return page.inner_text("#result")


def record_posts(page: Page) -> list[str]:
    """Return a list to which the body of each later POST request of the page is appended."""
    bodies: list[str] = []
    page.on("request", lambda request: bodies.append(request.post_data) if request.method == "POST" else None)
    return bodies


def test_the_translation_equals_that_of_the_api_and_aligned_words_are_highlighted(
    server: RunningServer, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    shown = translate(page, TWO_SENTENCES)
    request = {"q": TWO_SENTENCES, "source": "en", "target": "de", "alignment": True, "words": True}
    [answer] = server.post("/v1/translate", request).json["translations"]
    assert shown == answer["text"]
    words = page.locator("#result .word")
    assert words.all_inner_texts() == [answer["text"][slice(*word["span"])] for word in answer["words"]]
    link = answer["alignment"][0]
    source, target = TWO_SENTENCES[slice(*link["source"])], answer["text"][slice(*link["target"])]
    starts = [word["span"][0] for word in answer["words"]]
    words.nth(starts.index(link["target"][0])).hover()
    expect(page.locator("#result .word.lit")).to_have_text(target)
    assert source in page.locator("#mirror .word.partner").all_inner_texts()
    expect(page.locator("#word-note")).to_contain_text("raw probability")
    box = page.locator("#mirror .word", has_text=source).first.bounding_box() or pytest.fail("no word")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#mirror .word.lit")).to_have_text(source)
    assert target in page.locator("#result .word.partner").all_inner_texts()


def test_words_are_tinted_by_their_probability_unless_tinting_is_switched_off(
    server: RunningServer, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    translate(page, TWO_SENTENCES)
    request = {"q": TWO_SENTENCES, "source": "en", "target": "de", "words": True}
    [answer] = server.post("/v1/translate", request).json["translations"]
    for index, word in enumerate(answer["words"]):
        probability = word["probability"]
        # Tint 0 is for the most probable words, tint 3 for the least probable words.
        tint = next((tint for tint, minimum in enumerate((0.75, 0.5, 0.25)) if probability >= minimum), 3)
        expect(page.locator("#result .word").nth(index)).to_have_class(re.compile(rf"\btint-{tint}\b"))
    expect(page.locator("#tint-legend")).to_contain_text("no measure of quality")
    page.uncheck("#tint")
    expect(page.locator("#result")).not_to_have_class(re.compile("tinted"))
    expect(page.locator("#tint-legend")).to_be_hidden()


def test_another_word_is_chosen_and_the_rest_is_rewritten(
    server: RunningServer, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    translate(page, TWO_SENTENCES)
    first, second = (page.locator("#result .sentence").nth(index) for index in (0, 1))
    untouched, source = first.text_content(), "Four five six seven."
    request = {"q": source, "source": "en", "target": "de", "words": True}
    default_translation = server.post("/v1/translate", request).json["translations"][0]
    second.locator(".word").last.focus()
    with page.expect_response("**/v1/candidates") as response:
        page.keyboard.press("Enter")
    start, end = default_translation["words"][-1]["span"]
    fields = response.value.request.post_data_json
    assert (fields["q"], fields["prefix"]) == (source, default_translation["text"][:start].rstrip())
    candidates = response.value.json()["candidates"]
    expected = next(
        candidate for candidate in candidates if candidate["word"] != default_translation["text"][start:end]
    )
    choice = page.locator("#candidate-list button").first
    expect(choice).to_be_visible(timeout=TIMEOUT_MS)
    assert choice.locator("small").text_content() == expected["text"]
    page.keyboard.press("Enter")  # the first candidate has the focus
    expect(page.locator("#chosen")).to_be_visible()
    assert (first.text_content(), second.text_content()) == (untouched, expected["text"])
    page.locator("#model-translation").click()
    expect(page.locator("#chosen")).to_be_hidden()
    assert second.text_content() == default_translation["text"]
    second.locator(".word").last.click()
    expect(choice).to_be_visible(timeout=TIMEOUT_MS)
    page.keyboard.press("Escape")
    expect(page.locator("#candidates")).to_be_hidden()


def test_alternatives_and_attention_belong_to_the_sentence_at_the_caret(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()
    translate(page, TWO_SENTENCES)
    page.evaluate("document.getElementById('text').focus()")
    page.evaluate("document.getElementById('text').setSelectionRange(20, 20)")
    expect(page.locator("#sentence-number")).to_have_text("Sentence 2 of 2")
    page.locator("#attention summary").click()
    expect(page.locator("table.attention")).to_be_visible(timeout=TIMEOUT_MS)
    assert page.locator(".attention thead th").all_inner_texts()[:2] == ["Four", "five"]
    rows = page.locator(".attention tbody th").all_inner_texts()
    second = page.locator("#result .sentence").nth(1)
    assert rows[: second.locator(".word").count()] == second.locator(".word").all_inner_texts()
    page.locator("#alternatives summary").click()
    choice = page.locator("#alternatives li button").first
    expect(choice).to_be_visible(timeout=TIMEOUT_MS)
    alternative = choice.inner_text()
    choice.click()
    expect(second).to_have_text(alternative)
    expect(page.locator("#chosen")).to_be_visible()
    # The table shows the attention of the chosen translation.
    words = second.locator(".word").all_inner_texts()
    assert words
    labels = page.locator(".attention tbody th")
    expect(labels.nth(len(words) - 1)).to_have_text(words[-1], timeout=TIMEOUT_MS)
    assert labels.all_inner_texts()[: len(words)] == words


def test_the_attention_map_fits_on_a_wide_screen_and_fades_out_where_it_scrolls(
    open_page: Callable[..., Page],
) -> None:
    page = open_page(viewport={"width": 1200, "height": 900})
    translate(page, "one two three four five six seven eight nine one two three.")
    page.locator("#alternatives summary").click()
    page.locator("#attention summary").click()
    frame = page.locator("#attention .scroll")
    expect(frame.locator("td").first).to_be_visible()
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
    expect(frame).not_to_have_class(re.compile("cut"))
    page.set_viewport_size({"width": 390, "height": 800})
    expect(frame).to_have_class(re.compile("cut"))
    assert "gradient" in frame.evaluate("frame => getComputedStyle(frame).maskImage")
    frame.evaluate("frame => { frame.scrollLeft = frame.scrollWidth }")
    expect(frame).not_to_have_class(re.compile("cut"))


def test_a_text_in_the_target_language_has_no_sentence_view(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.select_option("#source", "auto")
    page.select_option("#target", "de")
    page.fill("#text", "Wo ist der Hund, und warum schläft er nicht?")
    expect(page.locator("#notice")).to_contain_text("nothing was translated", timeout=TIMEOUT_MS)
    expect(page.locator("#sentence-view")).to_be_hidden()
    translate(page, TWO_SENTENCES)
    expect(page.locator("#sentence-view")).to_be_visible()


def test_the_attention_page_shows_the_current_sentence_and_its_translation(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()
    translate(page, TWO_SENTENCES)
    expect(page.locator("#sentence-number")).to_have_text("Sentence 2 of 2")  # the caret is at the end
    page.locator("#previous-sentence").click()
    page.locator("#next-sentence").click()
    shown = page.locator("#result .sentence").nth(1).inner_text()
    with page.expect_popup() as popup:
        page.click("#show-attention")
    expect(popup.value.locator("[data-testid=translation]")).to_have_text(shown, timeout=TIMEOUT_MS)
    popup.value.locator(".back-link a").click()
    expect(popup.value.locator("#text")).to_have_value(TWO_SENTENCES, timeout=TIMEOUT_MS)


def test_nothing_is_sent_while_a_syllable_is_composed(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.select_option("#source", "en")
    bodies = record_posts(page)
    page.focus("#text")
    keyboard = page.context.new_cdp_session(page)
    for text in ("ㄴ", "나", "난"):
        keyboard.send("Input.imeSetComposition", {"text": text, "selectionStart": 1, "selectionEnd": 1})
        page.wait_for_timeout(250)
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(800)
    assert (page.input_value("#text"), bodies) == ("난", [])
    expect(page.locator("#notice")).to_contain_text("syllable")
    keyboard.send("Input.insertText", {"text": "나는"})
    expect(page.locator("#sentence-view")).to_be_visible(timeout=TIMEOUT_MS)
    assert {'"q":"나는"' in body for body in bodies} == {True}


def test_a_stale_or_failed_translation_is_grey(tmp_path: Path, browser: Browser) -> None:
    model = make_digit_model(tmp_path / "model", "en", "de")
    page = browser.new_page(locale="ko-KR")
    page.set_default_timeout(TIMEOUT_MS)
    grey = re.compile(r"\bstale\b")
    with serving_in_thread(tmp_path, model) as server:
        page.goto(server.url)
        shown = translate(page, "one two")
        expect(page.locator("#result")).not_to_have_class(grey)
        page.type("#text", " three")
        expect(page.locator("#result")).to_have_class(grey)
        expect(page.locator("#result")).not_to_have_class(grey, timeout=TIMEOUT_MS)
        assert page.inner_text("#result") != shown
    page.type("#text", " four")
    expect(page.locator("#message")).to_have_text(
        "서버에 연결할 수 없습니다. 회색 번역문은 이전 원문의 번역입니다.", timeout=TIMEOUT_MS
    )
    expect(page.locator("#result")).to_have_class(grey)
    page.close()


def test_the_text_survives_a_reload_and_is_in_the_address(
    server: RunningServer, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    shown = translate(page, "one 100% two")
    assert page.url == f"{server.url}/#en/de/{quote('one 100% two')}"
    page.reload()
    expect(page.locator("#result")).to_have_text(shown, timeout=TIMEOUT_MS)
    # An address without languages whose text is not escaped, as a person may type it.
    page.evaluate("location.hash = '#100%'")
    expect(page.locator("#text")).to_have_value("100%")
    page.evaluate("location.hash = '#de/fr/eins%20zwei'")
    expect(page.locator("#text")).to_have_value("eins zwei")
    expect(page.locator("#target")).to_have_value("fr")
    long = "one two three " * 200  # too long for an address
    page.fill("#text", long)
    expect(page).to_have_url(f"{server.url}/")
    page.reload()
    expect(page.locator("#text")).to_have_value(long)


def test_nothing_can_be_copied_after_the_text_is_cleared(open_page: Callable[..., Page]) -> None:
    page = open_page()
    translate(page, "One two.\n")  # the translation ends with the line break of the text
    expect(page.locator("#copy")).to_be_enabled()
    page.fill("#text", "")
    expect(page.locator("#copy")).to_be_disabled()


def test_the_style_survives_a_reload(open_page: Callable[..., Page]) -> None:
    page = open_page()
    translate(page, TWO_SENTENCES)
    polite = page.get_by_label("Polite")
    polite.check()
    expect(page.locator("#result")).not_to_have_class(re.compile("stale"), timeout=TIMEOUT_MS)
    shown = page.inner_text("#result")
    bodies = record_posts(page)
    page.reload()
    expect(polite).to_be_checked()
    expect(page.locator("#result")).to_have_text(shown, timeout=TIMEOUT_MS)
    assert '"tags":["<polite>"]' in bodies[0]
    # The "?" makes the browser load the page. The style is not kept for another text.
    page.goto(f"{page.url.split('#')[0]}?#en/de/one")
    expect(page.locator("#text")).to_have_value("one")
    expect(polite).not_to_be_checked()


def test_a_chosen_word_survives_a_reload_and_a_visit_to_the_attention_page(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()
    default_translation = translate(page, TWO_SENTENCES)
    page.locator("#result .word").last.click()
    page.locator("#candidate-list button").first.click()
    expect(page.locator("#chosen")).to_be_visible()
    chosen = page.inner_text("#result")
    assert chosen != default_translation
    page.reload()
    expect(page.locator("#result")).to_have_text(chosen, timeout=TIMEOUT_MS)
    expect(page.locator("#chosen")).to_be_visible(timeout=TIMEOUT_MS)
    with page.expect_popup() as popup:
        page.click("#show-attention")
    popup.value.locator(".back-link a").click()
    expect(popup.value.locator("#result")).to_have_text(chosen, timeout=TIMEOUT_MS)
    page.locator("#model-translation").click()
    page.reload()
    expect(page.locator("#result")).to_have_text(default_translation, timeout=TIMEOUT_MS)


def test_the_attention_page_of_a_server_shows_the_first_steps_only_on_request(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("attention/en_de/")
    first_steps = page.get_by_role("button", name="First steps")
    expect(first_steps).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("story")).to_have_count(0)
    first_steps.click()
    expect(page.get_by_test_id("story")).to_be_visible()
    expect(page.get_by_test_id("story")).not_to_contain_text("your computer")


def test_a_history_is_kept_only_if_it_is_switched_on(open_page: Callable[..., Page]) -> None:
    page = open_page()
    translate(page, "one two")
    page.locator("#history summary").click()
    page.wait_for_timeout(2_500)
    assert page.evaluate("localStorage.getItem('jumok-history')") is None
    page.check("#keep-history")
    translate(page, "three four")
    entry = page.locator("#history-list button")
    expect(entry).to_contain_text("three four", timeout=TIMEOUT_MS)
    page.reload()
    page.fill("#text", "")
    page.locator("#history summary").click()
    entry.click()
    expect(page.locator("#text")).to_have_value("three four")
    page.click("#clear-history")
    expect(entry).to_have_count(0)
    page.uncheck("#keep-history")
    assert page.evaluate("localStorage.getItem('jumok-history')") is None


def test_ctrl_enter_translates_at_once_and_escape_stops(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.select_option("#source", "en")
    bodies = record_posts(page)
    page.fill("#text", "one two")
    page.keyboard.press("Escape")  # before the delay is over
    page.wait_for_timeout(900)
    assert bodies == []
    page.keyboard.press("Control+Enter")
    expect(page.locator("#sentence-view")).to_be_visible(timeout=TIMEOUT_MS)
    # The page first requests the translation without words, which is answered sooner.
    assert ['"words":true' in body for body in bodies] == [False, True]


def test_a_text_that_is_too_long_is_not_cut_silently(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.select_option("#source", "en")
    bodies = record_posts(page)
    page.fill("#text", "one two " * 12_501)
    expect(page.locator("#count")).to_have_text("100,008 / 100,000")
    expect(page.locator("#too-long-text")).to_contain_text("8 characters too long")
    page.wait_for_timeout(900)
    assert bodies == []
    page.click("#cut")
    expect(page.locator("#count")).to_have_text("100,000 / 100,000")
    expect(page.locator("#too-long")).to_be_hidden()


def test_a_language_without_a_model_is_not_recognised(open_page: Callable[..., Page]) -> None:
    page = open_page(locale="ko-KR")
    page.fill("#text", "الأرنب يأكل الجزر في الحديقة")
    expect(page.locator("#message")).to_contain_text("언어를 인식하지 못했습니다", timeout=TIMEOUT_MS)
    expect(page.locator("#notice")).to_be_empty()


def test_a_tag_is_put_before_every_sentence_and_is_not_aligned(server: RunningServer) -> None:
    """This test needs no browser. It is here because only this server has a model with a tag."""
    request = {"source": "en", "target": "de", "alignment": True}
    [tagged] = server.post("/v1/translate", {**request, "q": TWO_SENTENCES, "tags": ["<polite>"]}).json[
        "translations"
    ]
    sentences_with_tags = ["<polite> One two three.", "<polite> Four five six seven."]
    separate = server.post("/v1/translate", {**request, "q": sentences_with_tags}).json["translations"]
    assert tagged["text"] == " ".join(translation["text"] for translation in separate)
    words = {TWO_SENTENCES[slice(*link["source"])] for link in tagged["alignment"]}
    assert words
    assert words <= set(split_words(TWO_SENTENCES))
    form = server.post_form("/", {"q": TWO_SENTENCES, "source": "en", "target": "de", "tags": "<polite>"})
    assert html.escape(tagged["text"]) in form.text
    assert 'value="&lt;polite&gt;" checked' in form.text


def test_tags_are_switches_where_the_model_has_them(open_page: Callable[..., Page]) -> None:
    page = open_page()
    translate(page, TWO_SENTENCES)
    bodies = record_posts(page)
    page.locator("#tags label", has_text="Polite").click()
    expect(page.locator("#result")).not_to_have_class(re.compile("stale"), timeout=TIMEOUT_MS)
    assert '"tags":["<polite>"]' in bodies[0]
    page.select_option("#source", "de")
    page.select_option("#target", "fr")
    expect(page.locator("#tags")).to_be_hidden()


def test_swap_is_disabled_where_no_model_translates_back(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.select_option("#source", "en")
    expect(page.locator("#swap")).to_be_disabled()
    assert page.evaluate("getComputedStyle(document.getElementById('swap')).cursor") == "not-allowed"
    assert float(page.evaluate("getComputedStyle(document.getElementById('swap')).opacity")) < 0.6


def test_a_file_shows_its_progress_and_is_downloaded_under_its_name(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page()
    page.select_option("#source", "en")
    page.select_option("#target", "de")
    expect(page.locator("#drop")).to_contain_text("DOCX, PPTX, XLSX")
    page.evaluate(
        """() => { window.seen = []; new MutationObserver(() => seen.push(document.getElementById(
        "file-status").textContent)).observe(document.getElementById("file-status"), {childList: true}); }"""
    )
    text = "\n".join(sentences(1500)).encode()
    page.set_input_files("#file", {"name": "report.txt", "mimeType": "text/plain", "buffer": text})
    expect(page.locator("#download")).to_be_visible(timeout=TIMEOUT_MS)
    progress = [line for line in page.evaluate("seen") if re.fullmatch(r"[\d,]+ of 1,500 sentences", line)]
    counts = [int(line.split(" ")[0].replace(",", "")) for line in progress]
    assert len(counts) > 1
    assert counts == sorted(counts)
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == "report.de.txt"
    download.value.save_as(tmp_path / "report.de.txt")
    assert len((tmp_path / "report.de.txt").read_bytes().splitlines()) == 1500
    page.set_input_files("#file", {"name": "a.pdf", "mimeType": "application/pdf", "buffer": b"%PDF"})
    expect(page.locator("#file-error")).to_contain_text(".docx", timeout=TIMEOUT_MS)
    expect(page.locator("#download")).to_be_hidden()


def test_the_notes_on_a_file_are_shown_until_the_next_file_is_chosen(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.select_option("#source", "en")
    page.select_option("#target", "de")
    formula = '<worksheet><c r="B1"><f>COUNTIF(A:A,"one")</f></c></worksheet>'
    workbook = make_xlsx("<si><t>one</t></si><si><t>two</t></si>", **{"worksheets/sheet1": formula})
    page.set_input_files("#file", {"name": "a.xlsx", "mimeType": "application/zip", "buffer": workbook})
    expect(page.locator("#file-notes li")).to_contain_text('"one" (sheet1!B1)', timeout=TIMEOUT_MS)
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"one two"})
    expect(page.locator("#file-name")).to_have_text("a.txt")
    expect(page.locator("#file-notes")).to_be_hidden()
    expect(page.locator("#download")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator("#file-notes")).to_be_hidden()


def test_theme_and_language_are_switched_and_remembered(open_page: Callable[..., Page]) -> None:
    page = open_page(color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.select_option("#theme", "dark")
    page.select_option("#language", "ko")
    assert page.evaluate(background) != light
    page.reload()
    expect(page.locator("#translate")).to_have_text("번역")
    assert page.evaluate(background) != light
    expect(page.locator("html")).to_have_attribute("lang", "ko")
    dark = open_page(color_scheme="dark", java_script_enabled=False)
    assert dark.locator("body").evaluate("element => getComputedStyle(element).backgroundColor") != light


def test_the_skip_link_leads_to_the_text_and_does_not_change_it(
    server: RunningServer, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    translate(page, "one two")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator("#text")).to_have_value("one two")
    assert page.url == f"{server.url}/#en/de/one%20two"


def test_a_translation_is_shown_even_if_its_word_probabilities_are_refused(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()

    def refuse_words(route: Route) -> None:
        if '"words":true' in (route.request.post_data or ""):
            route.fulfill(status=413, json={"error": "The request is too large."})
        else:
            route.continue_()

    page.route("**/v1/translate/stream", refuse_words)
    bodies = record_posts(page)
    translate(page, "one two")
    expect(page.locator("#notice")).to_contain_text("Without word probabilities")
    expect(page.locator("#message")).to_have_text("")
    expect(page.locator("#result")).not_to_have_class(re.compile(r"\bstale\b"))
    assert ['"words":true' in body for body in bodies[-2:]] == [False, True]
    requests_before = len(bodies)
    page.type("#text", " three")
    expect(page.locator("#sentence-view")).to_be_hidden()
    expect(page.locator("#sentence-view")).to_be_visible(timeout=TIMEOUT_MS)
    assert {'"words":true' in body for body in bodies[requests_before:]} == {False}


def test_late_candidates_of_another_word_are_not_shown(open_page: Callable[..., Page]) -> None:
    page = open_page()
    translate(page, TWO_SENTENCES)
    delayed_routes: list[Route] = []  # only the first request is delayed
    page.route(
        "**/v1/candidates",
        lambda route: route.continue_() if delayed_routes else delayed_routes.append(route),
    )
    words, choice = page.locator("#result .word"), page.locator("#candidate-list button")
    with page.expect_request("**/v1/candidates"):
        words.first.click()
    page.keyboard.press("Escape")
    words.last.click()
    expect(choice.first).to_be_visible(timeout=TIMEOUT_MS)
    shown = choice.all_inner_texts()
    late = {"word": "late", "probability": 0.5, "text": "late", "score": 0}
    with suppress(BrowserError):  # the page may have cancelled the request
        delayed_routes[0].fulfill(body=json.dumps({"candidates": [late]}))
    page.wait_for_timeout(300)
    assert choice.all_inner_texts() == shown


def test_a_download_that_is_refused_is_not_offered(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.select_option("#source", "en")
    page.select_option("#target", "de")
    page.route(
        "**/download_file/*", lambda route: route.fulfill(status=404, json={"error": "It has expired."})
    )
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"one two"})
    expect(page.locator("#file-error")).to_have_text("It has expired.", timeout=TIMEOUT_MS)
    expect(page.locator("#download")).to_be_hidden()


def test_the_page_works_if_the_browser_blocks_its_storage(
    server: RunningServer, open_page: Callable[..., Page]
) -> None:
    page = open_page()
    page.add_init_script(
        "for (const name of ['localStorage', 'sessionStorage'])"
        "Object.defineProperty(window, name, {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    page.context.add_cookies([{"name": "jumok-page", "value": "en.dark.seen", "url": server.url}])
    page.reload()
    assert translate(page, "one two")
    page.select_option("#theme", "light")
    assert page.evaluate("document.cookie") == "jumok-page=en.light.seen"  # the attention page stores "seen"


@pytest.mark.parametrize("width", [320, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_accessible_and_never_overflow(
    open_page: Callable[..., Page], width: int, scheme: str
) -> None:
    page = open_page(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        locale="ko-KR" if scheme == "dark" else "en-GB",
        bypass_csp=True,
    )
    translate(page, TWO_SENTENCES)
    page.locator("#attention summary").click()
    expect(page.locator("table.attention")).to_be_visible(timeout=TIMEOUT_MS)
    page.locator("#result .word").first.click()
    expect(page.locator("#candidate-list button").first).to_be_visible(timeout=TIMEOUT_MS)
    assert_fits_and_is_accessible(page)
    page.goto(page.url.split("#")[0] + "docs")
    assert_fits_and_is_accessible(page)


def assert_fits_and_is_accessible(page: Page) -> None:
    """Assert that the page is no wider than the screen.

    If axe-core is installed, also assert that it finds no problem that is more than minor.
    """
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if not AXE.is_file():
        return
    page.evaluate(f"window.axe || {AXE.read_text(encoding='utf-8')}")
    violations = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    more_than_minor = [violation for violation in violations if violation["impact"] != "minor"]
    assert [(violation["id"], violation["nodes"][0]["html"]) for violation in more_than_minor] == []


@pytest.mark.parametrize("locale", ["en-GB", "ko-KR"])
@pytest.mark.parametrize("width", [320, 390, 1440])
def test_the_button_that_copies_an_example_covers_no_code(
    open_page: Callable[..., Page], width: int, locale: str
) -> None:
    page = open_page("docs", viewport={"width": width, "height": 844}, locale=locale)
    expect(page.locator(".example button:visible").first).to_be_visible()
    covered: Any = page.evaluate(
        """() => [...document.querySelectorAll(".example:not([hidden])")].filter(example => {
          const button = example.querySelector("button").getBoundingClientRect();
          const range = document.createRange();
          range.selectNodeContents(example.querySelector("code"));
          return [...range.getClientRects()].some(line => line.width > 0 && line.right > button.left + 1
            && line.left < button.right - 1 && line.top < button.bottom - 1 && line.bottom > button.top + 1);
        }).length"""
    )
    assert covered == 0


@pytest.mark.parametrize("name", ["curl", "Python", "JavaScript"])
def test_every_example_of_the_api_page_runs(open_page: Callable[..., Page], name: str) -> None:
    programs = {
        "curl": ["sh", "-c"],
        "Python": [sys.executable, "-c"],
        "JavaScript": ["node", "--input-type=module", "-e"],
    }
    requirements = {
        "curl": shutil.which("curl"),
        "Python": find_spec("requests"),
        "JavaScript": shutil.which("node"),
    }
    if requirements[name] is None:
        pytest.skip(f"the program or package that runs the examples in {name} is not installed")
    page = open_page("docs")
    page.click(f"[data-choose={name}]")
    examples = page.locator(f"[data-example={name}] code").all_inner_texts()
    assert len(examples) > 10
    for example in examples:
        command = example.replace("curl ", "curl -sS --fail-with-body ", 1) if name == "curl" else example
        result = subprocess.run(
            [*programs[name], command], capture_output=True, text=True, check=False, timeout=60
        )
        assert result.returncode == 0, (example, result.stdout, result.stderr)
        assert result.stdout.strip()
        assert not result.stdout.startswith('{"error"'), (example, result.stdout)
