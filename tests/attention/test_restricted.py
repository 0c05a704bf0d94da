"""Restricted attention: the blocks against a plain loop over neighbours, and the cost that they save."""

from __future__ import annotations

import math

import pytest
import torch
from attention_costs import check_gradients, largest, largest_of_a_step, numbers
from contract_checks import CHECKS, Case, Subject
from torch import nn

from jumok.attention import ScaledDot
from jumok.attention.restricted import Restricted, RestrictedSettings
from jumok.errors import RecipeError

CASES = [
    # Where the band cuts, the contract speaks of self-attention: as many queries as keys, and no other mask.
    (2, Case(batch=2, heads=2, queries=7, keys=7, density=1.0, seed=5)),
    (1, Case(batch=3, heads=1, queries=4, keys=4, density=1.0, seed=6)),
]


def plain(query, keys, values, allowed, *, neighbours, causal, first=0):
    """The context, one query at a time."""
    batch, head, queries, width = query.shape
    context = values.new_zeros(batch, head, queries, values.shape[-1])
    for b, h, i in torch.cartesian_prod(*map(torch.arange, (batch, head, queries))).tolist():
        place = first + i
        last = place if causal else place + neighbours
        near = [j for j in range(keys.shape[2]) if place - neighbours <= j <= last and allowed[b, j]]
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
def test_blocks_and_mask_are_the_formula(length, neighbours, causal):
    query, keys, values, allowed = numbers(length, length)
    expected = plain(query, keys, values, allowed, neighbours=neighbours, causal=causal)
    mechanism = Restricted(neighbours=neighbours, causal=causal)
    memory = mechanism.prepare(keys, values, allowed)
    for options in ({}, {"need_weights": True}, {"allowed": torch.ones(1, dtype=torch.bool)}):
        torch.testing.assert_close(mechanism(query, memory, **options).context, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "first"),
    [(1, 9, 8), (1, 9, 2), (5, 9, 4), (5, 9, 1), (5, 6, 4), (2, 3, 9), (7, 2, 0)],
)
def test_a_query_stands_where_first_says(queries, keys, first, padded, causal):
    """A step, several steps at once, keys after the last query and queries after the last key."""
    query, keys, values, allowed = numbers(queries, keys)
    allowed = allowed if padded else torch.ones_like(allowed)
    expected = plain(query, keys, values, allowed, neighbours=2, causal=causal, first=first)
    mechanism = Restricted(neighbours=2, causal=causal)
    memory = mechanism.prepare(keys, values, allowed if padded else None)
    for need_weights in (False, True):
        context = mechanism(query, memory, first=first, need_weights=need_weights).context
        torch.testing.assert_close(context, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_gradients_are_those_of_finite_differences(causal, need_weights):
    """In the first sentence a query sees nothing where causal; in the third none does."""
    mechanism = Restricted(neighbours=1, causal=causal)
    check_gradients(mechanism, numbers(4, 4), need_weights=need_weights)


@pytest.mark.parametrize("causal", [False, True])
def test_neighbours_as_many_as_the_sentence_has_places_are_no_restriction(causal):
    query, keys, values, allowed = numbers(9, 9)
    restricted, free = Restricted(neighbours=8, causal=causal), ScaledDot(causal=causal)
    context = restricted(query, restricted.prepare(keys, values, allowed)).context
    expected = free(query, free.prepare(keys, values, allowed)).context
    torch.testing.assert_close(context, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dropout", [None, nn.Dropout(0.5)], ids=["no dropout", "dropout"])
def test_no_tensor_grows_faster_than_the_sentence(causal, dropout):
    mechanism = Restricted(neighbours=16, causal=causal, dropout=dropout)
    window = 32 if causal else 48
    assert largest(mechanism, 512) == 2 * 512 * window
    assert largest(mechanism, 1024) == 2 * 1024 * window
    assert largest(mechanism, 512, need_weights=True) == 2 * 512 * 512  # the record would show it


def test_a_step_costs_the_same_however_much_was_read():
    mechanism = Restricted(neighbours=5, causal=True)
    # Itself and five keys before.
    assert largest_of_a_step(mechanism, 1000) == largest_of_a_step(mechanism, 10) == 2 * 6 * 4


def test_dropout_falls_on_the_weights_of_a_block():
    """Values of 1: without dropout the context is 1, with it the sum of what was kept, doubled."""
    states = torch.zeros(1, 1, 40, 4)
    mechanism = Restricted(neighbours=3, dropout=nn.Dropout(0.5)).train()
    torch.manual_seed(0)
    context = mechanism(states, mechanism.prepare(states, torch.ones_like(states), None)).context
    kept = context[0, 0, 3:-3, 0] * 7 / 2  # of seven equal weights
    torch.testing.assert_close(kept, kept.round())
    assert 1 < kept.mean() < 6
    assert len(kept.unique()) > 2


def test_no_query_has_no_context():
    _, keys, values, _ = numbers(1, 5)
    mechanism = Restricted(neighbours=2)
    context = mechanism(keys[:, :, :0], mechanism.prepare(keys, values, None)).context
    assert context.shape == (3, 2, 0, 5)


def test_no_neighbours_are_refused():
    with pytest.raises(RecipeError, match="neighbours = 0"):
        Restricted(neighbours=0)


def test_settings_are_the_options_of_the_mechanism():
    assert Restricted(**dict(RestrictedSettings())).neighbours == Restricted().neighbours
