"""`jumok look MODEL "a sentence" --out page.html`: what the model attends to while it translates.

Without a sentence, `jumok look MODEL --out live.html` writes a page in which the model itself runs.
With `--live` it serves a page on this computer, on which sentences can be typed and attention changed.
With a model of pictures, `jumok look MODEL picture.png --out page.html` shows where in the picture it looks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.cli.arguments import (
    DeviceOption,
    Hardware,
    PrecisionOption,
    SentencesOption,
    names_of_given,
    require_utf8,
)
from jumok.cli.language import localise, localise_text
from jumok.errors import DataError, UnsupportedError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.analysis.explanation import Explanation
    from jumok.inference.picture_classifier import PictureClassifier
    from jumok.inference.translator import Translator
    from jumok.server.viewer.service import NamedTranslator

# Suffixes of --out. The first group draws the attention map, the second writes the whole explanation.
MAP_SUFFIXES, EXPLANATION_SUFFIXES = (".png", ".svg"), (".html", ".json", ".npz")
SENTENCE = "I go home."
MAX_RUNS = 4  # maximum number of run folders that one live page watches


def look(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL... SENTENCE",
            help="A model folder and the sentence to translate, or the picture. Without a sentence, --out "
            "live.html writes a page in which the model runs. Several models with --live, or for a page "
            "(.html) that compares them.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output file: the whole explanation (.html a page, .json compact, .npz with exact weights), "
            "a picture of the attention map (.svg, .png); without a sentence, a page with the model (.html)."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Explain this translation instead of the model's own.", callback=require_utf8),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Serve a page on this computer: jumok look MODEL... --live; also for a run folder."
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(help="Port of the live page; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    sentences: SentencesOption = None,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    quantization: Annotated[
        str | None,
        typer.Option(
            help="Format of the weights in a page with the model: float16 (default), or int8, which needs "
            "half the space."
        ),
    ] = None,
) -> None:
    """Show what a model attends to while it translates: in the terminal, as a file, or on a live page.

    A model of plain text is shown while it reads the sentence: in the terminal, or as .svg or .png. A model
    of pictures takes the path of a picture, and is shown with a map per word over it.
    """
    hardware: Hardware = {"device": device, "precision": precision}
    if live:
        _refuse_with_live({"--out": out, "--target": target, "--quantization": quantization})
        _serve(arguments, port, sentences, hardware)
        return
    *models, sentence = arguments
    require_utf8(sentence)
    suffix = _suffix(out)
    if len(arguments) == 1 and out is not None and suffix == ".html" and target is None:
        [model] = arguments
        _write_live_file(_load(model, sentences, hardware), Path(model), out, quantization)
        return
    if quantization is not None:
        raise UnsupportedError(
            localise(
                "--quantization is for a page with the model: jumok look MODEL --out live.html. Received: "
                "{quantization}.",
                quantization=quantization,
            )
        )
    if not models:
        raise DataError(
            localise(
                'Give a model and a sentence: jumok look MODEL "{example}". Received: {sentence}. '
                "For a page on which you type sentences, add --live, or --out live.html.",
                example=SENTENCE,
                sentence=sentence,
            )
        )
    if len(models) > 1 and suffix != ".html":
        raise UnsupportedError(
            localise(
                "Several models can only be compared on a page: give --out with .html. Received: {count} "
                "models, {out}. If these words are one sentence, put it in quotation marks.",
                count=len(models),
                out=out or localise("no --out"),
            )
        )
    if not sentence.strip():
        raise DataError(
            localise(
                'The sentence is empty. Give one with words: jumok look MODEL "{example}"', example=SENTENCE
            )
        )
    _look(models, sentence, target, out, sentences, hardware)


def _look(
    models: Sequence[str],
    sentence: str,
    target: str | None,
    out: Path | None,
    sentences: str | None,
    hardware: Hardware,
) -> None:
    """Show the attention of models for one sentence, text or picture. `sentence` may be a picture's path."""
    from jumok.analysis.explainer import explain  # start-up
    from jumok.analysis.explanation_files import explanation_page, save_explanation  # start-up
    from jumok.analysis.live_explanation import complete_explanation  # start-up
    from jumok.plots.map_files import save  # start-up
    from jumok.plots.terminal import draw_text  # start-up
    from jumok.storage.folders import write_file  # start-up
    from jumok.storage.model_folder import read_card  # start-up
    from jumok.text.sentences import text_spans  # start-up

    suffix = _suffix(out)
    recipe = read_card(Path(models[0])).recipe
    if recipe.source.kind == "pictures":
        _look_at_picture(models, sentence, target, out, suffix, hardware)
        return
    if recipe.model.task != "translate":
        _look_at_text(models, sentence, target, out, suffix, hardware)
        return
    translator = _load(models[0], sentences, hardware)
    if target is None and len(text_spans(sentence, translator.sentences)) > 1:
        _look_at_sentences(translator, sentence, out)
        return
    explanation = explain(translator, sentence, target=target) if suffix in EXPLANATION_SUFFIXES else None
    if explanation is not None:
        translation = explanation.text
    else:
        translation = target if target is not None else translator.translate([sentence])[0].unsplit_text
    typer.echo(translation)
    if explanation is None or translator.model.has_cross_attention:
        attention = translator.word_attention(sentence, translation)
        typer.echo(draw_text(attention))
    if out is None:
        return
    if explanation is not None and len(models) > 1:
        others = (explain(_load(model, sentences, hardware), sentence, target=target) for model in models[1:])
        named = zip(_names(models), (explanation, *others), strict=True)
        write_file(
            out, explanation_page([_with_name(explanation, name) for name, explanation in named]).encode()
        )
    elif explanation is not None:
        save_explanation(_with_name(complete_explanation(explanation), _names(models)[0]), out)
    else:
        save(attention, out, title=translation, links=translator.align(sentence, translation))
    _report_written(out)


