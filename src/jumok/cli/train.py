"""`jumok train pairs.tsv --out runs/mine`: from sentence pairs, or plain text, to a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from jumok.cli.arguments import (
    ColumnsOption,
    DeviceOption,
    EncodingOption,
    FromOption,
    OptionalPairsArgument,
    PrecisionOption,
    ToOption,
    parse_assignments,
)
from jumok.cli.language import localise
from jumok.cli.status_line import status_line
from jumok.config.recipe import (
    FineTuningSettings,
    Size,
    TrainingSettings,
    TransformerSettings,
    read_recipe,
    setting_help,
)
from jumok.config.resolve import Overrides
from jumok.errors import UnsupportedError


def train(
    out: Annotated[Path, typer.Option(help="Run folder. The same folder again continues the run.")],
    pairs: OptionalPairsArgument = None,
    valid: Annotated[
        list[str] | None,
        typer.Option(metavar="PAIRS", help="Validation pairs; held out from PAIRS if not given."),
    ] = None,
    source: FromOption = None,
    target: ToOption = None,
    columns: ColumnsOption = "",
    encoding: EncodingOption = "",
    model: Annotated[
        Literal["transformer", "recurrent", "decoder-only", "encoder-only"] | None,
        typer.Option(help="The model family. `jumok models` lists them."),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(
            help="The attention mechanism, at every site that supports it; recurrent models also take `none`."
        ),
    ] = None,
    encoder_from: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help=setting_help(TransformerSettings, "encoder_from")),
    ] = None,
    start_from: Annotated[
        Path | None, typer.Option(metavar="MODEL", help=setting_help(FineTuningSettings, "start_from"))
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="PAIRS", help=setting_help(FineTuningSettings, "keep"))
    ] = None,
    replay: Annotated[
        list[str] | None, typer.Option(metavar="PAIRS", help=setting_help(FineTuningSettings, "replay"))
    ] = None,
    freeze: Annotated[
        list[str] | None, typer.Option(metavar="PART", help=setting_help(FineTuningSettings, "freeze"))
    ] = None,
    size: Annotated[Size | None, typer.Option(help=setting_help(TransformerSettings, "size"))] = None,
    minutes: Annotated[float | None, typer.Option(help=setting_help(TrainingSettings, "minutes"))] = None,
    steps: Annotated[int | None, typer.Option(help=setting_help(TrainingSettings, "steps"))] = None,
    epochs: Annotated[float | None, typer.Option(help=setting_help(TrainingSettings, "epochs"))] = None,
    seed: Annotated[int | None, typer.Option(help=setting_help(TrainingSettings, "seed"))] = None,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "auto",
    recipe: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|NAME",
            help="A recipe.toml with settings, or a recipe that `jumok models` lists; options override it.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Any setting of a recipe, such as model.dropout=0.2."
        ),
    ] = None,
    tensorboard: Annotated[bool, typer.Option(help="Also log for TensorBoard.")] = False,
) -> None:
    """Train a translator on your sentence pairs. Every setting that you leave out is chosen for you.

    On a plain text with one sentence per line, `--model decoder-only` trains a language model and
    `--model encoder-only` a masked language model. On pairs, `decoder-only` trains a translator; on a folder
    of pictures, `encoder-only` trains a classifier.

    `--start-from` fine-tunes a model that `jumok train` or `jumok import` wrote, and reports how the scores
    have changed.

    From the first validation on, OUT/model has the best model so far: `jumok translate OUT` uses it. Ctrl-C
    saves and exits with code 130; the same command continues, and `jumok finish OUT` ends the run. Larger
    --steps, --epochs or --minutes give a run more training; PAIRS can then be left out.
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
        "fine_tuning.start_from": start_from,
        "fine_tuning.keep": keep,
        "fine_tuning.replay": replay,
        "fine_tuning.freeze": freeze,
        "training.device": None if device == "auto" else device,
        "training.precision": None if precision == "auto" else precision,
    }
    option_settings = {name: value for name, value in options.items() if value not in (None, [])}
    from_file = read_recipe(recipe) if recipe else None
    overrides = Overrides.from_settings(from_file, **{**parse_assignments(settings or []), **option_settings})
    if encoder_from is not None:
        if overrides.family != "transformer":
            raise UnsupportedError(
                localise(
                    "--encoder-from sets the encoder of a Transformer. Received: the family {family}. Leave "
                    "--encoder-from out, or choose --model transformer.",
                    family=overrides.family,
                )
            )
        overrides = overrides.updated({"model.encoder_from": str(encoder_from)})
    if attention is not None:
        from jumok.models.validate import attention_overrides  # start-up

        overrides = overrides.updated(attention_overrides(overrides.family, attention))
    with status_line(localise("loading PyTorch")):
        from rich.console import Console  # start-up

        from jumok.cli.display import TrainingDisplay  # start-up
        from jumok.training.events import Finished  # start-up
        from jumok.training.run.training_run import training_events  # start-up

    event = None  # ranks other than 0 have no events
    with TrainingDisplay(Console(stderr=True)) as display:
        for event in training_events(
            pairs or (),
            out=out,
            valid=valid or (),
            recipe=overrides,
            columns=columns,
            encoding=encoding,
            tensorboard=tensorboard,
        ):
            display.show(event)
    if isinstance(event, Finished) and event.reason == "interrupted":
        raise typer.Exit(code=130)  # as a shell reports Ctrl-C: a command after `&&` must not run
