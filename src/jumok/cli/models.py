"""`jumok models`: model families, attention mechanisms, and how they combine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.language import localise, localise_text
from jumok.cli.wrapped_text import echo_wrapped, pad
from jumok.config.recipe import named_recipes, setting_help

if TYPE_CHECKING:
    from pathlib import Path

INDENT = 19  # the second column begins here


def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List families, attention mechanisms, positions, norms and recipes: how they combine, and the papers."""
    facts = _facts()
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    typer.echo(localise("families (--model)"))
    for name, family in facts["families"].items():
        _echo_row(name, family["description"])
    typer.echo("\n" + localise("mechanisms (--attention)"))
    for name, mechanism in facts["mechanisms"].items():
        _echo_row(name, mechanism["description"])
        _echo_row("", localise("used in: {sites}", sites=", ".join(mechanism["sites"])))
        for option, meaning in mechanism["options"].items():
            _echo_row("", f"{option}: {localise_text(meaning)}")
    typer.echo("\n" + localise("positions of all families but recurrent (--set model.positions=NAME)"))
    for name, kind in facts["positions"].items():
        _echo_row(name, kind["description"])
        works_with_all = len(kind["mechanisms"]) == len(facts["mechanisms"]) - 1  # all but "none"
        mechanisms = localise("every mechanism") if works_with_all else ", ".join(kind["mechanisms"])
        _echo_row("", localise("works with: {mechanisms}", mechanisms=mechanisms))
    typer.echo("\n" + localise("norms of all families but recurrent (--set model.norm_kind=NAME)"))
    for name, norm in facts["norms"].items():
        _echo_row(name, norm["description"])
    typer.echo("\n" + localise("recipes (--recipe NAME)"))
    for name, recipe in facts["recipes"].items():
        _echo_row(name, recipe["description"])


def _echo_row(name: str, text: str) -> None:
    echo_wrapped(f"  {pad(name, INDENT - 3)} {localise_text(text)}", indent=INDENT)


PAPERS = {
    "transformer": "Vaswani et al. 2017, Attention is all you need",
    "decoder-only": "Radford et al. 2018, Improving language understanding by generative pre-training",
    "encoder-only": "Devlin et al. 2019, BERT: pre-training of deep bidirectional transformers",
    "recurrent": "Bahdanau et al. 2015 and Luong et al. 2015; without attention Sutskever et al. 2014",
}


def _facts() -> dict[str, Any]:
    from jumok.attention import CATALOGUE, POSITIONS  # start-up
    from jumok.models.build import MODEL_BUILDERS  # start-up
    from jumok.models.norms import NORMS  # start-up
    from jumok.models.validate import ATTENTION_NEEDS, NO_ATTENTION  # start-up

    mechanisms: dict[str, Any] = {
        NO_ATTENTION: {
            **_description_fields("no attention: the decoder gets only the last state of the encoder"),
            "sites": ["recurrent"],
            "places": ["recurrent"],  # the old name of "sites", until 1.0
            "options": {},
        }
    }
    for name, entry in CATALOGUE.items():
        missing = entry.supports.missing
        sites = [
            f"{family} {setting.removesuffix('attention').removesuffix('_')}".rstrip()
            for family, settings in ATTENTION_NEEDS.items()
            for setting, needs in settings.items()
            if not missing(*needs)
        ]
        options = {field: setting_help(entry.settings, field) for field in entry.settings.model_fields}
        mechanisms[name] = {
            **_description_fields(entry.paper),
            "sites": sites,
            "places": sites,
            "options": options,
        }
    positions = {
        name: {
            **_description_fields(kind.reference),
            "mechanisms": [
                mechanism for mechanism, entry in CATALOGUE.items() if not entry.supports.missing(*kind.needs)
            ],
        }
        for name, kind in POSITIONS.items()
    }
    return {
        "families": {name: _description_fields(PAPERS[name]) for name in MODEL_BUILDERS},
        "mechanisms": mechanisms,
        "positions": positions,
        "norms": {name: _description_fields(kind.reference) for name, kind in NORMS.items()},
        "recipes": {name: _description_fields(_first_line(file)) for name, file in named_recipes().items()},
    }


def _description_fields(text: str) -> dict[str, str]:
    """Return a description, usually a paper, under its key and under the old key, which works until 1.0."""
    return {"description": text, "paper": text}


def _first_line(file: Path) -> str:
    return file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