def _report_written(out: Path) -> None:
    typer.echo(localise("wrote {out}", out=out), err=True)


def _load(folder: str | Path, sentences: str | None, hardware: Hardware) -> Translator:
    """Load a translator, which splits texts as the option --sentences says."""
    from jumok.inference.loading import load  # start-up
    from jumok.text.sentences import check_sentences  # start-up

    translator = load(Path(folder), **hardware)
    if sentences is not None:
        translator.sentences = check_sentences(sentences)
    return translator


def _look_at_sentences(translator: Translator, text: str, out: Path | None) -> None:
    """Draw the attention of each sentence of a text in the terminal. Refuse --out."""
    from jumok.plots.terminal import draw_text  # start-up

    [translation] = translator.translate([text])
    if out is not None:
        raise DataError(
            localise(
                "A file shows one short sentence. Received: a text that is translated in {count} parts. Give "
                "one sentence of the text, or add --sentences keep to translate the whole text as one "
                "sentence. Without --out, all sentences are shown in the terminal.",
                count=len(translation.parts),
            )
        )
    typer.echo(translation.text)
    for source, part in translation.parts:
        typer.echo(draw_text(translator.word_attention(source, part)))


def _look_at_text(
    models: Sequence[str], text: str, target: str | None, out: Path | None, suffix: str, hardware: Hardware
) -> None:
    """Draw the self-attention of a model of plain text: the mean over its layers and heads."""
    from jumok.inference.loading import load_text_model  # start-up
    from jumok.plots.map_files import save  # start-up
    from jumok.plots.terminal import draw_text  # start-up

    if target is not None or suffix in EXPLANATION_SUFFIXES:
        raise UnsupportedError(
            localise(
                "The model in {model} was trained on plain text: it has no translation to explain. "
                "Its attention can be drawn in the terminal or as {suffixes}. Received: {received}. In "
                "Python, every layer and head: `jumok.load_text_model(folder).attention(text)`.",
                model=models[0],
                suffixes=localise(" or ").join(MAP_SUFFIXES),
                received="--target" if target is not None else out,
            )
        )
    [attention] = load_text_model(Path(models[0]), **hardware).attention(text).values()
    typer.echo(text)
    typer.echo(draw_text(attention))
    if out is not None:
        save(attention, out, title=text)
        _report_written(out)


