"""A training run as a person watches it: one live bar, and a line for all that is worth keeping.

In a terminal the bar moves; where the output goes to a file, a line is printed every so often instead.
"""

from __future__ import annotations

import time
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from jumok.cli.arguments import languages_in_words
from jumok.training import events

if TYPE_CHECKING:
    from types import TracebackType

    from jumok.recipe import Recipe

__all__ = ["TrainingDisplay", "clock"]

_SECONDS_BETWEEN_LINES = 15.0


def clock(seconds: float | None) -> str:
    """75 → '1:15'; 4000 → '1:06:40'."""
    if seconds is None:
        return "–"
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"


class TrainingDisplay:
    """Shows events. Use it as a context: the bar must be taken down whatever happens."""

    def __init__(self, console: Console, *, samples: int = 2) -> None:
        self.console = console
        self._samples = samples
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[facts]}"),
            console=console,
        )
        self._task = self._bar.add_task("training", total=None, facts="", visible=False)
        self._last_line = 0.0

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:  # elsewhere there is no bar, and stopping it would print a blank line
            self._bar.stop()

    def say(self, text: str, *, style: str = "") -> None:
        """A line that stays. Text is data: brackets, backslashes and :names: in it are not markup."""
        self.console.print(Text(text, style), highlight=False, soft_wrap=True)

    @singledispatchmethod
    def show(self, event: object) -> None:
        raise TypeError(f"not a training event: {event!r}")

    @show.register
    def _(self, event: events.Stage) -> None:
        self.say(f"{event.name}: {event.detail} ({event.seconds:.1f} s)")

    @show.register
    def _(self, event: events.Started) -> None:
        if event.resumed_from is not None:
            self.say(f"continuing from step {event.resumed_from:,}", style="bold")
        self.say(_plan(event.recipe, event.parameters, event.pairs, event.validation_pairs, event.steps))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for reason in event.reasons:
            table.add_row(f"  {reason.setting}", Text(str(reason.value)), Text(reason.why), style="dim")
        if event.reasons:
            self.say("derived, since you set nothing else:", style="dim")
            self.console.print(table, highlight=False)
        self._bar.update(self._task, total=event.steps, completed=event.resumed_from or 0, visible=True)

    @show.register
    def _(self, event: events.Progress) -> None:
        of = f"/{event.steps:,}" if event.steps else ""
        facts = (
            f"step {event.step:,}{of} · loss {event.loss:.3f} · perplexity {event.perplexity:.2f} · "
            f"{event.tokens_per_second:,.0f} tokens/s · {clock(event.seconds_left)} left"
        )
        self._bar.update(self._task, completed=event.step, facts=facts)
        if not self.console.is_terminal and time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self.say(facts)

    @show.register
    def _(self, event: events.Validated) -> None:
        scores = " · ".join(f"{name} {value:.2f}" for name, value in event.scores.items())
        mark = "  ← best so far" if event.best else ""
        self.say(
            f"step {event.step:,}: validation loss {event.loss:.3f} · {scores}{mark}",
            style="bold" if event.best else "",
        )
        for sample in event.samples[: self._samples]:
            self.say(f"    {sample.source}\n    → {sample.hypothesis}", style="cyan")
            if sample.hypothesis != sample.reference:
                self.say(f"    ≠ {sample.reference}", style="dim")

    @show.register
    def _(self, event: events.Saved) -> None:
        del event  # a save is what a person expects; it is worth a line only when it fails

    @show.register
    def _(self, event: events.Warned) -> None:
        self.say(f"! {event.message}", style="yellow")
        if event.advice:
            self.say(f"  {event.advice}", style="yellow")

    @show.register
    def _(self, event: events.Finished) -> None:
        scores = " · ".join(f"{name} {value:.2f}" for name, value in event.scores.items())
        reasons = {
            "done": "finished",
            "patience": "finished early: the validation score no longer improves",
            "interrupted": _kept(event.steps),
            "already finished": "this run is already finished",
        }
        self._bar.update(self._task, visible=False)
        self.say(
            f"{reasons[event.reason]} · step {event.steps:,} · {clock(event.seconds)} · {scores}".rstrip(
                " ·"
            ),
            style="bold",
        )
        if event.model_folder is not None:
            self.say(f"model: {event.model_folder}", style="bold green")


def _kept(steps: int) -> str:
    """What an interrupted run leaves behind: a checkpoint, if there was a step to save."""
    if steps:
        return "interrupted; everything is saved. The same command continues"
    return (
        "interrupted before the first step; the pieces and the encoded pairs are kept, but no step. "
        "The same command goes on from there"
    )


def _plan(recipe: Recipe, parameters: int, pairs: int, validation: int, steps: int | None) -> str:
    noun = "pairs" if recipe.model.task == "translate" else "sentences"
    length = f"{steps:,} steps" if steps else "until it stops improving"
    return (
        f"{languages_in_words(recipe)} · {recipe.model.family} {recipe.model.size} · "
        f"{parameters:,} parameters · "
        f"{pairs:,} {noun}, {validation:,} for validation · {length}"
    )
