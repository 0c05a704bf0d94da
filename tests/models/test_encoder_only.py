"""The encoder-only family attends to both sides, predicts masked tokens, and has a Transformer's encoder."""

from __future__ import annotations

import pytest
import torch

from jumok.attention import CATALOGUE
from jumok.config.recipe import AttentionSettings, EncoderOnlySettings, TransformerSettings
from jumok.errors import UnsupportedError
from jumok.models.build import build_model
from jumok.models.encoder_only import EncoderOnly, encoder_part
from jumok.models.kernels.cross_entropy import sequence_loss
from jumok.models.validate import ATTENTION_NEEDS
from jumok.storage.tensors import module_weights
from jumok.types import BEGIN, END, PAD, UNKNOWN, Batch

VOCAB_SIZE = 30
SMALL = EncoderOnlySettings(width=16, heads=2, feed_forward=32, layers=2, dropout=0.0)
NEEDS = ATTENTION_NEEDS["encoder-only"]["attention"]
SUITABLE = [name for name, entry in CATALOGUE.items() if not entry.supports.missing(*NEEDS)]
every_mechanism = pytest.mark.parametrize("name", SUITABLE)

# `<unk>` stands in the place of a masked token. MASKED has the masked tokens of each text by position.
TEXTS = [[5, UNKNOWN, 7, 8, 9], [10, UNKNOWN], [12, 13, 14, 15, UNKNOWN, 17, 18]]
MASKED = [{1: 6}, {1: 11}, {4: 16}]


def make(name: str = "scaled-dot", **changes) -> EncoderOnly:
    torch.manual_seed(3)
    settings = SMALL.model_copy(update={"attention": AttentionSettings(kind=name), **changes})
    model = build_model(
        settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=True
    ).eval()
    assert isinstance(model, EncoderOnly)
    return model


def make_batch(texts: list[list[int]], masked: list[dict[int, int]]) -> Batch:
    """Return a batch of these texts; `masked` has the masked tokens of each text by position."""
    columns = max(map(len, texts)) + 1
    source = torch.full((len(texts), columns), PAD)
    target = torch.full((len(texts), columns + 1), PAD)
    target[:, 0] = BEGIN
    for row, text in enumerate(texts):
        source[row, : len(text) + 1] = torch.tensor([*text, END])
        for position, token in masked[row].items():
            target[row, position + 1] = token
    lengths = torch.tensor([len(text) + 1 for text in texts])
    return Batch(source, lengths, target, lengths + 1)


BATCH = make_batch(TEXTS, MASKED)


@every_mechanism
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_text_does_not_depend_on_its_batch(name: str, norm: str) -> None:
    model = make(name, norm=norm)
    together = model(BATCH)
    assert together.shape == (3, BATCH.target.shape[1] - 1, 16)
    for row, text in enumerate(TEXTS):
        alone = model(make_batch([text], [MASKED[row]]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=0)


@every_mechanism
def test_twenty_updates_reduce_the_loss(name: str) -> None:
    model = make(name, width=32).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        sums = sequence_loss(model(BATCH), BATCH.target[:, 1:], model.output, smoothing=0.0)
        assert sums.tokens == 3, "the loss counts other tokens than the masked ones"
        sums.total.backward()
        optimiser.step()
        losses.append(sums.total.item())
    assert losses[-1] < 0.6 * losses[0]


@every_mechanism
def test_the_only_attention_site_is_the_encoder(name: str) -> None:
    maps = make(name).attention(BATCH)
    columns = BATCH.source.shape[1]
    assert set(maps) == {"encoder"}
    assert maps["encoder"].shape == (3, 2, 2, columns, columns)  # 3 texts, 2 layers, 2 heads
    for row, length in enumerate(BATCH.source_lengths.tolist()):
        assert torch.all(maps["encoder"][row, ..., length:] == 0)
    # luong-local-p multiplies its weights by a Gaussian, so that they sum to less than 1.
    if CATALOGUE[name].supports.weights and name != "luong-local-p":
        rows = maps["encoder"][1, :, :, : len(TEXTS[1]) + 1].sum(-1)
        torch.testing.assert_close(rows, torch.ones_like(rows), atol=1e-5, rtol=0)


def test_a_position_attends_to_both_sides() -> None:
    model = make()
    before = model(BATCH)[0, 1]
    for position in (0, 4):
        texts = [list(text) for text in TEXTS]
        texts[0][position] = 25  # before or after position 1
        assert not torch.allclose(model(make_batch(texts, MASKED))[0, 1], before)


@pytest.mark.parametrize("tied", [True, False])
def test_the_weights_have_the_names_and_shapes_of_a_transformers_encoder(tied: bool) -> None:
    """A Transformer can start from these weights."""
    encoder_only_weights = encoder_part(module_weights(make(tied=tied)))
    settings = TransformerSettings(width=16, heads=2, feed_forward=32, encoder_layers=2, decoder_layers=1)
    transformer = build_model(settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=20, shared=False)
    transformer_weights = encoder_part(module_weights(transformer))
    shapes = {name: weight.shape for name, weight in encoder_only_weights.items()}
    assert shapes == {name: weight.shape for name, weight in transformer_weights.items()}
    assert any(name.startswith("source_embedding") for name in encoder_only_weights)
    assert not any(name.startswith(("output", "decoder", "target")) for name in transformer_weights)


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r'model\.attention cannot be "none"'):
        make("none")
