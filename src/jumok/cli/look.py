"""`jumok look MODEL "a sentence" --out map.svg`: what the model attends to while it translates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import ModelArgument, utf8
from jumok.errors import UnsupportedError, nearest

PICTURES, EXPLANATIONS = (".png", ".svg"), (".json", ".npz")


def look(
    model: ModelArgument,
    sentence: Annotated[
        str, typer.Argument(metavar="SENTENCE", help="The sentence to translate.", callback=utf8)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write: a picture of the map (.svg, .png), or all that can be seen of the "
            "translation (.json compactly, .npz with exact weights)."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Look at this translation instead of the model's own.", callback=utf8)
    ] = None,
) -> None:
    """Draw the alignment map of a translation: source words across, target words down."""
    from jumok.decoding import load
    from jumok.look import draw_text, save

    suffix = _suffix(out)
    translator = load(model)
    explanation = translator.explain(sentence, target=target) if suffix in EXPLANATIONS else None
    if explanation is not None:
        target = explanation.text
    translation = target if target is not None else translator.translate([sentence])[0].text
    typer.echo(translation)
    if explanation is None or translator.model.looks_at_source:
        attention = translator.word_attention(sentence, translation)
        typer.echo(draw_text(attention))
    if out is None:
        return
    if explanation is not None:
        explanation.with_effects().with_steps().save(out)
    else:
        save(attention, out, title=translation, links=translator.align(sentence, translation))
    typer.echo(f"wrote {out}", err=True)


def _suffix(out: Path | None) -> str:
    """How the file's name ends, refused before anything is loaded where nothing can be written so."""
    if out is None:
        return ""
    suffix, known = out.suffix.lower(), sorted(PICTURES + EXPLANATIONS)
    if suffix not in known:
        raise UnsupportedError(
            f"What a model attends to is written as {', '.join(known[:-1])} or {known[-1]}. "
            f"Received: {out}.{nearest(suffix, known)}"
        )
    return suffix