def _look_at_picture(
    models: Sequence[str], path: str, caption: str | None, out: Path | None, suffix: str, hardware: Hardware
) -> None:
    """Show where models look in a picture, for each word of the caption or for the class."""
    from jumok.analysis.picture_view import view_picture  # start-up
    from jumok.plots.map_files import render_png  # start-up
    from jumok.plots.picture_maps import draw_picture_maps, draw_picture_text  # start-up
    from jumok.storage.folders import write_file  # start-up

    loaded = [_load_picture_model(model, hardware) for model in models]
    view = view_picture(loaded[0], path, caption=caption)
    typer.echo(view.text)
    typer.echo(draw_picture_text(view.attention, view.grid))
    if out is None:
        return
    if suffix in EXPLANATION_SUFFIXES:
        _save_picture_explanations(loaded, _names(models), path, caption, out)
    else:
        svg = draw_picture_maps(view.attention, view.pixels, view.grid, title=view.text)
        write_file(out, render_png(svg) if suffix == ".png" else svg.encode())
    _report_written(out)


def _load_picture_model(folder: str | Path, hardware: Hardware) -> Translator | PictureClassifier:
    from jumok.inference.loading import load, load_picture_classifier  # start-up
    from jumok.storage.model_folder import read_card  # start-up

    recipe = read_card(Path(folder)).recipe
    if recipe.source.kind != "pictures":
        raise UnsupportedError(
            localise(
                "The model in {folder} reads text, but the first model reads pictures. Give only "
                "models that read pictures.",
                folder=folder,
            )
        )
    if recipe.model.task == "classify":
        return load_picture_classifier(folder, **hardware)
    return load(folder, engine="torch", **hardware)


def _save_picture_explanations(
    models: Sequence[Translator | PictureClassifier],
    names: Sequence[str],
    path: str,
    caption: str | None,
    out: Path,
) -> None:
    from jumok.analysis.class_explanation import explain_class  # start-up
    from jumok.analysis.explainer import explain  # start-up
    from jumok.analysis.explanation_files import explanation_page, save_explanation  # start-up
    from jumok.inference.picture_classifier import PictureClassifier  # start-up
    from jumok.storage.folders import write_file  # start-up

    explanations = [
        explain_class(model, path)
        if isinstance(model, PictureClassifier)
        else explain(model, path, target=caption)
        for model in models
    ]
    named = [_with_name(explanation, name) for name, explanation in zip(names, explanations, strict=True)]
    if len(named) == 1:
        save_explanation(named[0], out)
        return
    write_file(out, explanation_page(named).encode())


def _write_live_file(translator: Translator, folder: Path, out: Path, quantization: str | None) -> None:
    """Write a page in which the model runs, without a server."""
    from jumok.analysis.live_file import QUANTIZATIONS, model_page  # start-up
    from jumok.storage.folders import write_file  # start-up
    from jumok.storage.model_folder import read_card  # start-up
    from jumok.storage.readme import LICENCE  # start-up

    chosen = next((known for known in QUANTIZATIONS if known == (quantization or QUANTIZATIONS[0])), None)
    if chosen is None:
        raise UnsupportedError(
            localise(
                "--quantization is {known}. Received: {quantization}.{suggestion}",
                known=localise(" or ").join(QUANTIZATIONS),
                quantization=quantization,
                suggestion=localise_text(suggest(str(quantization), QUANTIZATIONS)),
            )
        )
    card = read_card(folder)
    sentence = SENTENCE if translator.source_language == "en" else ""
    page = model_page(
        translator, card.recipe.model, name=_names([str(folder)])[0], quantization=chosen, sentence=sentence
    ).encode()
    write_file(out, page)
    message = localise(
        "{out} is {size:.1f} MB and contains the model's weights ({quantization}): anyone with the file has "
        "the model. Licence of the model: {licence}.",
        out=out,
        size=len(page) / 1e6,
        quantization=chosen,
        licence=card.facts.get(LICENCE) or localise("unknown"),
    )
    typer.echo(message)
    _report_written(out)


def _refuse_with_live(options: dict[str, object]) -> None:
    """Raise an error if the value of an option is not None: a live page would ignore the option."""
    if names := names_of_given(options):
        raise UnsupportedError(
            localise("{options} would be ignored with --live. Omit {options}.", options=names)
        )


