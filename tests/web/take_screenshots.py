"""Take a screenshot of every panel: light and dark, desktop and phone, English and Korean.

    make screenshots                              with models that are trained first, for half a minute
    make screenshots ARGS="runs/demo runs/other"  with your runs or models: the first is shown,
                                                  and compared with the others
    make screenshots ARGS="--docs runs/demo runs/other"  the pictures of docs/page.md, in docs/pictures

Screenshots are written to `runs/screenshots`, except the pictures of docs/page.md.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import sync_playwright

from jumok.inference.loading import load
from jumok.server.viewer.run_monitor import RunMonitor, is_run_folder
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from support.page_browser import FLAGS, find_browser, serving, wait_for_responses
from support.page_models import train_runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PANELS = ["attention", "change", "steps", "beam", "compare", "run"]  # change: attention with a silenced head
SIZES = {"desktop": (1200, 860), "phone": (390, 844)}
SENTENCE = "If it rains tomorrow, I will stay at home."
DOCS_OPTION = "--docs"
DOCS_SENTENCE = "The student reads a book at the library."
# The picture "page-effects" compares this translation, which is wrong, with the translation of the model.
DOCS_EXPECTED_TRANSLATION = "학생은 도서관에서 책을 쓴다."


@dataclass(frozen=True)
class Picture:
    """How a picture of docs/page.md is taken: the fragment of the address, the window size and more."""

    fragment: str
    width: int = 1200
    height: int = 980
    theme: str = "light"
    language: str = "en"
    part: str = ""
    """The selector of the part of the page, or "" for the top of the page."""
    hovered_word: int | None = None
    """The index of the word of the translation under the mouse pointer, if any."""


PICTURES = {
    "page-attention": Picture("panel=attention", hovered_word=2),
    "page-dark-korean": Picture("panel=attention", theme="dark", language="ko", hovered_word=2),
    "page-phone": Picture("panel=attention", width=390, height=1400),
    "page-change": Picture("panel=attention", height=520),
    "page-effects": Picture("panel=attention&measure=erasure&minus=weight", height=1300, part="#panel"),
    "page-steps": Picture("panel=steps", width=1440, part="#panel"),
    "page-beam": Picture("panel=beam", part="#panel"),
    "page-compare": Picture("panel=compare", part="#panel"),
    "page-run": Picture("panel=run", part="#panel"),
}
MAX_PICTURE_HEIGHT = 1700


def take_screenshots(browser: Browser, address: str, out: Path) -> None:
    """Load the page once per size. Theme and language change without a reload, so models run only once."""
    out.mkdir(parents=True, exist_ok=True)
    for size, (width, height) in SIZES.items():
        context = browser.new_context(
            viewport={"width": width, "height": height}, device_scale_factor=2, reduced_motion="reduce"
        )
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.goto(address)
        for panel in PANELS:
            tab = page.locator(f"#tab-{'attention' if panel == 'change' else panel}")
            if not tab.count():
                continue  # no run, or no second model
            tab.click()
            wait_for_responses(page)
            if panel == "change":
                _silence_most_important_head(page)
            elif panel == "steps":  # the panel after "change", in which a head was silenced
                page.get_by_role("button", name="Undo all").click()
                wait_for_responses(page)
            page.mouse.move(0, 0)
            for theme in ("light", "dark"):
                for language in ("en", "ko"):
                    _take_screenshot(page, theme, language, out / f"{panel}-{size}-{theme}-{language}.png")
        context.close()


def _silence_most_important_head(page: Page) -> None:
    effects = [float(effect.replace("−", "-")) for effect in page.locator("td .value").all_inner_texts()]
    page.locator("td .picture").nth(effects.index(min(effects))).evaluate("head => head.click()")
    wait_for_responses(page)


def _take_screenshot(page: Page, theme: str, language: str, file: Path) -> None:
    parameters = f"Object.entries({{theme: '{theme}', language: '{language}'}})"
    page.evaluate(
        f"""() => {{
          const address = new URLSearchParams(location.hash.slice(1));
          for (const [name, value] of {parameters}) address.set(name, value);
          location.hash = address;
        }}"""
    )
    page.locator(f"html[data-theme={theme}][lang={language}]").wait_for(state="attached")
    wait_for_responses(page)
    page.screenshot(path=file, full_page=True)


def take_docs_pictures(browser: Browser, address: str, out: Path) -> None:
    """Take the pictures of docs/page.md, with only 256 colours because every clone has these files."""
    for name, picture in PICTURES.items():
        context = browser.new_context(
            viewport={"width": picture.width, "height": picture.height},
            reduced_motion="reduce",
            bypass_csp=True,  # the page's policy would refuse the style that `options` adds below
        )
        context.set_default_timeout(240_000)
        page = context.new_page()
        view = f"sentence={quote(DOCS_SENTENCE)}&language={picture.language}&theme={picture.theme}"
        page.goto(f"{address}#{picture.fragment}&{view}")
        wait_for_responses(page)
        if name == "page-change":
            _pin_third_word(page)
        elif name == "page-effects":
            section = page.get_by_test_id("why-not")
            section.locator("input").fill(DOCS_EXPECTED_TRANSLATION)
            section.locator("button.strong").click()
            section.get_by_role("status").wait_for()
        elif name == "page-run":
            _measure_run(page)
        if picture.hovered_word is not None:
            page.locator(f"[data-word=target-{picture.hovered_word}]").hover()
        wait_for_responses(page)
        # This style hides the sentence and the translation at the top of the window, which would cover a part
        # of the picture.
        options = {"style": "[data-testid=compact-pair] { visibility: hidden !important }"}
        screenshot = page.locator(picture.part).screenshot(**options) if picture.part else page.screenshot()
        image = Image.open(io.BytesIO(screenshot)).convert("RGB")
        image = image.crop((0, 0, image.width, min(image.height, MAX_PICTURE_HEIGHT)))
        # Median cut, the default, would lose colours that are rare, such as the ends of a legend.
        reduced = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        reduced.save(out / f"{name}.png", optimize=True)
        context.close()


def _pin_third_word(page: Page) -> None:
    """Pin the third word of the translation to the second word of the sentence. The editor stays open."""
    page.locator("[data-word=target-2]").press("Enter")
    editor = page.get_by_test_id("line-editor")
    editor.locator("select").select_option(index=1)
    editor.get_by_role("button", name="Read only this").click()
    wait_for_responses(page)


def _measure_run(page: Page) -> None:
    for part, result in (("sentences", "tbody tr"), ("head-profile", "dl")):
        section = page.get_by_test_id(part)
        section.locator("button.strong").click()
        section.locator(result).first.wait_for()


def main(arguments: list[str], out: Path) -> None:
    for_docs = DOCS_OPTION in arguments
    arguments = [argument for argument in arguments if argument != DOCS_OPTION]
    folders = [Path(argument) for argument in arguments] or list(
        train_runs(out.parent / "screenshot-models").values()
    )
    run = next((folder for folder in folders if is_run_folder(folder)), None)
    run_folders = [folder.parent if folder.name == "model" else folder for folder in folders]
    models = [NamedTranslator(folder.name, load(folder / "model", engine="torch")) for folder in run_folders]
    service = ExplanationService(models, sentence=SENTENCE, run=None if run is None else RunMonitor(run))
    executable = find_browser()
    if executable is None:
        sys.exit("No browser is installed: `make browser` installs one.")
    with serving(service) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        if for_docs:
            take_docs_pictures(browser, address, Path("docs/pictures"))
        else:
            take_screenshots(browser, address, out)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:], Path("runs/screenshots"))
