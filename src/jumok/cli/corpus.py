"""`jumok corpus english-korean > pairs.tsv`: the built-in corpus as a file, to see the format."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from jumok.errors import DataError, nearest

NAMES = ("english-korean",)


def corpus(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which corpus: english-korean.")],
    count: Annotated[int, typer.Option(help="How many pairs.", min=1)] = 10_000,
    split: Annotated[str, typer.Option(help="train, valid or test; no pair is in two of them.")] = "train",
    seed: Annotated[int, typer.Option(help="Another seed gives other pairs.", min=0)] = 1,
    align: Annotated[bool, typer.Option(help="Add the gold word alignment as a third column.")] = True,
) -> None:
    """Print the built-in corpus as TSV: source, target, word alignment."""
    if name not in NAMES:
        raise DataError(
            f"there is no built-in corpus called {name!r}.{nearest(name, NAMES)} Known: {', '.join(NAMES)}."
        )
    from jumok.corpus.english_korean import generate

    pairs = generate(split, count, seed=seed)  # refuses an unknown split before anything is printed
    write = sys.stdout.write
    write("en\tko\talignment\n" if align else "en\tko\n")
    for pair in pairs:
        write(
            f"{pair.source}\t{pair.target}\t{pair.alignment}\n"
            if align
            else f"{pair.source}\t{pair.target}\n"
        )
