"""Read a Hugging Face folder with a MarianMT model.

`own_export_reader.py` reads folders that `jumok export` wrote. There are two generations of MarianMT models:

| | opus-mt-xx-yy (2020) | opus-mt-tc-big-* (2022) |
| --- | --- | --- |
| activation | swish | relu |
| id of `</s>` | 0 | anywhere |
| precision of the weights | float32 | float16 or float32 |
| generation settings | config.json | generation_config.json |

The weights of both are in model.safetensors (or parts of it) or pytorch_model.bin.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from jumok.attention import sinusoids
from jumok.interop.foreign_model import ForeignModel, ForeignVocabulary
from jumok.interop.pickled_weights import read_pickled_weights
from jumok.interop.readme_front_matter import read_licence, read_readme
from jumok.interop.settings_table import SettingsTable
from jumok.interop.weight_names import interleaved_to_halves
from jumok.storage.tensors import tensors_from_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from jumok.interop.package import Package

ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
_PART_OF_WEIGHTS = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_POSITION_ROWS = 64
_POSITIONS_REASON = "as transformers has them; --positions marian takes those that Marian trained with"


def read_huggingface(package: Package, path: Path) -> ForeignModel:
    """Return the MarianMT model in a folder of Hugging Face's layout."""
    config = SettingsTable(package, "config.json", package.json("config.json"))
    kind = config.text("model_type")
    if kind != "marian":
        raise package.refusal(
            f'its model_type is "{kind}"' if kind else "its config.json has no model_type",
            "jumok imports MarianMT models (OPUS-MT) and its own exports.",
        )
    _check_architecture(config)
    weights = read_tensors(package, path)
    _drop_position_tables(package, weights)
    separate = not config.flag("share_encoder_decoder_embeddings", True)
    _drop_copies(weights, shared=not separate, tied=config.flag("tie_word_embeddings", True))
    source = _vocabulary(package, config, "vocab.json", "source.spm")
    target = _vocabulary(package, config, "target_vocab.json", "target.spm") if separate else None
    return ForeignModel(
        format="Hugging Face MarianMT",
        settings={
            **_model_settings(package, config),
            **_languages(package),
            **_search_settings(package),
        },
        weights=weights,
        source=source,
        target=target,
        target_sentencepiece=package.read("target.spm"),
        positions="sinusoidal",
        positions_reason=_POSITIONS_REASON,
        licence=read_licence(package),
        readme=read_readme(package),
    )


def _check_architecture(config: SettingsTable) -> None:
    config.require("scale_embedding", True, True, "jumok scales embeddings by √width")
    config.require("normalize_before", False, False, "a MarianMT model normalises after each sublayer")
    config.require("normalize_embedding", False, False, "jumok has no norm on embeddings")
    config.require("add_final_layer_norm", False, False, "post-norm has no final norm")
    config.require("static_position_embeddings", True, True, "learned positions are not supported here")
    for name in ("attention_heads", "ffn_dim"):
        if config.integer(f"encoder_{name}", 1, 65536) != config.integer(f"decoder_{name}", 1, 65536):
            raise config.wrong(
                f"decoder_{name}", f"equal to encoder_{name}, because jumok has one value for both"
            )


def _model_settings(package: Package, config: SettingsTable) -> dict[str, Any]:
    activation = config.text("activation_function")
    if activation not in ACTIVATIONS:
        raise package.refusal(
            f'its activation_function is "{activation}"; jumok has {", ".join(ACTIVATIONS)}'
        )
    return {
        "model.width": config.integer("d_model", 8, 8192),
        "model.feed_forward": config.integer("encoder_ffn_dim", 8, 65536),
        "model.heads": config.integer("encoder_attention_heads", 1, 64),
        "model.encoder_layers": config.integer("encoder_layers", 1, 64),
        "model.decoder_layers": config.integer("decoder_layers", 1, 64),
        "model.dropout": config.number("dropout", 0, 0.99, 0.1),
        "model.activation": ACTIVATIONS[activation],
        "model.norm": "post",
    }


