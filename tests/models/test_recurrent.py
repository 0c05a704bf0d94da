"""The recurrent family, teacher forced and step by step, with attention before or after the step."""

from __future__ import annotations

import pytest
import torch

from jumok.attention import CATALOGUE
from jumok.config.recipe import AttentionSettings, RecurrentSettings
from jumok.errors import RecipeError, UnsupportedError
from jumok.inference.search.beam import beam_search
from jumok.inference.search.greedy_sampling import greedy_search
from jumok.inference.search.plan import SearchPlan
from jumok.models.build import build_model
from jumok.models.recurrent import AttendAfter, AttendBefore, NoAttention, Recurrent
from jumok.models.validate import check_model
from jumok.types import Batch
from support.model_batches import (
    BATCH,
    VOCAB_SIZE,
    check_independent_of_batch,
    check_reordered_rows,
    check_steps,
    losses_of_twenty_updates,
)

SMALL = RecurrentSettings(width=16, embedding=12, dropout=0.0)


def make(**changes) -> Recurrent:
    torch.manual_seed(2)
    if "attention" in changes:
        changes["attention"] = AttentionSettings(kind=changes["attention"])
    settings = SMALL.model_copy(update=changes)
    model = build_model(
        settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=True
    ).eval()
    assert isinstance(model, Recurrent)
    return model


ATTENDING = [name for name, entry in CATALOGUE.items() if entry.supports.cross]
KINDS = [{"attention": name} for name in ["none", *ATTENDING]]
KINDS += [{"attention": "bahdanau", "order": "after"}, {"attention": "luong-general", "order": "before"}]
KINDS += [{"attention": "luong-general", "input_feeding": True}]
KINDS += [{"cell": cell, "encoder_layers": 2, "decoder_layers": 2} for cell in ("rnn", "lstm", "gru")]
KINDS += [{"attention": "luong-dot", "cell": "lstm", "bidirectional": False, "input_feeding": True}]
KINDS += [{"attention": name, "encoder_width": 12} for name in ("none", "bahdanau", "luong-general")]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(map(str, kind.values())))


@every_kind
def test_a_sentence_does_not_depend_on_its_batch(kind):
    check_independent_of_batch(make(**kind), atol=2e-6)


@every_kind
def test_steps_equal_the_teacher_forced_pass(kind):
    check_steps(make(**kind), atol=1e-5)


@every_kind
def test_reordered_rows_continue_their_own_history(kind):
    check_reordered_rows(make(**kind), atol=1e-5)


@every_kind
def test_twenty_updates_reduce_the_loss(kind):
    losses = losses_of_twenty_updates(make(**kind, width=32, embedding=32))
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("name", ATTENDING)
def test_an_encoder_of_another_width_is_refused_only_by_mechanisms_that_cannot_use_it(name):
    settings = RecurrentSettings(width=16, encoder_width=12, attention=AttentionSettings(kind=name))
    if CATALOGUE[name].supports.widths:
        assert "cross" in make(attention=name, encoder_width=12).attention(BATCH)
        check_model(settings)  # raises no error
    else:
        with pytest.raises(UnsupportedError, match="queries of width 16 and keys of width 12"):
            check_model(settings)


def test_a_bidirectional_encoder_needs_an_even_width():
    with pytest.raises(UnsupportedError, match=r"model\.encoder_width = 13"):
        check_model(RecurrentSettings(width=16, encoder_width=13))


@pytest.mark.parametrize("name", ATTENDING)
def test_the_map_has_one_row_per_step_and_no_weight_on_padding(name):
    model = make(attention=name)
    weights = model.attention(BATCH)["cross"]
    assert weights.shape == (3, 1, 1, BATCH.target.shape[1] - 1, BATCH.source.shape[1])
    assert torch.all(weights[1, ..., 3:] == 0)  # padding after two tokens and </s>
    assert torch.all(weights[:, 0, 0].sum(-1) <= 1 + 1e-5)
    state = model.begin(Batch(BATCH.source, BATCH.source_lengths))
    _, _, row = model.step_with_attention(state, BATCH.target[:, 0])
    torch.testing.assert_close(row, weights[:, 0, 0, 0], atol=1e-6, rtol=0)


