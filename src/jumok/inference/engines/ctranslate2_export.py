"""Export a Transformer to the files that CTranslate2 loads, with the same weights.

CTranslate2 can express the Transformer as published and its usual variants: scaled dot-product attention with
equal heads at all three sites, layer norm before or after each sublayer, positions from a table.
`unsupported_reason` names a part of a model that CTranslate2 cannot express, but could miss a new feature of
the models. So `export` returns files only if a float32 conversion reproduces the model's log-probabilities on
a few random sentence pairs. Quantized files are not compared with the model.
"""

from __future__ import annotations

import copy
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from jumok.attention import (
    HeadPositions,
    LearnedPositions,
    MarianPositions,
    MultiHead,
    ScaledDot,
    SinusoidalPositions,
)
from jumok.data.batching import padded_batch
from jumok.errors import UnsupportedError
from jumok.inference.engines.ctranslate2_tokens import SPECIAL_TOKENS, token_names
from jumok.models.kernels.dropout import Dropout
from jumok.models.layers import Embedding, FeedForward, PostNorm, PreNorm
from jumok.models.model import OutputLayer
from jumok.models.norms import LayerNorm, NoNorm
from jumok.models.transformer import DecoderBlock, EncoderBlock, Transformer
from jumok.system.device import DeviceConfig
from jumok.types import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.models.model import TranslationModel

_KNOWN_MODULES = {
    Transformer,
    EncoderBlock,
    DecoderBlock,
    MultiHead,
    HeadPositions,  # the base class: no positions inside the heads
    ScaledDot,
    FeedForward,
    PreNorm,
    PostNorm,
    Embedding,
    SinusoidalPositions,
    MarianPositions,
    LearnedPositions,
    OutputLayer,
    Dropout,
    LayerNorm,
    NoNorm,
    nn.Linear,
    nn.Identity,
    nn.ModuleList,
}
_ACTIVATIONS = {"relu": "RELU", "swish": "SWISH", "gelu": "GELU"}  # CTranslate2's names
MAX_PROBE_LENGTH = 24
"""The number of tokens of the longest random sentence on which a conversion is checked."""
TOLERANCE = 1e-3
"""Maximum difference between a log-probability of the converted model and of the original model.

With float32, the differences are much smaller.
"""


def unsupported_reason(model: TranslationModel) -> str:
    """Return why CTranslate2 cannot run a model, or ""."""
    if type(model) is not Transformer:
        return f"CTranslate2 runs encoder-decoder Transformers, not {type(model).__name__}"
    for name, module in model.named_modules():
        if type(module) not in _KNOWN_MODULES:
            return f"CTranslate2 does not know the {type(module).__name__} at {name}"
    head_layouts = {
        (module.heads, module.groups) for module in model.modules() if isinstance(module, MultiHead)
    }
    if len(head_layouts) > 1 or any(num_heads != num_kv_groups for num_heads, num_kv_groups in head_layouts):
        return "CTranslate2 needs the same number of heads everywhere, each with its own keys and values"
    for name, module in model.named_modules():
        if isinstance(module, MultiHead) and (reason := _unsupported_widths(module)):
            return f"{reason} at {name}"
    if len({type(residual) for residual in _residuals(model)}) > 1:
        return "CTranslate2 needs the norm before every sublayer, or after every sublayer"
    if len({module.activation for module in model.modules() if isinstance(module, FeedForward)}) > 1:
        return "CTranslate2 needs the same activation in every position-wise network"
    if len({norm.eps for norm in model.modules() if isinstance(norm, LayerNorm)}) > 1:
        return "CTranslate2 needs the same epsilon in every layer norm"
    return ""


