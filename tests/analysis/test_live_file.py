"""A page with a model in it: what the page holds, its content security policy, and refused models."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from jumok.analysis import live_file
from jumok.analysis.live_file import model_page, pack_model, round_weights
from jumok.attention import CATALOGUE
from jumok.config.recipe import AttentionSettings, RecurrentSettings, TransformerSettings
from jumok.errors import UnsupportedError
from jumok.text.sentencepiece_file import read_sentencepiece_file
from jumok.text.tokenizer import TokenizerPair
from support.random_translators import SMALL_MODELS, small_translator, tokenizers


def test_a_page_holds_the_model_and_may_connect_to_nothing() -> None:
    settings = SMALL_MODELS["transformer"]
    page = model_page(small_translator("transformer"), settings, name="small", sentence="</script>")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert "connect-src 'none'; worker-src blob:" in policy[1]
    assert "unsafe" not in policy[1]
    elements = dict(re.findall(r'<script type="[^"]+" id="([^"]+)">(.*?)</script>', page, re.DOTALL))
    assert set(elements) == {"jumok-data", "jumok-model", "jumok-weights", "jumok-engine"}
    data = json.loads(elements["jumok-data"])
    assert data["live"]["sentence"] == "</script>"
    assert json.loads(elements["jumok-model"])["architecture"]["positions"] == "sinusoidal"


def test_a_tied_matrix_is_stored_once() -> None:
    translator = small_translator("transformer")
    packed = pack_model(translator, SMALL_MODELS["transformer"])
    parameters = list(translator.model.parameters())
    vectors = sum(weight.numel() for weight in parameters if weight.dim() < 2)
    total = sum(weight.numel() for weight in parameters)
    assert len(packed.weights) == 2 * (total - vectors) + 4 * vectors  # two bytes in float16, four in float32
    tensors = packed.description["tensors"]
    assert tensors["output.weight"] == tensors["source_embedding.weight"]


@pytest.mark.parametrize(("quantization", "relative_error"), [("float16", 2**-11), ("int8", 0.5 / 127)])
def test_weights_are_rounded_to_the_precision(quantization: Any, relative_error: float) -> None:
    torch.manual_seed(1)
    weights = {"matrix": torch.randn(3, 8), "zeros": torch.zeros(2, 2), "vector": torch.randn(5)}
    rounded = round_weights(weights, quantization)
    assert torch.equal(rounded["vector"], weights["vector"])
    assert torch.equal(rounded["zeros"], weights["zeros"])
    error = (rounded["matrix"] - weights["matrix"]).abs()
    largest = weights["matrix"].abs().amax(dim=1, keepdim=True)
    assert (error <= relative_error * largest * 1.001).all()
    assert error.max() > 0


def test_families_and_mechanisms_that_do_not_run_in_a_page_are_refused_by_name() -> None:
    translator = small_translator("transformer")
    with pytest.raises(UnsupportedError, match="decoder-only"):
        pack_model(small_translator("decoder-only"), SMALL_MODELS["decoder-only"])
    refused_in_recurrent = set(CATALOGUE) - set(live_file.RECURRENT_MECHANISMS)
    refused_in_transformer = set(CATALOGUE) - set(live_file.TRANSFORMER_MECHANISMS)
    assert refused_in_recurrent < refused_in_transformer
    for kind in refused_in_transformer:
        with pytest.raises(UnsupportedError, match=f'"{kind}" does not run in a page'):
            pack_model(translator, TransformerSettings(cross_attention=AttentionSettings(kind=kind)))
    for kind in refused_in_recurrent:
        with pytest.raises(UnsupportedError, match=f'"{kind}" does not run in a page'):
            pack_model(translator, RecurrentSettings(attention=AttentionSettings(kind=kind)))


def test_a_model_that_is_too_large_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    translator, settings = small_translator("transformer"), SMALL_MODELS["transformer"]
    parameters = sum(weight.numel() for weight in translator.model.parameters())
    monkeypatch.setattr(live_file, "MAX_WEIGHT_BYTES", parameters)  # one byte per weight: int8 fits
    with pytest.raises(UnsupportedError, match=r"too large for a page: .* With --quantization int8 it fits"):
        pack_model(translator, settings)
    pack_model(translator, settings, quantization="int8")
    monkeypatch.setattr(live_file, "MAX_WEIGHT_BYTES", parameters - 1)
    with pytest.raises(UnsupportedError, match=r"at most 0 MiB. `jumok look"):
        pack_model(translator, settings, quantization="int8")


def test_pieces_equal_the_pieces_of_sentencepiece() -> None:
    tokenizer: Any = tokenizers().source
    file = read_sentencepiece_file(tokenizer.to_bytes())
    processor = tokenizer._processor
    assert (file.kind, file.byte_fallback) == ("unigram", True)
    assert [piece.text for piece in file.pieces] == tokenizer.tokens(range(tokenizer.vocab_size))
    scores = [processor.get_score(i) for i in range(tokenizer.vocab_size)]
    np.testing.assert_array_equal([piece.score for piece in file.pieces], scores)
    assert [piece.type == "byte" for piece in file.pieces] == [
        processor.is_byte(i) for i in range(tokenizer.vocab_size)
    ]
    assert [piece.type for piece in file.pieces[:4]] == ["control", "unknown", "control", "control"]


def test_a_tokenizer_of_another_toolkit_is_refused() -> None:
    class Foreign:
        token_shape = ()

    translator = small_translator("transformer")
    original = translator.tokenizers
    translator.tokenizers = replace(original, source=Foreign())  # type: ignore[arg-type]
    try:
        with pytest.raises(UnsupportedError, match="vocabulary of another toolkit"):
            pack_model(translator, SMALL_MODELS["transformer"])
    finally:
        translator.tokenizers = original
    assert isinstance(original, TokenizerPair)
