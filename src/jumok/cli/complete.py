"""`echo "I go" | jumok complete MODEL`: a language model completes each line."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import (
    DeviceOption,
    ModelArgument,
    PrecisionOption,
    SeedOption,
    TemperatureOption,
    sampling_options,
)
from jumok.cli.input_lines import InputLines


def complete(
    model: ModelArgument,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Beginnings, one per line; standard input if not given."),
    ] = None,
    sample: Annotated[bool, typer.Option(help="Sample instead of taking the likeliest token.")] = False,
    temperature: TemperatureOption = None,
    seed: SeedOption = None,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
) -> None:
    """Complete lines from a file or standard input with a language model trained on plain text.

    For an empty line the model writes a whole text.
    """
    sampling_settings = sampling_options(sample, temperature=temperature, seed=seed)
    from jumok.inference.loading import load_text_model  # start-up
    from jumok.inference.search.plan import Sampling  # start-up

    text_model = load_text_model(model, device=device, precision=precision)
    sampling = Sampling(**sampling_settings) if sample else None
    with closing(InputLines(source, command="complete")) as texts:
        # Samples depend on the lines in the same batch. Except on a terminal, where each line is answered at
        # once, batches must therefore not depend on the time at which lines arrive.
        ready = texts.ready if texts.is_terminal or not sample else None
        for text in text_model.stream(texts, ready=ready, sampling=sampling):
            sys.stdout.write(text + "\n")
