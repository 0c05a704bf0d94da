"""Find a browser, record the errors of a page, serve a live page, wait for responses, check panels."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright

from jumok.server.viewer.http_server import ViewerServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from jumok.server.viewer.service import ExplanationService

BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# With these flags, the browser itself sends no request. So every request comes from the page.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Name of a panel → selector of an element that exists only if the panel has content.
PANELS = {
    "attention": "[role=application]",
    "steps": "article h4",
    "beam": "g.node",
}
HEADS = "td canvas"  # the small maps of the attention panel, one per head
SENTENCE = "I go home."
"""The first sentence of the page with one model (fixture `address` in `tests/web/conftest.py`)."""


def find_browser() -> str | None:
    return next((path for name in BROWSER_NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser_or_skip() -> Iterator[Browser]:
    """Open a browser. Skip the test if there is none, or no font: without a font, Chromium crashes."""
    executable = find_browser()
    if executable is None:
        pytest.skip(
            f"no browser is installed (looked for {', '.join(BROWSER_NAMES)}): `make browser` installs one"
        )
    if shutil.which("fc-list") and not subprocess.run(["fc-list"], capture_output=True).stdout:
        pytest.skip("the browser has no font: `make browser` installs one")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


@dataclass
class MonitoredPage:
    """A page, and a list of its problems: errors, warnings, failed requests, and requests to other hosts.

    If `expects_refusal`, messages about the status 400 are no problems.
    """

    page: Page
    expects_refusal: bool
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._check_message)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("requestfailed", self._check_failed_request)
        self.page.on("request", lambda request: self._check_host(request.url))

    def _check_message(self, message: Any) -> None:
        if self.expects_refusal and "400 (Bad Request)" in message.text:
            return
        if message.type in {"error", "warning"}:
            self.problems.append(f"{message.type}: {message.text}")

    def _check_failed_request(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page aborts a request when it sends a new one
            self.problems.append(f"failed: {request.url}: {request.failure}")

    def _check_host(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"data", "blob", "file", "about"} and parts.hostname != "127.0.0.1":
            self.problems.append(f"request to another host: {url}")


@contextmanager
def serving(service: ExplanationService) -> Iterator[str]:
    """Run a live page's server in a thread. Yield the address of the page."""
    with ViewerServer(service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def wait_for_responses(page: Page) -> None:
    """Wait until no request is pending. If another request follows, the page sends it within two frames."""
    two_frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(two_frames)
    page.locator("body[data-pending='0']").wait_for(state="attached")
    page.evaluate(two_frames)


def save_file(page: Page, kind: str) -> bytes:
    """Press the first button of the Share menu whose name begins with `kind`. Return the saved file."""
    share = page.get_by_role("button", name="Share", exact=True)
    if share.get_attribute("aria-expanded") == "false":
        share.click()
    menu = page.locator("#share")
    with page.expect_download() as download:
        menu.get_by_role("button", name=re.compile(f"^{kind}")).first.click()
    return Path(download.value.path()).read_bytes()


def assert_accessible(page: Page, axe: str) -> None:
    """Assert that axe-core finds no serious accessibility problem.

    `axe` is the script of axe-core, or "" if it is not installed. Then nothing is checked.
    """
    if not axe:
        return
    page.evaluate(f"window.axe || {axe}")
    violations = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    serious = [
        (violation["id"], violation["nodes"][0]["html"], violation["nodes"][0].get("failureSummary"))
        for violation in violations
        if violation["impact"] in {"serious", "critical"}
    ]
    assert serious == [], serious


def assert_every_panel_has_content(page: Page, *, has_attention: bool = True, axe: str = "") -> None:
    """Open each panel, and check its content and its accessibility. `axe` is that of `assert_accessible`.

    If the model has no attention, only the beam panel has content, and the others must say so.
    """
    for panel, element in PANELS.items():
        page.locator(f"#tab-{panel}").click()
        expect(page.locator("[data-word=source-0]")).to_be_visible()
        if has_attention or panel == "beam":
            expect(page.locator("#panel").locator(element).first).to_be_visible()
            if panel == "attention":
                expect(page.locator(HEADS).first).to_be_visible()
        else:
            expect(page.get_by_text("This model has no attention to show here.")).to_be_visible()
        assert_accessible(page, axe)
