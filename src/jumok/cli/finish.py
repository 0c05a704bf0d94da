"""`jumok finish RUN`: make the final model of a run that was stopped before its end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.language import localise
from jumok.cli.status_line import status_line


def finish(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder: the --out of `jumok train`.")],
) -> None:
    """Make the final model of a stopped run from its best checkpoint so far, with scores and alignments.

    Use it after Ctrl-C, or for a run that was killed. `jumok translate RUN` also works without it, with the
    best model so far. `jumok train` with more steps, minutes or epochs continues a finished run.
    """
    with status_line(localise("loading PyTorch")):
        from rich.console import Console  # start-up

        from jumok.cli.display import TrainingDisplay  # start-up
        from jumok.training.events import Finished  # start-up
        from jumok.training.run.training_run import finish_events  # start-up

    with TrainingDisplay(Console(stderr=True)) as display:
        for event in finish_events(run):
            display.show(event)
    if isinstance(event, Finished) and event.reason == "interrupted":
        raise typer.Exit(code=130)
