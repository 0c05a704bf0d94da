"""Loading a model folder: every kind of model comes back, and a card that lies is refused before it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from jumok.decoding import load
from jumok.errors import ModelFolderError
from jumok.models import build_model
from jumok.recipe import make_recipe
from jumok.storage import (
    ModelCard,
    checked_json,
    module_weights,
    read_checked_json,
    save_model,
)
from jumok.text import learn_subwords

if TYPE_CHECKING:
    from pathlib import Path

    from jumok.models import TranslationModel
    from jumok.text import Subwords

TRANSFORMER = {"width": 16, "heads": 2, "feed_forward": 16, "encoder_layers": 1, "decoder_layers": 1}
RECURRENT = {"family": "recurrent", "width": 16, "embedding": 16}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": TRANSFORMER,
    "post-norm": {**TRANSFORMER, "norm": "post", "tied": False, "encoder_attention": "linear"},
    "learned positions": {**TRANSFORMER, "positions": "learned", "norm_kind": "batch"},
    "rotary": {**TRANSFORMER, "positions": "rotary", "norm_kind": "rms"},
    "relative keys": {**TRANSFORMER, "positions": "relative-keys"},
    "relative bias": {**TRANSFORMER, "positions": "relative-bias"},
    "bahdanau": RECURRENT,
    "lstm": {**RECURRENT, "cell": "lstm", "attention": "luong-location"},
    "local": {**RECURRENT, "attention": "luong-local-p", "input_feeding": True},
    "no attention": {**RECURRENT, "attention": "none"},
    "decoder-only": {"family": "decoder-only", "width": 16, "heads": 2, "feed_forward": 16, "layers": 1},
}


@pytest.fixture(scope="module")
def pieces() -> Subwords:
    text = ["one two three", "four five six", "seven eight nine"]
    return learn_subwords(text, make_recipe().text, pieces=300)


def save(folder: Path, pieces: Subwords, settings: dict[str, Any]) -> TranslationModel:
    recipe = make_recipe({"model": settings})
    model = build_model(recipe.model, source_pieces=pieces.size, target_pieces=pieces.size, shared=True)
    save_model(folder, ModelCard(recipe), module_weights(model), {"pieces.model": pieces.to_bytes()})
    return model


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_comes_back(tmp_path: Path, pieces: Subwords, name: str) -> None:
    saved = save(tmp_path / "model", pieces, MODELS[name])
    loaded = load(tmp_path / "model").model
    assert type(loaded) is type(saved)
    for key, weight in module_weights(saved).items():
        assert torch.equal(module_weights(loaded)[key], weight), key  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "absurd"),
    [
        ("bahdanau", {"attention": {"kind": "bahdanau", "units": 10**12}}),  # terabytes
        ("bahdanau", {"attention": {"kind": "bahdanau", "units": 10**18}}),  # more bytes than can be counted
        ("bahdanau", {"attention": {"kind": "bahdanau", "units": 10**30}}),
        ("bahdanau", {"attention": {"kind": "bahdanau", "units": 10**11, "normed": True}}),
        ("lstm", {"attention": {"kind": "luong-location", "longest": 10**12}}),
        ("transformer", {"width": 10**9}),
        ("transformer", {"feed_forward": 65536, "width": 8192, "encoder_layers": 64, "decoder_layers": 64}),
        ("learned positions", {"places": 1_000_000}),
        ("transformer", {"width": 32}),
    ],
)
def test_absurd_sizes_are_refused_before_memory_is_taken(
    tmp_path: Path, pieces: Subwords, name: str, absurd: dict[str, Any]
) -> None:
    save(tmp_path / "model", pieces, MODELS[name])
    card = tmp_path / "model" / "jumok.json"
    content = read_checked_json(card)
    content["recipe"]["model"].update(absurd)
    card.write_bytes(checked_json(content))
    with pytest.raises(ModelFolderError):
        load(tmp_path / "model")
