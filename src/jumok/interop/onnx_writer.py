"""Write a model as ONNX, in the layout of Hugging Face's optimum without a cache:

    encoder_model.onnx    input_ids, attention_mask -> last_hidden_state
    decoder_model.onnx    input_ids, encoder_hidden_states, encoder_attention_mask -> logits

The folder also has the configuration and the tokenizer of `--to huggingface`, with jumok's ids. The opset is
18, because torch writes an `Attention` operator from opset 23 on, and onnxruntime refuses jumok's masks in
this operator. An export needs the packages onnx and onnxscript.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from jumok.errors import UnsupportedError
from jumok.interop.exported_model import text_requirements
from jumok.interop.huggingface_writer import huggingface_files, max_positions_of
from jumok.models.probe import Probe
from jumok.models.transformer import Transformer
from jumok.storage.readme import describe_model
from jumok.types import BEGIN, PAD

if TYPE_CHECKING:
    from jumok.interop.exported_model import ExportedModel
    from jumok.models.transformer import DecoderBlock, EncoderBlock

OPSET = 18
_USAGE = """\
Two graphs, opset 18: `encoder_model.onnx` (input_ids, attention_mask → last_hidden_state) and
`decoder_model.onnx` (input_ids, encoder_hidden_states, encoder_attention_mask → logits). Decoding begins with
`<pad>`, id 0. The tokenizer is transformers' MarianTokenizer of this folder; with optimum:
`ORTModelForSeq2SeqLM.from_pretrained(FOLDER, use_cache=False)`.
"""


class _Encoder(nn.Module):
    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        allowed = attention_mask.bool()
        states: Tensor = self.model.source_embedding(input_ids)
        probe = Probe(rows=torch.arange(1))  # without an edit, the probe does not use its rows
        for layer, block in enumerate(cast("list[EncoderBlock]", list(self.model.encoder))):
            states = block(states, allowed_keys=allowed, layer=layer, probe=probe)
        return cast("Tensor", self.model.after_encoder(states, allowed))


class _Decoder(nn.Module):
    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: Tensor, encoder_hidden_states: Tensor, encoder_attention_mask: Tensor
    ) -> Tensor:
        allowed = encoder_attention_mask.bool()
        decoder_ids = torch.where(input_ids == PAD, BEGIN, input_ids)  # Hugging Face begins with <pad>
        states: Tensor = self.model.target_embedding(decoder_ids)
        probe = Probe(rows=torch.arange(1))  # without an edit, the probe does not use its rows
        for layer, block in enumerate(cast("list[DecoderBlock]", list(self.model.decoder))):
            source = block.cross_attention.prepare(encoder_hidden_states, encoder_hidden_states, allowed)
            states = block(states, source, layer=layer, probe=probe)
        return cast("Tensor", self.model.output(self.model.after_decoder(states)))


def onnx_files(exported: ExportedModel) -> dict[str, bytes]:
    """Return the contents of the files, by file name.

    The UnsupportedError names a setting that the format cannot represent, or a missing package.
    """
    files = huggingface_files(exported, own_ids=True)  # raises an error if a setting cannot be represented
    try:
        importlib.import_module("onnxscript")
    except ImportError:
        raise UnsupportedError(
            "An export to ONNX needs the packages onnx and onnxscript: pip install 'jumok[onnx]'."
        ) from None
    model = exported.model
    if not isinstance(model, Transformer):  # impossible: `huggingface_files` has raised an error
        raise TypeError(type(model).__name__)
    max_length = max_positions_of(exported.card.recipe.model)
    # torch.export would make a length of 1 a constant. The exported graphs also run with one token.
    batch, source, target = (
        torch.export.Dim("batch", min=1, max=4096),
        torch.export.Dim("source", min=2, max=max_length),
        torch.export.Dim("target", min=2, max=max_length),
    )
    ids, mask = torch.full((2, 5), 4), torch.ones(2, 5, dtype=torch.int64)
    states = torch.zeros(2, 5, model.output.weight.shape[1])
    encoder = _export(
        _Encoder(model),
        {"input_ids": ids, "attention_mask": mask},
        ({0: batch, 1: source}, {0: batch, 1: source}),
        "last_hidden_state",
    )
    decoder = _export(
        _Decoder(model),
        {"input_ids": torch.full((2, 3), 4), "encoder_hidden_states": states, "encoder_attention_mask": mask},
        ({0: batch, 1: target}, {0: batch, 1: source}, {0: batch, 1: source}),
        "logits",
    )
    del files["model.safetensors"]
    usage = f"{_USAGE}Texts and translations have at most {max_length} tokens.\n{text_requirements(exported)}"
    readme = describe_model(exported.card, usage=usage).encode()
    return {**files, "encoder_model.onnx": encoder, "decoder_model.onnx": decoder, "README.md": readme}


def _export(module: nn.Module, inputs: dict[str, Tensor], dynamic: tuple[Any, ...], output: str) -> bytes:
    """Return the graph of a module, including its weights, as the bytes of one file."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's exporter warns about its own code
        path = Path(folder) / "graph.onnx"
        with contextlib.redirect_stdout(io.StringIO()):  # the exporter prints its progress
            torch.onnx.export(
                module.eval(),
                tuple(inputs.values()),
                path,
                input_names=list(inputs),
                output_names=[output],
                dynamic_shapes=dynamic,
                opset_version=OPSET,
                dynamo=True,
                external_data=False,
            )
        return path.read_bytes()
