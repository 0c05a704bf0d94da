"""Read a model of Marian: an OPUS-MT zip, or a folder that Marian wrote in training.

decoder.yml          has the file names of the weights and vocabularies, and the settings of the search
*.npz                weights as (in, out) matrices; `special:model.yml` has the settings, padded with NULs
*.yml                vocabularies, token → id; or *.spm, SentencePiece models whose ids are the vocabulary
source.spm, target.spm   the SentencePiece models, if the vocabulary is a *.yml file
preprocess.sh        is never run; jumok.text.joint_vocabulary normalises text like OPUS-MT's script
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from jumok.interop.flat_yaml import parse_settings, parse_vocabulary
from jumok.interop.foreign_model import ForeignModel, ForeignVocabulary
from jumok.interop.package import MAX_TEXT_BYTES
from jumok.interop.readme_front_matter import read_licence, read_readme
from jumok.interop.settings_table import SettingsTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from jumok.interop.package import Package

SETTINGS = "special:model.yml"
_POSITIONS_REASON = (
    "those that Marian trained with; --positions sinusoidal takes those of the library transformers"
)
_ATTENTION = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
_AUTOREGRESSION = {"rnn": "an SSRU", "average-attention": "average attention"}
# Each row has the setting, the only value that jumok supports, the default of a missing setting, and the
# reason why other values are refused.
_REQUIRED: tuple[tuple[str, Any, Any, str], ...] = (
    ("type", "transformer", "", "only Transformers can be imported"),
    ("transformer-preprocess", "", "", "only post-norm models (preprocess empty) can be imported"),
    ("transformer-postprocess-top", "", "", "jumok has no norm after the last block of a post-norm model"),
    ("transformer-train-position-embeddings", False, False, "learned positions (Wpos) are not supported"),
    ("transformer-disable-position-embeddings", False, False, "models without positions are not supported"),
    ("transformer-ffn-depth", 2, 2, "jumok's position-wise network has two layers"),
    ("transformer-decoder-ffn-depth", 0, 0, "jumok's position-wise network has two layers"),
    ("transformer-decoder-dim-ffn", 0, 0, "jumok has one width of the position-wise network"),
    ("transformer-no-projection", False, False, "attention needs its output projection"),
    ("transformer-no-bias", False, False, "biases are expected"),
    ("transformer-no-affine", False, False, "norms need scale and bias"),
    ("transformer-tied-layers", [], [], "layers that share weights are not supported"),
    ("transformer-attention-mask", "default", "default", "ALiBi of Marian is not supported"),
    ("lemma-dim-emb", 0, 0, "factored vocabularies are not supported"),
    ("factors-dim-emb", 0, 0, "factored vocabularies are not supported"),
    ("input-types", [], [], "several input streams are not supported"),
    ("right-left", False, False, "right-to-left models are not supported"),
    ("ulr", False, False, "universal lexical representations are not supported"),
)


def read_marian(package: Package) -> ForeignModel:
    """Return the model in a zip or folder of Marian."""
    _refuse_unsupported_files(package)
    decoder = _decoder_settings(package)
    arrays = _read_arrays(package, _weights_file(package, decoder))
    options = _model_options(package, arrays)
    table = SettingsTable(package, SETTINGS, options)
    _check_architecture(package, table)
    vocabularies = _vocabularies(package, decoder)
    layers = {side: table.integer(f"{side[:3]}-depth", 1, 64) for side in ("encoder", "decoder")}
    weights = _huggingface_weights(package, arrays, layers, table)
    shared = len(vocabularies) == 1
    return ForeignModel(
        format="Marian",
        settings={
            **_model_settings(package, table, layers),
            **_search_settings(package, decoder),
        },
        weights=weights,
        source=vocabularies[0],
        target=None if shared else vocabularies[1],
        target_sentencepiece=_target_sentencepiece(package, vocabularies),
        positions="marian",
        positions_reason=_POSITIONS_REASON,
        normaliser=_normaliser(package),
        licence=read_licence(package),
        readme=read_readme(package),
        facts={"marian_version": str(options.get("version", ""))[:80]},
    )


def _refuse_unsupported_files(package: Package) -> None:
    bpe = [name for name in package.names() if name.endswith((".bpe", ".bpe32k-bpe32k"))]
    if bpe:
        raise package.refusal(
            f"it splits words with BPE of subword-nmt ({bpe[0]}), which jumok does not have",
            "Choose a model with SentencePiece: OPUS-MT has a newer one for most languages.",
        )
    if not package.names(".npz"):
        binary = [name for name in package.names(".bin") if "lex" not in name]  # lex*.bin are shortlists
        reason = (
            f"its weights ({binary[0]}) are in Marian's binary format" if binary else "it has no .npz file"
        )
        raise package.refusal(reason, "jumok reads the .npz that Marian writes when it trains.")


def _decoder_settings(package: Package) -> dict[str, Any]:
    names = [name for name in ("decoder.yml", *package.names(".decoder.yml")) if name in package]
    return parse_settings(package.text(names[0])) if names else {}


def _weights_file(package: Package, decoder: Mapping[str, Any]) -> str:
    model_names = _file_names(decoder.get("models"))
    if len(model_names) > 1:
        raise package.refusal(f"it is an ensemble of {len(model_names)} models", "Import one of them.")
    candidates = [name for name in package.names(".npz") if not name.endswith(".optimizer.npz")]
    if model_names and model_names[0] in package:
        return model_names[0]
    if len(candidates) == 1:
        return candidates[0]
    reason = (
        f"decoder.yml names {model_names[0]:.80}, which is missing"
        if model_names
        else "no decoder.yml names its weights"
    )
    raise package.refusal(f"{reason}, and there are {len(candidates)} .npz files")


def _file_names(value: object) -> list[str]:
    """Return the file name of each path. The paths in decoder.yml may be paths of another computer."""
    values = value if isinstance(value, list) else [value]
    return [str(name).replace("\\", "/").rpartition("/")[2] for name in values if name]


def _read_arrays(package: Package, name: str) -> dict[str, np.ndarray[Any, Any]]:
    data = package.read(name)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise package.refusal(f"{name} is not an .npz file of arrays ({error})") from None
    except MemoryError:
        raise
    except Exception as error:  # zlib.error, SyntaxError and other errors have no common base class
        raise package.refusal(f"{name} is damaged ({type(error).__name__}: {error})") from None


def _model_options(package: Package, arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    if SETTINGS not in arrays:
        raise package.refusal(f"its weights lack {SETTINGS}, so its settings are unknown")
    data = arrays[SETTINGS].tobytes()[:MAX_TEXT_BYTES].partition(b"\0")[0]
    return parse_settings(data.decode("utf-8", errors="replace"))


def _check_architecture(package: Package, table: SettingsTable) -> None:
    autoregression = table.text("transformer-decoder-autoreg", "self-attention")
    if autoregression != "self-attention":
        name = _AUTOREGRESSION.get(autoregression, autoregression)
        raise package.refusal(
            f"its decoder has {name} instead of self-attention "
            f"(transformer-decoder-autoreg = {autoregression:.40})",
            "Such models, for example those of Firefox, are made for Marian's own runtime.",
        )
    for setting in _REQUIRED:
        table.require(*setting)
    if table.text("transformer-postprocess", "dan") not in ("dan", "an"):
        table.require("transformer-postprocess", "dan", "dan", "post-norm adds, then normalises")
    if table.text("transformer-postprocess-emb", "d") not in ("d", ""):
        table.require("transformer-postprocess-emb", "d", "d", "jumok has no norm on embeddings")
    if table.text("transformer-ffn-activation", "swish") not in ("swish", "relu"):
        table.require("transformer-ffn-activation", "swish", "swish", "jumok has Marian's swish and relu")


def _model_settings(package: Package, table: SettingsTable, layers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "model.width": table.integer("dim-emb", 8, 8192),
        "model.feed_forward": table.integer("transformer-dim-ffn", 8, 65536, 2048),
        "model.heads": table.integer("transformer-heads", 1, 64, 8),
        "model.encoder_layers": layers["encoder"],
        "model.decoder_layers": layers["decoder"],
        "model.activation": table.text("transformer-ffn-activation", "swish"),
        "model.norm": "post",
    }


def _search_settings(package: Package, decoder: Mapping[str, Any]) -> dict[str, Any]:
    table = SettingsTable(package, "decoder.yml", decoder)
    normalise = decoder.get("normalize", 1)  # the exponent of the length; true stands for 1, false for 0
    penalty = 1.0 if normalise is True else table.number("normalize", 0, 10, 1.0) if normalise else 0.0
    return {"search.beam": table.integer("beam-size", 1, 64, 4), "search.length_penalty": penalty}


# --- Vocabularies -------------------------------------------------------------------------------------------


def _vocabularies(package: Package, decoder: Mapping[str, Any]) -> list[ForeignVocabulary]:
    """Return one vocabulary for both sides, or one per side."""
    vocabulary_names = _file_names(decoder.get("vocabs"))
    missing = [name for name in vocabulary_names if name not in package]
    if missing:
        raise package.refusal(f"decoder.yml names the vocabulary {missing[0]:.80}, which is missing")
    if not vocabulary_names:
        vocabulary_names = package.names(".vocab.yml") or [
            name for name in package.names(".spm") if name not in ("source.spm", "target.spm")
        ]
    if not 1 <= len(vocabulary_names) <= 2:
        raise package.refusal(
            f"it has {len(vocabulary_names)} vocabularies; there must be one, or one per side"
        )
    names = list(dict.fromkeys(vocabulary_names))
    if len(names) == 2 and package.read(names[0]) == package.read(names[1]):
        names = names[:1]
    sides = ("source.spm", "target.spm")
    return [_vocabulary(package, name, sides[side]) for side, name in enumerate(names)]


def _vocabulary(package: Package, name: str, side_model: str) -> ForeignVocabulary:
    if name.endswith(".spm"):
        sentencepiece = package.read(name)
        ids = _sentencepiece_ids(package, name, sentencepiece)
    else:
        sentencepiece = package.read(side_model)
        try:
            ids = parse_vocabulary(package.text(name))
        except (ValueError, RecursionError) as error:
            raise package.refusal(f"{name} is not a vocabulary ({error})") from None
    missing = [token for token in ("</s>", "<unk>") if token not in ids]
    if missing:
        raise package.refusal(f"{name} has no {' and no '.join(missing)}")
    tokens = {id_: token for token, id_ in ids.items()}
    return ForeignVocabulary(tokens, sentencepiece, end=ids["</s>"], unknown=ids["<unk>"], begin=None)


def _sentencepiece_ids(package: Package, name: str, data: bytes) -> dict[str, int]:
    from sentencepiece import SentencePieceProcessor  # start-up

    processor = SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(data)
        return {processor.id_to_piece(id_): id_ for id_ in range(processor.piece_size())}
    except (RuntimeError, UnicodeDecodeError) as error:
        raise package.refusal(f"{name} is not a SentencePiece model ({error})") from None


def _target_sentencepiece(package: Package, vocabularies: list[ForeignVocabulary]) -> bytes:
    if "target.spm" in package:
        return package.read("target.spm")
    return vocabularies[-1].sentencepiece


def _normaliser(package: Package) -> str:
    """Return "opus-mt" if preprocess.sh has the first substitution of OPUS-MT's script, or else "none"."""
    if "preprocess.sh" not in package or package.sizes["preprocess.sh"] > 10**6:
        return "none"
    return "opus-mt" if "s/，/,/g".encode() in package.read("preprocess.sh") else "none"


