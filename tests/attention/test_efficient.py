"""Efficient attention, bidirectional and causal, equals its formula in plain loops and has linear cost."""

from __future__ import annotations

import math

import numpy
import pytest
import torch
from torch import nn

from jumok.attention import chunks
from jumok.attention import efficient as efficient_module
from jumok.attention.efficient import Efficient
from jumok.errors import UnsupportedError
from support.mechanism_checks import (
    check_gradients,
    largest_step_tensor_size,
    largest_tensor_size,
    random_inputs,
)


def attend_by_loop(query, keys, values, allowed):
    """Weights and context, one number at a time."""
    batch, head, queries, width = query.shape
    weights = query.new_zeros(batch, head, queries, keys.shape[2])
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, weights.shape)).tolist():
        if not allowed[b, j]:
            continue
        for feature in range(width):
            share = math.exp(query[b, h, i, feature]) / sum(math.exp(x) for x in query[b, h, i])
            exponentials = [
                math.exp(x)
                for x, is_allowed in zip(keys[b, h, :, feature], allowed[b], strict=True)
                if is_allowed
            ]
            weights[b, h, i, j] += share * math.exp(keys[b, h, j, feature]) / sum(exponentials)
    return weights, torch.einsum("bhij,bhjv->bhiv", weights, values)


