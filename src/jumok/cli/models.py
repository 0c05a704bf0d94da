"""`jumok models`: families, mechanisms, and what goes with what."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def models(
    as_json: Annotated[bool, typer.Option("--json", help="The same for machines.")] = False,
) -> None:
    """List families, attention mechanisms, positions and norms: what goes with what, and the papers."""
    facts = _facts()
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    typer.echo("families (--model)")
    for name, family in facts["families"].items():
        typer.echo(f"  {name:<14} {family['paper']}")
    typer.echo("\nmechanisms (--attention)")
    for name, mechanism in facts["mechanisms"].items():
        typer.echo(f"  {name:<14} {mechanism['paper']}")
        typer.echo(f"  {'':<14} goes with: {', '.join(mechanism['places'])}")
        for option, meaning in mechanism["options"].items():
            typer.echo(f"  {'':<14} {option}: {meaning}")
    typer.echo("\npositions of a transformer, its encoder or its decoder alone (--set model.positions=NAME)")
    for name, kind in facts["positions"].items():
        typer.echo(f"  {name:<14} {kind['paper']}")
        every = len(kind["mechanisms"]) == len(facts["mechanisms"]) - 1  # all but none
        mechanisms = "every mechanism" if every else ", ".join(kind["mechanisms"])
        typer.echo(f"  {'':<14} goes with: {mechanisms}")
    typer.echo("\nnorms of a transformer, its encoder or its decoder alone (--set model.norm_kind=NAME)")
    for name, norm in facts["norms"].items():
        typer.echo(f"  {name:<14} {norm['paper']}")


PAPERS = {
    "transformer": "Vaswani et al. 2017, Attention is all you need",
    "decoder-only": "Radford et al. 2018, Improving language understanding by generative pre-training",
    "encoder-only": "Devlin et al. 2019, BERT: pre-training of deep bidirectional transformers",
    "recurrent": "Bahdanau et al. 2015 and Luong et al. 2015; without attention Sutskever et al. 2014",
}


def _facts() -> dict[str, Any]:
    from jumok.attention import CATALOGUE, POSITIONS
    from jumok.models import FAMILIES, NEEDS, NEEDS_DECODER_ONLY, NO_ATTENTION, NORMS

    mechanisms: dict[str, Any] = {
        NO_ATTENTION: {"paper": "a decoder with nothing but the encoder's last state", "options": {}}
        | {"places": ["recurrent"]}
    }
    for name, entry in CATALOGUE.items():
        missing = entry.supports.missing
        places = [f"transformer {site}" for site, needs in NEEDS.items() if not missing(*needs)]
        places += [] if missing(*NEEDS["cross"]) else ["recurrent"]
        places += [] if missing(*NEEDS_DECODER_ONLY) else ["decoder-only"]
        places += [] if missing(*NEEDS["encoder"]) else ["encoder-only"]
        options = {field: info.description for field, info in entry.settings.model_fields.items()}
        mechanisms[name] = {"paper": entry.paper, "places": places, "options": options}
    positions = {
        name: {
            "paper": kind.paper,
            "mechanisms": [
                mechanism for mechanism, entry in CATALOGUE.items() if not entry.supports.missing(*kind.needs)
            ],
        }
        for name, kind in POSITIONS.items()
    }
    return {
        "families": {name: {"paper": PAPERS[name]} for name in FAMILIES},
        "mechanisms": mechanisms,
        "positions": positions,
        "norms": {name: {"paper": kind.paper} for name, kind in NORMS.items()},
    }
