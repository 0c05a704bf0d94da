"""A browser opens a live file from disk without a network. The model runs in the page."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from test_engine import rounded_translator

from jumok.analysis.explainer import ExplanationOptions, explain
from jumok.analysis.live_file import model_page
from support.engine_models import MODELS, translator
from support.marionette import Firefox
from support.page_browser import assert_every_panel_has_content, wait_for_responses

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.web

MAX_BYTES = 4_000_000
MAX_MILLISECONDS = {1: 100, 4: 300}  # beam → limit of the time of a translation
TEN_WORDS = "The teacher did not drink coffee at the library yesterday."
# JavaScript that translates 20 times in a worker like that of the page. It returns the translation and the
# shortest time in milliseconds.
TIME_TRANSLATIONS = """async ([sentence, beam]) => {
  const textOf = (id) => document.getElementById(id).textContent;
  const worker = new Worker(URL.createObjectURL(new Blob([textOf("jumok-engine")])));
  const model = JSON.parse(textOf("jumok-model"));
  worker.postMessage({ kind: "model", model, weights: textOf("jumok-weights") });
  let best = Infinity, text = "";
  for (let id = 0; id < 20; id++) {
    const start = performance.now();
    text = await new Promise((done) => {
      worker.onmessage = ({ data }) => done(data.answer.text);
      worker.postMessage({ kind: "request", id, operation: "translate", request: { sentence, beam } });
    });
    best = Math.min(best, performance.now() - start);
  }
  worker.terminate();
  return [text, best];
}"""


@pytest.fixture(scope="session")
def demo_file(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the live file of the demo's model with the command line, and return its path."""
    file = tmp_path_factory.mktemp("live") / "live.html"
    command = [sys.executable, "-m", "jumok", "look", demo_run / "model", "--out", file]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "contains the model's weights (float16)" in process.stdout
    assert f"{file.stat().st_size / 1e6:.1f} MB" in process.stdout
    assert "Licence of the model: unknown" in process.stdout
    return file


def write_small_file(folder: Path, name: str) -> Path:
    file = folder / "live.html"
    page = model_page(translator(name), MODELS[name], name=name, sentence="the old house.")
    file.write_text(page, encoding="utf-8")
    return file


@pytest.mark.medium
@pytest.mark.parametrize("name", ["pre-norm", "bahdanau, gru"])
def test_a_model_runs_in_the_page_without_a_network(open_page: OpenPage, tmp_path: Path, name: str) -> None:
    original = rounded_translator(translator(name), "float16")
    page = open_page("about:blank", offline=True)
    page.goto(write_small_file(tmp_path, name).as_uri())
    expect(page.get_by_test_id("translation")).to_have_text(explain(original, "the old house.").text)
    page.get_by_label("Sentence", exact=True).fill("a river knows")
    expect(page.get_by_test_id("translation")).to_have_text(explain(original, "a river knows").text)
    page.get_by_text("Search and given translation").click()
    page.get_by_label("Search", exact=True).select_option("greedy")
    greedy = explain(original, "a river knows", options=ExplanationOptions(beam=1))
    expect(page.get_by_test_id("translation")).to_have_text(greedy.text)
    assert_every_panel_has_content(page)
    page.locator("#tab-steps").click()
    page.get_by_label("Query", exact=True).select_option("1")  # the worker receives the chosen query
    wait_for_responses(page)
    expect(page.locator("article h4").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert "cell=cross" in page.url
    page.locator("#tab-attention").click()
    page.locator("td .picture").first.click()
    expect(page.get_by_test_id("difference")).to_be_visible()
    wait_for_responses(page)


@pytest.mark.medium
def test_the_policy_of_the_page_blocks_inline_styles_and_connections(
    browser: Browser, tmp_path: Path
) -> None:
    # The fixture `open_page` cannot be used because it fails the test when the browser blocks something.
    page = browser.new_page()
    page.goto(write_small_file(tmp_path, "pre-norm").as_uri())
    expect(page.get_by_test_id("translation")).not_to_be_empty()
    blocked: Any = page.evaluate(
        """async () => {
          const violations = [];
          const seen = new Promise((done) => document.addEventListener("securitypolicyviolation", (event) => {
            violations.push(event.effectiveDirective);
            if (violations.length === 2) done(null);
          }));
          document.body.insertAdjacentHTML("beforeend", '<i style="color: red"></i>');
          fetch("data:,x").catch(() => undefined);
          await seen;
          return violations.sort();
        }"""
    )
    page.close()
    assert blocked == ["connect-src", "style-src-attr"]


@pytest.mark.slow
def test_the_live_file_of_the_demo_is_small_and_fast(open_page: OpenPage, demo_file: Path) -> None:
    assert demo_file.stat().st_size <= MAX_BYTES
    page = open_page("about:blank", offline=True)
    page.goto(demo_file.as_uri())
    expect(page.get_by_test_id("translation")).not_to_be_empty()
    wait_for_responses(page)
    for beam, limit in MAX_MILLISECONDS.items():
        text, milliseconds = page.evaluate(TIME_TRANSLATIONS, [TEN_WORDS, beam])
        assert text
        assert milliseconds <= limit, f"beam {beam}"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("firefox-esr") is None, reason="Firefox is not installed")
def test_the_live_file_of_the_demo_runs_in_firefox(demo_file: Path, tmp_path: Path) -> None:
    with Firefox(tmp_path) as firefox:
        firefox.open(demo_file.as_uri())
        firefox.wait_for("document.querySelector('[data-testid=translation]')?.textContent")
        for beam, limit in MAX_MILLISECONDS.items():
            text, milliseconds = firefox.call(TIME_TRANSLATIONS, [TEN_WORDS, beam])
            assert text
            assert milliseconds <= limit, f"beam {beam}"
        assert firefox.run("return document.querySelectorAll('[role=alert]').length") == 0
