"""`jumok corpus english-korean > pairs.tsv`: a built-in corpus as a file, which also shows the format.

`jumok corpus drawn-pictures --out drawn` writes pictures with captions and with classes into a folder.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.language import localise, localise_text
from jumok.errors import DataError, suggest

NAMES = {"english-korean": "en\tko", "english-french": "en\tfr"}  # name → header of the columns
PICTURES = "drawn-pictures"


def corpus(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Which corpus: english-korean, english-french (classic examples) or drawn-pictures.",
        ),
    ],
    count: Annotated[int, typer.Option(help="Number of pairs or pictures.", min=1)] = 10_000,
    split: Annotated[str, typer.Option(help="train, valid or test; they have no pair in common.")] = "train",
    seed: Annotated[int, typer.Option(help="Another seed gives other pairs.", min=0)] = 1,
    align: Annotated[bool, typer.Option(help="Add the gold word alignment as a third column.")] = True,
    out: Annotated[Path | None, typer.Option(help="Folder for pictures; text is printed.")] = None,
) -> None:
    """Print a built-in corpus as TSV: source, target, word alignment. Pictures are written to --out."""
    if name not in (names := (*NAMES, PICTURES)):
        raise DataError(
            localise(
                "There is no built-in corpus {name!r}.{suggestion} Available: {known}.",
                name=name,
                suggestion=localise_text(suggest(name, names)),
                known=", ".join(names),
            )
        )
    if (name == PICTURES) != (out is not None):
        raise DataError(
            localise(
                "drawn-pictures is written to a folder: give --out. Pairs are printed: redirect them with >. "
                "Received: {received}.",
                received=localise("{name} without --out", name=name)
                if out is None
                else localise("{name} with --out {out}", name=name, out=out),
            )
        )
    if out is not None:
        from jumok.datasets.drawn_pictures import write_split  # start-up

        write_split(out, split, count, seed=seed)
        message = localise(
            "wrote {out}: {split}.en.tsv, {split}.ko.tsv and {split}-classes", out=out, split=split
        )
        typer.echo(message, err=True)
        return
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
