"""A real browser, models that write Korean, and a watch on everything that a page does."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from page_browser import FLAGS, NAMES, find_browser, serving
from page_models import train_runs
from playwright.sync_api import sync_playwright

from jumok.decoding import load
from jumok.viewer import Viewed, Viewer, WatchedRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Page


# Another one than is typed: what a server has explained already does not appear piece by piece.
FIRST_SENTENCE = "I read a book."


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = find_browser()
    if found is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(NAMES)}): `make browser` installs one")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@dataclass
class Watched:
    """A page, and what went wrong on it or left this computer."""

    page: Page
    refused: bool
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", lambda request: self._request(request.url))

    def _console(self, message: Any) -> None:
        if self.refused and "400 (Bad Request)" in message.text:
            return
        if message.type in {"error", "warning"}:
            self.faults.append(f"{message.type}: {message.text}")

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page itself ends a question that is asked anew
            self.faults.append(f"failed: {request.url}: {request.failure}")

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"data", "blob", "file", "about"} and parts.hostname != "127.0.0.1":
            self.faults.append(f"asked another host: {url}")


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open an address in a fresh browser; whatever goes wrong on it fails the test at its end.

    With `refused`, the page is to ask what is refused, which a browser calls an error.
    """
    contexts: list[BrowserContext] = []
    watched: list[Watched] = []

    def open_one(address: str, *, refused: bool = False, **options: Any) -> Page:
        context = browser.new_context(
            **{"viewport": {"width": 1200, "height": 900}, "locale": "en-GB", **options}
        )
        contexts.append(context)
        context.set_default_timeout(15_000)
        watched.append(Watched(context.new_page(), refused))
        watched[-1].page.goto(address)
        return watched[-1].page

    yield open_one
    for context in contexts:
        context.close()
    assert [fault for one in watched for fault in one.faults] == []


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return train_runs(tmp_path_factory.mktemp("korean"))


@pytest.fixture(scope="session")
def live(runs: dict[str, Path]) -> Iterator[str]:
    """The address of a live page with two models and a run."""
    models = [Viewed(name, load(path / "model")) for name, path in runs.items()]
    viewer = Viewer(models, sentence=FIRST_SENTENCE, run=WatchedRun(runs["transformer"]))
    with serving(viewer) as address:
        yield address


@pytest.fixture(scope="session")
def demo(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """As `live`, with the model of `jumok demo`, which is trained for a minute."""
    run = tmp_path_factory.mktemp("demo") / "run"
    subprocess.run([sys.executable, "-m", "jumok", "demo", "--out", run, "--minutes", "1"], check=True)
    paths = {"transformer": run, "recurrent": runs["recurrent"]}
    models = [Viewed(name, load(path / "model")) for name, path in paths.items()]
    with serving(Viewer(models, sentence=FIRST_SENTENCE, run=WatchedRun(run))) as address:
        yield address


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which finds what keeps people from using a page; empty where it is missing.

    Then only what it would find goes unchecked: a test that uses it still does everything else.
    """
    script = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
    return script.read_text(encoding="utf-8") if script.is_file() else ""
