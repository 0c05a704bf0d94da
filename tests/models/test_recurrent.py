"""The recurrent family, whole and step by step, in every order of attending."""

from __future__ import annotations

import pytest
import torch
from model_batches import (
    BATCH,
    PIECES,
    check_alone_as_in_a_batch,
    check_reordered_rows,
    check_steps,
    losses_of_twenty_steps,
)

from jumok.attention import CATALOGUE
from jumok.decoding import SearchPlan, beam, greedy
from jumok.errors import RecipeError, UnsupportedError
from jumok.models import build_model
from jumok.models.recurrent import AttendAfter, AttendBefore, NoAttention, Recurrent
from jumok.recipe import AttentionSettings, RecurrentSettings
from jumok.values import Batch

SMALL = RecurrentSettings(width=16, embedding=12, dropout=0.0)


def make(**changes) -> Recurrent:
    torch.manual_seed(2)
    if "attention" in changes:
        changes["attention"] = AttentionSettings(kind=changes["attention"])
    settings = SMALL.model_copy(update=changes)
    model = build_model(settings, source_pieces=PIECES, target_pieces=PIECES, shared=True).eval()
    assert isinstance(model, Recurrent)
    return model


ATTENDING = [name for name, entry in CATALOGUE.items() if entry.supports.cross]
KINDS = [{"attention": name} for name in ["none", *ATTENDING]]
KINDS += [{"attention": "bahdanau", "order": "after"}, {"attention": "luong-general", "order": "before"}]
KINDS += [{"attention": "luong-general", "input_feeding": True}]
KINDS += [{"cell": cell, "encoder_layers": 2, "decoder_layers": 2} for cell in ("rnn", "lstm", "gru")]
KINDS += [{"attention": "luong-dot", "cell": "lstm", "bidirectional": False, "input_feeding": True}]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(map(str, kind.values())))


@every_kind
def test_a_sentence_alone_is_as_in_a_batch(kind):
    check_alone_as_in_a_batch(make(**kind), atol=2e-6)


@every_kind
def test_steps_are_the_teacher_forced_pass(kind):
    check_steps(make(**kind), atol=1e-5)


@every_kind
def test_reordered_rows_go_on_as_their_parents(kind):
    check_reordered_rows(make(**kind), atol=1e-5)


@every_kind
def test_twenty_steps_of_training_bring_the_loss_down(kind):
    losses = losses_of_twenty_steps(make(**kind, width=32, embedding=32))
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("name", ATTENDING)
def test_the_map_has_a_row_a_step_and_nothing_on_padding(name):
    model = make(attention=name)
    weights = model.attention(BATCH)["cross"]
    assert weights.shape == (3, 1, 1, BATCH.target.shape[1] - 1, BATCH.source.shape[1])
    assert torch.all(weights[1, ..., 3:] == 0)
    assert torch.all(weights[:, 0, 0].sum(-1) <= 1 + 1e-5)
    state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
    _, _, looked = model.step_with_attention(state, BATCH.target[:, 0])
    torch.testing.assert_close(looked, weights[:, 0, 0, 0], atol=1e-6, rtol=0)


def test_without_attention_there_is_no_map():
    model = make(attention="none")
    assert isinstance(model.decoder, NoAttention)
    assert not model.looks_at_source
    assert model.attention(BATCH) == {}
    with pytest.raises(UnsupportedError, match="coverage"):
        model.step_with_attention(model.begin(BATCH), BATCH.target[:, 0])


def test_bahdanau_asks_with_the_state_before_the_step_and_luong_with_the_one_after():
    """At the first step the one query cannot know the first piece, and the other does."""
    changed = BATCH.target.clone()
    changed[:, 0] = 7
    other = Batch(BATCH.source, BATCH.source_lengths, changed, BATCH.target_lengths)
    for name, decoder, knows in (("bahdanau", AttendBefore, False), ("luong-general", AttendAfter, True)):
        model = make(attention=name)
        assert isinstance(model.decoder, decoder)
        one, two = (model.attention(batch)["cross"][:, 0, 0, 0] for batch in (BATCH, other))
        assert torch.allclose(one, two, atol=1e-7) is not knows


def test_input_feeding_feeds_what_was_attended_to():
    """With the source's weights knocked out at step 0, a fed decoder is another at step 1."""

    def knock(weights, place):
        return weights * 0 if place.first == 0 else weights

    for feeding in (False, True):
        model = make(attention="luong-general", input_feeding=feeding)
        model.begin(BATCH)
        state, edited = model.begin(BATCH), model.begin(BATCH, edit=knock)
        for place in range(2):
            plain, state = model.step(state, BATCH.target[:, place])
            knocked, edited = model.step(edited, BATCH.target[:, place])
        assert torch.allclose(plain.values, knocked.values, atol=1e-6) is not feeding


@pytest.mark.parametrize("name", ["none", "bahdanau", "luong-local-p"])
def test_search_finds_its_way(name):
    model = make(attention=name)
    batch = Batch(BATCH.source, BATCH.source_lengths)
    plan = SearchPlan(beam=3, longest=1.0, extra=4)
    wide, narrow = beam(model, batch, plan), greedy(model, batch, plan)
    for best, first in zip(wide, narrow, strict=True):
        assert best[0].score >= first[0].score - 1e-6 or len(best[0].ids) != len(first[0].ids)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"attention": "restricted"}, "does not support cross"),
        ({"attention": "none", "input_feeding": True}, "there is no attention"),
        ({"attention": "bahdanau", "input_feeding": True}, "before its step"),
        ({"width": 15}, "half of model.width"),
    ],
)
def test_what_cannot_be_combined_is_refused(changes, said):
    with pytest.raises(UnsupportedError, match=said):
        make(**changes)


def test_options_of_a_mechanism_are_checked():
    wrong = SMALL.model_copy(update={"attention": AttentionSettings(kind="bahdanau", unts=3)})
    with pytest.raises(RecipeError, match=r'no such option\. Did you mean "units"'):
        build_model(wrong, source_pieces=PIECES, target_pieces=PIECES, shared=True)