# --- Weights ------------------------------------------------------------------------------------------------


def _huggingface_weights(
    package: Package,
    arrays: Mapping[str, np.ndarray[Any, Any]],
    layers: Mapping[str, int],
    table: SettingsTable,
) -> dict[str, Tensor]:
    """Return the weights under the names of Hugging Face. Matrices have the shape (out, in)."""

    def tensor(name: str) -> Tensor:
        if name not in arrays:
            raise package.refusal(f"its weights lack {name}")
        array = arrays[name]
        if array.dtype.kind != "f" or array.ndim != 2:
            raise package.refusal(f"{name} is not a matrix of floating-point numbers")
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))

    weights: dict[str, Tensor] = {}

    def linear(name: str, marian_matrix: str, marian_bias: str) -> None:
        weights[f"{name}.weight"] = tensor(marian_matrix).t().contiguous()
        weights[f"{name}.bias"] = tensor(marian_bias)[0]

    def norm(name: str, marian_norm: str) -> None:
        weights[f"{name}.weight"] = tensor(f"{marian_norm}_scale")[0]
        weights[f"{name}.bias"] = tensor(f"{marian_norm}_bias")[0]

    for side, count in layers.items():
        attentions = {"self": "self_attn"} | ({"context": "encoder_attn"} if side == "decoder" else {})
        for layer in range(count):
            prefix, marian = f"model.{side}.layers.{layer}", f"{side}_l{layer + 1}"
            for marian_attention, attention in attentions.items():
                marian_prefix = f"{marian}_{marian_attention}"
                for letter, projection in _ATTENTION.items():
                    name = f"{prefix}.{attention}.{projection}"
                    linear(name, f"{marian_prefix}_W{letter}", f"{marian_prefix}_b{letter}")
                norm(f"{prefix}.{attention}_layer_norm", f"{marian_prefix}_Wo_ln")
            linear(f"{prefix}.fc1", f"{marian}_ffn_W1", f"{marian}_ffn_b1")
            linear(f"{prefix}.fc2", f"{marian}_ffn_W2", f"{marian}_ffn_b2")
            norm(f"{prefix}.final_layer_norm", f"{marian}_ffn_ffn_ln")
    weights.update(_embeddings(arrays, tensor))
    if not table.flag("output-omit-bias", False):
        weights["final_logits_bias"] = tensor("decoder_ff_logit_out_b")
    return weights


def _embeddings(arrays: Mapping[str, Any], tensor: Any) -> dict[str, Tensor]:
    if "Wemb" in arrays:
        weights = {"model.shared.weight": tensor("Wemb")}
    else:
        weights = {
            f"model.{side}.embed_tokens.weight": tensor(f"{side}_Wemb") for side in ("encoder", "decoder")
        }
    if "decoder_ff_logit_out_Wt" in arrays:
        weights["lm_head.weight"] = tensor("decoder_ff_logit_out_Wt")
    elif "decoder_ff_logit_out_W" in arrays:
        weights["lm_head.weight"] = tensor("decoder_ff_logit_out_W").t().contiguous()
    return weights
