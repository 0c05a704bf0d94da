"""Beam search against brute force, and properties of every search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.config.recipe import SearchSettings
from jumok.errors import RecipeError, UnsupportedError
from jumok.inference.search.beam import beam_search
from jumok.inference.search.greedy_sampling import greedy_search
from jumok.inference.search.plan import SearchPlan, SearchStep
from jumok.types import BEGIN, END, Batch, Hypothesis, LogProbs
from support.forced import forced_log_probs
from support.table_steppers import (
    AttendingTableStepper,
    TableState,
    TableStepper,
    batch_of,
    brute_force,
    ordinary_tokens,
    single_sentence,
    steps_of,
    was_cut,
)

Search = Callable[..., list[list[Hypothesis]]]
SEEDS = st.integers(0, 10_000)
SOURCES = st.lists(st.lists(st.integers(4, 9), min_size=1, max_size=5), min_size=1, max_size=4)
PLANS = st.builds(
    SearchPlan,
    beam=st.integers(1, 4),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0]),
    min_length=st.integers(0, 2),
    max_length_ratio=st.sampled_from([0.0, 0.5]),
    extra_tokens=st.integers(2, 6),
    no_repeat_ngram_size=st.integers(0, 2),
)


def assert_close(actual: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    assert [[h.ids for h in row] for row in actual] == [[h.ids for h in row] for row in expected]
    for actual_hypothesis, expected_hypothesis in zip(chain(*actual), chain(*expected), strict=True):
        assert actual_hypothesis.score == pytest.approx(expected_hypothesis.score, abs=1e-5)
        assert actual_hypothesis.log_prob == pytest.approx(expected_hypothesis.log_prob, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    seed=SEEDS,
    vocab_size=st.integers(5, 6),
    penalty=st.sampled_from([0.0, 0.5, 1.0, 1.5]),
    source=st.lists(st.integers(4, 9), min_size=1, max_size=4),
)
def test_a_beam_that_keeps_all_hypotheses_equals_brute_force(
    seed: int, vocab_size: int, penalty: float, source: list[int]
) -> None:
    stepper = TableStepper(vocab_size=vocab_size, seed=seed)
    max_length = 4
    num_sequences = len(ordinary_tokens(vocab_size)) ** max_length  # of the maximum length
    # Without a length penalty, the search stops as soon as it has the best hypothesis. It may miss others.
    n_best = 12 if penalty else 1
    plan = SearchPlan(
        beam=num_sequences + 1,
        n_best=n_best,
        length_penalty=penalty,
        min_length=0,
        max_length_ratio=0.0,
        extra_tokens=max_length,
    )
    batch = batch_of(source)
    # With a length penalty, a large patience factor lets the search finish all translations.
    results = beam_search(stepper, batch, replace(plan, patience_factor=9.0))
    expected = brute_force(stepper, batch, ordinary_tokens(vocab_size), plan)
    assert_close([[h] for h in results[0]], [[h] for h in expected[:n_best]])


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_a_beam_of_one_equals_greedy_search(seed: int, sources: list[list[int]], plan: SearchPlan) -> None:
    stepper = TableStepper(vocab_size=8, seed=seed)
    batch = batch_of(*sources)
    plan = replace(plan, beam=1)
    assert_close(beam_search(stepper, batch, plan), greedy_search(stepper, batch, plan))


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_a_sentence_is_translated_the_same_alone_and_in_a_batch(
    seed: int, sources: list[list[int]], plan: SearchPlan
) -> None:
    stepper = TableStepper(vocab_size=9, seed=seed)
    batch = batch_of(*sources)
    plan = replace(plan, n_best=plan.beam)
    together = beam_search(stepper, batch, plan)
    for row, hypotheses in enumerate(together):
        assert_close([hypotheses], beam_search(stepper, single_sentence(batch, row), plan))


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_log_probabilities_equal_forced_decoding_and_n_best_lists_are_sorted_and_distinct(
    seed: int, sources: list[list[int]], plan: SearchPlan
) -> None:
    stepper = TableStepper(vocab_size=9, seed=seed)
    batch = batch_of(*sources)
    plan = replace(plan, n_best=plan.beam)
    max_lengths = plan.max_lengths(batch).tolist()
    for row, hypotheses in enumerate(beam_search(stepper, batch, plan)):
        assert hypotheses
        assert len({h.ids for h in hypotheses}) == len(hypotheses)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for hypothesis in hypotheses:
            assert plan.min_length <= len(hypothesis.ids) <= max_lengths[row]
            ended = not was_cut(hypothesis, max_lengths[row])
            forced = forced_log_probs(stepper, single_sentence(batch, row), [hypothesis.ids], score_end=ended)
            assert hypothesis.log_prob == pytest.approx(float(forced.sum()), abs=1e-5)
            if plan.min_length == 0 and plan.no_repeat_ngram_size == 0:
                length_norm = steps_of(hypothesis, max_lengths[row]) ** plan.length_penalty
                assert hypothesis.score == pytest.approx(hypothesis.log_prob / length_norm, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS, data=st.data())
def test_translations_begin_with_their_prefix_whose_log_probabilities_are_not_scored(
    seed: int, sources: list[list[int]], plan: SearchPlan, data: st.DataObject
) -> None:
    stepper = TableStepper(vocab_size=9, seed=seed)
    batch = batch_of(*sources)
    prefixes = [data.draw(st.lists(st.integers(4, 8), max_size=4)) for _ in sources]
    plan = replace(plan, n_best=plan.beam, no_repeat_ngram_size=0, min_length=0)
    for search in (beam_search, greedy_search):
        results = search(stepper, batch, plan, prefixes=prefixes)
        for row, (prefix, hypotheses) in enumerate(zip(prefixes, results, strict=True)):
            for hypothesis in hypotheses:
                assert list(hypothesis.ids[: len(prefix)]) == prefix
                max_length = max(int(plan.max_lengths(batch)[row]), len(prefix) + 1)
                log_probs = forced_log_probs(
                    stepper,
                    single_sentence(batch, row),
                    [hypothesis.ids],
                    score_end=not was_cut(hypothesis, max_length),
                )
                assert hypothesis.log_prob == pytest.approx(float(log_probs.sum()), abs=1e-5)
                length_norm = steps_of(hypothesis, max_length) ** plan.length_penalty
                without_prefix = float(log_probs[0, len(prefix) :].sum())
                assert hypothesis.score == pytest.approx(without_prefix / length_norm, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS, size=st.integers(1, 3))
def test_no_n_gram_is_repeated(seed: int, sources: list[list[int]], plan: SearchPlan, size: int) -> None:
    stepper = TableStepper(vocab_size=6, seed=seed)
    plan = replace(plan, n_best=plan.beam, no_repeat_ngram_size=size, extra_tokens=8, min_length=0)
    for search in (beam_search, greedy_search):
        for hypothesis in chain(*search(stepper, batch_of(*sources), plan)):
            ngrams = [hypothesis.ids[i : i + size] for i in range(len(hypothesis.ids) - size + 1)]
            assert len(set(ngrams)) == len(ngrams)


def test_the_translation_ends_when_every_token_is_disallowed() -> None:
    # A translation can contain three tokens: <unk>, 4 and 5. No token may be repeated, and `min_length`
    # disallows </s>, so no token is allowed after the third.
    stepper = TableStepper(vocab_size=6, seed=3)
    plan = SearchPlan(beam=2, no_repeat_ngram_size=1, min_length=5, max_length_ratio=0, extra_tokens=9)
    for search in (beam_search, greedy_search):
        [[best]] = search(stepper, batch_of([4, 5]), plan)
        assert len(best.ids) == 3


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_the_hypotheses_can_be_rebuilt_from_the_reported_steps(
    seed: int, sources: list[list[int]], plan: SearchPlan
) -> None:
    stepper = TableStepper(vocab_size=9, seed=seed)
    plan = replace(plan, n_best=plan.beam, min_length=0)
    for search in (beam_search, greedy_search):
        steps: list[SearchStep] = []
        results = search(stepper, batch_of(*sources), plan, on_step=steps.append)
        rebuilt = rebuild(steps)
        for sentence, hypotheses in enumerate(results):
            for hypothesis in hypotheses:
                scores = rebuilt[sentence, hypothesis.ids]
                assert scores == pytest.approx((hypothesis.score, hypothesis.log_prob), abs=1e-5)


def rebuild(steps: list[SearchStep]) -> dict[tuple[int, tuple[int, ...]], tuple[float, float]]:
    """Return (sentence, ids) → score and log-probability, from the reported steps alone."""
    finished: dict[tuple[int, tuple[int, ...]], tuple[float, float]] = {}
    paths: dict[tuple[int, int], tuple[int, ...]] = {}
    for report in steps:
        extended: dict[tuple[int, int], tuple[int, ...]] = {}
        for row, sentence in enumerate(report.sentences.tolist()):
            for candidate, token in enumerate(report.tokens[row].tolist()):
                parent = (sentence, int(report.parents[row, candidate]))
                parent_path = paths.get(parent, ()) if report.step else ()
                path = parent_path if token == END else (*parent_path, token)
                if report.finished[row, candidate]:
                    score, log_prob = report.scores[row, candidate], report.log_probs[row, candidate]
                    finished[sentence, path] = float(score), float(log_prob)
                if report.kept[row, candidate]:
                    extended[sentence, candidate] = path
        paths = extended
    return finished


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_a_shortlist_of_all_tokens_changes_nothing(
    seed: int, sources: list[list[int]], plan: SearchPlan
) -> None:
    plain = TableStepper(vocab_size=8, seed=seed)
    shortlisted = TableStepper(vocab_size=8, seed=seed, ids=[7, 3, 1, 0, 5, 4, 2, 6])
    batch = batch_of(*sources)
    prefixes = [[4] for _ in sources]
    assert_close(
        beam_search(plain, batch, plan, prefixes=prefixes),
        beam_search(shortlisted, batch, plan, prefixes=prefixes),
    )


def test_only_tokens_of_the_shortlist_are_produced() -> None:
    stepper = TableStepper(vocab_size=20, seed=1, ids=[3, 11, 17])
    batch = batch_of([4, 5, 6])
    plan = SearchPlan(beam=3, n_best=3, max_length_ratio=0, extra_tokens=5, no_repeat_ngram_size=2)
    produced = {token for hypothesis in beam_search(stepper, batch, plan)[0] for token in hypothesis.ids}
    assert produced <= {11, 17}  # token 3 is </s>, which is not part of a translation
    assert greedy_search(stepper, batch, plan)[0][0].ids  # the translation is not empty


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS, weight=st.sampled_from([0.2, 1.0]))
def test_the_coverage_penalty_is_added_to_the_normalised_log_probability(
    seed: int, sources: list[list[int]], plan: SearchPlan, weight: float
) -> None:
    stepper = AttendingTableStepper(vocab_size=9, seed=seed)
    batch = batch_of(*sources)
    plan = replace(plan, coverage_penalty=weight, n_best=plan.beam, min_length=0, no_repeat_ngram_size=0)
    for search in (beam_search, greedy_search):
        for row, hypotheses in enumerate(search(stepper, batch, plan)):
            for hypothesis in hypotheses:
                num_steps = steps_of(hypothesis, int(plan.max_lengths(batch)[row]))
                coverage = coverage_of(
                    stepper, single_sentence(batch, row), (BEGIN, *hypothesis.ids)[:num_steps]
                )
                penalty = weight * float(coverage.clamp(max=1).log().sum())
                normalised = hypothesis.log_prob / num_steps**plan.length_penalty
                assert hypothesis.score == pytest.approx(normalised + penalty, abs=1e-4)


def coverage_of(stepper: AttendingTableStepper, sentence: Batch, tokens: tuple[int, ...]) -> torch.Tensor:
    """Return the sum of the attention over the steps that read these tokens."""
    state = stepper.begin(sentence)
    total = torch.zeros(sentence.source.shape[1])
    for token in tokens:
        _, state, attention = stepper.step_with_attention(state, torch.tensor([token]))
        total += attention[0]
    return total


class IgnoresFirstToken(AttendingTableStepper):
    """Never attends to the first source token. The log-probabilities do not depend on the attention."""

    def step_with_attention(
        self, state: TableState, last_tokens: torch.Tensor
    ) -> tuple[LogProbs, TableState, torch.Tensor]:
        log_probs, after, attention = super().step_with_attention(state, last_tokens)
        attention[:, 0] = 0
        return log_probs, after, attention


@pytest.mark.parametrize("search", [beam_search, greedy_search])
def test_the_coverage_penalty_is_large_for_a_token_without_attention_and_0_for_padding(
    search: Search,
) -> None:
    plan = SearchPlan(beam=1, coverage_penalty=1.0)
    sources = [4, 5, 6], [7]
    usual_results, penalised_results = (
        search(stepper(vocab_size=9, seed=3), batch_of(*sources), plan)
        for stepper in (AttendingTableStepper, IgnoresFirstToken)
    )
    for [usual], [penalised] in zip(usual_results, penalised_results, strict=True):
        assert usual.ids == penalised.ids
        # Only a token without attention lowers a score this much. It adds about −87 (see `finished.py`).
        assert penalised.score < usual.score + math.log(1e-6)
    # In the batch, the second sentence is padded.
    alone = search(IgnoresFirstToken(vocab_size=9, seed=3), batch_of(sources[1]), plan)
    assert alone[0][0].score == pytest.approx(penalised_results[1][0].score, abs=1e-5)


def test_the_coverage_penalty_needs_attention() -> None:
    plan = SearchPlan(coverage_penalty=0.2)
    with pytest.raises(UnsupportedError, match="TableStepper, which has no `step_with_attention`"):
        beam_search(TableStepper(vocab_size=8, seed=1), batch_of([4]), plan)


def test_more_hypotheses_than_the_beam_finds_are_refused() -> None:
    with pytest.raises(RecipeError, match="n_best 7 with beam 3"):
        beam_search(TableStepper(vocab_size=8, seed=1), batch_of([4]), SearchPlan(beam=3, n_best=7))


def test_the_message_for_a_large_n_best_depends_on_the_beam() -> None:
    with pytest.raises(RecipeError, match="A beam of 1 finds one hypothesis") as refusal:
        SearchPlan(beam=1, n_best=2, patience_factor=2.0).check_n_best()
    assert "patience_factor" not in str(refusal.value)
    with pytest.raises(RecipeError, match="Use n_best 8 or less"):
        SearchPlan(beam=4, n_best=9, patience_factor=2.0).check_n_best()


def test_a_plan_has_the_search_settings_of_the_recipe() -> None:
    settings = SearchSettings(
        beam=3,
        length_penalty=0.6,
        no_repeat_ngram_size=4,
        max_length_ratio=2.5,
        coverage_penalty=0.1,
        patience_factor=1.5,
    )
    plan = SearchPlan.from_settings(settings, n_best=2)
    assert (plan.beam, plan.n_best, plan.length_penalty, plan.no_repeat_ngram_size) == (3, 2, 0.6, 4)
    assert (plan.max_length_ratio, plan.coverage_penalty, plan.patience_factor) == (2.5, 0.1, 1.5)
    # ⌊2.5 · source tokens⌋ + 10 extra tokens
    assert plan.max_lengths(batch_of([4, 5, 6], [4])).tolist() == [17, 12]
    pictures = Batch(torch.zeros(1, 3, 48, dtype=torch.uint8), torch.tensor([3]))  # 3 patches and no </s>
    assert plan.max_lengths(pictures).tolist() == [17]


@pytest.mark.parametrize(
    "options",
    [{"beam": 0}, {"n_best": 0}, {"no_repeat_ngram_size": -1}, {"extra_tokens": 0}, {"patience_factor": 0}],
)
def test_plan_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(RecipeError, match=r"Received: (0|-1)\."):
        SearchPlan(**options)


def test_without_penalties_the_search_stops_when_the_best_candidate_ends() -> None:
    steps: list[SearchStep] = []
    for seed in range(20):
        stepper = TableStepper(vocab_size=12, seed=seed)
        beam_search(stepper, batch_of([4, 5]), SearchPlan(beam=4, length_penalty=0.0), on_step=steps.append)
    for report in steps:
        best_ended = report.finished[:, 0]
        assert not (best_ended[:, None] & report.kept).any()


def test_an_empty_batch_has_no_translations() -> None:
    batch = Batch(torch.zeros(0, 1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    assert beam_search(TableStepper(vocab_size=8, seed=1), batch, SearchPlan()) == []
    assert greedy_search(TableStepper(vocab_size=8, seed=1), batch, SearchPlan()) == []
