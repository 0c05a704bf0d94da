"""What an explanation holds: the weights of decoding itself, words, candidates, the search, alignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from explain_translators import (
    FAMILIES,
    SENTENCE,
    TARGET,
    family_translator,
    make_translator,
    stepwise_weights,
    vocabularies,
)
from jumok.errors import DataError, UnsupportedError
from jumok.explain import Silence
from jumok.recipe import AttentionSettings, RecurrentSettings, SearchSettings
from jumok.values import END, Alignment, Pair, ReadOut

if TYPE_CHECKING:
    from jumok.explain import Explanation

every_family = pytest.mark.parametrize("name", FAMILIES)


def prefix_of(explanation: Explanation, step: int, index: int) -> tuple[int, ...]:
    assert explanation.search is not None
    parent = explanation.search.candidate(step, index).parent
    return explanation.search.ids(step - 1, parent) if step else ()


@every_family
def test_one_pass_gives_the_weights_of_decoding_step_by_step(name: str) -> None:
    translator = family_translator(name)
    explanation = translator.explain(SENTENCE)
    expected = stepwise_weights(translator, list(explanation.source.ids), list(explanation.target.ids))
    assert set(explanation.attention) == set(expected)
    for site, attention in explanation.attention.items():
        np.testing.assert_allclose(attention.weights, expected[site], atol=1e-5)
        assert attention.weights.shape[2:] == (len(attention.queries), len(attention.keys))


@every_family
def test_it_explains_what_translate_says(name: str) -> None:
    translator = family_translator(name)
    [translation] = translator.translate([SENTENCE])
    explanation = translator.explain(SENTENCE)
    assert explanation.text == translation.text
    assert explanation.score == pytest.approx(translation.score, abs=1e-5)
    assert explanation.target.pieces == translation.pieces
    [greedy] = translator.translate([SENTENCE], beam=1)
    assert translator.explain(SENTENCE, beam=1).text == greedy.text


@every_family
def test_rows_sum_to_one_between_pieces_and_between_words(name: str) -> None:
    explanation = family_translator(name).explain(SENTENCE, target=TARGET)
    rows = {site: explanation.words(site) for site in explanation.attention}
    sums = {site: one.weights.sum(axis=-1) for site, one in rows.items()}
    if name == "decoder-only":  # one row looks at source and target
        sums["cross"] = sums["decoder"] = sums["cross"] + sums["decoder"]
    for total in sums.values():
        np.testing.assert_allclose(total, 1.0, atol=1e-5)
    cross = rows["cross"]
    assert cross.queries == (*explanation.target.words, "</s>")
    assert cross.keys == (*explanation.source.words, "</s>")
    assert cross.weights.shape[2:] == (len(cross.queries), len(cross.keys))
    if "decoder" in rows:
        assert rows["decoder"].keys == ("<s>", *explanation.target.words)


def test_words_add_their_keys_and_average_their_queries() -> None:
    explanation = family_translator("transformer").explain("zebra sees", target="quartz a")
    source, target = explanation.source, explanation.target
    assert len(source.pieces_of(0)) > 1 < len(target.pieces_of(0))
    pieces = explanation.attention["cross"].weights
    by_hand = pieces[:, :, list(target.pieces_of(0))][..., list(source.pieces_of(0))].sum(-1).mean(-1)
    np.testing.assert_allclose(explanation.words("cross").weights[:, :, 0, 0], by_hand, atol=1e-6)


@every_family
def test_log_probabilities_and_candidates_are_the_models(name: str) -> None:
    explanation = family_translator(name).explain(SENTENCE, candidates=5)
    assert explanation.search is not None
    step, index = next(explanation.search.finished())
    best = explanation.search.candidate(step, index)
    assert explanation.log_prob == pytest.approx(best.log_prob, abs=1e-4)
    assert len(explanation.candidates) == len(explanation.log_probs) == len(explanation.target.ids) + 1
    written = [*explanation.target.ids, END]
    for log_prob, piece, candidates in zip(
        explanation.log_probs, written, explanation.candidates, strict=True
    ):
        shares = [one.probability for one in candidates]
        assert shares == sorted(shares, reverse=True)
        assert len(shares) == 5
        found = {one.id: one.probability for one in candidates}
        assert found.get(piece, np.exp(log_prob)) == pytest.approx(np.exp(log_prob), abs=1e-5)


def test_the_tree_holds_every_hypothesis_and_ends_with_the_best() -> None:
    explanation = family_translator("transformer").explain(SENTENCE)
    tree = explanation.search
    assert tree is not None
    assert tree.ids(*next(tree.finished())) == explanation.target.ids
    live = family_translator("transformer").explain(SENTENCE).live
    assert live is not None
    for step, candidates in enumerate(tree.steps):
        assert sum(candidate.kept for candidate in candidates) <= tree.beam
        for index, candidate in enumerate(candidates):
            parent = tree.candidate(step - 1, candidate.parent) if step else None
            assert parent is None or parent.kept
            before = parent.log_prob if parent else 0.0
            following = live.log_probs(prefix_of(explanation, step, index))[step]
            assert candidate.log_prob - before == pytest.approx(float(following[candidate.id]), abs=1e-4)


@every_family
def test_each_beam_shows_where_it_looked(name: str) -> None:
    translator = family_translator(name)
    explanation = translator.explain(SENTENCE)
    tree = explanation.search
    assert tree is not None
    assert tree.looks is not None
    heads = explanation.alignments[0].heads
    for step, candidates in enumerate(tree.steps):
        for index, candidate in enumerate(candidates):
            if not (candidate.kept or candidate.finished):
                assert candidate.looked == -1
                continue
            maps = explanation.beam_attention(step, index)
            rows = np.mean([maps["cross"].weights[place] for place in heads], axis=0)
            np.testing.assert_allclose(tree.looks[candidate.looked], rows[step], atol=1e-5)
    assert len(tree.looks) < sum(map(len, tree.steps))


def test_the_attention_of_a_live_beam_is_that_of_its_own_steps() -> None:
    translator = family_translator("bahdanau")
    explanation = translator.explain(SENTENCE)
    assert explanation.search is not None
    step = len(explanation.search.steps) // 2
    index = next(i for i, one in enumerate(explanation.search.steps[step]) if one.kept)
    ids = explanation.search.ids(step, index)
    maps = explanation.beam_attention(step, index)
    expected = stepwise_weights(translator, list(explanation.source.ids), list(ids))
    np.testing.assert_allclose(maps["cross"].weights, expected["cross"], atol=1e-5)
    assert maps["cross"].queries == (*vocabularies().target.pieces(ids), "</s>")


def test_a_forced_candidate_is_said_and_the_model_goes_on() -> None:
    translator = family_translator("transformer")
    plain = translator.explain(SENTENCE)
    other = plain.candidates[2][1].id
    forced = translator.explain(SENTENCE, forced_prefix=[*plain.target.ids[:2], other])
    assert forced.target.ids[:3] == (*plain.target.ids[:2], other)
    assert forced.forced == 3
    assert len(forced.target.ids) > 3
    by_text = translator.explain(SENTENCE, forced_prefix="a river")
    [translation] = translator.translate([SENTENCE], prefix=["a river"])
    assert by_text.text == translation.text


def test_alignments_are_read_in_many_ways_the_models_own_first() -> None:
    translator = make_translator(FAMILIES["transformer"], read_out=ReadOut(((1, 0), (0, 1)), 1))
    explanation = translator.explain(SENTENCE, target=TARGET)
    found = {one.name: one for one in explanation.alignments}
    first = explanation.alignments[0]
    assert (first.name, first.heads, first.shift) == ("read-out", ((1, 0), (0, 1)), 1)
    assert first.links == translator.align(SENTENCE, TARGET)
    assert found["shifted"].shift == 0
    one_head = make_translator(FAMILIES["transformer"], read_out=ReadOut(((1, 1),)))
    assert found["layer 1, head 1"].links == one_head.align(SENTENCE, TARGET)
    assert {"mean", "mean, shifted", "layer 0", "layer 1", "layer 0, head 0"} <= set(found)
    assert found["intersection"].links.sure <= first.links.sure
    assert found["intersection"].links.sure <= found["grow-diagonal-final"].links.sure


def test_heads_are_judged_by_hand_computed_numbers() -> None:
    explanation = family_translator("transformer").explain(SENTENCE, target=TARGET)
    for site, one in explanation.statistics.items():
        weights = explanation.attention[site].weights
        row = weights[1, 0].astype(np.float64)
        queries, keys = row.shape
        entropy = np.mean([-sum(w * np.log(w) for w in line if w > 0) for line in row])
        away = np.mean([sum(row[q, k] * abs(q - k) for k in range(keys)) for q in range(queries)])
        mark = row[:, 0].mean() if site == "decoder" else row[:, -1].mean()
        assert one.entropy[1, 0] == pytest.approx(entropy, abs=1e-5)
        assert one.distance[1, 0] == pytest.approx(away, abs=1e-4)
        assert one.on_mark[1, 0] == pytest.approx(mark, abs=1e-5)
        assert one.error is None


def test_with_gold_every_head_has_its_alignment_error() -> None:
    from jumok.evaluation import score_alignments

    gold = Alignment(frozenset({(0, 0), (3, 2)}), frozenset({(1, 1)}))
    explanation = family_translator("transformer").explain(SENTENCE, target=TARGET, gold=gold)
    errors = explanation.statistics["cross"].error
    assert errors is not None
    for one in explanation.alignments:
        if len(one.heads) == 1 and one.shift == 0:
            assert errors[one.heads[0]] == pytest.approx(score_alignments([one.links], [gold]).error)


@pytest.mark.parametrize("name", ["transformer", "decoder-only"])
def test_the_roll_out_follows_all_layers(name: str) -> None:
    explanation = family_translator(name).explain(SENTENCE, target=TARGET)
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
        with pytest.raises(UnsupportedError, match="cross-attention has no roll-out"):
            explanation.roll_out("cross")


def test_a_model_without_attention_is_explained_by_its_search_alone() -> None:
    settings = RecurrentSettings(width=16, embedding=12, attention=AttentionSettings(kind="none"))
    explanation = make_translator(settings).explain(SENTENCE)
    assert (dict(explanation.attention), explanation.alignments) == ({}, ())
    assert explanation.search is not None
    assert explanation.search.looks is None
    with pytest.raises(DataError, match='no attention "cross"'):
        explanation.words("cross")


@pytest.mark.parametrize("text", ["", "  "])
def test_nothing_is_explained_as_nothing(text: str) -> None:
    explanation = family_translator("transformer").explain(text)
    assert (explanation.text, explanation.search) == ("", None)
    assert explanation.attention["cross"].weights.shape == (2, 2, 1, 1)


def test_a_line_that_would_be_cut_is_refused_with_a_way_out() -> None:
    translator = make_translator(FAMILIES["transformer"], longest_source=4)
    with pytest.raises(DataError, match="explain the `parts`"):
        translator.explain(SENTENCE)
    assert translator.explain(SENTENCE, target=TARGET).search is None


def test_the_maps_of_a_given_translation_are_those_of_attention() -> None:
    translator = family_translator("transformer")
    maps = translator.attention(SENTENCE, TARGET)
    explanation = translator.explain(SENTENCE, target=TARGET)
    for site, attention in maps.items():
        assert (attention.queries, attention.keys) == (
            explanation.attention[site].queries,
            explanation.attention[site].keys,
        )
        np.testing.assert_array_equal(attention.weights, explanation.attention[site].weights)
    [pair] = translator.attended([Pair(SENTENCE, TARGET)])
    np.testing.assert_array_equal(pair.weights, explanation.attention["cross"].weights)


def test_explaining_with_a_coverage_penalty_ranks_as_the_search_does() -> None:
    search = SearchSettings(beam=3, longest=0.5, coverage_penalty=0.3)
    translator = make_translator(FAMILIES["transformer"], search=search)
    [translation] = translator.translate([SENTENCE])
    explanation = translator.explain(SENTENCE)
    assert explanation.search is not None
    step, index = next(explanation.search.finished())
    assert explanation.search.candidate(step, index).ranking == pytest.approx(translation.score, abs=1e-5)
    assert explanation.text == translation.text


def test_a_model_of_no_numbers_is_still_explained() -> None:
    translator = make_translator(FAMILIES["transformer"])
    with torch.no_grad():
        translator.model.output.weight.fill_(float("nan"))
    explanation = translator.explain(SENTENCE)
    assert (explanation.text, explanation.ended) == ("", False)
    assert '"score":null' in explanation.to_json()


def test_the_translation_is_heard_as_it_is_written() -> None:
    translator = family_translator("transformer")
    heard: list[str] = []
    explanation = translator.explain(SENTENCE, hear=heard.append)
    tree = explanation.search
    assert tree is not None
    decode = translator.vocabularies.target.decode
    for step, (text, candidates) in enumerate(zip(heard, tree.steps, strict=False)):
        likeliest = max(range(len(candidates)), key=lambda index: candidates[index].score)
        assert text == decode(tree.ids(step, likeliest))
    ended = [step for step, candidates in enumerate(tree.steps) if candidates[0].finished]
    assert len(heard) == (ended[0] + 1 if ended else len(tree.steps))


def test_under_a_change_only_the_changed_translation_is_heard() -> None:
    translator = family_translator("transformer")
    heard: list[str] = []
    explanation = translator.explain(SENTENCE, edit=Silence("cross"), hear=heard.append)
    assert explanation.search is not None
    assert len(heard) <= len(explanation.search.steps)


def test_whoever_hears_may_end_the_search() -> None:
    def leave(text: str) -> None:
        raise ConnectionError(text)

    with pytest.raises(ConnectionError):
        family_translator("transformer").explain(SENTENCE, hear=leave)
