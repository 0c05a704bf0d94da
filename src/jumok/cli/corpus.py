"""`jumok corpus english-korean > pairs.tsv`: a built-in corpus as a file, which also shows the format."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from jumok.errors import DataError, suggest

NAMES = {"english-korean": "en\tko", "english-french": "en\tfr"}  # and the header of its columns


def corpus(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Which corpus: english-korean or english-french (classic examples)."
        ),
    ],
    count: Annotated[int, typer.Option(help="Number of pairs.", min=1)] = 10_000,
    split: Annotated[str, typer.Option(help="train, valid or test; they have no pair in common.")] = "train",
    seed: Annotated[int, typer.Option(help="Another seed gives other pairs.", min=0)] = 1,
    align: Annotated[bool, typer.Option(help="Add the gold word alignment as a third column.")] = True,
) -> None:
    """Print a built-in corpus as TSV: source, target, word alignment."""
    if name not in NAMES:
        raise DataError(
            f"There is no built-in corpus {name!r}.{suggest(name, NAMES)} Available: {', '.join(NAMES)}."
        )
    generate = import_module(f"jumok.datasets.{name.replace('-', '_')}").generate  # start-up
    pairs = generate(split, count, seed=seed)  # raises on an unknown split, before anything is printed
    write = sys.stdout.write
    write(f"{NAMES[name]}\talignment\n" if align else f"{NAMES[name]}\n")
    for pair in pairs:
        write(
            f"{pair.source}\t{pair.target}\t{pair.alignment}\n"
            if align
            else f"{pair.source}\t{pair.target}\n"
        )
