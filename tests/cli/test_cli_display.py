"""The display of training has a progress bar, names the current stage, and says how the run ended."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from jumok.cli.display import TrainingDisplay
from jumok.training.events import Finished, Progress, StageDone, StageStarted, Validated
from support.training_progress import PROGRESS


def bar_line(display: TrainingDisplay, width: int) -> str:
    """Return the line of the bar as a terminal of this width shows it."""
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(display._bar.get_renderable(), end="")
    file = console.file
    assert isinstance(file, io.StringIO)
    text = file.getvalue().rstrip("\n")
    assert "\n" not in text
    return text


def make_display(width: int) -> TrainingDisplay:
    return TrainingDisplay(Console(width=width, file=io.StringIO(), force_terminal=True))


@pytest.mark.parametrize(
    ("width", "shown", "hidden"),
    [
        (120, ["2:30:16 left", "loss 5.888", "11,298 tokens/s", "perplexity 230.22"], []),
        (80, ["2:30:16 left", "loss 5.888"], ["perplexity"]),
        (60, ["2:30:16 left"], ["loss"]),
        (20, ["step 12,345"], ["left"]),
    ],
)
def test_a_narrow_terminal_shows_the_bar_and_fewer_facts(
    width: int, shown: list[str], hidden: list[str]
) -> None:
    display = make_display(width)
    display.show(PROGRESS)
    text = bar_line(display, max(width, 50))  # rich would cut the bar itself in a narrower line
    assert "step 12,345/150,000" in text
    assert "━" in text
    for fact in shown:
        assert fact in text
    for fact in hidden:
        assert fact not in text
    assert "…" not in text


def test_the_bar_of_a_run_without_an_end_shows_no_remaining_time() -> None:
    display = make_display(80)
    display.show(Progress(**{**_fields(PROGRESS), "steps": None, "seconds_left": None}))
    text = bar_line(display, 80)
    assert "step 12,345 " in text
    assert "left" not in text


def test_stages_are_shown_while_they_last() -> None:
    display = make_display(80)
    display.show(StageStarted("measuring"))
    assert "measuring" in bar_line(display, 80)
    display.show(StageDone("measuring", "5 ms per update", 12.0))
    assert bar_line(display, 80) == ""


def test_the_bar_and_the_remaining_time_stay_during_a_validation() -> None:
    display = make_display(80)
    display.show(PROGRESS)
    display.show(StageStarted("validating"))
    text = bar_line(display, 80)
    assert "validating" in text
    assert "2:30:16 left" in text
    display.show(Validated(12_345, 2.0, {"chrf": 3.0}, (), best=True, seconds=1.0))
    display.show(PROGRESS)
    assert "step 12,345/150,000" in bar_line(display, 80)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Finished("interrupted", None, 0, 1.0), "stopped before the first step"),
        (Finished("interrupted", None, 7, 1.0), "before the first validation: there is no model yet"),
        (
            Finished("interrupted", Path("runs/x/model"), 7, 61.0, {"chrf": 31.5}),
            "best model so far (chrf 31.50): runs/x/model",
        ),
        (Finished("stopped", Path("runs/x/model"), 7, 61.0), "finished here · step 7 · 1:01"),
    ],
)
def test_the_display_says_how_a_run_ended(event: Finished, expected: str) -> None:
    display = make_display(100)
    display.show(event)
    assert isinstance(display.console.file, io.StringIO)
    assert expected in display.console.file.getvalue()


def _fields(event: Progress) -> dict[str, Any]:
    return {name: getattr(event, name) for name in Progress.__slots__}
