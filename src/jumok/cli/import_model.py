"""`jumok import FOLDER_OR_ZIP --out model`: turn a model of another toolkit into a model folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.arguments import FromOption, ToOption
from jumok.cli.language import localise, localise_text
from jumok.cli.wrapped_text import echo_wrapped, pad


def import_model(
    package: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER_OR_ZIP",
            help="A Hugging Face folder of MarianMT, a zip or folder of OPUS-MT/Marian, a folder of "
            "CTranslate2, or an .argosmodel.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The model folder to write.")],
    positions: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The table of positions: marian (what Marian trained with), sinusoidal (what the library "
            "transformers computes), or auto: sinusoidal for a Hugging Face folder, marian for "
            "OPUS-MT/Marian.",
        ),
    ] = "auto",
    source: FromOption = None,
    target: ToOption = None,
    code: Annotated[
        str,
        typer.Option(
            metavar="CODE",
            help="The language to translate to, such as kor, if the model has several target languages.",
        ),
    ] = "",
    licence: Annotated[
        str, typer.Option(metavar="NAME", help="The licence of the model, if its files do not name it.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn a model of another toolkit into a model folder, for the commands of jumok.

    A model of CTranslate2 or Argos only translates: only translate, serve, evaluate and info take it.

    The files are data: no script in them is run. They are read in a separate process, with limits of memory
    and time.
    """
    from jumok.interop.conversion import ImportChoices  # start-up
    from jumok.interop.importing import import_model  # start-up
    from jumok.storage.model_folder import read_card  # start-up

    choices = ImportChoices(positions, source or "", target or "", code, licence)
    report = import_model(package, out, choices)
    if as_json:
        typer.echo(json.dumps(asdict(report), ensure_ascii=False, indent=1))
        return
    typer.echo(f"{package} → {report.folder}")
    rows = {
        localise("format"): report.format,
        localise("languages"): report.languages,
        localise("parameters"): f"{report.parameters:,}",
        localise("vocabulary"): localise("{count:,} tokens", count=report.vocab_size),
        localise("positions"): f"{report.positions}: {localise_text(report.positions_reason)}",
        localise("licence"): report.licence,
    }
    if report.codes:
        shown = " ".join(report.codes[:8]) + (" …" if len(report.codes) > 8 else "")
        chosen = localise("every text is translated to {code}", code=code)
        default = chosen if code else localise("begin each text with one, or set --code")
        rows[localise("targets")] = f"{shown}: {default}"
    for label, value in rows.items():
        echo_wrapped(f"  {pad(label, 12)} {value}", indent=15)
    uses = localise(
        "`jumok translate {folder}`, `jumok look {folder} …` and `jumok serve` use it", folder=report.folder
    )
    uses_of_translation_only = localise(
        "`jumok translate {folder}`, `jumok evaluate {folder} …` and `jumok serve` use it",
        folder=report.folder,
    )
    only_translates = read_card(Path(report.folder)).facts.get("runs_on") == "ctranslate2"
    typer.echo(uses_of_translation_only if only_translates else uses)
