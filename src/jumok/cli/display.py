"""The display of a training run: a live progress bar, and permanent lines for important events.

If the output is not a terminal, a line of progress is printed at intervals instead of the bar.
"""

from __future__ import annotations

import time
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from jumok.cli.arguments import format_languages
from jumok.training import events

if TYPE_CHECKING:
    from types import TracebackType

    from jumok.config.recipe import Recipe

__all__ = ["TrainingDisplay", "format_duration"]

_SECONDS_BETWEEN_LINES = 15.0


def format_duration(seconds: float | None) -> str:
    """Return 75 seconds as '1:15' and 4000 as '1:06:40'."""
    if seconds is None:
        return "–"
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"


class TrainingDisplay:
    """Shows training events. Use it as a context manager, so that the bar is removed also after an error."""

    def __init__(self, console: Console, *, max_samples: int = 2) -> None:
        self.console = console
        self._max_samples = max_samples
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[facts]}"),
            console=console,
        )
        self._task = self._bar.add_task("training", total=None, facts="", visible=False)
        self._last_line_at = 0.0

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:  # otherwise stopping it would print a blank line
            self._bar.stop()

    def print_line(self, text: str, *, style: str = "") -> None:
        """Print a permanent line. Brackets, backslashes and :names: in it are text, not markup."""
        self.console.print(Text(text, style), highlight=False, soft_wrap=True)

    @singledispatchmethod
    def show(self, event: object) -> None:
        raise TypeError(f"not a training event: {event!r}")

    @show.register
    def _(self, event: events.Stage) -> None:
        self.print_line(f"{event.name}: {event.detail} ({event.seconds:.1f} s)")

    @show.register
    def _(self, event: events.Started) -> None:
        if event.resumed_from is not None:
            self.print_line(f"continuing from step {event.resumed_from:,}", style="bold")
        self.print_line(
            _describe_run(event.recipe, event.parameters, event.pairs, event.validation_pairs, event.steps)
        )
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for setting in event.derived_settings:
            table.add_row(f"  {setting.name}", Text(str(setting.value)), Text(setting.reason), style="dim")
        if event.derived_settings:
            self.print_line("derived settings:", style="dim")
            self.console.print(table, highlight=False)
        self._bar.update(self._task, total=event.steps, completed=event.resumed_from or 0, visible=True)

    @show.register
    def _(self, event: events.Progress) -> None:
        of_steps = f"/{event.steps:,}" if event.steps else ""
        facts = (
            f"step {event.step:,}{of_steps} · loss {event.loss:.3f} · perplexity {event.perplexity:.2f} · "
            f"{event.tokens_per_second:,.0f} tokens/s · {format_duration(event.seconds_left)} left"
        )
        self._bar.update(self._task, completed=event.step, facts=facts)
        if not self.console.is_terminal and time.monotonic() - self._last_line_at > _SECONDS_BETWEEN_LINES:
            self._last_line_at = time.monotonic()
            self.print_line(facts)

    @show.register
    def _(self, event: events.Validated) -> None:
        scores = " · ".join(f"{name} {value:.2f}" for name, value in event.scores.items())
        note = "  ← best so far" if event.best else ""
        self.print_line(
            f"step {event.step:,}: validation loss {event.loss:.3f} · {scores}{note}",
            style="bold" if event.best else "",
        )
        for sample in event.samples[: self._max_samples]:
            self.print_line(f"    {sample.source}\n    → {sample.hypothesis}", style="cyan")
            if sample.hypothesis != sample.reference:
                self.print_line(f"    ≠ {sample.reference}", style="dim")

    @show.register
    def _(self, event: events.Saved) -> None:
        del event  # expected; only a failure to save deserves a line

    @show.register
    def _(self, event: events.Warned) -> None:
        self.print_line(f"! {event.message}", style="yellow")
        if event.advice:
            self.print_line(f"  {event.advice}", style="yellow")

    @show.register
    def _(self, event: events.Finished) -> None:
        scores = " · ".join(f"{name} {value:.2f}" for name, value in event.scores.items())
        reasons = {
            "done": "finished",
            "patience": "finished early: the validation score no longer improves",
            "interrupted": _describe_interruption(event.steps),
            "already finished": "this run is already finished",
        }
        self._bar.update(self._task, visible=False)
        parts = (reasons[event.reason], f"step {event.steps:,}", format_duration(event.seconds), scores)
        self.print_line(" · ".join(part for part in parts if part), style="bold")
        if event.model_folder is not None:
            self.print_line(f"model: {event.model_folder}", style="bold green")


def _describe_interruption(steps: int) -> str:
    """Return what an interrupted run has saved: a checkpoint, if there was a step."""
    if steps:
        return "interrupted; everything is saved. The same command continues"
    return (
        "interrupted before the first step; only the vocabulary and the encoded pairs are saved. "
        "The same command continues"
    )


def _describe_run(
    recipe: Recipe, parameters: int, pairs: int, validation_pairs: int, steps: int | None
) -> str:
    noun = "pairs" if recipe.model.task == "translate" else "sentences"
    noun = "pictures" if recipe.source.kind == "pictures" else noun
    length = f"{steps:,} steps" if steps else "until it stops improving"
    return (
        f"{format_languages(recipe)} · {recipe.model.family} {recipe.model.size} · "
        f"{parameters:,} parameters · "
        f"{pairs:,} {noun}, {validation_pairs:,} for validation · {length}"
    )
