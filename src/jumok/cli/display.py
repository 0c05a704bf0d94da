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

from jumok.cli.arguments import format_family, format_languages, format_noun
from jumok.cli.language import is_english, localise, localise_text
from jumok.plots.text_width import terminal_columns
from jumok.training import events

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

BAR_WIDTH = 20
_SECONDS_BETWEEN_LINES = 15.0


def format_duration(seconds: float | None) -> str:
    """Return 75 seconds as '1:15' and 4000 as '1:06:40'; an unknown duration (None) as '–'."""
    if seconds is None:
        return "–"
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"


class TrainingDisplay:
    """Shows training events. Use it as a context manager, so that the bar is removed even after an error."""

    def __init__(self, console: Console, *, max_samples: int = 2) -> None:
        self.console = console
        self._max_samples = max_samples
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=BAR_WIDTH),
            TextColumn("{task.fields[facts]}"),
            console=console,
        )
        # The length of a stage is unknown.
        self._stage_task = self._bar.add_task("", total=None, facts="", visible=False)
        self._training_task = self._bar.add_task("", total=None, facts="", visible=False)
        self._last_line_at = 0.0

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:  # elsewhere, stopping the bar would print a blank line
            self._bar.stop()

    def print_line(self, text: str, *, style: str = "") -> None:
        """Print a permanent line. Brackets, backslashes and :names: in it are text, not markup."""
        self.console.print(Text(text, style), highlight=False, soft_wrap=True)

    @singledispatchmethod
    def show(self, event: object) -> None:
        raise TypeError(f"not a training event: {event!r}")

    @show.register
    def _(self, event: events.StageStarted) -> None:
        name = localise_text(event.name)
        if event.name == "validating":  # validation is a part of training, so the bar of the training stays
            self._bar.update(self._training_task, description=name)
            return
        self._bar.update(self._training_task, visible=False)
        self._bar.update(self._stage_task, description=name, visible=True)

    @show.register
    def _(self, event: events.StageDone) -> None:
        self._bar.update(self._stage_task, visible=False)
        name, detail = localise_text(event.name), localise_text(event.detail)
        self.print_line(
            localise("{name}: {detail} ({seconds:.1f} s)", name=name, detail=detail, seconds=event.seconds)
        )

    @show.register
    def _(self, event: events.Started) -> None:
        if event.resumed_from:
            self.print_line(localise("continuing from step {step:,}", step=event.resumed_from), style="bold")
        elif event.resumed_from is not None:
            self.print_line(
                localise("starting again from step 0: the earlier session ended before its first checkpoint"),
                style="bold",
            )
        self.print_line(_describe_run(event))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for setting in event.derived_settings:
            # By default rich puts an ellipsis in place of Hangul that reaches the edge of a column.
            reason = Text(localise_text(setting.reason), overflow=None if is_english() else "fold")
            table.add_row(f"  {setting.name}", Text(str(setting.value)), reason, style="dim")
        if event.derived_settings:
            self.print_line(localise("derived settings:"), style="dim")
            self.console.print(table, highlight=False)
        self._show_progress(event.resumed_from or 0, event.steps, [])

    @show.register
    def _(self, event: events.Progress) -> None:
        facts = (
            []
            if event.seconds_left is None
            else [localise("{time} left", time=format_duration(event.seconds_left))]
        )
        facts += [
            localise("loss {loss:.3f}", loss=event.loss),
            localise("{speed:,.0f} tokens/s", speed=event.tokens_per_second),
            localise("perplexity {perplexity:.2f}", perplexity=event.perplexity),
        ]
        self._show_progress(event.step, event.steps, facts)
        if not self.console.is_terminal and time.monotonic() - self._last_line_at > _SECONDS_BETWEEN_LINES:
            self._last_line_at = time.monotonic()
            self.print_line(" · ".join([_format_step(event.step, event.steps), *facts]))

    def _show_progress(self, step: int, steps: int | None, facts: list[str]) -> None:
        """Show the step, the bar, and as many of the first facts as fit into the line."""
        description = _format_step(step, steps)
        room = self.console.width - terminal_columns(description) - BAR_WIDTH - 3
        shown = facts
        while shown and terminal_columns(" · ".join(shown)) > room:
            shown = shown[:-1]
        self._bar.update(
            self._training_task,
            description=description,
            total=steps,
            completed=step,
            facts=" · ".join(shown),
            visible=True,
        )

    @show.register
    def _(self, event: events.Validated) -> None:
        line = localise(
            "step {step:,}: validation loss {loss:.3f} · {scores}",
            step=event.step,
            loss=event.loss,
            scores=_format_scores(event.scores),
        )
        note = localise("  ← best so far") if event.best else ""
        self.print_line(f"{line}{note}", style="bold" if event.best else "")
        for sample in event.samples[: self._max_samples]:
            self.print_line(f"    {sample.source}\n    → {sample.hypothesis}", style="cyan")
            if sample.hypothesis != sample.reference:
                self.print_line(f"    ≠ {sample.reference}", style="dim")

    @show.register
    def _(self, event: events.Saved) -> None:
        del event  # nothing is printed if a checkpoint was saved

    @show.register
    def _(self, event: events.Warned) -> None:
        self.print_line(f"! {localise_text(event.message)}", style="yellow")
        if event.advice:
            self.print_line(f"  {localise_text(event.advice)}", style="yellow")

    @show.register
    def _(self, event: events.Finished) -> None:
        for task in (self._stage_task, self._training_task):
            self._bar.update(task, visible=False)
        scores = _format_scores(event.scores)
        if event.reason == "interrupted":
            self._show_interruption(event, scores)
            return
        reasons = {
            "done": localise("finished"),
            "patience": localise("finished early: the validation score no longer improves"),
            "stopped": localise("finished here"),
            "already finished": localise("this run is already finished"),
        }
        step = _format_step(event.steps, None)
        parts = (reasons[event.reason], step, format_duration(event.seconds), scores)
        self.print_line(" · ".join(part for part in parts if part), style="bold")
        if event.model_folder is not None:
            self.print_line(localise("model: {folder}", folder=event.model_folder), style="bold green")

    def _show_interruption(self, event: events.Finished, scores: str) -> None:
        """Print what an interrupted run has saved (a model, a checkpoint or neither), and how to continue."""
        if event.model_folder is not None:
            duration = format_duration(event.seconds)
            stopped = localise("stopped at step {step:,} · {duration}", step=event.steps, duration=duration)
            self.print_line(stopped, style="bold")
            folder = event.model_folder
            best = localise("best model so far ({scores}): {folder}", scores=scores, folder=folder)
            self.print_line(best, style="bold green")
            self.print_line(
                localise(
                    "The same command continues; `jumok finish {run}` ends the run here.", run=folder.parent
                )
            )
        elif event.steps:
            stopped = localise(
                "stopped at step {step:,}, before the first validation: there is no model yet",
                step=event.steps,
            )
            self.print_line(stopped, style="bold")
            self.print_line(localise("The same command continues from this step."))
        else:
            stopped = localise(
                "stopped before the first step; only the vocabulary and the encoded pairs are saved. "
                "The same command continues"
            )
            self.print_line(stopped, style="bold")


def _format_step(step: int, steps: int | None) -> str:
    if steps:
        return localise("step {step:,}/{steps:,}", step=step, steps=steps)
    return localise("step {step:,}", step=step)


def _format_scores(scores: Mapping[str, float]) -> str:
    return " · ".join(f"{localise_text(name)} {value:.2f}" for name, value in scores.items())


def _describe_run(event: events.Started) -> str:
    recipe, training = event.recipe, event.recipe.training
    noun = format_noun(pictures=recipe.source.kind == "pictures", plain=recipe.model.task != "translate")
    if event.steps is None:
        length = localise(
            "until {count} validations in a row bring no better {score}",
            count=training.patience,
            score=localise_text(training.stop_on),
        )
    else:
        length = localise("{steps:,} steps", steps=event.steps)
    return localise(
        "{languages} · {family} · {parameters:,} parameters · {pairs:,} {noun}, {validation_pairs:,} for "
        "validation · {length}",
        languages=format_languages(recipe),
        family=format_family(recipe.model),
        parameters=event.parameters,
        pairs=event.pairs,
        noun=noun,
        validation_pairs=event.validation_pairs,
        length=length,
    )
