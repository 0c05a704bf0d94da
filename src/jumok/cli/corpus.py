"""`jumok corpus english-korean > pairs.tsv`: a built-in corpus as a file, which also shows the format.

`jumok corpus drawn-pictures --out drawn` writes pictures with captions and with classes into a folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from jumok.errors import DataError, suggest

NAMES = ("english-korean", "drawn-pictures")


def corpus(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"Which corpus: {' or '.join(NAMES)}.")],
    count: Annotated[int, typer.Option(help="Number of pairs or pictures.", min=1)] = 10_000,
    split: Annotated[str, typer.Option(help="train, valid or test; they have no pair in common.")] = "train",
    seed: Annotated[int, typer.Option(help="Another seed gives other pairs.", min=0)] = 1,
    align: Annotated[bool, typer.Option(help="Add the gold word alignment as a third column.")] = True,
    out: Annotated[Path | None, typer.Option(help="Folder for pictures; text is printed.")] = None,
) -> None:
    """Print a built-in corpus as TSV: source, target, word alignment. Pictures are written to --out."""
    if name not in NAMES:
        raise DataError(
            f"There is no built-in corpus {name!r}.{suggest(name, NAMES)} Available: {', '.join(NAMES)}."
        )
    if (name == "drawn-pictures") != (out is not None):
        raise DataError(
            "drawn-pictures is written to a folder: give --out. english-korean is printed: redirect it "
            f"with >. Received: {name}, {'no --out' if out is None else f'--out {out}'}."
        )
    if out is not None:
        from jumok.datasets.drawn_pictures import write_split  # start-up

        write_split(out, split, count, seed=seed)
        typer.echo(f"wrote {out}: {split}.en.tsv, {split}.ko.tsv and {split}-classes", err=True)
        return
    from jumok.datasets.english_korean import generate  # start-up

    pairs = generate(split, count, seed=seed)  # raises on an unknown split, before anything is printed
    write = sys.stdout.write
    write("en\tko\talignment\n" if align else "en\tko\n")
    for pair in pairs:
        write(
            f"{pair.source}\t{pair.target}\t{pair.alignment}\n"
            if align
            else f"{pair.source}\t{pair.target}\n"
        )
