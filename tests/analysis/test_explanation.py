"""The contents of an explanation: attention, words, candidates, the search, alignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from jumok.analysis.changes import Silence
from jumok.analysis.explainer import ExplanationOptions, explain
from jumok.analysis.json_format import explanation_to_json
from jumok.config.recipe import AttentionSettings, RecurrentSettings, SearchSettings
from jumok.errors import DataError, UnsupportedError
from jumok.inference.engines.torch_engine import TorchEngine
from jumok.types import END, Alignment, Pair, ReadOut
from support.random_translators import (
    SENTENCE,
    SMALL_MODELS,
    TARGET,
    make_translator,
    small_translator,
    stepwise_weights,
    tokenizers,
)

if TYPE_CHECKING:
    from jumok.analysis.explanation import Explanation
    from jumok.analysis.live_explanation import LiveExplanation

every_small_model = pytest.mark.parametrize("name", SMALL_MODELS)


def prefix_of(explanation: Explanation, step: int, index: int) -> tuple[int, ...]:
    """Return the tokens before a candidate of the search."""
    assert explanation.search is not None
    parent = explanation.search.candidate(step, index).parent
    return explanation.search.ids(step - 1, parent) if step else ()


@every_small_model
def test_one_pass_gives_the_same_weights_as_decoding_step_by_step(name: str) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE)
    expected = stepwise_weights(translator, list(explanation.source.ids), list(explanation.target.ids))
    assert set(explanation.attention) == set(expected)
    for site, attention in explanation.attention.items():
        np.testing.assert_allclose(attention.weights, expected[site], atol=1e-5)
        assert attention.weights.shape[2:] == (len(attention.queries), len(attention.keys))


@every_small_model
def test_explain_and_translate_give_the_same_translation(name: str) -> None:
    translator = small_translator(name)
    [translation] = translator.translate([SENTENCE])
    explanation = explain(translator, SENTENCE)
    assert explanation.text == translation.text
    assert explanation.score == pytest.approx(translation.score, abs=1e-5)
    assert explanation.target.tokens == translation.tokens
    [greedy] = translator.translate([SENTENCE], beam=1)
    assert explain(translator, SENTENCE, options=ExplanationOptions(beam=1)).text == greedy.text


@every_small_model
def test_rows_between_words_sum_to_one_and_are_labelled_with_the_words(name: str) -> None:
    explanation = explain(small_translator(name), SENTENCE, target=TARGET)
    rows = {site: explanation.words(site) for site in explanation.attention}
    sums = {site: attention.weights.sum(axis=-1) for site, attention in rows.items()}
    if name == "decoder-only":  # one row attends to source and target
        sums["cross"] = sums["decoder"] = sums["cross"] + sums["decoder"]
    for total in sums.values():
        np.testing.assert_allclose(total, 1.0, atol=1e-5)
    cross = rows["cross"]
    assert cross.queries == (*explanation.target.words, "</s>")
    assert cross.keys == (*explanation.source.words, "</s>")
    assert cross.weights.shape[2:] == (len(cross.queries), len(cross.keys))
    if "decoder" in rows:
        assert rows["decoder"].keys == ("<s>", *explanation.target.words)


def test_the_keys_of_a_word_are_summed_and_its_queries_averaged() -> None:
    explanation = explain(small_translator("transformer"), "zebra sees", target="quartz a")
    source, target = explanation.source, explanation.target
    assert len(source.tokens_of(0)) > 1
    assert len(target.tokens_of(0)) > 1
    tokens = explanation.attention["cross"].weights
    by_hand = tokens[:, :, list(target.tokens_of(0))][..., list(source.tokens_of(0))].sum(-1).mean(-1)
    np.testing.assert_allclose(explanation.words("cross").weights[:, :, 0, 0], by_hand, atol=1e-6)


@every_small_model
def test_log_probabilities_and_candidates_agree_with_the_search(name: str) -> None:
    explanation = explain(small_translator(name), SENTENCE, options=ExplanationOptions(candidates=5))
    assert explanation.search is not None
    step, index = next(explanation.search.finished())
    best = explanation.search.candidate(step, index)
    assert explanation.log_prob == pytest.approx(best.log_prob, abs=1e-4)
    assert len(explanation.candidates) == len(explanation.log_probs) == len(explanation.target.ids) + 1
    produced = [*explanation.target.ids, END]
    for log_prob, token, candidates in zip(
        explanation.log_probs, produced, explanation.candidates, strict=True
    ):
        probabilities = [candidate.probability for candidate in candidates]
        assert probabilities == sorted(probabilities, reverse=True)
        assert len(probabilities) == 5
        probability_of = {candidate.id: candidate.probability for candidate in candidates}
        assert probability_of.get(token, np.exp(log_prob)) == pytest.approx(np.exp(log_prob), abs=1e-5)


def test_the_tree_has_the_models_log_probabilities_and_its_best_hypothesis_is_the_translation() -> None:
    explanation = explain(small_translator("transformer"), SENTENCE)
    tree = explanation.search
    assert tree is not None
    assert tree.ids(*next(tree.finished())) == explanation.target.ids
    for step, candidates in enumerate(tree.steps):
        assert sum(candidate.kept for candidate in candidates) <= tree.beam
        for index, candidate in enumerate(candidates):
            parent = tree.candidate(step - 1, candidate.parent) if step else None
            assert parent is None or parent.kept
            before = parent.log_prob if parent else 0.0
            following = explanation.bound_model.log_probs(prefix_of(explanation, step, index))[step]
            assert candidate.log_prob - before == pytest.approx(float(following[candidate.id]), abs=1e-4)


@every_small_model
def test_each_hypothesis_has_its_attention(name: str) -> None:
    translator = small_translator(name)
    explanation = explain(translator, SENTENCE)
    tree = explanation.search
    assert tree is not None
    assert tree.attention is not None
    heads = explanation.alignments[0].heads
    for step, candidates in enumerate(tree.steps):
        for index, candidate in enumerate(candidates):
            if not (candidate.kept or candidate.finished):
                assert candidate.attention_row == -1
                continue
            maps = explanation.beam_attention(step, index)
            rows = np.mean([maps["cross"].weights[head] for head in heads], axis=0)
            np.testing.assert_allclose(tree.attention[candidate.attention_row], rows[step], atol=1e-5)
    assert len(tree.attention) < sum(map(len, tree.steps))


def test_the_attention_of_a_hypothesis_equals_the_attention_of_step_by_step_decoding() -> None:
    translator = small_translator("bahdanau")
    explanation = explain(translator, SENTENCE)
    assert explanation.search is not None
    step = len(explanation.search.steps) // 2
    index = next(i for i, candidate in enumerate(explanation.search.steps[step]) if candidate.kept)
    ids = explanation.search.ids(step, index)
    maps = explanation.beam_attention(step, index)
    expected = stepwise_weights(translator, list(explanation.source.ids), list(ids))
    np.testing.assert_allclose(maps["cross"].weights, expected["cross"], atol=1e-5)
    assert maps["cross"].queries == (*tokenizers().target.tokens(ids), "</s>")


def test_the_model_continues_a_prefix() -> None:
    translator = small_translator("transformer")
    plain = explain(translator, SENTENCE)
    other = plain.candidates[2][1].id
    forced = explain(translator, SENTENCE, prefix=[*plain.target.ids[:2], other])
    assert forced.target.ids[:3] == (*plain.target.ids[:2], other)
    assert forced.forced == 3
    assert len(forced.target.ids) > 3
    by_text = explain(translator, SENTENCE, prefix="a river")
    [translation] = translator.translate([SENTENCE], prefix=["a river"])
    assert by_text.text == translation.text


def test_the_first_of_several_alignments_is_the_models_own() -> None:
    translator = make_translator(SMALL_MODELS["transformer"], read_out=ReadOut(((1, 0), (0, 1)), 1))
    explanation = explain(translator, SENTENCE, target=TARGET)
    by_name = {alignment.name: alignment for alignment in explanation.alignments}
    first = explanation.alignments[0]
    assert (first.name, first.heads, first.shift) == ("read-out", ((1, 0), (0, 1)), 1)
    assert first.links == translator.align(SENTENCE, TARGET)
    assert by_name["shifted"].shift == 0  # the other shift than the model's own
    one_head = make_translator(SMALL_MODELS["transformer"], read_out=ReadOut(((1, 1),)))
    assert by_name["layer 1, head 1"].links == one_head.align(SENTENCE, TARGET)
    assert {"mean", "mean, shifted", "layer 0", "layer 1", "layer 0, head 0"} <= set(by_name)
    assert by_name["intersection"].links.sure <= first.links.sure
    assert by_name["intersection"].links.sure <= by_name["grow-diagonal-final"].links.sure


def test_head_statistics_equal_numbers_computed_by_hand() -> None:
    explanation = explain(small_translator("transformer"), SENTENCE, target=TARGET)
    for site, statistics in explanation.statistics.items():
        weights = explanation.attention[site].weights
        head = weights[1, 0].astype(np.float64)  # (query, key)
        queries, keys = head.shape
        entropy = np.mean([-sum(w * np.log(w) for w in row if w > 0) for row in head])
        distance = np.mean([sum(head[q, k] * abs(q - k) for k in range(keys)) for q in range(queries)])
        special = head[:, 0].mean() if site == "decoder" else head[:, -1].mean()
        assert statistics.entropy[1, 0] == pytest.approx(entropy, abs=1e-5)
        assert statistics.distance[1, 0] == pytest.approx(distance, abs=1e-4)
        assert statistics.on_special[1, 0] == pytest.approx(special, abs=1e-5)
        assert statistics.error is None


def test_with_gold_every_head_has_its_alignment_error() -> None:
    from jumok.evaluation.alignment_error import score_alignments

    gold = Alignment(frozenset({(0, 0), (3, 2)}), frozenset({(1, 1)}))
    explanation = explain(
        small_translator("transformer"), SENTENCE, target=TARGET, options=ExplanationOptions(gold=gold)
    )
    errors = explanation.statistics["cross"].error
    assert errors is not None
    for alignment in explanation.alignments:
        if len(alignment.heads) == 1 and alignment.shift == 0:
            expected = score_alignments([alignment.links], [gold]).error
            assert errors[alignment.heads[0]] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["transformer", "decoder-only"])
def test_the_roll_out_goes_through_all_layers(name: str) -> None:
    explanation = explain(small_translator(name), SENTENCE, target=TARGET)
    encoder, decoder = explanation.roll_out("encoder"), explanation.roll_out("decoder")
    np.testing.assert_allclose(encoder.sum(axis=1), 1.0, atol=1e-6)
    first, second = (
        0.5 * np.eye(len(encoder)) + 0.5 * layer.mean(axis=0)
        for layer in explanation.attention["encoder"].weights
    )
    np.testing.assert_allclose(encoder, second @ first, atol=1e-6)
    if name == "decoder-only":
        whole = np.hstack([explanation.roll_out("cross"), decoder])
        np.testing.assert_allclose(whole.sum(axis=1), 1.0, atol=1e-6)
    else:
        np.testing.assert_allclose(decoder.sum(axis=1), 1.0, atol=1e-6)
        with pytest.raises(
            UnsupportedError, match=r'only in a decoder-only model\. Use "encoder" or "decoder"'
        ):
            explanation.roll_out("cross")


@pytest.mark.parametrize("name", ["transformer", "decoder-only"])
def test_the_roll_out_of_an_unknown_site_is_refused(name: str) -> None:
    explanation = explain(small_translator(name), SENTENCE, target=TARGET)
    with pytest.raises(DataError, match=r'no attention "source"\. It has: encoder, decoder, cross'):
        explanation.roll_out("source")


def test_the_refusal_of_a_roll_out_names_only_sites_of_the_model() -> None:
    explanation = explain(small_translator("luong"), SENTENCE, target=TARGET)
    with pytest.raises(UnsupportedError, match=r"decoder-only model\. This model has no self-attention\."):
        explanation.roll_out("cross")


def test_a_model_without_attention_is_explained_by_its_search_alone() -> None:
    settings = RecurrentSettings(width=16, embedding=12, attention=AttentionSettings(kind="none"))
    explanation = explain(make_translator(settings), SENTENCE)
    assert (dict(explanation.attention), explanation.alignments) == ({}, ())
    assert explanation.search is not None
    assert explanation.search.attention is None
    with pytest.raises(DataError, match='no attention "cross"'):
        explanation.words("cross")


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_sentence_has_an_empty_explanation(text: str) -> None:
    explanation = explain(small_translator("transformer"), text)
    assert (explanation.text, explanation.search) == ("", None)
    assert explanation.attention["cross"].weights.shape == (2, 2, 1, 1)


def test_a_sentence_that_is_too_long_is_refused_with_advice() -> None:
    translator = make_translator(SMALL_MODELS["transformer"], max_source_tokens=4)
    with pytest.raises(DataError, match="explain the `parts`"):
        explain(translator, SENTENCE)
    assert explain(translator, SENTENCE, target=TARGET).search is None


def test_the_maps_of_a_given_translation_equal_the_maps_of_the_translator() -> None:
    translator = small_translator("transformer")
    maps = translator.attention(SENTENCE, TARGET)
    explanation = explain(translator, SENTENCE, target=TARGET)
    for site, attention in maps.items():
        assert (attention.queries, attention.keys) == (
            explanation.attention[site].queries,
            explanation.attention[site].keys,
        )
        np.testing.assert_array_equal(attention.weights, explanation.attention[site].weights)
    [pair] = translator.attended_pairs([Pair(SENTENCE, TARGET)])
    np.testing.assert_array_equal(pair.weights, explanation.attention["cross"].weights)


def test_with_a_coverage_penalty_the_explanation_has_the_score_of_the_search() -> None:
    search = SearchSettings(beam=3, max_length_ratio=0.5, coverage_penalty=0.3)
    translator = make_translator(SMALL_MODELS["transformer"], search=search)
    [translation] = translator.translate([SENTENCE])
    explanation = explain(translator, SENTENCE)
    assert explanation.search is not None
    step, index = next(explanation.search.finished())
    assert explanation.search.candidate(step, index).score == pytest.approx(translation.score, abs=1e-5)
    assert explanation.text == translation.text


def test_a_model_with_nan_weights_is_still_explained() -> None:
    translator = make_translator(SMALL_MODELS["transformer"])
    with torch.no_grad():
        translator.model.output.weight.fill_(float("nan"))
    explanation = explain(translator, SENTENCE)
    assert (explanation.text, explanation.ended) == ("", False)
    assert '"score":null' in explanation_to_json(explanation)


def test_partial_translations_are_reported() -> None:
    translator = small_translator("transformer")
    partials: list[str] = []
    explanation = explain(translator, SENTENCE, on_partial=partials.append)
    tree = explanation.search
    assert tree is not None
    assert partials == best_texts(explanation)[: len(partials)]
    ended = [step for step, candidates in enumerate(tree.steps) if candidates[0].finished]
    assert len(partials) == (ended[0] + 1 if ended else len(tree.steps))


def best_texts(explanation: LiveExplanation) -> list[str]:
    """Return the text of the best candidate of each step of the search."""
    tree = explanation.search
    assert tree is not None
    texts = []
    for step, candidates in enumerate(tree.steps):
        best = max(range(len(candidates)), key=lambda index: candidates[index].constrained_log_prob)
        texts.append(tokenizers().target.decode(tree.ids(step, best)))
    return texts


def test_under_a_change_only_the_changed_translation_is_reported() -> None:
    translator = small_translator("transformer")
    partials: list[str] = []
    explanation = explain(translator, SENTENCE, edit=Silence("cross"), on_partial=partials.append)
    assert partials
    assert partials == best_texts(explanation)[: len(partials)]
    assert partials != best_texts(explain(translator, SENTENCE))[: len(partials)]


def test_the_callback_may_end_the_search() -> None:
    def disconnect(text: str) -> None:
        raise ConnectionError(text)

    with pytest.raises(ConnectionError):
        explain(small_translator("transformer"), SENTENCE, on_partial=disconnect)


def test_the_translation_of_the_engine_is_explained() -> None:
    """A converted model has rounded weights, so it may translate differently from the original model.

    Users see the translation of the converted model, so this translation is explained.
    """
    exact = make_translator(SMALL_MODELS["transformer"])
    rounded = make_translator(SMALL_MODELS["transformer"])
    with torch.no_grad():
        for weight in rounded.model.parameters():
            weight.copy_((weight * 2).round() / 2)
    engine = TorchEngine(rounded.model)
    engine.name = "rounded"  # type: ignore[misc]  # any name other than torch's
    expected = rounded.translate([SENTENCE])[0].text
    assert explain(exact, SENTENCE).text != expected
    exact.engine = engine
    explanation = explain(exact, SENTENCE)
    assert explanation.text == expected
    assert explanation.search is None
    assert explanation.facts["written_by"] == "rounded"
    with pytest.raises(UnsupportedError, match=r"no recorded search\..*ExplanationOptions"):
        explanation.beam_attention(0, 0)
    of_given_target = explain(exact, SENTENCE, target=expected)
    assert "written_by" not in of_given_target.facts
    # A beam chooses the search of torch, also if it is the same beam as in the search settings.
    with_beam = explain(exact, SENTENCE, options=ExplanationOptions(beam=3))
    assert with_beam.text != expected
    assert with_beam.search is not None
