"""Writes a picture of every panel: light and dark, desktop and phone, English and Korean.

    make screenshots                                       a model that is trained first, for half a minute
    make screenshots ARGS="runs/demo/model other/model"    models of yours

They go to `runs/screenshots`.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from page_browser import FLAGS, find_browser
from page_models import train_runs
from playwright.sync_api import sync_playwright

from jumok.decoding import load
from jumok.viewer import Viewed, Viewer, ViewerServer, WatchedRun, is_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PANELS = ["translate", "map", "heads", "steps", "beam", "change", "compare", "run"]
SIZES = {"desktop": (1200, 860), "phone": (390, 844)}
SENTENCE = "If it rains tomorrow, I will stay at home."
SILENCED = '[{"kind":"silence","site":"cross","layer":0,"head":0}]'


def take_screenshots(browser: Browser, address: str, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for size, (width, height) in SIZES.items():
        for theme in ("light", "dark"):
            for language in ("en", "ko"):
                context = browser.new_context(
                    viewport={"width": width, "height": height},
                    device_scale_factor=2,
                    reduced_motion="reduce",
                )
                context.set_default_timeout(120_000)
                page = context.new_page()
                for panel in PANELS:
                    change = f"&changes={SILENCED}" if panel == "change" else ""
                    page.goto("about:blank")
                    page.goto(
                        f"{address}#panel={panel}&theme={theme}&language={language}&sentence={SENTENCE}{change}"
                    )
                    page.wait_for_load_state("networkidle")
                    page.wait_for_timeout(150)
                    page.screenshot(path=out / f"{panel}-{size}-{theme}-{language}.png", full_page=True)
                context.close()


def main(words: list[str], out: Path) -> None:
    folders = [Path(word) for word in words] or list(train_runs(out.parent / "screenshot-models").values())
    run = next((folder for folder in folders if is_run(folder)), None)
    models = [Viewed(path.name, load(path / "model" if is_run(path) else path)) for path in folders]
    viewer = Viewer(models, sentence=SENTENCE, run=None if run is None else WatchedRun(run))
    found = find_browser()
    if found is None:
        sys.exit("No browser is installed: `make browser` installs one.")
    with ViewerServer(viewer) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        take_screenshots(browser, server.url, out)
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:], Path("runs/screenshots"))
