"""Write a model in the format of Hugging Face's transformers, without that package.

| jumok                                   | class                              |
| --------------------------------------- | ---------------------------------- |
| post-norm, sinusoidal                   | MarianMTModel                      |
| pre-norm, sinusoidal                    | PegasusForConditionalGeneration    |
| pre-norm, learned or Marian's positions | BlenderbotForConditionalGeneration |

Decoding begins with `<pad>`, which gets the embedding of `<s>`. The reason is CTranslate2's converter for
Pegasus, which always begins with `<pad>` and ignores the configuration. `jumok_export.json` stores
information that the format of Hugging Face cannot represent, so that `jumok import` can restore the model
exactly.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jumok.config.recipe import TransformerSettings
from jumok.interop.exported_model import export_refusal, text_requirements
from jumok.interop.own_export_reader import EXPORT_RECORD
from jumok.interop.weight_names import channel_order, distinct_names, layer_names, permute
from jumok.models.layers import Embedding
from jumok.storage.model_folder import card_to_json
from jumok.storage.readme import describe_model
from jumok.storage.tensors import module_weights, tensors_to_bytes
from jumok.text.joint_vocabulary import JointVocabularyTokenizer
from jumok.text.tokenizer import Tokenizer
from jumok.types import BEGIN, END, PAD

if TYPE_CHECKING:
    from jumok.errors import UnsupportedError
    from jumok.interop.exported_model import ExportedModel

TOOLKIT = "Hugging Face"
MAX_POSITIONS = 512
_CLASSES = {
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "blenderbot": "BlenderbotForConditionalGeneration",
}
_USAGE = """\
```python
from transformers import AutoModelForSeq2SeqLM, MarianTokenizer

tokenizer = MarianTokenizer.from_pretrained(FOLDER)
model = AutoModelForSeq2SeqLM.from_pretrained(FOLDER)
batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

`jumok import FOLDER --out model` turns it back into a model folder.
"""


def huggingface_files(exported: ExportedModel, *, own_ids: bool = False) -> dict[str, bytes]:
    """Return the contents of the files, by file name.

    If the format cannot represent the model, the UnsupportedError names the setting. If `own_ids` is true,
    all tokens keep jumok's ids.
    """
    settings = exported.card.recipe.model
    model_type = _model_type(settings, exported)
    if not isinstance(settings, TransformerSettings):  # impossible: `_model_type` has raised an error
        raise TypeError(settings.family)
    ids = _Ids(exported.tokenizers.target.vocab_size, pad_last=model_type == "marian" and not own_ids)
    weights = tensors_to_bytes(_weights(exported, settings, ids))
    record = {
        "version": 1,
        "pad_last": ids.pad_last,
        "card": card_to_json(exported.card),
        "pad_row": module_weights(exported.model)["source_embedding.weight"][PAD].tolist(),
        "tokenizer": _tokenizer_record(exported),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    return {
        "model.safetensors": weights,
        "config.json": _json(_config(model_type, settings, ids)),
        "generation_config.json": _json(_generation(exported, ids)),
        **_tokenizer_files(exported, ids),
        EXPORT_RECORD: _json(record),
        "README.md": describe_model(exported.card, usage=_USAGE + text_requirements(exported)).encode(),
    }


@dataclass(frozen=True, slots=True)
class _Ids:
    """The ids of the tokens in an export with `size` tokens.

    If `pad_last` is true, `<pad>` has the last id, as in MarianMT, and every other id is one less than in
    jumok. If `pad_last` is false, the ids are jumok's ids.
    """

    size: int
    pad_last: bool

    def order(self) -> list[int]:
        """Return the list of jumok's ids in the order of the ids in the export."""
        return [*range(1, self.size), PAD] if self.pad_last else list(range(self.size))

    def special_ids(self) -> dict[str, int]:
        """Return the ids of the special tokens in the export. The keys are names of Hugging Face's config."""
        pad, shift = (self.size - 1, 1) if self.pad_last else (PAD, 0)
        return {
            "pad_token_id": pad,
            "bos_token_id": BEGIN - shift,
            "eos_token_id": END - shift,
            "decoder_start_token_id": pad,
        }


def _model_type(settings: Any, exported: ExportedModel) -> str:
    """Return the model_type of the equivalent class of transformers, or raise an UnsupportedError."""
    advice = "Train a model with the defaults, or use `--to ctranslate2` or `--to safetensors`."

    def refusal(name: str, value: object, why: str) -> UnsupportedError:
        return export_refusal(TOOLKIT, f"model.{name} = {value}", why, advice)

    if not isinstance(settings, TransformerSettings):
        raise refusal("family", settings.family, "transformers has no class for it that jumok knows")
    for site in ("encoder_attention", "decoder_attention", "cross_attention"):
        kind = getattr(settings, site).kind
        if kind != "scaled-dot":
            raise refusal(site, kind, "transformers has scaled dot-product attention there")
    head_width = settings.width // settings.heads
    required = {"key_width": head_width, "value_width": head_width, "key_value_groups": settings.heads}
    for name, value in required.items():
        if getattr(settings, name) not in (None, value):
            why = "transformers divides the width evenly among the heads"
            raise refusal(name, getattr(settings, name), why)
    if settings.norm_kind != "layer":
        raise refusal("norm_kind", settings.norm_kind, "transformers has layer norms there")
    if not settings.tied:
        raise refusal("tied", "false", "this export ties the embeddings and the output layer")
    if not exported.tokenizers.shared:
        raise export_refusal(
            TOOLKIT, "text.shared = false", "this export writes one vocabulary for both languages", advice
        )
    if settings.positions == "sinusoidal":
        return "pegasus" if settings.norm == "pre" else "marian"
    if settings.norm == "pre" and settings.positions in ("learned", "marian"):
        return "blenderbot"
    if settings.positions == "marian":
        advice = "Import the model again with `--positions sinusoidal`, which are those of transformers."
    why = f"transformers has no {settings.norm}-norm class with these positions"
    raise refusal("positions", settings.positions, why)


def max_positions_of(settings: Any) -> int:
    """Return the maximum number of tokens of a text. A learned position table cannot be extended."""
    learned = settings.positions == "learned"
    return int(settings.max_positions) if learned else MAX_POSITIONS


def _config(model_type: str, settings: TransformerSettings, ids: _Ids) -> dict[str, Any]:
    return {
        "architectures": [_CLASSES[model_type]],
        "model_type": model_type,
        "vocab_size": ids.size,
        "decoder_vocab_size": ids.size,
        "d_model": settings.width,
        "encoder_layers": settings.encoder_layers,
        "decoder_layers": settings.decoder_layers,
        "encoder_attention_heads": settings.heads,
        "decoder_attention_heads": settings.heads,
        "encoder_ffn_dim": settings.feed_forward,
        "decoder_ffn_dim": settings.feed_forward,
        "activation_function": settings.activation,
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "scale_embedding": True,
        "static_position_embeddings": settings.positions == "sinusoidal",
        "max_position_embeddings": max_positions_of(settings),
        # CTranslate2's converter reads normalize_before and normalize_embedding.
        "normalize_before": settings.norm == "pre",
        "normalize_embedding": False,
        "add_final_layer_norm": settings.norm == "pre",
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "is_encoder_decoder": True,
        **ids.special_ids(),
        "dtype": "float32",
    }


def _generation(exported: ExportedModel, ids: _Ids) -> dict[str, Any]:
    search, special_ids = exported.card.recipe.search, ids.special_ids()
    return {
        **special_ids,
        "bad_words_ids": [[special_ids["pad_token_id"]], [special_ids["bos_token_id"]]],
        "forced_eos_token_id": special_ids["eos_token_id"],
        "renormalize_logits": True,
        "num_beams": search.beam,
        "length_penalty": search.length_penalty,
        "max_length": min(
            max_positions_of(exported.card.recipe.model),
            exported.card.recipe.training.max_sentence_tokens * 2,
        ),
    }


def _weights(exported: ExportedModel, settings: TransformerSettings, ids: _Ids) -> dict[str, Tensor]:
    ours = module_weights(exported.model)
    order = channel_order(settings)
    if order is None:
        order = torch.arange(settings.width)
    shared = ours["source_embedding.weight"][:, order].clone()
    shared[PAD] = shared[BEGIN]
    bias = ours.get("output.bias", torch.zeros(ids.size))
    weights = {
        "model.shared.weight": shared[ids.order()],
        "final_logits_bias": bias[None, ids.order()],
    }
    for pair in layer_names(
        settings.encoder_layers, settings.decoder_layers, pre_norm=settings.norm == "pre"
    ):
        weight = ours[f"{pair.ours}.weight"]
        weights[f"{pair.theirs}.weight"] = permute(weight, pair, order)
        bias = ours.get(f"{pair.ours}.bias", torch.zeros(len(weight)))
        weights[f"{pair.theirs}.bias"] = permute(bias, pair, order)
    if settings.positions != "sinusoidal":
        for side in ("encoder", "decoder"):
            weights[f"model.{side}.embed_positions.weight"] = _position_table(exported, side, settings)
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def _position_table(exported: ExportedModel, side: str, settings: TransformerSettings) -> Tensor:
    name = {"encoder": "source_embedding", "decoder": "target_embedding"}[side]
    embedding = getattr(exported.model, name)
    if not isinstance(embedding, Embedding):
        raise TypeError(type(embedding).__name__)
    table: Tensor = embedding.positions(max_positions_of(settings))
    return table


# --- Tokenizer ----------------------------------------------------------------------------------------------


def _tokenizer_files(exported: ExportedModel, ids: _Ids) -> dict[str, bytes]:
    source, target = exported.tokenizers.source, exported.tokenizers.target
    names = distinct_names(target.tokens(range(target.vocab_size)))
    models = [
        side.sentencepiece if isinstance(side, JointVocabularyTokenizer) else side.to_bytes()
        for side in (source, target)
    ]
    languages = exported.languages
    config = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0] or None,
        "target_lang": languages[1] or None,
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "model_max_length": max_positions_of(exported.card.recipe.model),
        "separate_vocabs": False,
    }
    return {
        "vocab.json": _json({names[ours]: theirs for theirs, ours in enumerate(ids.order())}),
        "source.spm": models[0],
        "target.spm": models[1],
        "tokenizer_config.json": _json(config),
    }


def _tokenizer_record(exported: ExportedModel) -> dict[str, str]:
    source = exported.tokenizers.source
    if isinstance(source, Tokenizer):
        return {"kind": "sentencepiece"}
    if isinstance(source, JointVocabularyTokenizer):
        return {"kind": "joint", "normaliser": source.normaliser, "code": source.code}
    raise TypeError(type(source).__name__)


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()
