"""Greedy search and sampling: the distribution of the draws, seeds, prefixes and callbacks."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.errors import DataError, RecipeError
from jumok.inference.search.greedy_sampling import greedy_search, sample
from jumok.inference.search.plan import Sampling, SearchPlan, SearchStep
from jumok.types import BEGIN, END, PAD
from support.forced import forced_log_probs
from support.table_steppers import TableStepper, batch_of, ordinary_tokens, single_sentence, was_cut

VOCAB_SIZE = 7
# At most four tokens, scored by their log-probability alone.
PLAIN_PLAN = SearchPlan(beam=1, max_length_ratio=0.0, extra_tokens=4, min_length=0, length_penalty=0.0)


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def first_tokens(sampling: Sampling, draws: int, *, seed: int = 5) -> Counter[int]:
    """Return how often each token was drawn first, `</s>` included."""
    stepper = TableStepper(vocab_size=VOCAB_SIZE, seed=seed, sharpness=1.0)
    plan = replace(PLAIN_PLAN, n_best=draws, extra_tokens=1)
    [hypotheses] = sample(stepper, batch_of([4, 5]), plan, sampling, generator=generator())
    assert len(hypotheses) == draws
    return Counter(hypothesis.ids[0] if hypothesis.ids else END for hypothesis in hypotheses)


def first_probabilities(*, temperature: float = 1.0, seed: int = 5) -> dict[int, float]:
    """Return the probabilities of the first token, without `<pad>` and `<s>`."""
    stepper = TableStepper(vocab_size=VOCAB_SIZE, seed=seed, sharpness=1.0)
    log_probs, _ = stepper.step(stepper.begin(batch_of([4, 5])), torch.tensor([BEGIN]))
    values = log_probs.values[0] / temperature
    values[[PAD, BEGIN]] = -math.inf
    return dict(enumerate(values.softmax(dim=0).tolist()))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 1e6])
def test_tokens_are_drawn_with_the_probabilities_of_the_model(temperature: float) -> None:
    draws = 20_000
    counts = first_tokens(Sampling(temperature=temperature), draws)
    expected = first_probabilities(temperature=temperature)
    possible = [*ordinary_tokens(VOCAB_SIZE), END]
    assert set(counts) <= set(possible)
    chi_squared = sum(
        (counts[token] - draws * expected[token]) ** 2 / (draws * expected[token]) for token in possible
    )
    assert chi_squared < 20.5  # χ² with 5 - 1 degrees of freedom is larger once in 2500 times


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_top_k_draws_from_the_k_most_probable_tokens(top_k: int) -> None:
    expected = first_probabilities()
    most_probable = sorted(expected, key=lambda token: -expected[token])[:top_k]
    assert set(first_tokens(Sampling(top_k=top_k), 3000)) == set(most_probable)


@pytest.mark.parametrize("top_p", [0.01, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("top_k", [0, 4])
def test_top_p_draws_from_the_smallest_set_that_reaches_p(top_p: float, top_k: int) -> None:
    expected = first_probabilities()
    ranked = sorted(expected, key=lambda token: -expected[token])[: top_k or VOCAB_SIZE]
    total = sum(expected[token] for token in ranked)
    nucleus: set[int] = set()
    mass = 0.0
    for token in ranked:
        if mass < top_p:
            nucleus.add(token)
        mass += expected[token] / total
    assert set(first_tokens(Sampling(top_p=top_p, top_k=top_k), 3000)) == nucleus


@settings(max_examples=20)
@given(
    seed=st.integers(0, 1000),
    sources=st.lists(st.lists(st.integers(4, 9), max_size=3), min_size=1, max_size=3),
)
def test_samples_are_sorted_and_have_the_score_of_forced_decoding(
    seed: int, sources: list[list[int]]
) -> None:
    stepper = TableStepper(vocab_size=VOCAB_SIZE, seed=seed)
    batch = batch_of(*sources)
    plan = replace(PLAIN_PLAN, n_best=3)
    results = sample(stepper, batch, plan, Sampling(temperature=2.0), generator=generator(seed))
    for row, hypotheses in enumerate(results):
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for hypothesis in hypotheses:
            ended = not was_cut(hypothesis, PLAIN_PLAN.extra_tokens)
            forced = forced_log_probs(stepper, single_sentence(batch, row), [hypothesis.ids], score_end=ended)
            assert hypothesis.log_prob == pytest.approx(float(forced.sum()), abs=1e-5)
            assert hypothesis.score == pytest.approx(hypothesis.log_prob, abs=1e-5)


def test_the_same_seed_gives_the_same_samples() -> None:
    stepper = TableStepper(vocab_size=VOCAB_SIZE, seed=1)
    batch, plan = batch_of([4], [5, 6]), replace(PLAIN_PLAN, n_best=4)
    first, repeated, other_seed = (
        sample(stepper, batch, plan, Sampling(), generator=generator(seed)) for seed in (3, 3, 4)
    )
    assert first == repeated
    assert first != other_seed


def test_a_temperature_near_zero_equals_greedy_search() -> None:
    stepper = TableStepper(vocab_size=VOCAB_SIZE, seed=8)
    batch = batch_of([4, 5, 6], [7])
    drawn = sample(stepper, batch, PLAIN_PLAN, Sampling(temperature=1e-6), generator=generator())
    assert [h.ids for [h] in drawn] == [h.ids for [h] in greedy_search(stepper, batch, PLAIN_PLAN)]


def test_samples_begin_with_their_prefix_and_every_step_is_reported() -> None:
    stepper = TableStepper(vocab_size=VOCAB_SIZE, seed=2)
    plan = replace(PLAIN_PLAN, n_best=2)
    steps: list[SearchStep] = []
    results = sample(
        stepper,
        batch_of([4], [5]),
        plan,
        Sampling(),
        generator=generator(),
        prefixes=[[6, 6], []],
        on_step=steps.append,
    )
    assert all(hypothesis.ids[:2] == (6, 6) for hypothesis in results[0])
    # Two sentences with two samples each: sample d of sentence s is reported as sentence 2 · s + d.
    assert steps[0].sentences.tolist() == [0, 1, 2, 3]
    assert steps[0].tokens[:2, 0].tolist() == [6, 6]  # both samples of the first sentence
    assert sum(int(step.finished.sum()) for step in steps) == 4


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0},
        {"temperature": 1e-7},
        {"temperature": 1e7},
        {"top_p": 0},
        {"top_p": 1.5},
        {"top_k": -1},
    ],
)
def test_sampling_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(RecipeError, match="Received"):
        Sampling(**options)  # type: ignore[arg-type]


def test_too_few_prefixes_and_special_tokens_in_a_prefix_are_refused() -> None:
    stepper = TableStepper(vocab_size=VOCAB_SIZE, seed=2)
    with pytest.raises(DataError, match="1 prefixes for 2 sentences"):
        greedy_search(stepper, batch_of([4], [5]), PLAIN_PLAN, prefixes=[[4]])
    with pytest.raises(DataError, match=r"must have no special tokens. Received: \[4, 3\]"):
        greedy_search(stepper, batch_of([4]), PLAIN_PLAN, prefixes=[[4, END]])


def test_forced_decoding_needs_a_target_for_every_sentence() -> None:
    with pytest.raises(DataError, match="1 targets for 2 sentences"):
        forced_log_probs(TableStepper(vocab_size=VOCAB_SIZE, seed=2), batch_of([4], [5]), [[4]])


def test_a_forced_token_outside_the_shortlist_has_probability_zero() -> None:
    stepper = TableStepper(vocab_size=9, seed=2, ids=[3, 5, 6])  # 3 is </s>
    log_probs = forced_log_probs(stepper, batch_of([4]), [[5, 8]])
    assert log_probs.shape == (1, 3)
    assert log_probs[0, 1] == -math.inf
    assert torch.isfinite(log_probs[0, [0, 2]]).all()