def test_without_attention_there_is_no_map():
    model = make(attention="none")
    assert isinstance(model.decoder, NoAttention)
    assert not model.has_cross_attention
    assert model.attention(BATCH) == {}
    with pytest.raises(UnsupportedError, match="coverage"):
        model.step_with_attention(model.begin(BATCH), BATCH.target[:, 0])


def test_bahdanau_queries_with_the_state_before_the_step_and_luong_with_the_state_after():
    """At the first step Bahdanau's query cannot depend on the first token, and Luong's does."""
    changed_target = BATCH.target.clone()
    changed_target[:, 0] = 7
    changed_batch = Batch(BATCH.source, BATCH.source_lengths, changed_target, BATCH.target_lengths)
    # The last value says whether the query of the first step depends on the first token.
    for name, decoder, depends in (("bahdanau", AttendBefore, False), ("luong-general", AttendAfter, True)):
        model = make(attention=name)
        assert isinstance(model.decoder, decoder)
        weights, changed_weights = (
            model.attention(batch)["cross"][:, 0, 0, 0] for batch in (BATCH, changed_batch)
        )
        if depends:
            assert not torch.allclose(weights, changed_weights, atol=1e-7)
        else:
            torch.testing.assert_close(weights, changed_weights, atol=1e-7, rtol=0)


def test_input_feeding_feeds_the_context_into_the_next_step():
    """If the weights of step 0 are silenced, step 1 changes only with input feeding."""

    def silence_step_0(weights, site):
        return weights * 0 if site.query_offset == 0 else weights

    for feeding in (False, True):
        model = make(attention="luong-general", input_feeding=feeding)
        state, edited_state = model.begin(BATCH), model.begin(BATCH, edit=silence_step_0)
        for step in range(2):
            log_probs, state = model.step(state, BATCH.target[:, step])
            edited_log_probs, edited_state = model.step(edited_state, BATCH.target[:, step])
        if feeding:
            assert not torch.allclose(log_probs.values, edited_log_probs.values, atol=1e-6)
        else:
            torch.testing.assert_close(log_probs.values, edited_log_probs.values, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["none", "bahdanau", "luong-local-p"])
def test_beam_search_is_at_least_as_good_as_greedy(name):
    model = make(attention=name)
    batch = Batch(BATCH.source, BATCH.source_lengths)
    plan = SearchPlan(beam=3, max_length_ratio=1.0, extra_tokens=4)
    wide, narrow = beam_search(model, batch, plan), greedy_search(model, batch, plan)
    for best, first in zip(wide, narrow, strict=True):
        # Scores are divided by a power of the length, so only translations of the same length are compared.
        assert best[0].score >= first[0].score - 1e-6 or len(best[0].ids) != len(first[0].ids)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention": "restricted"}, "does not support cross"),
        ({"attention": "none", "input_feeding": True}, "Input feeding needs attention"),
        ({"attention": "bahdanau", "input_feeding": True}, "before its step"),
        ({"width": 15}, "half of model.width"),
    ],
)
def test_settings_that_cannot_be_combined_are_refused(changes, message):
    with pytest.raises(UnsupportedError, match=message):
        make(**changes)


def test_options_of_a_mechanism_are_checked():
    wrong_settings = SMALL.model_copy(update={"attention": AttentionSettings(kind="bahdanau", unts=3)})
    with pytest.raises(RecipeError, match=r'no such option\. Did you mean "units"'):
        build_model(wrong_settings, source_vocab_size=VOCAB_SIZE, target_vocab_size=VOCAB_SIZE, shared=True)
