"""The decoder alone as a translator: one sequence, padded on the left."""

from __future__ import annotations

import pytest
import torch
from model_batches import (
    BATCH,
    PIECES,
    SOURCES,
    TARGETS,
    check_alone_as_in_a_batch,
    check_reordered_rows,
    check_steps,
    losses_of_twenty_steps,
    make_batch,
)

from jumok.attention import CATALOGUE
from jumok.decoding import SearchPlan, beam, greedy
from jumok.errors import UnsupportedError
from jumok.models import NEEDS_DECODER_ONLY, DecoderOnly, build_model
from jumok.recipe import AttentionSettings, DecoderOnlySettings
from jumok.values import Batch

SMALL = DecoderOnlySettings(width=16, heads=2, feed_forward=32, layers=2, dropout=0.0)
SUITABLE = [name for name, entry in CATALOGUE.items() if not entry.supports.missing(*NEEDS_DECODER_ONLY)]
UNSUITABLE = [name for name in CATALOGUE if name not in SUITABLE]
every_mechanism = pytest.mark.parametrize("name", SUITABLE)


def make(name: str = "scaled-dot", **changes) -> DecoderOnly:
    torch.manual_seed(2)
    settings = SMALL.model_copy(update={"attention": AttentionSettings(kind=name), **changes})
    model = build_model(settings, source_pieces=PIECES, target_pieces=PIECES, shared=True).eval()
    assert isinstance(model, DecoderOnly)
    return model


@every_mechanism
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_sentence_alone_is_as_in_a_batch(name, norm):
    check_alone_as_in_a_batch(make(name, norm=norm), atol=1e-5)


@every_mechanism
def test_steps_are_the_teacher_forced_pass(name):
    check_steps(make(name), atol=1e-4)


@every_mechanism
def test_reordered_rows_go_on_as_their_parents(name):
    check_reordered_rows(make(name), atol=1e-4)


@every_mechanism
def test_twenty_steps_bring_the_loss_down(name):
    losses = losses_of_twenty_steps(make(name, width=32))
    assert losses[-1] < 0.6 * losses[0]


@every_mechanism
def test_what_targets_see_of_their_source_is_given_as_cross(name):
    model = make(name)
    maps = model.attention(BATCH)
    steps, columns = BATCH.target.shape[1] - 1, BATCH.source.shape[1]
    assert maps["cross"].shape == (3, 2, 2, steps, columns)
    assert maps["decoder"].shape == (3, 2, 2, steps, steps)
    for row, length in enumerate(BATCH.source_lengths.tolist()):
        assert torch.all(maps["cross"][row, ..., length:] == 0), "padding stands on the right, as everywhere"
        alone = model.attention(make_batch([SOURCES[row]], [TARGETS[row]]))
        real = len(TARGETS[row]) + 1
        torch.testing.assert_close(
            maps["cross"][row, :, :, :real, :length], alone["cross"][0], atol=1e-5, rtol=0
        )
        among_itself = maps["encoder"][row, :, :, :length, :length]
        torch.testing.assert_close(among_itself, alone["encoder"][0], atol=1e-5, rtol=0)
    whole = maps["cross"].sum(-1) + maps["decoder"].sum(-1)
    if CATALOGUE[name].supports.weights and name != "luong-local-p":
        torch.testing.assert_close(whole, torch.ones_like(whole), atol=1e-5, rtol=0)
    state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
    _, _, looked = model.step_with_attention(state, BATCH.target[:, 0])
    torch.testing.assert_close(looked, maps["cross"][:, -1, :, 0].mean(dim=1), atol=1e-5, rtol=0)


def test_later_pieces_do_not_change_earlier_states():
    model = make()
    before = model(BATCH)
    target = BATCH.target.clone()
    target[:, 3:] = 33
    after = model(Batch(BATCH.source, BATCH.source_lengths, target, BATCH.target_lengths))
    torch.testing.assert_close(after[:, :3], before[:, :3])
    assert not torch.allclose(after[:, 3:], before[:, 3:])


def test_search_finds_its_way():
    model = make()
    plan = SearchPlan(beam=3, longest=1.0, extra=3, length_penalty=0.0)
    batch = Batch(BATCH.source, BATCH.source_lengths)
    for wide, narrow in zip(beam(model, batch, plan), greedy(model, batch, plan), strict=True):
        assert wide[0].log_prob >= narrow[0].log_prob - 1e-4


@pytest.mark.parametrize("name", UNSUITABLE)
def test_what_cannot_be_masked_or_shifted_is_refused(name):
    with pytest.raises(UnsupportedError, match=f'model.attention cannot be "{name}"'):
        make(name)
