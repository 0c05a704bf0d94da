"""Read a model that `jumok export --to huggingface` wrote.

The result is identical to the exported model, to the bit, unless the export was trained further. Every change
of the file of weights counts as further training. `jumok_export.json` beside the Hugging Face files stores
the model card and jumok's embedding of `<pad>`. The Hugging Face files cannot store this embedding. There,
decoding begins with `<pad>`, so the exported embedding of `<pad>` is a copy of the embedding of `<s>`.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jumok.config.recipe import TransformerSettings
from jumok.config.resolve import with_settings
from jumok.errors import ModelFolderError, RecipeError
from jumok.inference.building import build_for_tokenizers
from jumok.inference.loading import INT8_COSTS
from jumok.interop.conversion import ImportedModel
from jumok.interop.huggingface_reader import read_tensors
from jumok.interop.weight_names import (
    RENAMED_SECOND_BEGIN,
    SECOND_BEGIN,
    channel_order,
    halves_to_interleaved,
    layer_names,
    permute,
)
from jumok.storage.model_folder import card_from_json
from jumok.storage.readme import LICENCE, describe_model
from jumok.storage.tensors import load_module_weights, module_weights
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.tokenizer import TokenizerPair, untrusted_tokenizer
from jumok.text.tokenizer_files import tokenizers_to_files
from jumok.types import BEGIN, END, PAD

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.interop.conversion import ImportChoices
    from jumok.interop.package import Package
    from jumok.storage.model_folder import ModelCard

EXPORT_RECORD = "jumok_export.json"


def read_own_export(package: Package, path: Path, choices: ImportChoices) -> ImportedModel:
    """Return the exported model. If the export was trained further, its scores are dropped."""
    _refuse_choices(package, choices)
    record = package.json(EXPORT_RECORD)
    card = card_from_json(path / EXPORT_RECORD, _mapping(package, record, "card"))
    settings = card.recipe.model
    if not isinstance(settings, TransformerSettings):
        raise package.refusal(f"{EXPORT_RECORD} describes a {settings.family} model")
    theirs = read_tensors(package, path)
    shared = theirs.get("model.shared.weight")
    if shared is None or shared.dim() != 2 or len(shared) <= END or shared.shape[1] != settings.width:
        raise package.refusal("its weights lack model.shared.weight, or it has another width than the card")
    if record.get("pad_last"):
        theirs = _with_pad_first(theirs)
    trained_further = record.get("weights_sha256") != _sha256_of_weights(package)
    tokenizers = _tokenizers(
        package, _mapping(package, record, "tokenizer"), first=3 if record.get("pad_last") else 4
    )
    pad_row = None if trained_further else _pad_row(package, record, settings.width)
    weights = _weights(package, settings, theirs, pad_row)
    biases = _used_biases(settings, weights)
    weights = {name: tensor for name, tensor in weights.items() if biases.get(_setting_of_bias(name), True)}
    if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
        raise package.refusal("its weights are not finite")
    card = _updated_card(card, choices, biases, trained_further=trained_further)
    model = build_for_tokenizers(card.recipe.model, tokenizers)
    try:
        load_module_weights(model, weights)
    except ModelFolderError as error:
        raise package.refusal(f"its weights do not fit its card ({error})") from None
    source = tokenizers.source
    return ImportedModel(
        "Hugging Face, exported by jumok" + (" and trained further" if trained_further else ""),
        card,
        module_weights(model),
        tokenizers_to_files(tokenizers),
        describe_model(card),
        codes=source.codes if isinstance(source, JointVocabularyTokenizer) else (),
        vocab_size=tokenizers.target.vocab_size,
        positions_reason="as it was exported",
    )


def _refuse_choices(package: Package, choices: ImportChoices) -> None:
    """Raise an error for options whose values the export record has.

    These are the languages, the positions and `--code`, the target-language code.
    """
    options = {
        "--positions": choices.positions != "auto",
        "--from": choices.source_language,
        "--to": choices.target_language,
        "--code": choices.code,
    }
    if used := [name for name, value in options.items() if value]:
        raise RecipeError(
            f"{package.label} was exported by jumok; {EXPORT_RECORD} in it has its languages and positions. "
            f"Received: {', '.join(used)}. Leave out {'this option' if len(used) == 1 else 'these options'}."
        )


def _mapping(package: Package, record: dict[str, Any], name: str) -> dict[str, Any]:
    value = record.get(name)
    if not isinstance(value, dict):
        raise package.refusal(f"{EXPORT_RECORD} has no {name}")
    return value


def _sha256_of_weights(package: Package) -> str:
    return (
        hashlib.sha256(package.read("model.safetensors")).hexdigest()
        if "model.safetensors" in package
        else ""
    )


def _pad_row(package: Package, record: dict[str, Any], width: int) -> Tensor:
    row = record.get("pad_row")
    if not isinstance(row, list) or len(row) != width or not all(isinstance(x, float) for x in row):
        raise package.refusal(f"{EXPORT_RECORD} has no pad_row of {width} numbers")
    return torch.tensor(row, dtype=torch.float32)


def _with_pad_first(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Move the row of `<pad>` from the end to the start, as in jumok's vocabulary."""
    moved = {"model.shared.weight": theirs["model.shared.weight"].roll(1, dims=0)}
    if "final_logits_bias" in theirs:
        moved["final_logits_bias"] = theirs["final_logits_bias"].flatten().roll(1)
    return {**theirs, **moved}


