"""Restricted attention: its blocks equal a plain loop over neighbours, and their cost is linear."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from jumok.attention import ScaledDot
from jumok.attention.restricted import Restricted, RestrictedSettings
from jumok.errors import RecipeError
from support.contract_checks import CHECKS, Case, Subject
from support.mechanism_checks import (
    check_gradients,
    largest_step_tensor_size,
    largest_tensor_size,
    random_inputs,
)

CASES = [
    # The contract applies to self-attention within the band: as many queries as keys, and no other mask.
    (2, Case(batch=2, heads=2, queries=7, keys=7, density=1.0, seed=5)),
    (1, Case(batch=3, heads=1, queries=4, keys=4, density=1.0, seed=6)),
]


def attend_by_loop(query, keys, values, allowed, *, neighbours, causal, query_offset=0):
    """The context, one query at a time."""
    batch, head, queries, width = query.shape
    context = values.new_zeros(batch, head, queries, values.shape[-1])
    for b, h, i in torch.cartesian_prod(*map(torch.arange, (batch, head, queries))).tolist():
        position = query_offset + i
        last = position if causal else position + neighbours
        near = [j for j in range(keys.shape[2]) if position - neighbours <= j <= last and allowed[b, j]]
        if near:
            weights = torch.softmax(keys[b, h, near] @ query[b, h, i] / math.sqrt(width), dim=0)
            context[b, h, i] = weights @ values[b, h, near]
    return context


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("neighbours", "case"), CASES, ids=[f"seed{case.seed}" for _, case in CASES])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_restricted_attention_keeps_the_contract(check, neighbours, case, dtype):
    check(Subject.of(Restricted, dtype, neighbours=neighbours), case)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("neighbours", [1, 2, 4, 50])
@pytest.mark.parametrize("length", [1, 3, 4, 8, 13])
def test_blocks_and_mask_equal_the_formula(length, neighbours, causal):
    query, keys, values, allowed = random_inputs(length, length)
    expected = attend_by_loop(query, keys, values, allowed, neighbours=neighbours, causal=causal)
    mechanism = Restricted(neighbours=neighbours, causal=causal)
    memory = mechanism.prepare(keys, values, allowed)
    for options in ({}, {"need_weights": True}, {"allowed": torch.ones(1, dtype=torch.bool)}):
        torch.testing.assert_close(mechanism(query, memory, **options).context, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    ("num_queries", "num_keys", "query_offset"),
    [(1, 9, 8), (1, 9, 2), (5, 9, 4), (5, 9, 1), (5, 6, 4), (2, 3, 9), (7, 2, 0)],
)
def test_the_offset_shifts_the_positions_of_all_queries(num_queries, num_keys, query_offset, padded, causal):
    """One query, several queries, keys after the last query, and queries after the last key."""
    query, keys, values, allowed = random_inputs(num_queries, num_keys)
    allowed = allowed if padded else torch.ones_like(allowed)
    expected = attend_by_loop(
        query, keys, values, allowed, neighbours=2, causal=causal, query_offset=query_offset
    )
    mechanism = Restricted(neighbours=2, causal=causal)
    memory = mechanism.prepare(keys, values, allowed if padded else None)
    for need_weights in (False, True):
        context = mechanism(query, memory, query_offset=query_offset, need_weights=need_weights).context
        torch.testing.assert_close(context, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_gradients_equal_finite_differences(causal, need_weights):
    """All queries of the third sentence and, if causal, one query of the first have no key to attend to."""
    mechanism = Restricted(neighbours=1, causal=causal)
    check_gradients(mechanism, random_inputs(4, 4), need_weights=need_weights)


@pytest.mark.parametrize("causal", [False, True])
def test_as_many_neighbours_as_positions_are_no_restriction(causal):
    query, keys, values, allowed = random_inputs(9, 9)
    restricted, unrestricted = Restricted(neighbours=8, causal=causal), ScaledDot(causal=causal)
    context = restricted(query, restricted.prepare(keys, values, allowed)).context
    expected = unrestricted(query, unrestricted.prepare(keys, values, allowed)).context
    torch.testing.assert_close(context, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dropout", [None, nn.Dropout(0.5)], ids=["no dropout", "dropout"])
def test_no_tensor_grows_faster_than_the_sentence(causal, dropout):
    mechanism = Restricted(neighbours=16, causal=causal, dropout=dropout)
    # A block of 16 queries is scored against the 16 keys at the same positions, the 16 keys before them and,
    # unless causal, the 16 keys after them.
    window = 32 if causal else 48
    assert largest_tensor_size(mechanism, 512) == 2 * 512 * window  # two heads
    assert largest_tensor_size(mechanism, 1024) == 2 * 1024 * window
    # The measurement does notice the weights of two heads, a quadratic tensor:
    assert largest_tensor_size(mechanism, 512, need_weights=True) == 2 * 512 * 512


def test_a_step_costs_the_same_after_any_length():
    mechanism = Restricted(neighbours=5, causal=True)
    # Two heads; the query's own key and the five before it; width 4.
    assert largest_step_tensor_size(mechanism, 1000) == largest_step_tensor_size(mechanism, 10) == 2 * 6 * 4


def test_dropout_applies_to_the_weights_of_a_block():
    """All values are 1, so the context is the sum of the remaining weights, which dropout doubles."""
    states = torch.zeros(1, 1, 40, 4)
    mechanism = Restricted(neighbours=3, dropout=nn.Dropout(0.5)).train()
    torch.manual_seed(0)
    context = mechanism(states, mechanism.prepare(states, torch.ones_like(states), None)).context
    remaining = context[0, 0, 3:-3, 0] * 7 / 2  # number of the seven equal weights that are not dropped
    torch.testing.assert_close(remaining, remaining.round())
    assert 1 < remaining.mean() < 6
    assert len(remaining.unique()) > 2


def test_zero_queries_have_an_empty_context():
    _, keys, values, _ = random_inputs(1, 5)
    mechanism = Restricted(neighbours=2)
    context = mechanism(keys[:, :, :0], mechanism.prepare(keys, values, None)).context
    assert context.shape == (3, 2, 0, 5)


def test_zero_neighbours_are_refused():
    with pytest.raises(RecipeError, match="neighbours = 0"):
        Restricted(neighbours=0)


def test_settings_are_the_options_of_the_mechanism():
    assert Restricted(**dict(RestrictedSettings())).neighbours == Restricted().neighbours
