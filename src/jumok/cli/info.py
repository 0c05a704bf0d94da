"""`jumok info MODEL`: describe a model folder, and verify the checksum of every file except README.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.arguments import ModelArgument, format_family, format_languages, format_noun
from jumok.cli.language import localise, localise_text, use_english
from jumok.cli.wrapped_text import echo_wrapped, pad
from jumok.config.recipe import DecoderOnlySettings, EncoderOnlySettings, RecurrentSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jumok.config.recipe import ModelSettings, SourceSettings
    from jumok.storage.model_folder import StoredModel
    from jumok.types import ReadOut


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
    if as_json:
        use_english()
    stored = read_stored_model(model)
    parameters = _count_parameters(stored)
    facts = _facts(stored, parameters)
    _print_facts(model, facts, as_json=as_json)


def _count_parameters(stored: StoredModel) -> int:
    if stored.converted_files is not None:  # the import has counted them
        return int(stored.card.facts.get("parameters") or 0)
    return sum(tensor.numel() for tensor in stored.weights().values())


def _foreign_facts(model: Path) -> dict[str, Any]:
    """Return the facts that an import would report, and the command for the import."""
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
    labels = _labels()
    for name, value in facts.items():
        echo_wrapped(f"  {pad(labels[name], INDENT - 3)} {_format_value(value)}", indent=INDENT)


def _labels() -> dict[str, str]:
    """Return the label of each fact, by its name in the JSON object."""
    return {
        "format": localise("format"),
        "task": localise("task"),
        "source": localise("source"),
        "languages": localise("languages"),
        "model": localise("model"),
        "parameters": localise("parameters"),
        "tokens": localise("vocabulary"),
        "shortlist": localise("shortlist"),
        "targets": localise("targets"),
        "positions": localise("positions"),
        "licence": localise("licence"),
        "scores": localise("scores"),
        "read_out": localise("alignment"),
        "corpora": localise("corpora"),
        "facts": localise("facts"),
        "created_by": localise("created by"),
        "import": localise("import"),
    }


def _facts(stored: StoredModel, parameters: int) -> dict[str, Any]:
    card = stored.card
    recipe = card.recipe
    model = recipe.model
    noun = format_noun(pictures=recipe.source.kind == "pictures", plain=model.task != "translate")
    return {
        "task": model.task,
        "source": _describe_source(recipe.source),
        "languages": format_languages(recipe),
        "model": localise(
            "{family}: {layers}, width {width}, {architecture}",
            family=format_family(model),
            layers=_describe_layers(model),
            width=model.width,
            architecture=_describe_architecture(model),
        ),
        "parameters": parameters,
        "tokens": _describe_tokenizers(stored),
        "shortlist": stored.shortlist is not None,
        "scores": {
            name: {"value": score.value, "signature": score.signature} for name, score in card.scores.items()
        },
        "read_out": None if card.read_out is None else _describe_read_out(card.read_out),
        "corpora": [
            f"{corpus.name}: {localise('{pairs:,} {noun}', pairs=corpus.pairs, noun=noun)}"
            for corpus in card.corpora
        ],
        "facts": dict(card.facts),
        "created_by": f"jumok {card.created_by}",
    }


def _describe_tokenizers(stored: StoredModel) -> str:
    """Describe the vocabularies with their actual sizes, which may be smaller than the size in the recipe."""
    from jumok.inference.loading import open_tokenizers  # start-up
    from jumok.text.class_names import ClassNames  # start-up

    tokenizers, kind = open_tokenizers(stored), stored.card.recipe.text.kind
    if isinstance(tokenizers.target, ClassNames):
        classes = tokenizers.target.names
        return localise("{count:,} classes: {names}", count=len(classes), names=", ".join(classes))
    names = [name for name in sorted(stored.tokenizers) if name != "vocabulary.json"]
    if len(stored.tokenizers) > len(names) and tokenizers.shared:
        size, files = tokenizers.target.vocab_size, localise(" and ").join(names)
        return localise("{size:,} for {files}", size=size, files=files)
    sides = zip(names, (tokenizers.source, tokenizers.target), strict=False)
    sizes = (
        localise("{size:,} in {file}", size=tokenizer.vocab_size, file=name)
        for name, tokenizer in sides
        if not tokenizer.token_shape
    )
    return f"{localise(' and ').join(sizes)} ({kind})"


def _describe_source(source: SourceSettings) -> str:
    if source.kind == "text":
        return localise("text")
    return localise(
        "pictures of {source.size} × {source.size} pixels ({source.colour}) in {source.num_patches} patches "
        "of {source.patch_size} × {source.patch_size}",
        source=source,
    )


def _describe_layers(model: ModelSettings) -> str:
    if isinstance(model, DecoderOnlySettings | EncoderOnlySettings):
        if model.layers == 1:
            return localise("1 layer")
        return localise("{layers} layers", layers=model.layers)
    return localise("{layers} layers", layers=f"{model.encoder_layers}+{model.decoder_layers}")


def _describe_architecture(model: ModelSettings) -> str:
    """Return what is specific to the family, and settings that are not the default."""
    if isinstance(model, RecurrentSettings):
        return localise("{cell}, attention {kind}", cell=model.cell, kind=model.attention.kind)
    sites = {"": "attention"}
    if not isinstance(model, DecoderOnlySettings | EncoderOnlySettings):
        sites = {f"{site} ": f"{site}_attention" for site in ("encoder", "decoder", "cross")}
    kinds = {site: getattr(model, name).kind for site, name in sites.items()}
    mechanisms = "".join(
        localise(", {site}attention {kind}", site=localise_text(site), kind=kind)
        for site, kind in kinds.items()
        if kind != "scaled-dot"
    )
    norm = "" if model.norm_kind == "layer" else f" ({model.norm_kind})"
    positions = localise(", positions {name}", name=model.positions)
    positions = "" if model.positions == "sinusoidal" else positions
    activation = "" if model.activation == "relu" else f", {model.activation}"
    projections = "".join(
        f", {name.replace('_', ' ')} {_format_value(getattr(model, name))}"
        for name in ("key_width", "value_width", "key_value_groups", "attention_bias", "attention_init")
        if getattr(model, name) != type(model).model_fields[name].default
    )
    heads = localise("{heads} heads, {norm}-norm", heads=model.heads, norm=model.norm)
    return f"{heads}{norm}{positions}{activation}{projections}{mechanisms}"


def _describe_read_out(read_out: ReadOut) -> str:
    heads = ", ".join(f"{layer}.{head}" for layer, head in read_out.heads)
    several = localise("the mean of layer.head {heads}", heads=heads)
    layer_head = several if len(read_out.heads) > 1 else localise("layer.head {heads}", heads=heads)
    consumes = localise("the step that consumes a token")
    step = consumes if read_out.shift else localise("the step that produces a token")
    both = "" if read_out.min_source_weight is None else localise(", in both directions")
    return localise("cross-attention, {heads}, at {step}", heads=layer_head, step=step) + both


def _format_value(value: Any) -> str:
    if value is None or value is False or value in ([], {}):
        return localise("none")
    if value is True:
        return localise("yes")
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return "; ".join(str(item) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{localise_text(name)} {_format_item(item)}" for name, item in value.items())
    return str(value)


def _format_item(item: Any) -> str:
    if isinstance(item, dict) and "value" in item:
        return f"{item['value']:.2f} ({item['signature']})"
    if isinstance(item, float):
        return f"{item:.4g}"
    return localise("none") if item is None else localise_text(str(item))
