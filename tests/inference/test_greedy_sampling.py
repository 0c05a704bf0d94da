"""Greedy search and sampling: what is drawn, how often, and from what."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from decoding_steppers import TableStepper, batch_of, one_of, ordinary_pieces, was_cut
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.decoding import Sampling, SearchPlan, SearchStep, force, greedy, sample
from jumok.errors import DataError, RecipeError
from jumok.values import BEGIN, END, PAD

PIECES = 7
FREE = SearchPlan(beam=1, longest=0.0, extra=4, shortest=0, length_penalty=0.0)


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def first_pieces(sampling: Sampling, draws: int, *, seed: int = 5) -> Counter[int]:
    """How often each piece was drawn first; `</s>` where nothing was."""
    stepper = TableStepper(pieces=PIECES, seed=seed, sharpness=1.0)
    plan = replace(FREE, n_best=draws, extra=1)
    [hypotheses] = sample(stepper, batch_of([4, 5]), plan, sampling, generator=generator())
    assert len(hypotheses) == draws
    return Counter(hypothesis.ids[0] if hypothesis.ids else END for hypothesis in hypotheses)


def first_probabilities(*, temperature: float = 1.0, seed: int = 5) -> dict[int, float]:
    """What the stepper says of the first piece, marks taken out."""
    stepper = TableStepper(pieces=PIECES, seed=seed, sharpness=1.0)
    log_probs, _ = stepper.step(stepper.begin(batch_of([4, 5])), torch.tensor([BEGIN]))
    values = log_probs.values[0] / temperature
    values[[PAD, BEGIN]] = -math.inf
    return dict(enumerate(values.softmax(dim=0).tolist()))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 1e6])
def test_pieces_are_drawn_as_often_as_the_model_says(temperature: float) -> None:
    draws = 20_000
    counts = first_pieces(Sampling(temperature=temperature), draws)
    expected = first_probabilities(temperature=temperature)
    possible = [*ordinary_pieces(PIECES), END]
    assert set(counts) <= set(possible)
    squares = sum((counts[p] - draws * expected[p]) ** 2 / (draws * expected[p]) for p in possible)
    assert squares < 20.5  # χ² with 5 - 1 degrees of freedom exceeds it once in 2500 times


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_top_k_draws_from_the_likeliest_k(top_k: int) -> None:
    expected = first_probabilities()
    likeliest = sorted(expected, key=lambda piece: -expected[piece])[:top_k]
    assert set(first_pieces(Sampling(top_k=top_k), 3000)) == set(likeliest)


@pytest.mark.parametrize("top_p", [0.01, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("top_k", [0, 4])
def test_top_p_draws_from_the_fewest_that_reach_p(top_p: float, top_k: int) -> None:
    expected = first_probabilities()
    ranked = sorted(expected, key=lambda piece: -expected[piece])[: top_k or PIECES]
    whole = sum(expected[piece] for piece in ranked)
    nucleus: set[int] = set()
    mass = 0.0
    for piece in ranked:
        if mass < top_p:
            nucleus.add(piece)
        mass += expected[piece] / whole
    assert set(first_pieces(Sampling(top_p=top_p, top_k=top_k), 3000)) == nucleus


@settings(max_examples=20)
@given(
    seed=st.integers(0, 1000),
    sources=st.lists(st.lists(st.integers(4, 9), max_size=3), min_size=1, max_size=3),
)
def test_draws_have_their_forced_score_and_are_sorted(seed: int, sources: list[list[int]]) -> None:
    stepper = TableStepper(pieces=PIECES, seed=seed)
    batch = batch_of(*sources)
    plan = replace(FREE, n_best=3)
    found = sample(stepper, batch, plan, Sampling(temperature=2.0), generator=generator(seed))
    for row, hypotheses in enumerate(found):
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for hypothesis in hypotheses:
            forced = force(stepper, one_of(batch, row), [hypothesis.ids], ended=not was_cut(hypothesis, 4))
            assert hypothesis.log_prob == pytest.approx(float(forced.sum()), abs=1e-5)
            assert hypothesis.score == pytest.approx(hypothesis.log_prob, abs=1e-5)


def test_the_same_seed_draws_the_same() -> None:
    stepper = TableStepper(pieces=PIECES, seed=1)
    batch, plan = batch_of([4], [5, 6]), replace(FREE, n_best=4)
    once, again, other = (
        sample(stepper, batch, plan, Sampling(), generator=generator(seed)) for seed in (3, 3, 4)
    )
    assert once == again
    assert once != other


def test_a_temperature_near_zero_is_greedy() -> None:
    stepper = TableStepper(pieces=PIECES, seed=8)
    batch = batch_of([4, 5, 6], [7])
    drawn = sample(stepper, batch, FREE, Sampling(temperature=1e-6), generator=generator())
    assert [h.ids for [h] in drawn] == [h.ids for [h] in greedy(stepper, batch, FREE)]


def test_draws_begin_with_their_prefix_and_a_listener_hears_each_draw() -> None:
    stepper = TableStepper(pieces=PIECES, seed=2)
    plan = replace(FREE, n_best=2)
    told: list[SearchStep] = []
    found = sample(
        stepper,
        batch_of([4], [5]),
        plan,
        Sampling(),
        generator=generator(),
        prefixes=[[6, 6], []],
        listener=told.append,
    )
    assert all(hypothesis.ids[:2] == (6, 6) for hypothesis in found[0])
    assert told[0].sentences.tolist() == [0, 1, 2, 3]
    assert told[0].tokens[:2, 0].tolist() == [6, 6]
    assert sum(int(step.finished.sum()) for step in told) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": 0},
        {"temperature": 1e-7},
        {"temperature": 1e7},
        {"top_p": 0},
        {"top_p": 1.5},
        {"top_k": -1},
    ],
)
def test_impossible_sampling_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(RecipeError, match="Received"):
        Sampling(**wrong)  # type: ignore[arg-type]


def test_prefixes_are_checked() -> None:
    stepper = TableStepper(pieces=PIECES, seed=2)
    with pytest.raises(DataError, match="1 prefixes for 2 sentences"):
        greedy(stepper, batch_of([4], [5]), FREE, prefixes=[[4]])
    with pytest.raises(DataError, match=r"not marks. Received: \[4, 3\]"):
        greedy(stepper, batch_of([4]), FREE, prefixes=[[4, END]])


def test_forcing_needs_a_target_for_every_sentence() -> None:
    with pytest.raises(DataError, match="1 targets for 2 sentences"):
        force(TableStepper(pieces=PIECES, seed=2), batch_of([4], [5]), [[4]])


def test_a_piece_outside_the_shortlist_cannot_be_forced() -> None:
    stepper = TableStepper(pieces=9, seed=2, ids=[3, 5, 6])
    log_probs = force(stepper, batch_of([4]), [[5, 8]])
    assert log_probs.shape == (1, 3)
    assert log_probs[0, 1] == -math.inf
    assert torch.isfinite(log_probs[0, [0, 2]]).all()
