"""Models of every kind can be loaded. Absurd sizes in a recipe are refused before memory is allocated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn

from jumok.attention import POSITIONS
from jumok.config.recipe import make_recipe
from jumok.errors import ModelFolderError
from jumok.inference import building
from jumok.inference.loading import load
from jumok.models.build import build_model
from jumok.storage.folders import json_with_checksum, read_json_with_checksum
from jumok.storage.model_folder import ModelCard, save_model
from jumok.storage.tensors import module_weights
from jumok.text.tokenizer_training import train_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jumok.models.model import TranslationModel
    from jumok.text.tokenizer import Tokenizer

TRANSFORMER = {"width": 16, "heads": 2, "feed_forward": 16, "encoder_layers": 1, "decoder_layers": 1}
RECURRENT = {"family": "recurrent", "width": 16, "embedding": 16}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": TRANSFORMER,
    "post-norm": {**TRANSFORMER, "norm": "post", "tied": False, "encoder_attention": "linear"},
    "learned positions": {**TRANSFORMER, "positions": "learned", "norm_kind": "batch"},
    "rms norm": {**TRANSFORMER, "norm_kind": "rms"},
    **{f"positions {kind}": {**TRANSFORMER, "positions": kind} for kind in POSITIONS},
    "bahdanau": RECURRENT,
    "lstm": {**RECURRENT, "cell": "lstm", "attention": "luong-location"},
    "local": {**RECURRENT, "attention": "luong-local-p", "input_feeding": True},
    "no attention": {**RECURRENT, "attention": "none"},
    "decoder-only": {"family": "decoder-only", "width": 16, "heads": 2, "feed_forward": 16, "layers": 1},
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    text = ["one two three", "four five six", "seven eight nine"]
    return train_tokenizer(text, make_recipe().text, vocab_size=300)


def save(folder: Path, tokenizer: Tokenizer, settings: dict[str, Any]) -> TranslationModel:
    recipe = make_recipe({"model": settings})
    model = build_model(
        recipe.model,
        source_vocab_size=tokenizer.vocab_size,
        target_vocab_size=tokenizer.vocab_size,
        shared=True,
    )
    save_model(
        folder, ModelCard(recipe), module_weights(model), {"pieces.model": tokenizer.to_bytes()}, checked=True
    )
    return model


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_can_be_loaded(tmp_path: Path, tokenizer: Tokenizer, name: str) -> None:
    saved = save(tmp_path / "model", tokenizer, MODELS[name])
    loaded = load(tmp_path / "model", engine="torch").model
    assert type(loaded) is type(saved)
    for key, weight in module_weights(saved).items():
        assert torch.equal(module_weights(loaded)[key], weight), key  # type: ignore[arg-type]
    for key, buffer in saved.named_buffers():  # also buffers that are not stored
        assert torch.equal(loaded.get_buffer(key), buffer), key
    assert [name for name, _ in loaded.named_parameters()] == [name for name, _ in saved.named_parameters()]


class ComputedBuffer(nn.Module):
    def __init__(self, make: Callable[[], Tensor]) -> None:
        super().__init__()
        self.register_buffer("computed", make(), persistent=False)


@pytest.mark.parametrize(
    "make",
    [lambda: torch.empty(3).copy_(torch.arange(3)), lambda: torch.zeros(3).fill_(5), lambda: torch.zeros(3)],
)
def test_a_buffer_that_would_lose_its_values_is_refused(make: Callable[[], Tensor]) -> None:
    with building._WithoutWeights():
        module = ComputedBuffer(make)
    with pytest.raises(RuntimeError, match="The buffer computed is not stored, and has no values"):
        building._assign_weights(module, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("bahdanau", {"attention": {"kind": "bahdanau", "units": 10**12}}),  # terabytes
        # More bytes than 64 bits can count.
        ("bahdanau", {"attention": {"kind": "bahdanau", "units": 10**18}}),
        ("bahdanau", {"attention": {"kind": "bahdanau", "units": 10**30}}),
        ("bahdanau", {"attention": {"kind": "bahdanau", "units": 10**11, "normed": True}}),
        ("lstm", {"attention": {"kind": "luong-location", "max_keys": 10**12}}),
        ("transformer", {"width": 10**9}),
        ("transformer", {"feed_forward": 65536, "width": 8192, "encoder_layers": 64, "decoder_layers": 64}),
        ("learned positions", {"max_positions": 1_000_000}),
        ("transformer", {"width": 32}),  # not absurd, but not the width of the stored weights
    ],
)
def test_sizes_that_do_not_fit_the_weights_are_refused_before_memory_is_allocated(
    tmp_path: Path, tokenizer: Tokenizer, name: str, sizes: dict[str, Any]
) -> None:
    save(tmp_path / "model", tokenizer, MODELS[name])
    card = tmp_path / "model" / "jumok.json"
    content = read_json_with_checksum(card)
    content["recipe"]["model"].update(sizes)
    card.write_bytes(json_with_checksum(content))
    with pytest.raises(ModelFolderError):
        load(tmp_path / "model", engine="torch")
