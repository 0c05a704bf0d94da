"""A jumok Transformer as a CTranslate2 model with the same weights, to compare the two searches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ctranslate2
import numpy
import torch
from ctranslate2.specs import TransformerSpec

from jumok.models import build_model
from jumok.models.model import OutputLayer
from jumok.recipe import TransformerSettings
from jumok.values import BEGIN, PAD

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor, nn

    from jumok.models import Transformer

LAYERS, HEADS = 2, 2


def random_transformer(*, pieces: int, seed: int) -> Transformer:
    """A small Transformer with sharp opinions that never says `<pad>` or `<s>`."""
    torch.manual_seed(seed)
    settings = TransformerSettings(
        encoder_layers=LAYERS, decoder_layers=LAYERS, width=16, feed_forward=32, heads=HEADS, tied=False
    )
    model: Any = build_model(settings, source_pieces=pieces, target_pieces=pieces, shared=True)
    output = OutputLayer(torch.nn.Parameter(torch.randn(pieces, 16) * 0.5), bias=True)
    with torch.no_grad():
        output.bias[[PAD, BEGIN]] = -1e4  # type: ignore[index]
    model.output = output
    return model.eval()  # type: ignore[no-any-return]


def token(piece: int) -> str:
    return ["<blank>", "<unk>", "<s>", "</s>"][piece] if piece < 4 else f"t{piece}"


def twin(model: Any, folder: Path) -> ctranslate2.Translator:
    """The model stored and loaded by CTranslate2. Its alignment head averages all heads of the last layer."""
    spec = TransformerSpec.from_config(LAYERS, HEADS, pre_norm=True, alignment_heads=0)
    _fill_stack(spec.encoder, model.encoder, model.source_embedding, model.after_encoder)
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    _fill_stack(spec.decoder, model.decoder, model.target_embedding, model.after_decoder)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    spec.decoder.projection.weight = _array(model.output.weight)
    spec.decoder.projection.bias = _array(model.output.bias)
    tokens = [token(piece) for piece in range(len(model.output.weight))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.add_source_eos = True
    spec.validate()
    folder.mkdir()
    spec.save(str(folder))
    return ctranslate2.Translator(str(folder), device="cpu", intra_threads=1, compute_type="float32")


def _fill_stack(spec: Any, blocks: Any, embedding: Any, after: nn.LayerNorm) -> None:
    spec.position_encodings.encodings = _array(embedding.positions.table)
    _fill_norm(spec.layer_norm, after)
    for layer, block in zip(spec.layer, blocks, strict=True):
        attention = block.attention
        _fill_norm(layer.self_attention.layer_norm, block.around_attention.norm)
        together = torch.cat([attention.query.weight, attention.key.weight, attention.value.weight])
        _fill_linear(layer.self_attention.linear[0], together)
        _fill_linear(layer.self_attention.linear[1], attention.out.weight)
        if hasattr(block, "cross_attention"):
            cross = block.cross_attention
            _fill_norm(layer.attention.layer_norm, block.around_cross.norm)
            _fill_linear(layer.attention.linear[0], cross.query.weight)
            _fill_linear(layer.attention.linear[1], torch.cat([cross.key.weight, cross.value.weight]))
            _fill_linear(layer.attention.linear[2], cross.out.weight)
        _fill_norm(layer.ffn.layer_norm, block.around_feed_forward.norm)
        _fill_linear(layer.ffn.linear_0, block.feed_forward.widen.weight, block.feed_forward.widen.bias)
        _fill_linear(layer.ffn.linear_1, block.feed_forward.narrow.weight, block.feed_forward.narrow.bias)


def _fill_linear(spec: Any, weight: Tensor, bias: Tensor | None = None) -> None:
    spec.weight = _array(weight)
    spec.bias = _array(torch.zeros(len(weight)) if bias is None else bias)


def _fill_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> numpy.ndarray[Any, Any]:
    return tensor.detach().numpy().astype(numpy.float32)
