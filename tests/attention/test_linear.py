"""Linear attention, bidirectional and causal, equals its formula in plain loops and has linear cost."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import elu

from jumok.attention import chunks
from jumok.attention import linear as linear_module
from jumok.attention.linear import LinearAttention
from jumok.errors import UnsupportedError
from support.mechanism_checks import (
    check_gradients,
    largest_step_tensor_size,
    largest_tensor_size,
    random_inputs,
)


def attend_by_loop(query, keys, values, allowed, *, causal, query_offset=0):
    """Weights and context, one pair of query and key at a time."""
    batch, head, queries, _ = query.shape
    weights = query.new_zeros(batch, head, queries, keys.shape[2])
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, weights.shape)).tolist():
        if allowed[b, j] and (not causal or j <= query_offset + i):
            weights[b, h, i, j] = (elu(query[b, h, i]) + 1) @ (elu(keys[b, h, j]) + 1)
    for row in weights.flatten(0, 2):
        if row.sum() > 0:
            row /= row.sum().item()
    return weights, torch.einsum("bhij,bhjv->bhiv", weights, values)


@pytest.mark.parametrize(
    ("queries", "keys", "query_offset", "causal"),
    [
        (4, 6, 0, False),
        (6, 6, 0, True),  # a whole sentence in full chunks
        (7, 7, 0, True),
        (1, 1, 0, True),
        (2, 2, 0, True),  # shorter than a chunk
        (1, 7, 6, True),  # a step
        (4, 7, 3, True),  # several steps at once
        (4, 7, 1, True),  # keys after the last query
        (5, 6, 4, True),  # queries after the last key
        (2, 3, 9, True),
    ],
)
def test_both_paths_equal_the_formula(monkeypatch, queries, keys, query_offset, causal):
    """One path forms the weights and the other does not."""
    monkeypatch.setattr(linear_module, "CAUSAL_CHUNK", 3)
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", 2)
    query, keys, values, allowed = random_inputs(queries, keys)
    weights, context = attend_by_loop(query, keys, values, allowed, causal=causal, query_offset=query_offset)
    mechanism = LinearAttention(causal=causal)
    memory = mechanism.prepare(keys, values, allowed)
    explicit = mechanism(query, memory, query_offset=query_offset, need_weights=True)
    for actual, expected in [
        (explicit.weights, weights),
        (explicit.context, context),
        (mechanism(query, memory, query_offset=query_offset).context, context),
    ]:
        torch.testing.assert_close(actual, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_contexts_and_gradients_of_several_full_chunks_equal_the_path_with_weights(causal):
    query, keys, values, allowed = random_inputs(600, 600)
    leaves = [tensor.requires_grad_() for tensor in (query, keys, values)]
    mechanism = LinearAttention(causal=causal)
    memory = mechanism.prepare(keys, values, allowed)
    fast = mechanism(query, memory).context
    slow = mechanism(query, memory, need_weights=True).context
    torch.testing.assert_close(fast, slow, atol=1e-12, rtol=0)
    for one, other in zip(
        torch.autograd.grad(fast.square().sum(), leaves, retain_graph=True),
        torch.autograd.grad(slow.square().sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_gradients_equal_finite_differences(monkeypatch, causal, need_weights):
    """All queries of the third sentence and, if causal, one query of the first have no key to attend to."""
    monkeypatch.setattr(linear_module, "CAUSAL_CHUNK", 2)
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", 2)
    check_gradients(LinearAttention(causal=causal), random_inputs(3, 3), need_weights=need_weights)


def test_steps_continue_a_padded_memory_whose_sentences_were_reordered():
    """A memory of four keys is reordered and extended by three keys.

    Each step must equal the full pass over the sentences in the new order.
    """
    query, keys, values, allowed = random_inputs(7, 7)
    allowed[:, 4:] = True  # added keys are never padding
    rows = torch.tensor([2, 0, 0])
    mechanism = LinearAttention(causal=True)
    memory = mechanism.prepare(keys[:, :, :4], values[:, :, :4], allowed[:, :4]).select(rows)
    _, full = attend_by_loop(query[rows], keys[rows], values[rows], allowed[rows], causal=True)
    for position in range(4, 7):
        new = slice(position, position + 1)
        memory = mechanism.extend(memory, keys[rows][:, :, new], values[rows][:, :, new])
        step = mechanism(query[rows][:, :, new], memory, query_offset=position)
        torch.testing.assert_close(step.context, full[:, :, new], atol=1e-12, rtol=0)


@pytest.mark.parametrize("need_weights", [False, True])
def test_one_key_gives_its_value_even_with_tiny_features(need_weights):
    """This fails if a constant is added to the divisor, or if elu + 1 is rounded to 0."""
    query, keys = torch.full((1, 1, 1, 4), -20.0), torch.full((1, 1, 1, 4), -20.0)
    values = torch.tensor([[[[3.0, -5.0]]]])
    mechanism = LinearAttention()
    attended = mechanism(query, mechanism.prepare(keys, values, None), need_weights=need_weights)
    torch.testing.assert_close(attended.context, values)


def test_zero_queries_have_an_empty_context():
    _, keys, values, _ = random_inputs(1, 5)
    mechanism = LinearAttention(causal=True)
    context = mechanism(keys[:, :, :0], mechanism.prepare(keys, values, None)).context
    assert context.shape == (3, 2, 0, 5)


@pytest.mark.parametrize("causal", [False, True])
def test_no_tensor_grows_faster_than_the_sentence(causal):
    mechanism = LinearAttention(causal=causal)
    assert largest_tensor_size(mechanism, 1024) <= 2 * largest_tensor_size(mechanism, 512)
    assert largest_tensor_size(mechanism, 512) < 512 * 512
    # The measurement does notice the weights of two heads, a quadratic tensor:
    assert largest_tensor_size(mechanism, 512, need_weights=True) == 2 * 512 * 512


def test_a_step_costs_the_same_after_any_length():
    mechanism = LinearAttention(causal=True)
    # In each of two heads, the sum has four features times values of width four with a 1 appended.
    assert largest_step_tensor_size(mechanism, 1000) == largest_step_tensor_size(mechanism, 10) == 2 * 4 * 5


def test_dropout_of_weights_is_refused():
    with pytest.raises(UnsupportedError, match="does not support dropout"):
        LinearAttention(dropout=nn.Dropout(0.5))