def _unsupported_widths(attention: MultiHead) -> str:
    """Return why CTranslate2 cannot run these heads, or "".

    CTranslate2 divides the width of a model evenly among its heads.
    """
    head_width = attention.query.in_features / attention.heads
    widths = {"keys": attention.query.out_features, "values": attention.value.out_features}
    for name, width in widths.items():
        if width != attention.heads * head_width:
            return (
                f"CTranslate2 needs {name} of width {head_width:g} per head (the model's width divided by "
                f"its heads), not {width // attention.heads},"
            )
    return ""


@dataclass(frozen=True, slots=True)
class TokenNames:
    """The names of the source and the target tokens in the files of a converted model.

    The names of one vocabulary are distinct.
    """

    source: Sequence[str]
    target: Sequence[str]


def export(
    model: TranslationModel,
    *,
    max_positions: int,
    quantization: str = "float32",
    names: TokenNames | None = None,
) -> dict[str, bytes]:
    """Return the model as files for CTranslate2, file name → bytes.

    The converted model has `max_positions` positions, or as many as the smaller of its learned tables. A
    source uses one of them for its `</s>`. Without `names`, tokens are named by `token_names`. An
    UnsupportedError says why a model cannot be exported.
    """
    reason = unsupported_reason(model)
    if reason or not isinstance(model, Transformer):
        raise UnsupportedError(reason)
    model = _on_cpu(model.eval())
    if names is None:
        sizes = [len(embedding.weight) for embedding in _embeddings(model)]
        names = TokenNames(*map(token_names, sizes))
    files = _files(model, max_positions, "float32", names)
    difference = _max_difference(model, files, names)
    if not difference < TOLERANCE:
        raise UnsupportedError(
            f"the log-probabilities of the converted model differ by {difference:.2g} from the model's own"
        )
    return files if quantization == "float32" else _files(model, max_positions, quantization, names)


def _files(model: Transformer, max_positions: int, quantization: str, names: TokenNames) -> dict[str, bytes]:
    spec = _spec(model, max_positions, names)
    spec.optimize(quantization=quantization)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _spec(model: Transformer, max_positions: int, names: TokenNames) -> Any:
    from ctranslate2.specs import TransformerSpec, common_spec  # optional

    first_decoder_block: Any = model.decoder[0]
    spec = TransformerSpec.from_config(
        (len(model.encoder), len(model.decoder)),
        first_decoder_block.attention.heads,
        pre_norm=isinstance(first_decoder_block.around_attention, PreNorm),
        activation=getattr(common_spec.Activation, _ACTIVATIONS[first_decoder_block.feed_forward.activation]),
        alignment_heads=0,  # the coverage penalty then uses the mean of the heads of the last layer
    )
    source_embedding, _ = _embeddings(model)
    _fill_stack(spec.encoder, model.encoder, source_embedding, model.after_encoder, max_positions)
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    _fill_stack(spec.decoder, model.decoder, model.target_embedding, model.after_decoder, max_positions)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    _fill_linear(spec.decoder.projection, model.output.weight, model.output.bias)
    spec.register_source_vocabulary(list(names.source))
    spec.register_target_vocabulary(list(names.target))
    spec.config.unk_token = SPECIAL_TOKENS[UNKNOWN]
    spec.config.add_source_eos = True
    tables = [_position_table(embedding, max_positions) for embedding in _embeddings(model)]
    spec.config.add_attribute("max_positions", min(map(len, tables)))
    spec.config.layer_norm_epsilon = first_decoder_block.around_attention.norm.eps
    spec.validate()
    return spec


