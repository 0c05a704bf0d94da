"""A Transformer written down for CTranslate2: the same weights, as the files that it loads.

What can be expressed is the Transformer as published and its usual variants: scaled dot product in equal
heads at all three sites, layer norm before or after each part, positions from a table. `why_not` says in
words what stands in the way. Words can fall behind the code, so no files are handed out before CTranslate2
has given the model's own log-probabilities of a few random sentences.
"""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from jumok.attention import (
    HeadPositions,
    LearnedPositions,
    MultiHead,
    ScaledDot,
    SinusoidalPositions,
    sinusoids,
)
from jumok.corpus.batches import padded_batch
from jumok.engines.tokens import MARKS, token_names
from jumok.errors import UnsupportedError
from jumok.models import Dropout, OutputLayer, Transformer
from jumok.models.layers import Embedding, FeedForward, PostNorm, PreNorm
from jumok.models.norms import LayerNorm, NoNorm
from jumok.models.transformer import DecoderBlock, EncoderBlock
from jumok.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.models import TranslationModel

__all__ = ["export", "why_not"]

# A part of any other class is one that this page has not been told of.
_KNOWN = {
    Transformer,
    EncoderBlock,
    DecoderBlock,
    MultiHead,
    HeadPositions,  # which tell the heads nothing; all others have a class of their own
    ScaledDot,
    FeedForward,
    PreNorm,
    PostNorm,
    Embedding,
    SinusoidalPositions,
    LearnedPositions,
    OutputLayer,
    Dropout,
    LayerNorm,
    NoNorm,
    nn.Linear,
    nn.Identity,
    nn.ModuleList,
}
PROBE_LENGTH = 24
TOLERANCE = 1e-3
"""How far a log-probability may lie from the model's own; single precision stays well below."""


def why_not(model: TranslationModel) -> str:
    """What CTranslate2 cannot express of a model, or "" if there is nothing."""
    if type(model) is not Transformer:
        return f"CTranslate2 runs Transformers of an encoder and a decoder, not {type(model).__name__}"
    for name, part in model.named_modules():
        if type(part) not in _KNOWN:
            return f"CTranslate2 does not know the {type(part).__name__} at {name}"
    heads = {(part.heads, part.groups) for part in model.modules() if isinstance(part, MultiHead)}
    if len(heads) > 1 or any(number != groups for number, groups in heads):
        return "CTranslate2 wants equally many heads everywhere, each with keys and values of its own"
    if len({type(around) for around in _residuals(model)}) > 1:
        return "CTranslate2 wants the norm before every part of a block, or after every one"
    if len({norm.eps for norm in model.modules() if isinstance(norm, LayerNorm)}) > 1:
        return "CTranslate2 wants one epsilon for every layer norm"
    return ""


def export(model: TranslationModel, *, places: int, quantization: str = "float32") -> dict[str, bytes]:
    """The files of the model for CTranslate2, by name. `places` is how long sentences may become.

    An UnsupportedError says why there are none.
    """
    reason = why_not(model)
    if reason or not isinstance(model, Transformer):
        raise UnsupportedError(reason)
    model = model.eval()
    files = _files(model, places, "float32")
    far = _difference(model, files)
    if not far < TOLERANCE:
        raise UnsupportedError(f"converted, its log-probabilities differ by {far:.2g} from the model's own")
    return files if quantization == "float32" else _files(model, places, quantization)


def _files(model: Transformer, places: int, quantization: str) -> dict[str, bytes]:
    spec = _spec(model, places)
    spec.optimize(quantization=quantization)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _spec(model: Transformer, places: int) -> Any:
    # This imports torch, which is why nothing that only translates may come here.
    from ctranslate2.specs import TransformerSpec

    first: Any = model.decoder[0]
    spec = TransformerSpec.from_config(
        (len(model.encoder), len(model.decoder)),
        first.attention.heads,
        pre_norm=isinstance(first.around_attention, PreNorm),
        alignment_heads=0,  # the coverage penalty reads the mean of the heads of the last layer
    )
    _fill_stack(spec.encoder, model.encoder, model.source_embedding, model.after_encoder, places)
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    _fill_stack(spec.decoder, model.decoder, model.target_embedding, model.after_decoder, places)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    _fill_linear(spec.decoder.projection, model.output.weight, model.output.bias)
    spec.register_source_vocabulary(token_names(len(model.source_embedding.weight)))
    spec.register_target_vocabulary(token_names(len(model.output.weight)))
    spec.config.unk_token = MARKS[UNKNOWN]
    spec.config.add_source_eos = True
    spec.config.add_attribute("places", min(len(_positions(side, places)) for side in _embeddings(model)))
    spec.config.layer_norm_epsilon = first.around_attention.norm.eps
    spec.validate()
    return spec


def _fill_stack(spec: Any, blocks: Any, embedding: Embedding, after: nn.Module, places: int) -> None:
    spec.position_encodings.encodings = _array(_positions(embedding, places))
    if isinstance(after, LayerNorm):
        _fill_norm(spec.layer_norm, after)
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


def _positions(embedding: Embedding, places: int) -> Tensor:
    """The table of positions, (place, width). A learned one ends where it ends."""
    table: Any = embedding.positions
    if isinstance(table, LearnedPositions):
        return table.table
    return sinusoids(places, embedding.weight.shape[1])


def _fill_joined(spec: Any, *projections: nn.Linear) -> None:
    """One product in place of several: their weights on top of each other."""
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
    return tensor.detach().float().clone().numpy()  # CTranslate2 scales what it is given in place


def _residuals(model: Transformer) -> Iterator[nn.Module]:
    return (part for part in model.modules() if isinstance(part, PreNorm | PostNorm))


def _difference(model: Transformer, files: dict[str, bytes]) -> float:
    """The largest difference of a log-probability between the model and its converted twin."""
    from ctranslate2 import Translator

    longest = json.loads(files["config.json"])["places"] - 1
    sources, targets = (
        _random_sentences(len(side.weight), min(longest, PROBE_LENGTH), seed)
        for seed, side in enumerate(_embeddings(model))
    )
    batch = padded_batch(sources, targets)
    if batch.target is None:
        raise ValueError("a batch of pairs has a target")
    with torch.inference_mode():
        own = model.output.log_probs(model(batch))  # (batch, target - 1, piece)
        own = own.gather(2, batch.target[:, 1:, None]).squeeze(2)
    names = token_names(max(len(side.weight) for side in _embeddings(model)))
    twin = Translator(".", files={name: io.BytesIO(data) for name, data in files.items()}, intra_threads=1)
    said = twin.score_batch(_named(sources, names), _named(targets, names))
    differences = [
        (mine[: len(theirs.log_probs)] - torch.tensor(theirs.log_probs)).abs().max()
        for mine, theirs in zip(own, said, strict=True)
    ]
    return float(torch.stack(differences).max())


def _embeddings(model: Transformer) -> tuple[Embedding, Embedding]:
    return model.source_embedding, model.target_embedding


def _random_sentences(pieces: int, longest: int, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(len(MARKS), pieces, (length,), generator=generator).tolist()
        for length in (1, longest // 2, longest)
    ]


def _named(sentences: Sequence[Sequence[int]], names: Sequence[str]) -> list[list[str]]:
    return [[names[piece] for piece in sentence] for sentence in sentences]
