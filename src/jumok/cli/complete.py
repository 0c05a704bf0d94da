"""`echo "I go" | jumok complete MODEL`: a language model goes on with each line."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import ModelArgument, SeedOption, TemperatureOption, drawing_choices
from jumok.cli.input_lines import InputLines


def complete(
    model: ModelArgument,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Beginnings, one a line; standard input if not given."),
    ] = None,
    sample: Annotated[bool, typer.Option(help="Draw at random instead of taking the likeliest.")] = False,
    temperature: TemperatureOption = None,
    seed: SeedOption = None,
) -> None:
    """Go on with lines from a file or standard input, each to its end, with a model trained on plain text.

    An empty line is a text from its very beginning.
    """
    given = drawing_choices(sample, temperature=temperature, seed=seed)
    from jumok.decoding import Sampling, load_text_model

    text_model = load_text_model(model)
    sampling = Sampling(**given) if sample else None
    with closing(InputLines(source)) as texts:
        # What is drawn depends on the lines read with it, and must not on the clock.
        ready = texts.ready if texts.typed or not sample else None
        for text in text_model.stream(texts, ready=ready, sampling=sampling):
            sys.stdout.write(text + "\n")