def _fill_stack(
    spec: Any, blocks: Any, embedding: Embedding, final_norm: nn.Module, max_positions: int
) -> None:
    spec.position_encodings.encodings = _array(_position_table(embedding, max_positions))
    if isinstance(final_norm, LayerNorm):
        _fill_norm(spec.layer_norm, final_norm)
    for layer, block in zip(spec.layer, blocks, strict=True):
        attention = block.attention
        _fill_norm(layer.self_attention.layer_norm, block.around_attention.norm)
        _fill_joined(layer.self_attention.linear[0], attention.query, attention.key, attention.value)
        _fill_joined(layer.self_attention.linear[1], attention.out)
        if isinstance(block, DecoderBlock):
            cross: Any = block.cross_attention
            _fill_norm(layer.attention.layer_norm, block.around_cross.norm)
            _fill_joined(layer.attention.linear[0], cross.query)
            _fill_joined(layer.attention.linear[1], cross.key, cross.value)
            _fill_joined(layer.attention.linear[2], cross.out)
        _fill_norm(layer.ffn.layer_norm, block.around_feed_forward.norm)
        _fill_joined(layer.ffn.linear_0, block.feed_forward.widen)
        _fill_joined(layer.ffn.linear_1, block.feed_forward.narrow)


def _position_table(embedding: Embedding, max_positions: int) -> Tensor:
    """Return the position table (position, width). A learned table cannot be extended."""
    table: Any = embedding.positions
    if isinstance(table, LearnedPositions):
        return table.table
    formula: Tensor = table.formula(max_positions, embedding.weight.shape[1])
    return formula


def _fill_joined(spec: Any, *projections: nn.Linear) -> None:
    """Fill one projection of CTranslate2 with several projections, concatenated along the output."""
    bias = None
    if projections[0].bias is not None:
        bias = torch.cat([projection.bias for projection in projections])
    _fill_linear(spec, torch.cat([projection.weight for projection in projections]), bias)


def _fill_linear(spec: Any, weight: Tensor, bias: Tensor | None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _fill_norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().clone().numpy()  # a copy: CTranslate2 scales its input in place


def _residuals(model: Transformer) -> Iterator[nn.Module]:
    return (module for module in model.modules() if isinstance(module, PreNorm | PostNorm))


def _on_cpu(model: Transformer) -> Transformer:
    """Return the model itself if it computes on the CPU in float32, else a copy that does."""
    if model.device.type == "cpu" and model.autocast_dtype is None:
        return model
    return DeviceConfig("cpu", "fp32").place(copy.deepcopy(model))


def _max_difference(model: Transformer, files: dict[str, bytes], names: TokenNames) -> float:
    """Return the largest difference of a log-probability between the model and the converted model.

    The log-probabilities are those of the target tokens of random pairs.
    """
    from ctranslate2 import Translator  # optional

    max_length = min(json.loads(files["config.json"])["max_positions"] - 1, MAX_PROBE_LENGTH)
    sources, targets = (
        _random_sentences(len(embedding.weight), max_length, seed)
        for seed, embedding in enumerate(_embeddings(model))
    )
    batch = padded_batch(sources, targets)
    if batch.target is None:
        raise ValueError("a batch of pairs must have a target")
    with torch.inference_mode():
        expected = model.output.log_probs(model(batch))  # (batch, target - 1, token)
        expected = expected.gather(2, batch.target[:, 1:, None]).squeeze(2)
    buffers = {name: io.BytesIO(data) for name, data in files.items()}
    converted = Translator(".", files=buffers, intra_threads=1)
    scored = converted.score_batch(_to_names(sources, names.source), _to_names(targets, names.target))
    differences = [
        (row[: len(result.log_probs)] - torch.tensor(result.log_probs)).abs().max()
        for row, result in zip(expected, scored, strict=True)
    ]
    return float(torch.stack(differences).max())


def _embeddings(model: Transformer) -> tuple[Embedding, Embedding]:
    # `unsupported_reason` has refused models whose source embedding embeds patches of a picture.
    return cast("Embedding", model.source_embedding), model.target_embedding


def _random_sentences(vocab_size: int, max_length: int, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(len(SPECIAL_TOKENS), vocab_size, (length,), generator=generator).tolist()
        for length in (1, max_length // 2, max_length)
    ]


def _to_names(sentences: Sequence[Sequence[int]], names: Sequence[str]) -> list[list[str]]:
    return [[names[token] for token in sentence] for sentence in sentences]
