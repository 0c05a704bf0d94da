"""Patch embeddings equal numpy's computation, grid positions follow their formula, models read pictures."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from jumok.attention import CATALOGUE, POSITIONS, GridPositions, NoPositions, grid_sinusoids
from jumok.config.recipe import EncoderOnlySettings, make_recipe
from jumok.data.batching import class_batch, padded_batch
from jumok.errors import UnsupportedError
from jumok.models.build import build_model
from jumok.models.encoder_only import EncoderOnly
from jumok.models.patch_embedding import PatchEmbedding
from jumok.models.transformer import Transformer
from jumok.models.validate import ATTENTION_NEEDS
from jumok.types import PatchGrid

GRID = PatchGrid(3, 3, 12)  # patches of 2 × 2 pixels in 3 colours
NEEDS = ATTENTION_NEEDS["encoder-only"]["attention"]
SUITABLE = [name for name, entry in CATALOGUE.items() if not entry.supports.missing(*NEEDS)]


def random_patches(count: int = 2) -> np.ndarray:
    shape = (count, len(GRID), GRID.values_per_patch)
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("class_token", [False, True])
def test_the_embedding_is_a_projection_plus_positions(class_token: bool) -> None:
    positions = GridPositions(GRID.rows, GRID.columns, 16, leading=int(class_token))
    embedding = PatchEmbedding(GRID, width=16, dropout=0.0, positions=positions, class_token=class_token)
    patches = random_patches()
    weight, bias = embedding.weight.detach().numpy(), embedding.bias.detach().numpy()
    expected = np.einsum("npv,wv->npw", patches / 127.5 - 1, weight) + bias
    if class_token:
        class_vector = embedding.class_vector.detach().numpy()
        expected = np.concatenate([np.broadcast_to(class_vector, (2, 1, 16)), expected], axis=1)
    expected = expected + positions.table.numpy()
    actual = embedding(torch.from_numpy(patches)).detach().numpy()
    assert actual.shape == (2, 9 + class_token, 16)
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_a_changed_pixel_changes_only_the_embedding_of_its_patch() -> None:
    embedding = PatchEmbedding(GRID, width=16, dropout=0.0, positions=NoPositions(16), class_token=False)
    patches = random_patches(1)
    changed_patches = patches.copy()
    changed_patches[0, 4, 7] ^= 255  # one value of patch 4
    states, changed_states = (embedding(torch.from_numpy(picture)) for picture in (patches, changed_patches))
    difference = (changed_states - states).abs().sum(2)
    assert (difference[0] > 0).nonzero().flatten().tolist() == [4]


@pytest.mark.parametrize("width", [8, 12, 7])
def test_grid_sinusoids_follow_the_formula(width: int) -> None:
    table = grid_sinusoids(3, 5, width, dtype=torch.float64)
    assert table.shape == (15, width)
    half = width // 2
    for row in range(3):
        for column in range(5):
            for index in range(width):
                position, i, d = (row, index, half) if index < half else (column, index - half, width - half)
                angle = position / 10000 ** ((i - i % 2) / d)
                expected = math.cos(angle) if i % 2 else math.sin(angle)
                assert table[row * 5 + column, index].item() == pytest.approx(expected, abs=1e-12)


def test_the_position_of_the_class_token_is_a_zero_vector() -> None:
    table = GridPositions(2, 2, 8, leading=1)(5)
    assert not table[0].any()
    assert torch.equal(table[1:], grid_sinusoids(2, 2, 8))


@pytest.mark.parametrize("kind", SUITABLE)
def test_every_mechanism_reads_pictures(kind: str) -> None:
    """Check the state of the class token, the gradient of the projection, and the maps of 1 + 9 tokens."""
    options = {"max_keys": 16} if kind == "luong-location" else {}
    settings = make_recipe(
        None,
        **{
            "model.family": "encoder-only",
            "model.task": "classify",
            "model.width": 16,
            "model.heads": 2,
            "model.feed_forward": 16,
            "model.layers": 2,
            "model.attention": {"kind": kind, **options},
        },
    ).model
    model = build_model(settings, source_vocab_size=0, target_vocab_size=7, shared=False, grid=GRID)
    batch = class_batch(padded_batch(list(random_patches(3)), [[4], [5], [6]]))
    assert batch.source.dtype == torch.uint8
    states = model.train()(batch)
    assert states.shape == (3, 1, 16)
    states.square().sum().backward()
    assert model.source_embedding.weight.grad.abs().sum() > 0
    weights = model.eval().attention(batch)["encoder"]
    assert weights.shape == (3, 2, 2, 10, 10)  # 3 pictures, 2 layers, 2 heads


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_caption_model_with_any_positions_attends_to_patches(positions: str) -> None:
    settings = make_recipe(
        None,
        **{"model.width": 16, "model.heads": 2, "model.feed_forward": 16, "model.positions": positions},
    ).model
    model = build_model(settings, source_vocab_size=0, target_vocab_size=9, shared=False, grid=GRID).eval()
    assert isinstance(model, Transformer)
    batch = padded_batch(list(random_patches(2)), [[4, 5], [6]])
    weights = model.attention(batch)["cross"]
    # 2 pictures, 4 layers by default, 2 heads, 3 tokens with <s>, 9 patches: there is no class token
    assert weights.shape == (2, 4, 2, 3, 9)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 2, 3))


def test_a_picture_with_moved_patches_has_a_different_state() -> None:
    settings = EncoderOnlySettings(task="classify", width=16, heads=2, layers=1, feed_forward=16)
    model = build_model(settings, source_vocab_size=0, target_vocab_size=6, shared=False, grid=GRID).eval()
    assert isinstance(model, EncoderOnly)
    patches = random_patches(1)
    moved_patches = np.roll(patches, 1, axis=1)
    state, moved_state = (model(padded_batch([picture[0]])) for picture in (patches, moved_patches))
    assert not torch.allclose(state, moved_state, atol=1e-4)


@pytest.mark.parametrize("family", ["recurrent", "decoder-only"])
def test_families_that_read_only_text_refuse_pictures(family: str) -> None:
    settings = make_recipe(None, **{"model.family": family}).model
    with pytest.raises(UnsupportedError, match=f"A {family} model reads text.*--model transformer"):
        build_model(settings, source_vocab_size=0, target_vocab_size=9, shared=False, grid=GRID)


def test_a_task_that_does_not_fit_the_source_is_refused() -> None:
    with pytest.raises(UnsupportedError, match='"classify" for pictures and "masked" for text'):
        build_model(
            EncoderOnlySettings(task="masked"),
            source_vocab_size=0,
            target_vocab_size=9,
            shared=False,
            grid=GRID,
        )
    with pytest.raises(UnsupportedError, match=r"Leave model\.task out"):
        build_model(
            EncoderOnlySettings(task="classify"), source_vocab_size=9, target_vocab_size=9, shared=True
        )
