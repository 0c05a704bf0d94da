"""Fixtures: a real browser, models that write Korean, and pages that fail the test if they log an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jumok.inference.loading import load
from jumok.server.viewer.run_monitor import RunMonitor
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.storage.model_folder import read_card
from support.page_browser import SENTENCE, MonitoredPage, browser_or_skip, serving
from support.page_models import train_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

    from jumok.inference.translator import Translator


# The sentence with which the pages of `live` and `demo` open. No test types it into these pages, because the
# server already has its explanation in the cache.
FIRST_SENTENCE = "I read a book."


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a browser, one per test file.

    A browser for all files would be open during tests of other files, which could then not start an event
    loop.
    """
    with browser_or_skip() as chromium:
        yield chromium


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens an address in a new browser context. Errors on the page fail the test.

    With `refused=True`, a response with status 400 is not an error.
    """
    contexts: list[BrowserContext] = []
    pages: list[MonitoredPage] = []

    def open_new_page(address: str, *, refused: bool = False, **options: Any) -> Page:
        context = browser.new_context(
            **{"viewport": {"width": 1200, "height": 900}, "locale": "en-GB", **options}
        )
        contexts.append(context)
        context.set_default_timeout(15_000)
        pages.append(MonitoredPage(context.new_page(), refused))
        pages[-1].page.goto(address)
        return pages[-1].page

    yield open_new_page
    for context in contexts:
        context.close()
    assert [problem for monitored in pages for problem in monitored.problems] == []


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two run folders, "transformer" and "recurrent"."""
    return train_runs(tmp_path_factory.mktemp("korean"))


@pytest.fixture(scope="module")
def translator(runs: dict[str, Path]) -> Translator:
    return load(runs["transformer"] / "model", engine="torch")


@pytest.fixture(scope="module")
def address(translator: Translator) -> Iterator[str]:
    """Yield the address of a live page with one model and no run."""
    with serving(ExplanationService([NamedTranslator("mine", translator)], sentence=SENTENCE)) as url:
        yield url


@pytest.fixture(scope="session")
def live(runs: dict[str, Path]) -> Iterator[str]:
    """Yield the address of a live page with two models and a run."""
    models = [
        NamedTranslator(name, load(path / "model", engine="torch"), read_card(path / "model").recipe.model)
        for name, path in runs.items()
    ]
    service = ExplanationService(models, sentence=FIRST_SENTENCE, run=RunMonitor(runs["transformer"]))
    with serving(service) as address:
        yield address


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run folder of `jumok demo`, trained for one minute."""
    run = tmp_path_factory.mktemp("demo") / "run"
    subprocess.run([sys.executable, "-m", "jumok", "demo", "--out", run, "--minutes", "1"], check=True)
    return run


@pytest.fixture(scope="session")
def demo(runs: dict[str, Path], demo_run: Path) -> Iterator[str]:
    """Yield the address of a live page like `live`, whose Transformer is the model of `jumok demo`."""
    paths = {"transformer": demo_run, "recurrent": runs["recurrent"]}
    models = [NamedTranslator(name, load(path / "model", engine="torch")) for name, path in paths.items()]
    with serving(ExplanationService(models, sentence=FIRST_SENTENCE, run=RunMonitor(demo_run))) as address:
        yield address


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core, which checks accessibility, or "" if it is not installed.

    Tests without axe-core skip only the accessibility check.
    """
    script = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
    return script.read_text(encoding="utf-8") if script.is_file() else ""
