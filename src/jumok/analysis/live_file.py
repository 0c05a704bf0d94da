"""A page with a model in it: the model runs in the browser, from one file, without a server or a network.

The file has the page, the engine (`plots/engine.js`, built from `web/src/engine/`), a description of the
model as JSON, and its weights in base64. Matrices are stored in half precision, or in eight bits with one
scale per row. Vectors are stored in single precision. The engine has its own code for each mechanism, so it
supports only the common mechanisms, which are listed below.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from jumok.analysis.facts import model_facts
from jumok.config.recipe import RecurrentSettings, TransformerSettings
from jumok.errors import DataError, UnsupportedError
from jumok.inference.search.plan import SearchPlan
from jumok.models.validate import NO_ATTENTION, attention_order, encoder_width, head_widths
from jumok.plots.page import live_file_page
from jumok.text.sentencepiece_file import read_sentencepiece_file
from jumok.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from jumok.config.recipe import ModelSettings
    from jumok.inference.translator import Translator
    from jumok.text.protocol import AnyTokenizer

Quantization = Literal["float16", "int8"]
QUANTIZATIONS: tuple[Quantization, ...] = ("float16", "int8")
MAX_WEIGHT_BYTES = 24 * 2**20
"""The maximum size of the weights before base64, which adds a third. Every number is counted as if it were in
a matrix: one byte in int8, two in float16. A few more bytes of vectors and scales are not counted."""

FORMAT, VERSION = "jumok-live-model", 1
TRANSFORMER_MECHANISMS = ("scaled-dot",)
RECURRENT_MECHANISMS = (
    "bahdanau",
    "luong-dot",
    "luong-general",
    "luong-concat",
    "scaled-dot",
    NO_ATTENTION,
)
_INT8_LEVELS = 127
_PIECE_TYPES = {
    "normal": "n",
    "unknown": "u",
    "control": "c",
    "user-defined": "d",
    "byte": "b",
    "unused": "x",
}


@dataclass(frozen=True, slots=True)
class PackedModel:
    """A model as the engine reads it: a description, and the bytes of its weights."""

    description: dict[str, Any]
    weights: bytes


def model_page(
    translator: Translator,
    settings: ModelSettings,
    *,
    name: str = "",
    quantization: Quantization = "float16",
    sentence: str = "",
) -> str:
    """Return a page in which this model runs. `settings` is the section `model` of its recipe.

    The page translates `sentence` when the page opens. Raise an `UnsupportedError` if the engine of the page
    cannot run the model, or if the model is too large.
    """
    packed = pack_model(translator, settings, quantization=quantization)
    models = [{"name": name, "facts": packed.description["facts"]}]
    return live_file_page(
        {"live": {"models": models, "run": False, "sentence": sentence}},
        model=json.dumps(packed.description, ensure_ascii=False, separators=(",", ":")),
        weights=base64.b64encode(packed.weights).decode("ascii"),
    )


def pack_model(
    translator: Translator, settings: ModelSettings, *, quantization: Quantization = "float16"
) -> PackedModel:
    """Return the model with rounded weights.

    Raise an `UnsupportedError` if the engine cannot run the model, or if the model is too large.
    """
    architecture = _architecture(settings)
    tokenizers = translator.tokenizers
    source = _tokenizer(tokenizers.source)
    target = None if tokenizers.shared else _tokenizer(tokenizers.target)
    tensors, weights = _pack_tensors(translator.model.state_dict(), quantization)
    read_out = translator.read_out
    plan = asdict(SearchPlan.from_settings(translator.search))
    del plan["n_best"]
    description = {
        "format": FORMAT,
        "version": VERSION,
        "architecture": architecture,
        "tensors": tensors,
        "source": source,
        "target": target,
        "search": plan,
        "read_out": None if read_out is None else asdict(read_out),
        "max_source_tokens": translator.max_source_tokens,
        "sentences": translator.sentences,
        "facts": {
            **model_facts(translator.model),
            "source_language": translator.source_language,
            "target_language": translator.target_language,
            **({"training": dict(training)} if (training := translator.facts.training) else {}),
        },
    }
    return PackedModel(description, weights)


def round_weights(weights: Mapping[str, Tensor], quantization: Quantization) -> dict[str, Tensor]:
    """Return the weights as the engine uses them: rounded as in a file, in single precision."""
    return {
        name: torch.from_numpy(_StoredTensor(tensor, quantization).rounded())
        for name, tensor in weights.items()
    }


# --- What the engine runs -----------------------------------------------------------------------------------


def _architecture(settings: ModelSettings) -> dict[str, Any]:
    """Return the settings that the engine needs, or refuse a family or a mechanism by name."""
    if isinstance(settings, TransformerSettings):
        mechanisms = (settings.encoder_attention, settings.decoder_attention, settings.cross_attention)
        _check_mechanisms([mechanism.kind for mechanism in mechanisms], TRANSFORMER_MECHANISMS, "Transformer")
        widths = head_widths(settings)
        names: tuple[str, ...] = (
            "width",
            "heads",
            "norm",
            "norm_kind",
            "activation",
            "positions",
            "encoder_layers",
            "decoder_layers",
        )
        return {
            "family": settings.family,
            **{name: getattr(settings, name) for name in names},
            "groups": settings.key_value_groups or settings.heads,
            "key_width": widths.key,
            "value_width": widths.value,
        }
    if isinstance(settings, RecurrentSettings):
        kind = settings.attention.kind
        _check_mechanisms([kind], RECURRENT_MECHANISMS, "recurrent model")
        names = (
            "cell",
            "width",
            "embedding",
            "encoder_layers",
            "decoder_layers",
            "bidirectional",
            "input_feeding",
        )
        return {
            "family": settings.family,
            **{name: getattr(settings, name) for name in names},
            "encoder_width": encoder_width(settings),
            "attention": kind,
            "order": "after" if kind == NO_ATTENTION else attention_order(settings),
        }
    raise UnsupportedError(
        "A page in which a model runs needs a Transformer with an encoder and a decoder, or a recurrent "
        f"model. Received: a {settings.family} model. `jumok look MODEL --live` serves a page for every "
        "translator."
    )


def _check_mechanisms(kinds: list[str], supported: tuple[str, ...], family: str) -> None:
    for kind in kinds:
        if kind not in supported:
            raise UnsupportedError(
                f'The attention "{kind}" does not run in a page. For a {family}, the engine of a page has: '
                f"{', '.join(supported)}. `jumok look MODEL --live` serves a page for every mechanism."
            )


def _tokenizer(tokenizer: AnyTokenizer) -> dict[str, Any]:
    """Return a tokenizer as the engine reads it."""
    if not isinstance(tokenizer, Tokenizer) or tokenizer.token_shape:
        what = "pictures" if tokenizer.token_shape else "the vocabulary of another toolkit"
        raise UnsupportedError(
            f"A page in which a model runs needs tokenizers that jumok trained. Received: {what}. "
            '`jumok look MODEL "…" --out page.html` writes a page of one translation.'
        )
    file = read_sentencepiece_file(tokenizer.to_bytes())
    return {
        "kind": file.kind,
        "byte_fallback": file.byte_fallback,
        "tokens": [piece.text for piece in file.pieces],
        "scores": [float(f"{piece.score:.9g}") for piece in file.pieces],  # nine digits restore a float32
        "types": "".join(_PIECE_TYPES[piece.type] for piece in file.pieces),
    }


# --- Weights as bytes ---------------------------------------------------------------------------------------


class _StoredTensor:
    """One tensor as it is stored: a matrix in the precision of the file, a vector in single precision."""

    def __init__(self, tensor: Tensor, quantization: Quantization) -> None:
        exact = tensor.detach().cpu().float().numpy()
        self.kind: str = "float32" if exact.ndim < 2 else quantization
        self.shape = exact.shape
        self.scales: NDArray[np.float32] | None = None
        self.values: NDArray[Any] = exact.astype("<f4")
        if self.kind == "float16":
            self.values = exact.astype("<f2")
        elif self.kind == "int8":
            rows = exact.reshape(-1, exact.shape[-1])
            self.scales = (np.abs(rows).max(axis=1, initial=0.0) / _INT8_LEVELS).astype("<f4")
            divisors = np.where(self.scales > 0, self.scales, 1)[:, None]
            self.values = np.rint(rows / divisors).clip(-_INT8_LEVELS, _INT8_LEVELS).astype(np.int8)

    def rounded(self) -> NDArray[np.float32]:
        """Return the values that the engine computes with."""
        values = self.values.astype(np.float32)
        if self.scales is not None:
            values = values * self.scales.astype(np.float32)[:, None]
        return values.reshape(self.shape)


def _pack_tensors(weights: Mapping[str, Tensor], quantization: Quantization) -> tuple[dict[str, Any], bytes]:
    """Return name → offset, shape and type of a tensor, and all bytes. Tied tensors are stored only once."""
    distinct = {tensor.data_ptr(): tensor for tensor in weights.values()}
    _check_size(sum(tensor.numel() for tensor in distinct.values()), quantization)
    data = bytearray()
    entries: dict[int, dict[str, Any]] = {}
    for pointer, tensor in distinct.items():
        if not torch.isfinite(tensor).all():
            raise DataError("A weight of this model is not finite, so the model cannot be stored in a page.")
        stored = _StoredTensor(tensor, quantization)
        if not np.isfinite(stored.values).all():
            raise DataError(
                "A weight of this model is too large for half precision. Choose --quantization int8, or "
                "serve the page with `jumok look MODEL --live`."
            )
        entry: dict[str, Any] = {"shape": list(stored.shape), "kind": stored.kind, "offset": len(data)}
        data += stored.values.tobytes()
        if stored.scales is not None:
            entry["scales"] = len(data)
            data += stored.scales.tobytes()
        entries[pointer] = entry
    return {name: entries[tensor.data_ptr()] for name, tensor in weights.items()}, bytes(data)


def _check_size(parameters: int, quantization: Quantization) -> None:
    """Refuse a model that is too large. `MAX_WEIGHT_BYTES` says how its size is counted."""
    bytes_per_weight = {"float16": 2, "int8": 1}
    size = parameters * bytes_per_weight[quantization]
    if size <= MAX_WEIGHT_BYTES:
        return
    fits_int8 = quantization != "int8" and parameters <= MAX_WEIGHT_BYTES
    advice = "With --quantization int8 it fits. " if fits_int8 else ""
    raise UnsupportedError(
        f"This model is too large for a page: {parameters:,} weights in {quantization} take "
        f"{size / 2**20:.0f} MiB, and a page holds at most {MAX_WEIGHT_BYTES / 2**20:.0f} MiB. {advice}"
        "`jumok look MODEL --live` serves a page for a model of any size."
    )