def _tokenizers(package: Package, stored: dict[str, Any], *, first: int) -> TokenizerPair:
    """Return the tokenizers. `first` is the id of the first token that is not special."""
    if stored.get("kind") == "sentencepiece":
        tokenizer = untrusted_tokenizer(package.read("source.spm"))
        return TokenizerPair(tokenizer, tokenizer, shared=True)
    ids = package.json("vocab.json")
    if not all(isinstance(id_, int) for id_ in ids.values()):
        raise package.refusal("vocab.json does not give every token a whole number")
    names = [
        name for name in sorted(ids, key=lambda name: ids[name]) if ids[name] >= first and name != "<pad>"
    ]
    vocabulary = [SECOND_BEGIN if name == RENAMED_SECOND_BEGIN else name for name in names]
    normaliser, code = str(stored.get("normaliser", "none")), str(stored.get("code", ""))
    sides = [
        JointVocabularyTokenizer(
            package.read(name),
            vocabulary,
            normaliser=normaliser,
            code=code if is_source else "",
            is_source=is_source,
        )
        for name, is_source in (("source.spm", True), ("target.spm", False))
    ]
    return TokenizerPair(sides[0], sides[1], shared=True)


def _weights(
    package: Package, settings: TransformerSettings, theirs: dict[str, Tensor], pad_row: Tensor | None
) -> dict[str, Tensor]:
    pre_norm = settings.norm == "pre"
    order = halves_to_interleaved(settings.width)
    if channel_order(settings) is None:  # the channels in the export have the same order as in jumok
        order = torch.arange(settings.width)
    shared = theirs["model.shared.weight"][:, order].clone()
    if pad_row is None:
        shared[BEGIN] = shared[PAD]  # in further training, decoding began with <pad>
    else:
        shared[PAD] = pad_row
    weights = {"source_embedding.weight": shared}
    for pair in layer_names(settings.encoder_layers, settings.decoder_layers, pre_norm=pre_norm):
        for part in ("weight", "bias"):
            tensor = theirs.get(f"{pair.theirs}.{part}")
            if tensor is None:
                raise package.refusal(f"its weights lack {pair.theirs}.{part}")
            try:
                weights[f"{pair.ours}.{part}"] = permute(tensor, pair, order)
            except IndexError:
                raise package.refusal(f"{pair.theirs}.{part} has the shape {tuple(tensor.shape)}") from None
    weights["output.bias"] = theirs.get("final_logits_bias", torch.zeros(len(shared))).flatten()
    if settings.positions == "learned":
        for side, stack in (("source", "encoder"), ("target", "decoder")):
            table = theirs.get(f"model.{stack}.embed_positions.weight")
            if table is None:
                raise package.refusal(f"its weights lack model.{stack}.embed_positions.weight")
            weights[f"{side}_embedding.positions.table"] = table
    return weights


def _setting_of_bias(name: str) -> str:
    """Return the setting that adds this bias to the output or to attention, or "" for any other weight."""
    if name == "output.bias":
        return "model.output_bias"
    # `around_attention` is the residual connection around attention. Its bias is the bias of a norm.
    is_attention_bias = name.endswith(".bias") and "attention." in name and "around" not in name
    return "model.attention_bias" if is_attention_bias else ""


def _used_biases(settings: TransformerSettings, weights: dict[str, Tensor]) -> dict[str, bool]:
    """Return for each kind of bias whether the model has it: in its card, or as a weight that is not zero."""
    used = {"model.attention_bias": settings.attention_bias, "model.output_bias": settings.output_bias}
    for name, tensor in weights.items():
        if (setting := _setting_of_bias(name)) and bool(tensor.any()):
            used[setting] = True
    return used


def _updated_card(
    card: ModelCard, choices: ImportChoices, biases: dict[str, bool], *, trained_further: bool
) -> ModelCard:
    recipe = with_settings(card.recipe, biases)
    facts = dict(card.facts) | ({LICENCE: choices.licence} if choices.licence else {})
    if trained_further:
        facts.pop(INT8_COSTS, None)  # this fact was measured with the old weights
        return replace(card, recipe=recipe, facts=facts, scores={})
    return replace(card, recipe=recipe, facts=facts)
