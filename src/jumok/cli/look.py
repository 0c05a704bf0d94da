"""`jumok look MODEL "a sentence" --out page.html`: what the model attends to while it translates.

With `--live` it serves the page on this computer, where sentences can be typed and attention be changed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.cli.arguments import utf8
from jumok.errors import DataError, UnsupportedError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.explain import Explanation
    from jumok.viewer import Viewed

PICTURES, EXPLANATIONS = (".png", ".svg"), (".html", ".json", ".npz")
SENTENCE = "I go home."


def look(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL... SENTENCE",
            help="A model folder and the sentence to translate. Several models with --live, or for a page "
            "(.html) that compares them.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write: all that can be seen of the translation (.html as a page, .json compactly, "
            ".npz with exact weights), or a picture of the map (.svg, .png)."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Look at this translation instead of the model's own.", callback=utf8)
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Serve the page on this computer: jumok look MODEL... --live, or a run folder."
        ),
    ] = False,
    port: Annotated[int, typer.Option(help="Where to serve it; 0 takes a free one.", min=0, max=65535)] = 0,
) -> None:
    """Show what a model attends to while it translates: in the terminal, as a file, or on a live page.

    A model of plain text is shown while it reads the sentence: in the terminal, or as .svg or .png.
    """
    if live:
        _serve(words, port)
        return
    *models, sentence = words
    utf8(sentence)
    suffix = _suffix(out)
    if not models:
        raise DataError(
            f'A model and a sentence are needed: jumok look MODEL "{SENTENCE}". Received: {sentence}. '
            "For a page on which sentences are typed, add --live."
        )
    if len(models) > 1 and suffix != ".html":
        raise UnsupportedError(
            f"Several models are compared on a page: give --out with .html. Received: {len(models)} models, "
            f"{out or 'no --out'}. If a sentence was meant, put it in quotation marks."
        )
    _look(models, sentence, target, out, suffix)


def _look(models: Sequence[str], sentence: str, target: str | None, out: Path | None, suffix: str) -> None:
    from jumok.decoding import load
    from jumok.look import draw_text, frozen_page, save
    from jumok.storage import read_stored_model, write_file

    if read_stored_model(Path(models[0])).card.recipe.model.task != "translate":
        _look_at_text(models, sentence, target, out, suffix)
        return
    translator = load(Path(models[0]))
    explanation = translator.explain(sentence, target=target) if suffix in EXPLANATIONS else None
    if explanation is not None:
        translation = explanation.text
    else:
        translation = target if target is not None else translator.translate([sentence])[0].whole
    typer.echo(translation)
    if explanation is None or translator.model.looks_at_source:
        attention = translator.word_attention(sentence, translation)
        typer.echo(draw_text(attention))
    if out is None:
        return
    if explanation is not None and len(models) > 1:
        others = (load(Path(model)).explain(sentence, target=target) for model in models[1:])
        named = zip(_names(models), (explanation, *others), strict=True)
        pages = [_named(one, name).for_page().to_json() for name, one in named]
        write_file(out, frozen_page(pages).encode())
    elif explanation is not None:
        explanation.for_page().save(out)
    else:
        save(attention, out, title=translation, links=translator.align(sentence, translation))
    typer.echo(f"wrote {out}", err=True)


def _look_at_text(
    models: Sequence[str], text: str, target: str | None, out: Path | None, suffix: str
) -> None:
    """A model of plain text looks at itself: the mean over its layers and heads, between pieces."""
    from jumok.decoding import load_text_model
    from jumok.look import draw_text, save

    if target is not None or suffix in EXPLANATIONS:
        raise UnsupportedError(
            f"The model in {models[0]} was trained on plain text: it has no translation to look at, and what "
            f"it attends to is drawn in the terminal or as {' or '.join(PICTURES)}. Received: "
            f"{'--target' if target is not None else out}. Every layer and head is in Python: "
            "`jumok.load_text_model(folder).attention(text)`."
        )
    [attention] = load_text_model(Path(models[0])).attention(text).values()
    typer.echo(text)
    typer.echo(draw_text(attention))
    if out is not None:
        save(attention, out, title=text)
        typer.echo(f"wrote {out}", err=True)


def _serve(words: Sequence[str], port: int) -> None:
    from jumok.decoding import load
    from jumok.viewer import Viewed, Viewer, ViewerServer, WatchedRun, is_run

    named = [(name, Path(word)) for name, word in zip(_names(words), words, strict=True)]
    runs = [(name, WatchedRun(path)) for name, path in named if is_run(path)]
    if len(runs) > 1:
        raise UnsupportedError(f"One run is watched at a time. Received: {len(runs)}.")
    viewed = [Viewed(name, load(path)) for name, path in named if not is_run(path)]
    viewed += [Viewed(name, newest) for name, run in runs if (newest := run.newest()) is not None]
    viewer = Viewer(viewed, sentence=_first_sentence(viewed), run=runs[0][1] if runs else None)
    with ViewerServer(viewer, port=port) as server:
        typer.echo(f"open {server.url}")
        typer.echo("Only this computer can. Ctrl-C ends it.", err=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("", err=True)


def _first_sentence(viewed: Sequence[Viewed]) -> str:
    return SENTENCE if viewed and viewed[0].translator.source_language == "en" else ""


def _named(explanation: Explanation, name: str) -> Explanation:
    """The same with the model's name, which tells it from others that may be built alike."""
    return replace(explanation, facts={**explanation.facts, "name": name})


def _names(folders: Sequence[str]) -> list[str]:
    """Names on the page: as much of the end of each path as tells it from the others."""
    paths = [Path(folder).resolve() for folder in folders]
    # A model is called after the run it lies in, unless that run stands beside it.
    paths = [path.parent if path.name == "model" and path.parent not in paths else path for path in paths]
    names = [_name(path, {*paths} - {path}) for path in paths]
    again = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name} ({count + 1})" if count else name for name, count in zip(names, again, strict=True)]


def _name(path: Path, others: set[Path]) -> str:
    for count in range(2 if path.name == "model" else 1, len(path.parts)):
        end = path.parts[-count:]
        if all(other.parts[-count:] != end for other in others):
            return "/".join(end)
    return str(path)


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
