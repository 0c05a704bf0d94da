"""The decoder-only family as a translator: one sequence, padded on the left."""

from __future__ import annotations

import pytest
import torch

from jumok.attention import CATALOGUE
from jumok.config.recipe import AttentionSettings, DecoderOnlySettings
from jumok.errors import UnsupportedError
from jumok.inference.search.beam import beam_search
from jumok.inference.search.greedy_sampling import greedy_search
from jumok.inference.search.plan import SearchPlan
from jumok.models.build import build_model
from jumok.models.decoder_only import DecoderOnly
from jumok.models.validate import ATTENTION_NEEDS
from jumok.types import Batch
from support.model_batches import (
    BATCH,
    SOURCES,
    TARGETS,
    VOCAB_SIZE,
    check_independent_of_batch,
    check_reordered_rows,
    check_steps,
    losses_of_twenty_updates,
    make_batch,
)

SMALL = DecoderOnlySettings(width=16, heads=2, feed_forward=32, layers=2, dropout=0.0)
NEEDS = ATTENTION_NEEDS["decoder-only"]["attention"]
SUITABLE = [name for name, entry in CATALOGUE.items() if not entry.supports.missing(*NEEDS)]
UNSUITABLE = [name for name in CATALOGUE if name not in SUITABLE]
every_suitable_mechanism = pytest.mark.parametrize("name", SUITABLE)


def make(name: str = "scaled-dot", **changes) -> DecoderOnly:
    torch.manual_seed(2)
    settings = SMALL.model_copy(update={"attention": AttentionSettings(kind=name), **changes})
    model = build_model(
        settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=True
    ).eval()
    assert isinstance(model, DecoderOnly)
    return model


@every_suitable_mechanism
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_sentence_does_not_depend_on_its_batch(name, norm):
    check_independent_of_batch(make(name, norm=norm), atol=1e-5)


@every_suitable_mechanism
def test_steps_equal_the_teacher_forced_pass(name):
    check_steps(make(name), atol=1e-4)


@every_suitable_mechanism
def test_reordered_rows_continue_their_own_history(name):
    check_reordered_rows(make(name), atol=1e-4)


@every_suitable_mechanism
def test_twenty_updates_reduce_the_loss(name):
    losses = losses_of_twenty_updates(make(name, width=32))
    assert losses[-1] < 0.6 * losses[0]


@every_suitable_mechanism
def test_attention_is_split_into_three_sites_and_does_not_depend_on_the_batch(name):
    model = make(name)
    maps = model.attention(BATCH)
    steps, columns = BATCH.target.shape[1] - 1, BATCH.source.shape[1]
    # 3 sentences, 2 layers, 2 heads
    assert maps["cross"].shape == (3, 2, 2, steps, columns)
    assert maps["decoder"].shape == (3, 2, 2, steps, steps)
    for row, length in enumerate(BATCH.source_lengths.tolist()):
        assert torch.all(maps["cross"][row, ..., length:] == 0), "padding has weight"
        alone = model.attention(make_batch([SOURCES[row]], [TARGETS[row]]))
        own_steps = len(TARGETS[row]) + 1
        torch.testing.assert_close(
            maps["cross"][row, :, :, :own_steps, :length], alone["cross"][0], atol=1e-5, rtol=0
        )
        within_source = maps["encoder"][row, :, :, :length, :length]
        torch.testing.assert_close(within_source, alone["encoder"][0], atol=1e-5, rtol=0)
    total = maps["cross"].sum(-1) + maps["decoder"].sum(-1)
    if CATALOGUE[name].supports.weights:
        torch.testing.assert_close(total, torch.ones_like(total), atol=1e-5, rtol=0)
    state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
    _, _, weights = model.step_with_attention(state, BATCH.target[:, 0])
    torch.testing.assert_close(weights, maps["cross"][:, -1, :, 0].mean(dim=1), atol=1e-5, rtol=0)


def test_later_tokens_do_not_change_earlier_states():
    model = make()
    before = model(BATCH)
    target = BATCH.target.clone()
    target[:, 3:] = 33  # a token that the targets do not have
    after = model(Batch(BATCH.source, BATCH.source_lengths, target, BATCH.target_lengths))
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert not torch.allclose(after[:, 3:], before[:, 3:])


def test_beam_search_is_at_least_as_good_as_greedy():
    model = make()
    plan = SearchPlan(beam=3, max_length_ratio=1.0, extra_tokens=3, length_penalty=0.0)
    batch = Batch(BATCH.source, BATCH.source_lengths)
    for wide, narrow in zip(beam_search(model, batch, plan), greedy_search(model, batch, plan), strict=True):
        assert wide[0].log_prob >= narrow[0].log_prob - 1e-4


@pytest.mark.parametrize("name", UNSUITABLE)
def test_an_unsupported_mechanism_is_refused(name):
    with pytest.raises(UnsupportedError, match=f'model.attention cannot be "{name}"'):
        make(name)
