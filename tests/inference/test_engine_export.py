"""What CTranslate2 can express is exported and checked; what it cannot is refused with the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from random_models import random_model

from jumok.engines.export import export, why_not
from jumok.errors import UnsupportedError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"encoder_attention": "linear"},
            "does not know the LinearAttention at encoder.0.attention.mechanism",
        ),
        ({"cross_attention": "luong-general"}, "at decoder.0.cross_attention.mechanism"),
        ({"decoder_attention": "bahdanau"}, "at decoder.0.attention.mechanism"),
    ],
)
def test_other_attention_is_named_with_its_place(settings: dict[str, Any], words: str) -> None:
    model = random_model(**settings)
    assert words in why_not(model)
    with pytest.raises(UnsupportedError, match="CTranslate2 does not know"):
        export(model, places=64)


def test_other_families_are_named() -> None:
    from jumok.models import build_model
    from jumok.recipe import DecoderOnlySettings, RecurrentSettings

    for settings in (RecurrentSettings(width=16, embedding=16), DecoderOnlySettings(width=16, layers=1)):
        model = build_model(settings, source_pieces=20, target_pieces=20, shared=True)
        assert type(model).__name__ in why_not(model)


@pytest.mark.parametrize("settings", [{"norm_kind": "rms"}, {"norm_kind": "batch"}, {"positions": "none"}])
def test_a_part_that_is_not_known_is_refused(settings: dict[str, Any]) -> None:
    assert "CTranslate2 does not know the" in why_not(random_model(**settings))


@pytest.mark.parametrize("positions", ["rotary", "alibi", "relative-keys", "relative-bias"])
def test_positions_told_to_the_heads_are_refused(positions: str) -> None:
    with pytest.raises(UnsupportedError):
        export(random_model(positions=positions), places=64)


def test_heads_that_share_keys_are_refused() -> None:
    model: Any = random_model()
    model.encoder[0].attention.groups = 1
    assert "keys and values of its own" in why_not(model)


def test_a_model_that_computes_something_else_is_found_out() -> None:
    """The parts are all known, but one of them is not used as the exporter believes."""
    model: Any = random_model()
    assert not why_not(model)
    model.target_embedding.scale = 1.0
    with pytest.raises(UnsupportedError, match="log-probabilities differ by"):
        export(model, places=64)


def test_learned_positions_are_exported_as_far_as_they_go() -> None:
    files = export(random_model(positions="learned", places=40), places=64)
    assert json.loads(files["config.json"])["places"] == 40


def test_the_model_itself_is_left_as_it_was() -> None:
    model = random_model(tied=True)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    export(model, places=64, quantization="int8")
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())


def test_eight_bits_are_smaller() -> None:
    model = random_model(pieces=500, tied=True)
    single, eight = (len(export(model, places=64, quantization=p)["model.bin"]) for p in ("float32", "int8"))
    assert eight < 0.5 * single
