"""Efficient attention against its formula in plain loops, and its cost."""

from __future__ import annotations

import math

import pytest
import torch
from attention_costs import check_gradients, largest_tensor, random_inputs
from torch import nn

from jumok.attention import chunks
from jumok.attention.efficient import Efficient
from jumok.errors import UnsupportedError


def plain(query, keys, values, allowed):
    """Weights and context, one number at a time."""
    batch, head, queries, width = query.shape
    weights = query.new_zeros(batch, head, queries, keys.shape[2])
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, weights.shape)).tolist():
        if not allowed[b, j]:
            continue
        for feature in range(width):
            of_query = math.exp(query[b, h, i, feature]) / sum(math.exp(x) for x in query[b, h, i])
            exponentials = [
                math.exp(x) for x, may in zip(keys[b, h, :, feature], allowed[b], strict=True) if may
            ]
            weights[b, h, i, j] += of_query * math.exp(keys[b, h, j, feature]) / sum(exponentials)
    return weights, torch.einsum("bhij,bhjv->bhiv", weights, values)


@pytest.mark.parametrize("chunk", [512, 7, 3, 2, 1])
def test_both_paths_equal_the_formula(monkeypatch, chunk):
    """In one chunk and in several; all chunks of the third sentence are empty, and some of the second."""
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", chunk)
    query, keys, values, allowed = random_inputs(5, 7)
    weights, context = plain(query, keys, values, allowed)
    mechanism = Efficient()
    memory = mechanism.prepare(keys, values, allowed)
    explicit = mechanism(query, memory, need_weights=True)
    for ours, theirs in [
        (memory.means, memory.maps @ values),
        (explicit.weights, weights),
        (explicit.context, context),
        (mechanism(query, memory).context, context),
    ]:
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("padded", [False, True])
def test_several_full_chunks_equal_the_maps_gradients_included(padded):
    query, keys, values, allowed = (tensor.float() for tensor in random_inputs(1100, 1300))
    leaves = [tensor.requires_grad_() for tensor in (query, keys, values)]
    mechanism = Efficient()
    memory = mechanism.prepare(keys, values, allowed.bool() if padded else None)
    fast = mechanism(query, memory).context
    slow = torch.softmax(query, dim=-1) @ (memory.maps @ values)
    torch.testing.assert_close(fast, slow, atol=1e-6, rtol=0)
    factors = torch.randn(fast.shape, generator=torch.Generator().manual_seed(1))
    for one, other in zip(
        torch.autograd.grad((fast * factors).sum(), leaves),
        torch.autograd.grad((slow * factors).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("high", [80.0, 1000.0])
def test_a_very_large_key_in_one_chunk_neither_overflows_nor_hides_the_others(monkeypatch, high):
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", 2)
    keys = torch.tensor([0.0, 1.0, high, 0.0, high - 1.0, 0.0])[None, None, :, None].repeat(1, 1, 1, 2)
    keys[..., 1] *= -1  # a feature with its largest keys at the smallest of the other
    values = torch.eye(6)[None, None]
    memory = Efficient().prepare(keys, values, None)
    torch.testing.assert_close(memory.means, torch.softmax(keys, dim=2).transpose(-2, -1))


def test_implied_weights_are_a_distribution_over_the_keys():
    query, keys, values, allowed = random_inputs(5, 7)
    mechanism = Efficient()
    weights = mechanism(query, mechanism.prepare(keys, values, allowed), need_weights=True).weights
    assert torch.all(weights >= 0)
    assert torch.all(weights[1, :, :, 5:] == 0)
    torch.testing.assert_close(weights[:2].sum(-1), torch.ones_like(weights[:2, ..., 0]), atol=1e-12, rtol=0)


@pytest.mark.parametrize("chunk", [512, 2])
def test_padding_changes_nothing(monkeypatch, chunk):
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", chunk)
    query, keys, values, allowed = random_inputs(5, 7)
    mechanism = Efficient()
    padded = mechanism(query, mechanism.prepare(keys, values, allowed)).context
    cut = mechanism(query[1:2], mechanism.prepare(keys[1:2, :, :5], values[1:2, :, :5], None)).context
    torch.testing.assert_close(padded[1:2], cut, atol=1e-12, rtol=0)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("chunk", [512, 2])
def test_gradients_equal_finite_differences(monkeypatch, chunk, need_weights):
    monkeypatch.setattr(chunks, "CHUNK_POSITIONS", chunk)
    check_gradients(Efficient(), random_inputs(3, 3), need_weights=need_weights)


def test_no_tensor_grows_faster_than_the_sentence():
    mechanism = Efficient()
    assert largest_tensor(mechanism, 1024) <= 2 * largest_tensor(mechanism, 512)
    assert largest_tensor(mechanism, 512) < 512 * 512
    # The measurement does notice a quadratic tensor:
    assert largest_tensor(mechanism, 512, need_weights=True) == 2 * 512 * 512


def test_steps_and_causality_are_refused_with_an_alternative():
    _, keys, values, _ = random_inputs(5, 7)
    mechanism = Efficient()
    with pytest.raises(UnsupportedError, match=r'7 more.*"linear" or "scaled-dot"'):
        mechanism.extend(mechanism.prepare(keys, values, None), keys, values)
    with pytest.raises(UnsupportedError, match="causal"):
        Efficient(causal=True)


def test_dropout_of_weights_is_refused():
    with pytest.raises(UnsupportedError, match="does not support dropout"):
        Efficient(dropout=nn.Dropout(0.5))
