"""`jumok train pairs.tsv --out runs/mine`: from sentence pairs, or plain text, to a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from jumok.cli.arguments import FromOption, PairsArgument, ToOption, assignments, setting_help
from jumok.errors import UnsupportedError
from jumok.recipe import Size, TrainingSettings, TransformerSettings, make_recipe, read_recipe


def train(
    pairs: PairsArgument,
    out: Annotated[Path, typer.Option(help="Run folder. The same folder again continues the run.")],
    valid: Annotated[
        list[str] | None,
        typer.Option(metavar="PAIRS", help="Validation pairs; held out from PAIRS if not given."),
    ] = None,
    source: FromOption = None,
    target: ToOption = None,
    model: Annotated[
        Literal["transformer", "recurrent", "decoder-only", "encoder-only"] | None,
        typer.Option(help="The family of the model. `jumok models` lists what there is."),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(help="The mechanism, wherever in the model it can stand; `none` in a recurrent model."),
    ] = None,
    encoder_from: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help=setting_help(TransformerSettings, "encoder_from")),
    ] = None,
    size: Annotated[Size | None, typer.Option(help=setting_help(TransformerSettings, "size"))] = None,
    minutes: Annotated[float | None, typer.Option(help=setting_help(TrainingSettings, "minutes"))] = None,
    steps: Annotated[int | None, typer.Option(help=setting_help(TrainingSettings, "steps"))] = None,
    epochs: Annotated[float | None, typer.Option(help=setting_help(TrainingSettings, "epochs"))] = None,
    seed: Annotated[int | None, typer.Option(help=setting_help(TrainingSettings, "seed"))] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="A recipe.toml with settings; options here override it.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Any setting of a recipe, such as model.dropout=0.2."
        ),
    ] = None,
    tensorboard: Annotated[bool, typer.Option(help="Also write the curves for TensorBoard.")] = False,
) -> None:
    """Train a translator on your sentence pairs. What you do not set is derived from them and the machine.

    With `--model decoder-only` or `encoder-only` a plain text, a sentence a line, trains a language model.

    Ctrl-C saves and leaves with exit code 130; the same command continues.
    """
    options = {
        "languages.source": source,
        "languages.target": target,
        "model.family": model,
        "model.size": size,
        "training.minutes": minutes,
        "training.steps": steps,
        "training.epochs": epochs,
        "training.seed": seed,
    }
    given = {name: value for name, value in options.items() if value is not None}
    written = read_recipe(recipe) if recipe else None
    asked = make_recipe(written, **{**assignments(settings or []), **given})
    if encoder_from is not None:
        if asked.model.family != "transformer":
            raise UnsupportedError(
                "--encoder-from is for the encoder of a Transformer. "
                f"Received: --model {asked.model.family}. Leave one of the two out."
            )
        begun = {"model.encoder_from": str(encoder_from)}
        asked = make_recipe(asked.model_dump(exclude_unset=True), **begun)
    if attention is not None:
        from jumok.models import place_attention

        placed = place_attention(asked.model.family, attention)
        asked = make_recipe(asked.model_dump(exclude_unset=True), **placed)
    from rich.console import Console

    from jumok.cli.display import TrainingDisplay
    from jumok.training import Finished, training_events

    with TrainingDisplay(Console(stderr=True)) as display:
        for event in training_events(
            pairs, out=out, valid=valid or (), recipe=asked, tensorboard=tensorboard
        ):
            display.show(event)
    if isinstance(event, Finished) and event.reason == "interrupted":
        raise typer.Exit(code=130)  # as a shell reports Ctrl-C: what stands behind `&&` must not run