def _serve(arguments: Sequence[str], port: int, sentences: str | None, hardware: Hardware) -> None:
    from jumok.pictures.reading import PICTURE_SUFFIXES, picture_data_url  # start-up
    from jumok.server.viewer.http_server import ViewerServer  # start-up
    from jumok.server.viewer.run_monitor import RunMonitor, is_run_folder  # start-up
    from jumok.server.viewer.service import ExplanationService, NamedTranslator  # start-up
    from jumok.storage.model_folder import read_card  # start-up

    picture = ""
    if len(arguments) > 1 and Path(arguments[-1]).suffix.lower() in PICTURE_SUFFIXES:
        *arguments, path = arguments
        picture = picture_data_url(path)
    named = [(name, Path(argument)) for name, argument in zip(_names(arguments), arguments, strict=True)]
    runs = [(name, RunMonitor(path)) for name, path in named if is_run_folder(path)]
    if len(runs) > MAX_RUNS:
        raise UnsupportedError(
            localise(
                "Up to {limit} run folders can be watched. Received: {count}.",
                limit=MAX_RUNS,
                count=len(runs),
            )
        )
    monitors = [run for _, run in runs]
    named_models = [
        NamedTranslator(name, _load_any_model(path, sentences, hardware), read_card(path).recipe.model)
        for name, path in named
        if not is_run_folder(path)
    ]
    named_models += [
        NamedTranslator(name, newest.translator, run.settings)
        for name, run in runs
        if (newest := run.newest()) is not None
    ]
    if len({model.reads_pictures for model in named_models}) > 1:
        raise UnsupportedError(
            localise("A page shows models that read text or models that read pictures, not both.")
        )
    viewer = ExplanationService(
        named_models,
        sentence=_first_sentence(named_models),
        picture=picture,
        run=monitors[0] if monitors else None,
        other_runs=monitors[1:],
    )
    with ViewerServer(viewer, port=port) as server:
        typer.echo(localise("open {url}", url=server.url))
        typer.echo(localise("The page is available on this computer only. Ctrl-C ends it."), err=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("", err=True)


def _load_any_model(
    folder: Path, sentences: str | None, hardware: Hardware
) -> Translator | PictureClassifier:
    from jumok.storage.model_folder import read_card  # start-up

    reads_pictures = read_card(folder).recipe.source.kind == "pictures"
    return _load_picture_model(folder, hardware) if reads_pictures else _load(folder, sentences, hardware)


def _first_sentence(named_models: Sequence[NamedTranslator]) -> str:
    language = getattr(named_models[0].translator, "source_language", "") if named_models else ""
    return SENTENCE if language == "en" else ""


def _with_name(explanation: Explanation, name: str) -> Explanation:
    """Return the explanation with the name of its model. The page labels maps and figures with this name."""
    return replace(explanation, facts={**explanation.facts, "name": name})


def _names(folders: Sequence[str]) -> list[str]:
    """Return a name per model for the page: the shortest end of its path that differs from other paths.

    If a folder is given twice, a number is added to its second name.
    """
    paths = [Path(folder).resolve() for folder in folders]
    # A model is named after its run folder, unless that folder is in the list as well.
    paths = [path.parent if path.name == "model" and path.parent not in paths else path for path in paths]
    names = [_name(path, {*paths} - {path}) for path in paths]
    earlier = [names[:index].count(name) for index, name in enumerate(names)]
    return [f"{name} ({count + 1})" if count else name for name, count in zip(names, earlier, strict=True)]


def _name(path: Path, others: set[Path]) -> str:
    for count in range(2 if path.name == "model" else 1, len(path.parts)):
        end = path.parts[-count:]
        if all(other.parts[-count:] != end for other in others):
            return "/".join(end)
    return str(path)


def _suffix(out: Path | None) -> str:
    """Return the suffix of the output file. Refuse an unknown suffix before anything is loaded."""
    if out is None:
        return ""
    suffix, suffixes = out.suffix.lower(), sorted(MAP_SUFFIXES + EXPLANATION_SUFFIXES)
    if suffix not in suffixes:
        raise UnsupportedError(
            localise(
                "--out takes a file that ends in {known} or {last}. Received: {out}.{suggestion}",
                known=", ".join(suffixes[:-1]),
                last=suffixes[-1],
                out=out,
                suggestion=localise_text(suggest(suffix, suffixes)),
            )
        )
    return suffix
