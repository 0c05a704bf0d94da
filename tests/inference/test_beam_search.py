"""Beam search against brute force, and what every search promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import pytest
import torch
from decoding_steppers import (
    AttendingTableStepper,
    TableState,
    TableStepper,
    batch_of,
    brute_force,
    one_of,
    ordinary_pieces,
    steps_of,
    was_cut,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.decoding import SearchPlan, SearchStep, beam, force, greedy
from jumok.errors import RecipeError, UnsupportedError
from jumok.recipe import SearchSettings
from jumok.values import BEGIN, END, Batch, Hypothesis, LogProbs

Search = Callable[..., list[list[Hypothesis]]]
SEEDS = st.integers(0, 10_000)
SOURCES = st.lists(st.lists(st.integers(4, 9), min_size=1, max_size=5), min_size=1, max_size=4)
PLANS = st.builds(
    SearchPlan,
    beam=st.integers(1, 4),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0]),
    shortest=st.integers(0, 2),
    longest=st.sampled_from([0.0, 0.5]),
    extra=st.integers(2, 6),
    no_repeat=st.integers(0, 2),
)


def approximately(left: list[list[Hypothesis]], right: list[list[Hypothesis]]) -> None:
    assert [[h.ids for h in row] for row in left] == [[h.ids for h in row] for row in right]
    for one, other in zip(chain(*left), chain(*right), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    seed=SEEDS,
    pieces=st.integers(5, 6),
    penalty=st.sampled_from([0.0, 0.5, 1.0, 1.5]),
    source=st.lists(st.integers(4, 9), min_size=1, max_size=4),
)
def test_a_beam_as_wide_as_all_beginnings_is_brute_force(
    seed: int, pieces: int, penalty: float, source: list[int]
) -> None:
    stepper = TableStepper(pieces=pieces, seed=seed)
    limit = 4
    width = len(ordinary_pieces(pieces)) ** limit + 1
    # Without a penalty the search stops once nothing can beat the best, whatever comes second.
    n_best = 12 if penalty else 1
    plan = SearchPlan(beam=width, n_best=n_best, length_penalty=penalty, shortest=0, longest=0.0, extra=limit)
    batch = batch_of(source)
    found = beam(stepper, batch, replace(plan, patience=9.0))
    expected = brute_force(stepper, batch, ordinary_pieces(pieces), plan)
    approximately([[h] for h in found[0]], [[h] for h in expected[:n_best]])


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_a_beam_of_one_is_greedy(seed: int, sources: list[list[int]], plan: SearchPlan) -> None:
    stepper = TableStepper(pieces=8, seed=seed)
    batch = batch_of(*sources)
    plan = replace(plan, beam=1)
    approximately(beam(stepper, batch, plan), greedy(stepper, batch, plan))


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_a_sentence_is_translated_in_company_as_it_is_alone(
    seed: int, sources: list[list[int]], plan: SearchPlan
) -> None:
    stepper = TableStepper(pieces=9, seed=seed)
    batch = batch_of(*sources)
    plan = replace(plan, n_best=plan.beam)
    together = beam(stepper, batch, plan)
    for row, hypotheses in enumerate(together):
        approximately([hypotheses], beam(stepper, one_of(batch, row), plan))


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_a_log_probability_is_the_forced_one_and_n_best_is_sorted_and_distinct(
    seed: int, sources: list[list[int]], plan: SearchPlan
) -> None:
    stepper = TableStepper(pieces=9, seed=seed)
    batch = batch_of(*sources)
    plan = replace(plan, n_best=plan.beam)
    limits = plan.limits(batch).tolist()
    for row, hypotheses in enumerate(beam(stepper, batch, plan)):
        assert hypotheses
        assert len({h.ids for h in hypotheses}) == len(hypotheses)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for hypothesis in hypotheses:
            assert plan.shortest <= len(hypothesis.ids) <= limits[row]
            ended = not was_cut(hypothesis, limits[row])
            forced = force(stepper, one_of(batch, row), [hypothesis.ids], ended=ended)
            assert hypothesis.log_prob == pytest.approx(float(forced.sum()), abs=1e-5)
            if plan.shortest == 0 and plan.no_repeat == 0:
                length = steps_of(hypothesis, limits[row]) ** plan.length_penalty
                assert hypothesis.score == pytest.approx(hypothesis.log_prob / length, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS, data=st.data())
def test_a_prefix_is_respected_and_costs_nothing(
    seed: int, sources: list[list[int]], plan: SearchPlan, data: st.DataObject
) -> None:
    stepper = TableStepper(pieces=9, seed=seed)
    batch = batch_of(*sources)
    prefixes = [data.draw(st.lists(st.integers(4, 8), max_size=4)) for _ in sources]
    plan = replace(plan, n_best=plan.beam, no_repeat=0, shortest=0)
    for search in (beam, greedy):
        found = search(stepper, batch, plan, prefixes=prefixes)
        for row, (prefix, hypotheses) in enumerate(zip(prefixes, found, strict=True)):
            for hypothesis in hypotheses:
                assert list(hypothesis.ids[: len(prefix)]) == prefix
                limit = max(int(plan.limits(batch)[row]), len(prefix) + 1)
                parts = force(
                    stepper, one_of(batch, row), [hypothesis.ids], ended=not was_cut(hypothesis, limit)
                )
                assert hypothesis.log_prob == pytest.approx(float(parts.sum()), abs=1e-5)
                length = steps_of(hypothesis, limit) ** plan.length_penalty
                free = float(parts[0, len(prefix) :].sum())
                assert hypothesis.score == pytest.approx(free / length, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS, size=st.integers(1, 3))
def test_no_n_gram_is_said_twice(seed: int, sources: list[list[int]], plan: SearchPlan, size: int) -> None:
    stepper = TableStepper(pieces=6, seed=seed)
    plan = replace(plan, n_best=plan.beam, no_repeat=size, extra=8, shortest=0)
    for search in (beam, greedy):
        for hypothesis in chain(*search(stepper, batch_of(*sources), plan)):
            grams = [hypothesis.ids[i : i + size] for i in range(len(hypothesis.ids) - size + 1)]
            assert len(set(grams)) == len(grams)


def test_when_everything_is_forbidden_the_translation_ends() -> None:
    stepper = TableStepper(pieces=6, seed=3)  # <unk> and two pieces: three unigrams, then nothing is left
    plan = SearchPlan(beam=2, no_repeat=1, shortest=5, longest=0, extra=9)
    for search in (beam, greedy):
        [[best]] = search(stepper, batch_of([4, 5]), plan)
        assert len(best.ids) == 3


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_a_listener_can_rebuild_the_hypotheses(seed: int, sources: list[list[int]], plan: SearchPlan) -> None:
    stepper = TableStepper(pieces=9, seed=seed)
    plan = replace(plan, n_best=plan.beam, shortest=0)
    for search in (beam, greedy):
        told: list[SearchStep] = []
        found = search(stepper, batch_of(*sources), plan, listener=told.append)
        rebuilt = rebuild(told)
        for sentence, hypotheses in enumerate(found):
            for hypothesis in hypotheses:
                told_of = rebuilt[sentence, hypothesis.ids]
                assert told_of == pytest.approx((hypothesis.score, hypothesis.log_prob), abs=1e-5)


def rebuild(told: list[SearchStep]) -> dict[tuple[int, tuple[int, ...]], tuple[float, float]]:
    """(sentence, ids) → score and log-probability, from nothing but the reports."""
    finished: dict[tuple[int, tuple[int, ...]], tuple[float, float]] = {}
    paths: dict[tuple[int, int], tuple[int, ...]] = {}
    for report in told:
        extended: dict[tuple[int, int], tuple[int, ...]] = {}
        for row, sentence in enumerate(report.sentences.tolist()):
            for place, token in enumerate(report.tokens[row].tolist()):
                before = paths.get((sentence, int(report.parents[row, place])), ()) if report.step else ()
                path = before if token == END else (*before, token)
                if report.finished[row, place]:
                    ranking, log_prob = report.ranking[row, place], report.log_probs[row, place]
                    finished[sentence, path] = float(ranking), float(log_prob)
                if report.kept[row, place]:
                    extended[sentence, place] = path
        paths = extended
    return finished


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS)
def test_a_shortlist_of_all_pieces_changes_nothing(
    seed: int, sources: list[list[int]], plan: SearchPlan
) -> None:
    plain = TableStepper(pieces=8, seed=seed)
    shortlisted = TableStepper(pieces=8, seed=seed, ids=[7, 3, 1, 0, 5, 4, 2, 6])
    batch = batch_of(*sources)
    prefixes = [[4] for _ in sources]
    approximately(
        beam(plain, batch, plan, prefixes=prefixes), beam(shortlisted, batch, plan, prefixes=prefixes)
    )


def test_a_shortlist_is_all_that_is_said() -> None:
    stepper = TableStepper(pieces=20, seed=1, ids=[3, 11, 17])
    batch = batch_of([4, 5, 6])
    plan = SearchPlan(beam=3, n_best=3, longest=0, extra=5, no_repeat=2)
    said = {piece for hypothesis in beam(stepper, batch, plan)[0] for piece in hypothesis.ids}
    assert said <= {11, 17}
    assert greedy(stepper, batch, plan)[0][0].ids


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, sources=SOURCES, plan=PLANS, weight=st.sampled_from([0.2, 1.0]))
def test_coverage_is_added_to_the_normalised_score(
    seed: int, sources: list[list[int]], plan: SearchPlan, weight: float
) -> None:
    stepper = AttendingTableStepper(pieces=9, seed=seed)
    batch = batch_of(*sources)
    plan = replace(plan, coverage_penalty=weight, n_best=plan.beam, shortest=0, no_repeat=0)
    for search in (beam, greedy):
        for row, hypotheses in enumerate(search(stepper, batch, plan)):
            for hypothesis in hypotheses:
                steps = steps_of(hypothesis, int(plan.limits(batch)[row]))
                coverage = coverage_of(stepper, one_of(batch, row), (BEGIN, *hypothesis.ids)[:steps])
                penalty = weight * float(coverage.clamp(max=1).log().sum())
                length = steps**plan.length_penalty
                assert hypothesis.score == pytest.approx(hypothesis.log_prob / length + penalty, abs=1e-4)


def coverage_of(stepper: AttendingTableStepper, sentence: Batch, read: tuple[int, ...]) -> torch.Tensor:
    """The attention of the steps that read these pieces, added up."""
    state = stepper.begin(sentence)
    total = torch.zeros(sentence.source.shape[1])
    for piece in read:
        _, state, attention = stepper.step_with_attention(state, torch.tensor([piece]))
        total += attention[0]
    return total


class LooksAway(AttendingTableStepper):
    """Of every source it never sees the first piece."""

    def step_with_attention(
        self, state: TableState, last: torch.Tensor
    ) -> tuple[LogProbs, TableState, torch.Tensor]:
        log_probs, after, attention = super().step_with_attention(state, last)
        attention[:, 0] = 0
        return log_probs, after, attention


@pytest.mark.parametrize("search", [beam, greedy])
def test_a_word_never_looked_at_costs_more_than_one_hardly_seen_and_padding_nothing(search: Search) -> None:
    plan = SearchPlan(beam=1, coverage_penalty=1.0)
    sources = [4, 5, 6], [7]
    plain, away = (
        search(stepper(pieces=9, seed=3), batch_of(*sources), plan)
        for stepper in (AttendingTableStepper, LooksAway)
    )
    for [usual], [blind] in zip(plain, away, strict=True):
        assert usual.ids == blind.ids
        assert blind.score < usual.score + math.log(1e-6)
    alone = search(LooksAway(pieces=9, seed=3), batch_of(sources[1]), plan)
    assert alone[0][0].score == pytest.approx(away[1][0].score, abs=1e-5)


def test_without_attention_there_is_no_coverage() -> None:
    plan = SearchPlan(coverage_penalty=0.2)
    with pytest.raises(UnsupportedError, match="TableStepper, which has no `step_with_attention`"):
        beam(TableStepper(pieces=8, seed=1), batch_of([4]), plan)


def test_more_hypotheses_than_the_beam_finds_are_refused() -> None:
    with pytest.raises(RecipeError, match="n_best 7 with beam 3"):
        beam(TableStepper(pieces=8, seed=1), batch_of([4]), SearchPlan(beam=3, n_best=7))


def test_a_plan_follows_the_recipe() -> None:
    settings = SearchSettings(
        beam=3, length_penalty=0.6, no_repeat=4, longest=2.5, coverage_penalty=0.1, patience_factor=1.5
    )
    plan = SearchPlan.of(settings, n_best=2)
    assert (plan.beam, plan.n_best, plan.length_penalty, plan.no_repeat) == (3, 2, 0.6, 4)
    assert (plan.longest, plan.coverage_penalty, plan.patience) == (2.5, 0.1, 1.5)
    assert plan.limits(batch_of([4, 5, 6], [4])).tolist() == [17, 12]


@pytest.mark.parametrize(
    "wrong", [{"beam": 0}, {"n_best": 0}, {"no_repeat": -1}, {"extra": 0}, {"patience": 0}]
)
def test_a_plan_out_of_range_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(RecipeError, match=r"Received: (0|-1)\."):
        SearchPlan(**wrong)


def test_without_penalties_the_search_ends_with_the_first_best_end() -> None:
    told: list[SearchStep] = []
    for seed in range(20):
        stepper = TableStepper(pieces=12, seed=seed)
        beam(stepper, batch_of([4, 5]), SearchPlan(beam=4, length_penalty=0.0), listener=told.append)
    for report in told:
        best_ended = report.finished[:, 0]
        assert not (best_ended[:, None] & report.kept).any()


def test_an_empty_batch_has_no_translations() -> None:
    batch = Batch(torch.zeros(0, 1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    assert beam(TableStepper(pieces=8, seed=1), batch, SearchPlan()) == []
    assert greedy(TableStepper(pieces=8, seed=1), batch, SearchPlan()) == []
