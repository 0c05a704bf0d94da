"""`jumok info MODEL`: what a model folder holds, with every file's checksum verified on the way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import ModelArgument, languages_in_words
from jumok.recipe import DecoderOnlySettings, EncoderOnlySettings, RecurrentSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jumok.recipe import ModelSettings
    from jumok.storage import ModelCard


def info(
    model: ModelArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what a model folder holds: languages, sizes, scores, corpora. Every file's checksum is verified."""
    from jumok.storage import read_stored_model

    stored = read_stored_model(model)
    parameters = sum(tensor.numel() for tensor in stored.weights().values())
    facts = _facts(stored.card, parameters, stored.vocabularies, shortlist=stored.shortlist is not None)
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    typer.echo(f"{model}")
    for name, value in facts.items():
        typer.echo(f"  {name:<12} {_in_words(value)}")


def _facts(
    card: ModelCard, parameters: int, vocabularies: Mapping[str, bytes], *, shortlist: bool
) -> dict[str, Any]:
    recipe = card.recipe
    model = recipe.model
    noun = "pairs" if model.task == "translate" else "sentences"
    return {
        "task": model.task,
        "languages": languages_in_words(recipe),
        "model": f"{model.family} {model.size}: {_layers(model)} layers, width {model.width}, "
        f"{_inside(model)}",
        "parameters": parameters,
        "pieces": _pieces(recipe.text.kind, vocabularies),
        "shortlist": shortlist,
        "scores": {
            name: {"value": score.value, "signature": score.signature} for name, score in card.scores.items()
        },
        "read_out": None if card.read_out is None else _read_out(card),
        "corpora": [f"{corpus.name}: {corpus.pairs:,} {noun}" for corpus in card.corpora],
        "facts": dict(card.facts),
        "created_by": f"jumok {card.created_by}",
    }


def _pieces(kind: str, vocabularies: Mapping[str, bytes]) -> str:
    """How many there are, which can be fewer than were asked for where a corpus has no more to learn."""
    from jumok.text import Subwords

    sizes = (f"{Subwords.from_bytes(data).size:,} in {name}" for name, data in sorted(vocabularies.items()))
    return f"{' and '.join(sizes)} ({kind})"


def _layers(model: ModelSettings) -> str:
    if isinstance(model, DecoderOnlySettings | EncoderOnlySettings):
        return str(model.layers)
    return f"{model.encoder_layers}+{model.decoder_layers}"


def _inside(model: ModelSettings) -> str:
    """What is particular to the family, and every mechanism that is not the usual one."""
    if isinstance(model, RecurrentSettings):
        return f"{model.cell}, attention {model.attention.kind}"
    sites = {"": "attention"}
    if not isinstance(model, DecoderOnlySettings | EncoderOnlySettings):
        sites = {f"{site} ": f"{site}_attention" for site in ("encoder", "decoder", "cross")}
    kinds = {site: getattr(model, name).kind for site, name in sites.items()}
    others = "".join(f", {site}attention {kind}" for site, kind in kinds.items() if kind != "scaled-dot")
    norm = "" if model.norm_kind == "layer" else f" ({model.norm_kind})"
    positions = "" if model.positions == "sinusoidal" else f", positions {model.positions}"
    return f"{model.heads} heads, {model.norm}-norm{norm}{positions}{others}"


def _read_out(card: ModelCard) -> str:
    if card.read_out is None:
        return "none"
    heads = ", ".join(f"{layer}.{head}" for layer, head in card.read_out.heads)
    mean = "the mean of " if len(card.read_out.heads) > 1 else ""
    step = "the step that consumes a piece" if card.read_out.shift else "the step that produces a piece"
    return f"cross-attention, {mean}layer.head {heads}, at {step}"


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "none"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return "; ".join(str(item) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name} {_entry(item)}" for name, item in value.items())
    return str(value)


def _entry(item: Any) -> str:
    if isinstance(item, dict) and "value" in item:
        return f"{item['value']:.2f} ({item['signature']})"
    return str(item)
