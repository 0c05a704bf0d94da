"""`jumok models`: families, mechanisms, and what goes with what."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def models(
    as_json: Annotated[bool, typer.Option("--json", help="The same for machines.")] = False,
) -> None:
    """List the families of models and the attention mechanisms, where each can stand, and its paper."""
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


PAPERS = {
    "transformer": "Vaswani et al. 2017, Attention is all you need",
    "decoder-only": "Radford et al. 2018, Improving language understanding by generative pre-training",
    "recurrent": "Bahdanau et al. 2015 and Luong et al. 2015; without attention Sutskever et al. 2014",
}


def _facts() -> dict[str, Any]:
    from jumok.attention import CATALOGUE
    from jumok.models import FAMILIES, NEEDS, NEEDS_DECODER_ONLY, NO_ATTENTION

    mechanisms: dict[str, Any] = {
        NO_ATTENTION: {"paper": "a decoder with nothing but the encoder's last state", "options": {}}
        | {"places": ["recurrent"]}
    }
    for name, entry in CATALOGUE.items():
        missing = entry.supports.missing
        places = [f"transformer {site}" for site, needs in NEEDS.items() if not missing(*needs)]
        places += [] if missing(*NEEDS["cross"]) else ["recurrent"]
        places += [] if missing(*NEEDS_DECODER_ONLY) else ["decoder-only"]
        options = {field: info.description for field, info in entry.settings.model_fields.items()}
        mechanisms[name] = {"paper": entry.paper, "places": places, "options": options}
    return {"families": {name: {"paper": PAPERS[name]} for name in FAMILIES}, "mechanisms": mechanisms}
