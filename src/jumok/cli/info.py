"""`jumok info MODEL`: what is in a model folder; verifies the checksum of every file but README.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import ModelArgument, format_family, format_languages
from jumok.cli.wrapped_text import echo_wrapped
from jumok.config.recipe import DecoderOnlySettings, EncoderOnlySettings, RecurrentSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jumok.config.recipe import ModelSettings, SourceSettings
    from jumok.storage.model_folder import StoredModel
    from jumok.types import ReadOut


LABELS = {"tokens": "vocabulary", "read_out": "alignment", "created_by": "created by"}
"""Labels that differ from the name in the JSON object."""
INDENT = 15  # the second column begins here


def info(
    model: ModelArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Describe a model folder: languages, sizes, scores, corpora. Verifies all checksums except README.md's.

    A model of another toolkit is described as `jumok import` would import it.
    """
    from jumok.storage.foreign_formats import foreign_format  # start-up
    from jumok.storage.model_folder import read_stored_model  # start-up

    if not (model / "jumok.json").exists() and foreign_format(model):
        _print_facts(model, _foreign_facts(model), as_json=as_json)
        return
    stored = read_stored_model(model)
    parameters = _count_parameters(stored)
    facts = _facts(stored, parameters)
    _print_facts(model, facts, as_json=as_json)


def _count_parameters(stored: StoredModel) -> int:
    if stored.converted is not None:  # the import has counted them
        return int(stored.card.facts.get("parameters") or 0)
    return sum(tensor.numel() for tensor in stored.weights().values())


def _foreign_facts(model: Path) -> dict[str, Any]:
    """Return what an import would report, and the command."""
    from jumok.interop.importing import describe_foreign_model  # start-up

    report = describe_foreign_model(model)
    return {
        "format": report.format,
        "languages": report.languages,
        "parameters": report.parameters,
        "tokens": report.vocab_size,
        "targets": list(report.codes),
        "positions": report.positions,
        "licence": report.licence,
        "import": f"jumok import {model} --out model",
    }


def _print_facts(model: Path, facts: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    typer.echo(f"{model}")
    for name, value in facts.items():
        label = LABELS.get(name, name)
        echo_wrapped(f"  {label:<{INDENT - 3}} {_format_value(value)}", indent=INDENT)


def _facts(stored: StoredModel, parameters: int) -> dict[str, Any]:
    card = stored.card
    recipe = card.recipe
    model = recipe.model
    noun = "pairs" if model.task == "translate" else "sentences"
    noun = "pictures" if recipe.source.kind == "pictures" else noun
    return {
        "task": model.task,
        "source": _describe_source(recipe.source),
        "languages": format_languages(recipe),
        "model": f"{format_family(model)}: {_describe_layers(model)}, width {model.width}, "
        f"{_describe_architecture(model)}",
        "parameters": parameters,
        "tokens": _describe_tokenizers(stored),
        "shortlist": stored.shortlist is not None,
        "scores": {
            name: {"value": score.value, "signature": score.signature} for name, score in card.scores.items()
        },
        "read_out": None if card.read_out is None else _describe_read_out(card.read_out),
        "corpora": [f"{corpus.name}: {corpus.pairs:,} {noun}" for corpus in card.corpora],
        "facts": dict(card.facts),
        "created_by": f"jumok {card.created_by}",
    }


def _describe_tokenizers(stored: StoredModel) -> str:
    """Return the true sizes; a small corpus can give fewer tokens than the recipe asks for."""
    from jumok.inference.loading import open_tokenizers  # start-up
    from jumok.text.class_names import ClassNames  # start-up

    pair, kind = open_tokenizers(stored), stored.card.recipe.text.kind
    if isinstance(pair.target, ClassNames):
        return f"{len(pair.target.names):,} classes: {', '.join(pair.target.names)}"
    names = [name for name in sorted(stored.tokenizers) if name != "vocabulary.json"]
    if len(stored.tokenizers) > len(names) and pair.shared:
        return f"{pair.target.vocab_size:,} for {' and '.join(names)}"
    sides = zip(names, (pair.source, pair.target), strict=False)
    sizes = (f"{one.vocab_size:,} in {name}" for name, one in sides if not one.token_shape)
    return f"{' and '.join(sizes)} ({kind})"


def _describe_source(source: SourceSettings) -> str:
    if source.kind == "text":
        return "text"
    pixels = f"{source.size} × {source.size} pixels ({source.colour})"
    return (
        f"pictures of {pixels} in {source.num_patches} patches of {source.patch_size} × {source.patch_size}"
    )


def _describe_layers(model: ModelSettings) -> str:
    if isinstance(model, DecoderOnlySettings | EncoderOnlySettings):
        return f"{model.layers} layer" if model.layers == 1 else f"{model.layers} layers"
    return f"{model.encoder_layers}+{model.decoder_layers} layers"


def _describe_architecture(model: ModelSettings) -> str:
    """Return what is specific to the family, and settings that are not the default."""
    if isinstance(model, RecurrentSettings):
        return f"{model.cell}, attention {model.attention.kind}"
    sites = {"": "attention"}
    if not isinstance(model, DecoderOnlySettings | EncoderOnlySettings):
        sites = {f"{site} ": f"{site}_attention" for site in ("encoder", "decoder", "cross")}
    kinds = {site: getattr(model, name).kind for site, name in sites.items()}
    mechanisms = "".join(f", {site}attention {kind}" for site, kind in kinds.items() if kind != "scaled-dot")
    norm = "" if model.norm_kind == "layer" else f" ({model.norm_kind})"
    positions = "" if model.positions == "sinusoidal" else f", positions {model.positions}"
    activation = "" if model.activation == "relu" else f", {model.activation}"
    projections = "".join(
        f", {name.replace('_', ' ')} {_format_value(getattr(model, name))}"
        for name in ("key_width", "value_width", "key_value_groups", "attention_bias", "attention_init")
        if getattr(model, name) != type(model).model_fields[name].default
    )
    return f"{model.heads} heads, {model.norm}-norm{norm}{positions}{activation}{projections}{mechanisms}"


def _describe_read_out(read_out: ReadOut) -> str:
    heads = ", ".join(f"{layer}.{head}" for layer, head in read_out.heads)
    mean = "the mean of " if len(read_out.heads) > 1 else ""
    step = "the step that consumes a token" if read_out.shift else "the step that produces a token"
    both = "" if read_out.min_source_weight is None else ", in both directions"
    return f"cross-attention, {mean}layer.head {heads}, at {step}{both}"


def _format_value(value: Any) -> str:
    if value is None or value is False:
        return "none"
    if value is True:
        return "yes"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return "; ".join(str(item) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name} {_format_item(item)}" for name, item in value.items())
    return str(value)


def _format_item(item: Any) -> str:
    if isinstance(item, dict) and "value" in item:
        return f"{item['value']:.2f} ({item['signature']})"
    if isinstance(item, float):
        return f"{item:.4g}"
    return "none" if item is None else str(item)
