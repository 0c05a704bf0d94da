"""A browser, the server of a live page, when that page is complete and whether people can use it."""

from __future__ import annotations

import shutil
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jumok.viewer import ViewerServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from jumok.viewer import Viewer

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# It is told to fetch nothing by itself: what is then asked for is asked for by the page.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_browser() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def serving(viewer: Viewer) -> Iterator[str]:
    """The address of a live page."""
    with ViewerServer(viewer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def wait_for_answers(page: Page) -> None:
    """Until no question is open. The page asks the next one, if any, before it is drawn again."""
    drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(drawn)
    page.locator("body[data-asking='0']").wait_for(state="attached")
    page.evaluate(drawn)


def assert_nothing_serious(page: Page, axe: str) -> None:
    """Nothing on the page keeps people from using it, as far as axe-core can tell where it is there."""
    if not axe:
        return
    page.evaluate(f"window.axe || {axe}")
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    serious = [
        (fault["id"], fault["nodes"][0]["html"], fault["nodes"][0].get("failureSummary"))
        for fault in found
        if fault["impact"] in {"serious", "critical"}
    ]
    assert serious == []
