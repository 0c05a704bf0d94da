"""Take a screenshot of every panel: light and dark, desktop and phone, English and Korean.

    make screenshots                              with models that are trained first, for half a minute
    make screenshots ARGS="runs/demo runs/other"  with your runs or models: the first is shown,
                                                  and compared with the others

They are written to `runs/screenshots`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

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


def take_screenshots(browser: Browser, address: str, out: Path) -> None:
    """Load the page once per size and change theme and language without a reload, so that models run once."""
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
            elif panel == "steps":
                page.get_by_role("button", name="Undo all").click()
                wait_for_responses(page)
            page.mouse.move(0, 0)
            for theme in ("light", "dark"):
                for language in ("en", "ko"):
                    _take(page, theme, language, out / f"{panel}-{size}-{theme}-{language}.png")
        context.close()


def _silence_most_important_head(page: Page) -> None:
    effects = [float(effect.replace("−", "-")) for effect in page.locator("td .value").all_inner_texts()]
    page.locator("td .picture").nth(effects.index(min(effects))).evaluate("head => head.click()")
    wait_for_responses(page)


def _take(page: Page, theme: str, language: str, file: Path) -> None:
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


def main(arguments: list[str], out: Path) -> None:
    folders = [Path(argument) for argument in arguments] or list(
        train_runs(out.parent / "screenshot-models").values()
    )
    run = next((folder for folder in folders if is_run_folder(folder)), None)
    run_folders = [folder.parent if folder.name == "model" else folder for folder in folders]
    models = [NamedTranslator(folder.name, load(folder / "model", engine="torch")) for folder in run_folders]
    service = ExplanationService(models, sentence=SENTENCE, run=None if run is None else RunMonitor(run))
    found = find_browser()
    if found is None:
        sys.exit("No browser is installed: `make browser` installs one.")
    with serving(service) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        take_screenshots(browser, address, out)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:], Path("runs/screenshots"))