@pytest.mark.parametrize("chunk", [512, 7, 3, 2, 1])
def test_both_paths_equal_the_formula(monkeypatch, chunk):
    """One path forms the weights and the other does not. Some of the small chunks contain only padding."""
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", chunk)
    query, keys, values, allowed = random_inputs(5, 7)
    weights, context = attend_by_loop(query, keys, values, allowed)
    mechanism = Efficient()
    memory = mechanism.prepare(keys, values, allowed)
    explicit = mechanism(query, memory, need_weights=True)
    for actual, expected in [
        (memory.means, memory.maps() @ values),
        (explicit.weights, weights),
        (explicit.context, context),
        (mechanism(query, memory).context, context),
    ]:
        torch.testing.assert_close(actual, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("padded", [False, True])
def test_contexts_and_gradients_of_several_full_chunks_equal_those_computed_from_the_maps(padded):
    query, keys, values, allowed = (tensor.float() for tensor in random_inputs(1100, 1300))
    leaves = [tensor.requires_grad_() for tensor in (query, keys, values)]
    mechanism = Efficient()
    memory = mechanism.prepare(keys, values, allowed.bool() if padded else None)
    fast = mechanism(query, memory).context
    slow = torch.softmax(query, dim=-1) @ (memory.maps() @ values)
    torch.testing.assert_close(fast, slow, atol=1e-6, rtol=0)
    factors = torch.randn(fast.shape, generator=torch.Generator().manual_seed(1))
    for one, other in zip(
        torch.autograd.grad((fast * factors).sum(), leaves, retain_graph=True),
        torch.autograd.grad((slow * factors).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("high", [80.0, 1000.0])
def test_a_very_large_key_does_not_overflow_and_does_not_hide_keys_of_other_chunks(monkeypatch, high):
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", 2)
    keys = torch.tensor([0.0, 1.0, high, 0.0, high - 1.0, 0.0])[None, None, :, None].repeat(1, 1, 1, 2)
    keys[..., 1] *= -1  # the second feature is largest where the first is smallest
    values = torch.eye(6)[None, None]
    memory = Efficient().prepare(keys, values, None)
    torch.testing.assert_close(memory.means, torch.softmax(keys, dim=2).transpose(-2, -1))


def test_implied_weights_are_a_distribution_over_the_keys():
    query, keys, values, allowed = random_inputs(5, 7)
    mechanism = Efficient()
    weights = mechanism(query, mechanism.prepare(keys, values, allowed), need_weights=True).weights
    assert torch.all(weights >= 0)
    # The second sentence has five keys that are not padding; the third sentence has none.
    assert torch.all(weights[1, :, :, 5:] == 0)
    torch.testing.assert_close(weights[:2].sum(-1), torch.ones_like(weights[:2, ..., 0]), atol=1e-12, rtol=0)


@pytest.mark.parametrize("chunk", [512, 2])
def test_padding_changes_nothing(monkeypatch, chunk):
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", chunk)
    query, keys, values, allowed = random_inputs(5, 7)
    mechanism = Efficient()
    padded = mechanism(query, mechanism.prepare(keys, values, allowed)).context
    unpadded = mechanism(query[1:2], mechanism.prepare(keys[1:2, :, :5], values[1:2, :, :5], None)).context
    torch.testing.assert_close(padded[1:2], unpadded, atol=1e-12, rtol=0)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("chunk", [512, 2])
def test_gradients_equal_finite_differences(monkeypatch, chunk, need_weights):
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", chunk)
    check_gradients(Efficient(), random_inputs(3, 3), need_weights=need_weights)


@pytest.mark.parametrize("causal", [False, True])
def test_no_tensor_grows_faster_than_the_sentence(causal):
    mechanism = Efficient(causal=causal)
    assert largest_tensor_size(mechanism, 1024) <= 2 * largest_tensor_size(mechanism, 512)
    assert largest_tensor_size(mechanism, 512) < 512 * 512
    # The measurement does notice the weights of two heads, a quadratic tensor:
    assert largest_tensor_size(mechanism, 512, need_weights=True) == 2 * 512 * 512


def causal_in_numpy(query, keys, values, allowed, *, query_offset=0):
    """Weights and context of the causal formula in numpy: the maps of each query end at its position."""
    query, keys, values, allowed = (tensor.numpy() for tensor in (query, keys, values, allowed))
    weights = numpy.zeros((*query.shape[:3], keys.shape[2]))
    for b, h, i in numpy.ndindex(query.shape[:3]):
        visible = numpy.flatnonzero(allowed[b][: query_offset + i + 1])
        if len(visible) == 0:
            continue
        shares = numpy.exp(query[b, h, i] - query[b, h, i].max())
        maps = numpy.exp(keys[b, h, visible] - keys[b, h, visible].max(axis=0))  # (visible, feature)
        weights[b, h, i, visible] = (maps / maps.sum(axis=0)) @ (shares / shares.sum())
    return torch.from_numpy(weights), torch.from_numpy(weights @ values)


@pytest.mark.parametrize(
    ("queries", "keys", "query_offset"),
    [
        (6, 6, 0),  # a whole sentence in full chunks
        (7, 7, 0),
        (1, 1, 0),
        (2, 2, 0),  # shorter than a chunk
        (1, 7, 6),  # a step
        (4, 7, 3),  # several steps at once
        (4, 7, 1),  # keys after the last query
        (5, 6, 4),  # queries after the last key
        (2, 3, 9),
    ],
)
def test_both_causal_paths_equal_the_formula_in_numpy(monkeypatch, queries, keys, query_offset):
    """One path forms the weights and the other does not."""
    monkeypatch.setattr(efficient_module, "CAUSAL_CHUNK", 3)
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", 2)
    query, keys, values, allowed = random_inputs(queries, keys)
    weights, context = causal_in_numpy(query, keys, values, allowed, query_offset=query_offset)
    mechanism = Efficient(causal=True)
    memory = mechanism.prepare(keys, values, allowed)
    explicit = mechanism(query, memory, query_offset=query_offset, need_weights=True)
    for actual, expected in [
        (explicit.weights, weights),
        (explicit.context, context),
        (mechanism(query, memory, query_offset=query_offset).context, context),
    ]:
        torch.testing.assert_close(actual, expected, atol=1e-14, rtol=0)


def test_the_last_causal_query_has_the_context_of_the_bidirectional_mechanism():
    query, keys, values, _ = random_inputs(200, 200)
    bidirectional, causal = Efficient(), Efficient(causal=True)
    last = causal(query, causal.prepare(keys, values, None)).context[:, :, -1]
    expected = bidirectional(query, bidirectional.prepare(keys, values, None)).context[:, :, -1]
    torch.testing.assert_close(last, expected, atol=1e-13, rtol=0)


def test_contexts_and_gradients_of_several_causal_chunks_equal_the_formula():
    query, keys, values, allowed = random_inputs(300, 300)
    _, expected = causal_in_numpy(query, keys, values, allowed)
    leaves = [tensor.requires_grad_() for tensor in (query, keys, values)]
    mechanism = Efficient(causal=True)
    memory = mechanism.prepare(keys, values, allowed)
    fast = mechanism(query, memory).context
    torch.testing.assert_close(fast, expected, atol=1e-13, rtol=0)
    # Independent of the chunks: one masked softmax over positions for every query.
    visible = allowed[:, None, None, :, None] & torch.ones(300, 300, dtype=torch.bool).tril()[..., None]
    maps = keys[:, :, None].masked_fill(~visible, -1e9).softmax(dim=3) * visible
    slow = torch.einsum("bhif,bhijf,bhjv->bhiv", query.softmax(dim=-1), maps, values)
    for one, other in zip(
        torch.autograd.grad(fast.square().sum(), leaves),
        torch.autograd.grad(slow.square().sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [30.0, 300.0, 3e4])
@pytest.mark.parametrize("need_weights", [False, True])
def test_keys_far_below_a_later_key_keep_their_weight(dtype, size, need_weights):
    """Relative to the largest key of a chunk, earlier exponentials would be 0, so the chunk is halved."""
    random = torch.Generator().manual_seed(1)
    query, keys, values = (torch.randn(2, 1, 50, 3, generator=random, dtype=dtype) for _ in range(3))
    keys = keys + size * torch.linspace(-1, 1, 50, dtype=dtype)[:, None] * torch.tensor([1.0, -1.0, 0.0])
    keys[:, :, 20:30] += size  # so at position 30 all keys fall by `size`
    allowed = torch.ones(2, 50, dtype=torch.bool)
    allowed[1, :4] = False
    _, expected = causal_in_numpy(query.double(), keys.double(), values.double(), allowed)
    leaves = [tensor.requires_grad_() for tensor in (query, keys, values)]
    mechanism = Efficient(causal=True)
    context = mechanism(query, mechanism.prepare(keys, values, allowed), need_weights=need_weights).context
    tolerance = 5e-6 if dtype == torch.float32 else 1e-13
    torch.testing.assert_close(context.double(), expected, atol=tolerance, rtol=0)
    for gradient in torch.autograd.grad(context.square().sum(), leaves):
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("need_weights", [False, True])
def test_causal_gradients_equal_finite_differences(monkeypatch, need_weights):
    """All queries of the third sentence and one query of the first have no key to attend to."""
    monkeypatch.setattr(efficient_module, "CAUSAL_CHUNK", 2)
    check_gradients(Efficient(causal=True), random_inputs(3, 3), need_weights=need_weights)


def test_gradients_of_halved_chunks_equal_finite_differences():
    """Keys this far apart would make sums too small to divide by, so the mechanism halves the chunk."""
    query, keys, values, allowed = random_inputs(5, 5)
    keys = keys + torch.tensor([0.0, 50.0, 100.0, -50.0, 3.0])[:, None]
    check_gradients(Efficient(causal=True), (query, keys, values, allowed))


def test_steps_continue_a_padded_memory_whose_sentences_were_reordered():
    """A memory of four keys is reordered and extended by three keys.

    Each step must equal the full pass over the sentences in the new order.
    """
    query, keys, values, allowed = random_inputs(7, 7)
    allowed[:, 4:] = True  # added keys are never padding
    rows = torch.tensor([2, 0, 0])
    mechanism = Efficient(causal=True)
    memory = mechanism.prepare(keys[:, :, :4], values[:, :, :4], allowed[:, :4]).select(rows)
    _, full = causal_in_numpy(query[rows], keys[rows], values[rows], allowed[rows])
    for position in range(4, 7):
        new = slice(position, position + 1)
        memory = mechanism.extend(memory, keys[rows][:, :, new], values[rows][:, :, new])
        step = mechanism(query[rows][:, :, new], memory, query_offset=position)
        torch.testing.assert_close(step.context, full[:, :, new], atol=1e-14, rtol=0)


def test_a_step_costs_the_same_after_any_length():
    mechanism = Efficient(causal=True)
    # The sums before the step and the sums of the new key. In each of two heads, the sums have four features
    # times values of width four.
    assert (
        largest_step_tensor_size(mechanism, 1000) == largest_step_tensor_size(mechanism, 10) == 2 * 2 * 4 * 4
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_thousand_steps_with_rising_or_falling_keys_stay_exact(sign):
    """The sums are rescaled whenever a larger key arrives, and keep their precision."""
    keys = sign * torch.linspace(-200, 200, 1000)[None, None, :, None]
    values = torch.randn(1, 1, 1000, 2, generator=torch.Generator().manual_seed(3))
    mechanism = Efficient(causal=True)
    memory = mechanism.prepare(keys[:, :, :0], values[:, :, :0], None)
    for position in range(1000):
        new = slice(position, position + 1)
        memory = mechanism.extend(memory, keys[:, :, new], values[:, :, new])
    expected = keys.double().softmax(dim=2).transpose(-2, -1) @ values.double()
    torch.testing.assert_close(memory.means.double(), expected, atol=1e-5, rtol=0)


def test_dropout_of_weights_is_refused():
    with pytest.raises(UnsupportedError, match="does not support dropout"):
        Efficient(dropout=nn.Dropout(0.5))
