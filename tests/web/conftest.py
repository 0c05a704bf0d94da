"""Fixtures: a real browser, models that write Korean, pages on which any error fails the test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from jumok.inference.loading import load
from jumok.server.viewer.run_monitor import RunMonitor
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.storage.model_folder import read_card
from support.page_browser import FLAGS, NAMES, SENTENCE, MonitoredPage, find_browser, serving
from support.page_models import train_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

    from jumok.inference.translator import Translator


# No test types this sentence: the explanation of a typed one must not come from the cache.
FIRST_SENTENCE = "I read a book."


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a browser, one per file: an open one keeps tests of other files from starting an event loop."""
    found = find_browser()
    if found is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(NAMES)}): `make browser` installs one")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens an address in a fresh browser context; errors on the page fail the test.

    With `refused=True`, the test expects the server to refuse a request with 400, and that is no error.
    """
    contexts: list[BrowserContext] = []
    pages: list[MonitoredPage] = []

    def open_one(address: str, *, refused: bool = False, **options: Any) -> Page:
        context = browser.new_context(
            **{"viewport": {"width": 1200, "height": 900}, "locale": "en-GB", **options}
        )
        contexts.append(context)
        context.set_default_timeout(15_000)
        pages.append(MonitoredPage(context.new_page(), refused))
        pages[-1].page.goto(address)
        return pages[-1].page

    yield open_one
    for context in contexts:
        context.close()
    assert [fault for one in pages for fault in one.faults] == []


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
    with serving(ExplanationService([NamedTranslator("mine", translator)], sentence=SENTENCE)) as served:
        yield served


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
    """Like `live`, with the model of `jumok demo`."""
    run = demo_run
    paths = {"transformer": run, "recurrent": runs["recurrent"]}
    models = [NamedTranslator(name, load(path / "model", engine="torch")) for name, path in paths.items()]
    with serving(ExplanationService(models, sentence=FIRST_SENTENCE, run=RunMonitor(run))) as address:
        yield address


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core, which checks accessibility, or "" if it is not installed.

    Without it, tests skip only the accessibility check.
    """
    script = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
    return script.read_text(encoding="utf-8") if script.is_file() else ""
