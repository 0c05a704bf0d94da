"""Changes of attention: the model continues under the change, exactly as with a hand-written `Edit`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jumok.analysis.change_edits import check_changes, check_rows, edit_from_changes
from jumok.analysis.changes import Paint, Pin, Silence, change_from_json, change_to_json
from jumok.analysis.explainer import EditedModel, ExplanationOptions, explain
from jumok.analysis.json_format import explanation_from_json, explanation_to_json
from jumok.analysis.live_explanation import LiveExplanation
from jumok.attention import AttentionSite
from jumok.data.batching import padded_batch
from jumok.errors import DataError
from jumok.types import END
from support.forced import forced_log_probs
from support.random_translators import SENTENCE, SMALL_MODELS, TARGET, make_translator, small_translator

CHANGES = [
    Silence("cross", 0, 0),
    Silence("cross", 0),
    Silence("cross"),
    Paint("cross", 0, 0, query=2, key=3, weight=0.8),
    Paint("cross", query=4, key=1, weight=0.5),
    Pin("cross", queries=(3, 4), keys=(0, 2)),
    Pin("cross", queries=(3, 4), keys=(0,), words=("새 단어", "word")),
    Pin("cross", queries=(3, 4), keys=(0, 2), weight=0.25),
]
every_small_model = pytest.mark.parametrize("name", SMALL_MODELS)
every_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.kind}")


def test_a_painted_row_keeps_its_sum_even_if_one_key_had_nearly_all_weight() -> None:
    model = small_translator("transformer").model
    paint = Paint("cross", query=0, key=0, weight=0.5)
    edit = edit_from_changes([paint], model, source_length=2)
    assert edit is not None
    site = AttentionSite("cross", 0, torch.tensor([0]), query_offset=0)
    edited = edit(torch.tensor([[[[1.0, 1e-9]]]]), site)
    torch.testing.assert_close(edited, torch.tensor([[[[0.5, 0.5]]]]))


@every_small_model
@every_change
def test_a_change_acts_the_same_in_one_pass_and_step_by_step(name: str, change) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE, target=TARGET, edit=change)
    source, target = explanation.source.ids, explanation.target.ids
    with torch.inference_mode():
        stepped = forced_log_probs(
            EditedModel(translator.model, explanation.bound_model.edit),
            padded_batch([source]),
            [list(target)],
        )
    np.testing.assert_allclose(explanation.log_probs, stepped[0].numpy(), atol=1e-4, rtol=2e-5)
    plain = explain(translator, SENTENCE, target=TARGET)
    assert not np.allclose(explanation.log_probs, plain.log_probs, atol=1e-3, rtol=0)
    first = change.first_step
    np.testing.assert_allclose(explanation.log_probs[:first], plain.log_probs[:first], atol=1e-4, rtol=2e-5)


@pytest.mark.parametrize("name", ["transformer", "bahdanau"])
def test_painting_a_weight_equals_a_hand_written_edit(name: str) -> None:
    translator = small_translator(name)
    paint = Paint("cross", 0, 0, query=2, key=3, weight=0.8)
    explanation = explain(translator, SENTENCE, target=TARGET, edit=paint)

    def by_hand(weights, site, /):
        query = paint.query - site.query_offset
        if (site.name, site.layer) != ("cross", 0) or not 0 <= query < weights.shape[2]:
            return weights
        edited = weights.clone()
        row = edited[:, 0, query]
        others = [key for key in range(row.shape[-1]) if key != paint.key]
        row[:, others] *= (1 - paint.weight) / row[:, others].sum(dim=-1, keepdim=True)
        row[:, paint.key] = paint.weight
        return edited

    expected = explain(translator, SENTENCE, target=TARGET, edit=by_hand)
    np.testing.assert_allclose(explanation.log_probs, expected.log_probs, atol=1e-5)
    weights = explanation.attention["cross"].weights
    assert weights[0, 0, 2, 3] == pytest.approx(0.8)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)
    plain = explain(translator, SENTENCE, target=TARGET).attention["cross"].weights
    others = [key for key in range(weights.shape[-1]) if key != paint.key]
    ratio = weights[0, 0, 2, others] / plain[0, 0, 2, others]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


@every_small_model
def test_a_silenced_head_has_weights_of_zero_and_other_heads_keep_their_weights(name: str) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE, target=TARGET, edit=Silence("cross", 0, 0))
    weights = explanation.attention["cross"].weights
    assert np.all(weights[0, 0] == 0)
    if weights.shape[1] > 1:
        plain = explain(translator, SENTENCE, target=TARGET)
        np.testing.assert_allclose(weights[0, 1], plain.attention["cross"].weights[0, 1], atol=1e-5)
        # A query of a decoder-only model has its "cross" and "decoder" weights in one row.
        np.testing.assert_allclose(
            explanation.attention["decoder"].weights[0], plain.attention["decoder"].weights[0], atol=1e-5
        )


@every_small_model
def test_a_pinned_target_word_attends_only_to_its_source_word(name: str) -> None:
    translator = small_translator(name)
    plain = explain(translator, SENTENCE, target=TARGET)
    pinned = explain(translator, SENTENCE, target=TARGET, edit=plain.pin_words(2, 4))
    words = pinned.words("cross").weights  # (layer, head, target word, source word)
    np.testing.assert_allclose(words[:, :, 2, 4], 1.0, atol=1e-5)
    with pytest.raises(DataError, match="target word 90 of 7"):  # six words and the full stop
        plain.pin_words(90, 0)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_pin_gives_its_keys_a_share_and_rescales_the_rest(share: float) -> None:
    translator = small_translator("transformer")
    plain = explain(translator, SENTENCE, target=TARGET).attention["cross"].weights[0, 0, 2]
    pin = Pin("cross", 0, 0, queries=(2,), keys=(1, 3), weight=share)
    changed = explain(translator, SENTENCE, target=TARGET, edit=pin)
    row = changed.attention["cross"].weights[0, 0, 2]
    expected = plain * (1 - share) / (1 - plain[[1, 3]].sum())
    expected[[1, 3]] = share * plain[[1, 3]] / plain[[1, 3]].sum()
    np.testing.assert_allclose(row, expected, atol=1e-5)
    before = changed.before
    assert before is not None
    assert sum(before.log_probs) == pytest.approx(before.log_prob, abs=1e-4)
    assert sum(before.log_probs_changed) == pytest.approx(before.log_prob_changed, abs=1e-4)
    with pytest.raises(DataError, match="between 0 and 1"):
        Pin("cross", queries=(2,), keys=(1,), weight=1.5)


def test_a_key_that_a_pin_names_twice_gets_its_whole_share() -> None:
    translator = small_translator("transformer")
    edits = [Pin("cross", 0, 0, queries=(2,), keys=keys, weight=0.5) for keys in ((1, 3), (1, 3, 1))]
    once, twice = (explain(translator, SENTENCE, target=TARGET, edit=edit) for edit in edits)
    np.testing.assert_array_equal(twice.attention["cross"].weights, once.attention["cross"].weights)


@every_small_model
def test_tokens_before_a_change_stay_the_same(name: str) -> None:
    translator = small_translator(name)
    plain = explain(translator, SENTENCE)
    changed = explain(translator, SENTENCE, edit=Paint("cross", query=3, key=0, weight=1.0))
    assert changed.forced == 3
    assert changed.target.ids[:3] == plain.target.ids[:3]
    assert changed.before is not None
    assert changed.before.target == plain.target
    assert changed.before.log_prob == pytest.approx(plain.log_prob, abs=1e-4)
    # A translation that was cut at its maximum length has no </s>.
    produced = torch.tensor([*plain.target.ids, END][: len(plain.target.ids) + plain.ended])
    under_change = (
        changed.bound_model.log_probs(plain.target.ids)[: len(produced)].gather(1, produced[:, None]).sum()
    )
    assert changed.before.log_prob_changed == pytest.approx(float(under_change), abs=1e-4)


@every_small_model
def test_a_change_that_changes_nothing_gives_the_same_translation(name: str) -> None:
    translator = small_translator(name)
    plain = explain(translator, SENTENCE)
    same = explain(translator, SENTENCE, edit=lambda weights, site: weights)
    assert plain.target.ids == same.target.ids
    assert (same.changes, same.before is not None) == ((), True)


def test_an_empty_list_of_changes_is_no_edit() -> None:
    assert explain(small_translator("transformer"), SENTENCE, edit=[]).before is None


@every_small_model
def test_effects_in_one_batch_equal_effects_one_by_one(name: str) -> None:
    translator = small_translator(name)
    plain = explain(translator, SENTENCE, target=TARGET)
    effects = plain.effects()[0]
    assert {site: effect.shape for site, effect in effects.items()} == {
        site: (*attention.weights.shape[:2], len(plain.target.ids) + 1)
        for site, attention in plain.attention.items()
    }
    for site, effect in effects.items():
        last_head = effect.shape[0] - 1, effect.shape[1] - 1  # (layer, head)
        alone = explain(translator, SENTENCE, target=TARGET, edit=Silence(site, *last_head))
        np.testing.assert_allclose(effect[last_head], alone.log_probs - plain.log_probs, atol=1e-3)
    measured = plain.with_effects()
    np.testing.assert_array_equal(measured.statistics["cross"].token_effect, effects["cross"])
    total = measured.statistics["cross"].effect
    assert total is not None
    np.testing.assert_allclose(total, effects["cross"].sum(axis=2), atol=1e-5)


@every_small_model
def test_the_effect_of_a_group_is_measured_by_silencing_all_heads_of_the_group(name: str) -> None:
    translator = small_translator(name)
    plain = explain(translator, SENTENCE, target=TARGET)
    measured = {(group.site, group.heads): group.effect for group in plain.with_effects().group_effects}
    for site, attention in plain.attention.items():
        layers, heads = attention.weights.shape[:2]
        all_heads = tuple((layer, head) for layer in range(layers) for head in range(heads))
        for layer in (None, layers - 1):
            group = tuple(head for head in all_heads if layer in (None, head[0]))
            if len(group) == 1:
                assert (site, group) not in measured
                continue
            silent = explain(translator, SENTENCE, target=TARGET, edit=Silence(site, layer))
            assert measured[site, group] == pytest.approx(silent.log_prob - plain.log_prob, abs=1e-3)
    # The heads of the model's own alignment are a group as well, unless it is a single head.
    assert len(plain.alignments[0].heads) == 1 or ("cross", plain.alignments[0].heads) in measured


@every_change
def test_changes_survive_a_json_round_trip(change) -> None:
    assert change_from_json(change_to_json(change)) == change


def test_changes_outside_the_maps_are_refused() -> None:
    translator = small_translator("bahdanau")
    with pytest.raises(DataError, match=r'no attention "encoder"\. It has: cross'):
        explain(translator, SENTENCE, target=TARGET, edit=Silence("encoder"))
    with pytest.raises(DataError, match="no head 1: there are 1"):
        explain(translator, SENTENCE, target=TARGET, edit=Silence("cross", 0, 1))
    with pytest.raises(DataError, match="no query 99"):
        explain(translator, SENTENCE, target=TARGET, edit=Paint("cross", query=99, key=0))
    with pytest.raises(DataError, match="between 0 and 1"):
        Paint("cross", query=0, key=0, weight=1.5)
    with pytest.raises(DataError, match='Did you mean "silence"'):
        change_from_json({"kind": "silense", "site": "cross"})
    with pytest.raises(DataError, match="not a valid change of kind"):
        change_from_json({"kind": "paint", "site": "cross", "colour": 3})


def test_a_row_of_the_new_translation_can_be_changed() -> None:
    """A change may name a row that exists only in the translation that earlier changes have led to."""
    model = small_translator("transformer").model
    shapes = {"cross": (2, 4, 8, 5), "decoder": (2, 4, 8, 8)}  # (layer, head, query, key): 8 steps
    later = Pin("cross", queries=(8, 9), keys=(1,))
    with pytest.raises(DataError, match="no query 8: there are 8"):
        check_changes([later], shapes, model)
    check_changes([later, Paint("decoder", query=9, key=9)], shapes, model, translates=True)
    check_rows([later], 10)
    with pytest.raises(DataError, match="no query 9: there are 9"):
        check_rows([later], 9)
    for wrong in (Pin("cross", queries=(8,), keys=(5,)), Pin("cross", 2, queries=(8,), keys=(1,))):
        with pytest.raises(DataError, match=r"no key 5|no layer 2"):
            check_changes([wrong], shapes, model, translates=True)


def test_a_pin_with_words_is_accepted_even_if_the_translation_has_no_such_step() -> None:
    pin = Pin("cross", queries=(99,), keys=(1,), words=("책을", "book"))
    explanation = explain(small_translator("transformer"), SENTENCE, target=TARGET, edit=pin)
    plain = explain(small_translator("transformer"), SENTENCE, target=TARGET)
    np.testing.assert_allclose(explanation.log_probs, plain.log_probs, atol=1e-4)  # the pin has no effect


def test_the_json_of_a_change_without_words_has_no_field_for_them() -> None:
    assert change_to_json(Pin("cross", queries=(9,), keys=(1,), words=("책을", "book")))["words"] == [
        "책을",
        "book",
    ]
    assert "words" not in change_to_json(Pin("cross", queries=(9,), keys=(1,)))


CHANGES_TO_LATER_KEYS = [Paint("decoder", 0, 0, query=1, key=4), Pin("decoder", queries=(5, 1), keys=(0, 4))]


@pytest.mark.parametrize("target", [None, TARGET])
@pytest.mark.parametrize("change", CHANGES_TO_LATER_KEYS, ids=lambda change: change.kind)
@pytest.mark.parametrize("name", ["transformer", "decoder-only"])
def test_no_change_lets_a_decoder_attend_to_later_keys(name: str, change, target: str | None) -> None:
    translator = small_translator(name)
    with pytest.raises(DataError, match="is causal: query 1 attends to the keys from 0 to 1"):
        explain(translator, SENTENCE, target=target, edit=change)
    # A query may attend to the key at its own position, so this change raises no error.
    assert explain(translator, SENTENCE, target=target, edit=Paint("decoder", 0, 0, query=4, key=4))


def test_a_decoder_only_model_reads_its_source_causally() -> None:
    ahead = Paint("encoder", query=1, key=2)
    with pytest.raises(DataError, match="is causal"):
        explain(small_translator("decoder-only"), SENTENCE, target=TARGET, edit=ahead)
    # The encoder of a Transformer is not causal, so the same change raises no error.
    assert explain(small_translator("transformer"), SENTENCE, target=TARGET, edit=ahead)


def test_invalid_arguments_are_refused() -> None:
    translator = small_translator("transformer")
    with pytest.raises(DataError, match=r"at least one of each\. Received: queries \(1,\) and keys \(\)"):
        Pin("cross", queries=(1,), keys=())
    with pytest.raises(DataError, match="queries: Field required"):
        change_from_json({"kind": "pin", "site": "cross", "keys": [1]})
    with pytest.raises(DataError, match=r"no key 1\.5"):
        explain(translator, SENTENCE, target=TARGET, edit=Paint("cross", query=0, key=1.5))
    with pytest.raises(DataError, match="candidates = -1"):
        explain(translator, SENTENCE, options=ExplanationOptions(candidates=-1))
    with pytest.raises(DataError, match="99999"):
        explain(translator, SENTENCE, prefix=[99999])


def test_several_changes_apply_together() -> None:
    translator = make_translator(SMALL_MODELS["transformer"])
    both = explain(
        translator,
        SENTENCE,
        target=TARGET,
        edit=[Silence("encoder", 1, 0), Paint("cross", 1, 1, query=0, key=0)],
    )
    assert np.all(both.attention["encoder"].weights[1, 0] == 0)
    assert both.attention["cross"].weights[1, 1, 0, 0] == 1
    assert len(both.changes) == 2
    stored = explanation_from_json(explanation_to_json(both))
    assert stored.changes == both.changes
    assert not isinstance(stored, LiveExplanation)


@pytest.mark.parametrize("name", ["transformer", "decoder-only"])
def test_a_silenced_head_stays_silent_in_whichever_order_the_changes_come(name: str) -> None:
    translator = small_translator(name)
    silence = Silence("cross", 1, 1)
    others = [Pin("cross", queries=(0, 1), keys=(0,)), Paint("cross", query=2, key=1, weight=0.5)]
    first = explain(translator, SENTENCE, target=TARGET, edit=[silence, *others])
    last = explain(translator, SENTENCE, target=TARGET, edit=[*others, silence])
    assert np.all(first.attention["cross"].weights[1, 1] == 0)
    assert np.any(first.attention["cross"].weights[1, 0] > 0)
    np.testing.assert_array_equal(first.log_probs, last.log_probs)
    assert first.changes == (silence, *others)
