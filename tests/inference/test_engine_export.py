"""Export to CTranslate2: converted models are verified, and unsupported models are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from jumok.config.recipe import DecoderOnlySettings, RecurrentSettings
from jumok.errors import UnsupportedError
from jumok.inference.engines.ctranslate2_export import export, unsupported_reason
from jumok.models.build import build_model
from support.random_models import random_model


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"encoder_attention": "linear"},
            "does not know the LinearAttention at encoder.0.attention.mechanism",
        ),
        ({"cross_attention": "luong-general"}, "at decoder.0.cross_attention.mechanism"),
        ({"decoder_attention": "bahdanau"}, "at decoder.0.attention.mechanism"),
        ({"decoder_attention": "efficient"}, "does not know the Efficient at decoder.0.attention.mechanism"),
        ({"decoder_attention": "keras-dot"}, "does not know the KerasDot at decoder.0.attention.mechanism"),
    ],
)
def test_unsupported_attention_is_named_with_its_location(settings: dict[str, Any], expected: str) -> None:
    model = random_model(**settings)
    assert expected in unsupported_reason(model)
    with pytest.raises(UnsupportedError, match="CTranslate2 does not know"):
        export(model, max_positions=64)


def test_unsupported_families_are_named() -> None:
    for settings in (RecurrentSettings(width=16, embedding=16), DecoderOnlySettings(width=16, layers=1)):
        model = build_model(settings, source_vocab_size=20, target_vocab_size=20, shared=True)
        assert type(model).__name__ in unsupported_reason(model)


@pytest.mark.parametrize("settings", [{"norm_kind": "rms"}, {"norm_kind": "batch"}, {"positions": "none"}])
def test_an_unknown_module_is_refused(settings: dict[str, Any]) -> None:
    assert "CTranslate2 does not know the" in unsupported_reason(random_model(**settings))


@pytest.mark.parametrize("positions", ["rotary", "alibi", "relative-keys", "relative-bias"])
def test_positions_inside_the_heads_are_refused(positions: str) -> None:
    with pytest.raises(UnsupportedError):
        export(random_model(positions=positions), max_positions=64)


def test_heads_that_share_keys_are_refused() -> None:
    assert "its own keys and values" in unsupported_reason(random_model(key_value_groups=1))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"key_width": 6}, "keys of width 8 per head (the model's width divided by its heads), not 6, at"),
        ({"value_width": 4}, "values of width 8 per head"),
        ({"heads": 3, "key_width": 4, "value_width": 5}, "keys of width 5.33333 per head"),  # 16 / 3
    ],
)
def test_heads_of_another_width_are_refused_with_their_location(
    settings: dict[str, Any], reason: str
) -> None:
    model = random_model(**settings)
    assert reason in unsupported_reason(model)
    assert unsupported_reason(model).endswith("at encoder.0.attention")


def test_biases_of_attention_are_exported() -> None:
    """`export` raises an error if the converted model has other log-probabilities."""
    model: Any = random_model(attention_bias=True, attention_init="lecun-normal", key_width=8)
    for block in model.decoder:
        for projection in (block.attention.out, block.attention.query, block.cross_attention.value):
            torch.nn.init.normal_(projection.bias)
    assert export(model, max_positions=64)


def test_a_model_with_other_log_probabilities_is_refused() -> None:
    """All modules are known, but one computes something else than the exporter assumes."""
    model: Any = random_model()
    assert not unsupported_reason(model)
    model.target_embedding.scale = 1.0  # instead of √width
    with pytest.raises(UnsupportedError, match="log-probabilities of the converted model differ by"):
        export(model, max_positions=64)


def test_learned_positions_limit_the_exported_model() -> None:
    files = export(random_model(positions="learned", max_positions=40), max_positions=64)
    assert json.loads(files["config.json"])["max_positions"] == 40


def test_export_does_not_change_the_model() -> None:
    model = random_model(tied=True)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    export(model, max_positions=64, quantization="int8")
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())


def test_int8_files_are_smaller() -> None:
    model = random_model(vocab_size=500, tied=True)
    float32, int8 = (
        len(export(model, max_positions=64, quantization=precision)["model.bin"])
        for precision in ("float32", "int8")
    )
    assert int8 < 0.5 * float32