def _languages(package: Package) -> dict[str, str]:
    if "tokenizer_config.json" not in package:
        return {}
    file = "tokenizer_config.json"
    tokenizer = SettingsTable(package, file, package.json(file))
    return {
        "languages.source": tokenizer.text("source_lang"),
        "languages.target": tokenizer.text("target_lang"),
    }


def _search_settings(package: Package) -> dict[str, Any]:
    file = "generation_config.json" if "generation_config.json" in package else "config.json"
    generation = SettingsTable(package, file, package.json(file))
    return {
        "search.beam": generation.integer("num_beams", 1, 64, 4),
        "search.length_penalty": generation.number("length_penalty", -10, 10, 1.0),
    }


def _vocabulary(package: Package, config: SettingsTable, file: str, sentencepiece: str) -> ForeignVocabulary:
    ids = package.json(file)
    if not all(isinstance(id_, int) and not isinstance(id_, bool) and id_ >= 0 for id_ in ids.values()):
        raise package.refusal(f"{file} does not give every token a whole number")
    if len(set(ids.values())) < len(ids):
        raise package.refusal(f"{file} gives two tokens the same id")
    missing = [token for token in ("</s>", "<unk>") if token not in ids]
    if missing:
        raise package.refusal(f"{file} has no {' and no '.join(missing)}")
    return ForeignVocabulary(
        tokens={id_: token for token, id_ in ids.items()},
        sentencepiece=package.read(sentencepiece),
        end=ids["</s>"],
        unknown=ids["<unk>"],
        begin=config.integer("decoder_start_token_id", 0, 10**7),
        padding=ids.get("<pad>"),
    )


def read_tensors(package: Package, path: Path) -> dict[str, Tensor]:
    """Return the weights of a Hugging Face folder by name, in single precision. Integers are left out."""
    if "model.safetensors" in package:
        tensors = tensors_from_bytes(package.read("model.safetensors"), path / "model.safetensors")
    elif "model.safetensors.index.json" in package:
        tensors = {}
        for name in sorted(filter(_PART_OF_WEIGHTS.fullmatch, package.names())):
            tensors.update(tensors_from_bytes(package.read(name), path / name))
    elif "pytorch_model.bin" in package:
        tensors = read_pickled_weights(package, "pytorch_model.bin")
    else:
        raise package.refusal("it has neither model.safetensors nor pytorch_model.bin")
    return {name: tensor.float() for name, tensor in tensors.items() if tensor.is_floating_point()}


def _drop_copies(weights: dict[str, Tensor], *, shared: bool, tied: bool) -> None:
    """Drop the copies of a tied matrix from `weights`.

    Old files store the matrix under each of its names, and transformers reads only one of the copies.
    `shared` says whether the two embeddings are tied, and `tied` whether the output layer is tied to the
    target embedding.
    """
    if shared and "model.shared.weight" in weights:
        weights.pop("model.encoder.embed_tokens.weight", None)
        weights.pop("model.decoder.embed_tokens.weight", None)
    if tied:
        weights.pop("lm_head.weight", None)


def _drop_position_tables(package: Package, weights: dict[str, Tensor]) -> None:
    """Drop the position tables of old files from `weights`.

    Raise an error if the first `_POSITION_ROWS` rows of a table are not sinusoids.
    """
    for name in [name for name in weights if name.endswith("embed_positions.weight")]:
        table = weights.pop(name)[:_POSITION_ROWS]
        if table.dim() != 2:
            raise package.refusal(f"{name} is not a table of positions")
        expected = sinusoids(*table.shape)[:, interleaved_to_halves(table.shape[1])]
        if table.shape[1] % 2 or not torch.allclose(table, expected, atol=2e-3):
            raise package.refusal(f"{name} holds other positions than sinusoids")
