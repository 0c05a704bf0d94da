"""`jumok look MODEL "a sentence" --out map.svg`: what the model attends to while it translates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import ModelArgument


def look(
    model: ModelArgument,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="The sentence to translate.")],
    out: Annotated[Path | None, typer.Option(help="Where to write the map: .svg or .json.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Look at this translation instead of the model's own.")
    ] = None,
) -> None:
    """Draw the alignment map of a translation: source words across, target words down."""
    from jumok.decoding import load
    from jumok.look import draw_text, save

    translator = load(model)
    translation = target if target is not None else translator.translate([sentence])[0].text
    attention = translator.word_attention(sentence, translation)
    typer.echo(translation)
    typer.echo(draw_text(attention))
    if out is not None:
        save(attention, out, title=translation, links=translator.align(sentence, translation))
        typer.echo(f"wrote {out}", err=True)
