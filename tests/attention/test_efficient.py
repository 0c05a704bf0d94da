"""Efficient attention against its formula in plain loops, and the cost that it is there for."""

from __future__ import annotations

import math

import pytest
import torch
from contract_checks import CHECKS, WIDTH, Case, Subject
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from jumok.attention import HeadShape, MultiHead, padding
from jumok.attention.efficient import Efficient
from jumok.errors import UnsupportedError

CASES = [
    Case(batch=3, heads=2, queries=4, keys=5, density=0.6, seed=1),
    Case(batch=1, heads=1, queries=1, keys=1, density=1.0, seed=2),
    Case(batch=2, heads=4, queries=5, keys=19, density=0.3, seed=3),
    Case(batch=2, heads=2, queries=3, keys=6, density=0.0, seed=4),
]


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that an operation read or wrote; views cost nothing."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if not func.is_view:
            touched = [leaf for leaf in tree_leaves((args, made)) if isinstance(leaf, torch.Tensor)]
            self.numbers = max([self.numbers, *(tensor.numel() for tensor in touched)])
        return made


def make(*, heads, causal, dropout):
    shape = HeadShape(heads, WIDTH // heads, WIDTH // heads)
    mechanism = Efficient(shape, causal=causal, dropout=dropout)
    return MultiHead(width=WIDTH, heads=heads, mechanism=mechanism)


def numbers(queries=5, keys=7, *, seed=0):
    """Queries, keys and values of two sentences and three heads, and padding (4 and all of the keys)."""
    random = torch.Generator().manual_seed(seed)
    sizes = [(2, 3, queries, 4), (2, 3, keys, 4), (2, 3, keys, 2)]
    drawn = [torch.randn(size, generator=random, dtype=torch.float64) for size in sizes]
    return *drawn, padding(torch.tensor([4, keys]), keys)


def plain(query, keys, values, allowed):
    """Weights and context, one number at a time."""
    batch, head, queries, width = query.shape
    weights = query.new_zeros(batch, head, queries, keys.shape[2])
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, weights.shape)).tolist():
        if not allowed[b, j]:
            continue
        for feature in range(width):
            of_query = math.exp(query[b, h, i, feature]) / sum(math.exp(x) for x in query[b, h, i])
            seen = [math.exp(x) for x, may in zip(keys[b, h, :, feature], allowed[b], strict=True) if may]
            weights[b, h, i, j] += of_query * math.exp(keys[b, h, j, feature]) / sum(seen)
    return weights, torch.einsum("bhij,bhjv->bhiv", weights, values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"seed{case.seed}")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_efficient_attention_keeps_the_contract(check, case, dtype):
    check(Subject(make, dtype), case)


def test_both_paths_are_the_formula():
    query, keys, values, allowed = numbers()
    weights, context = plain(query, keys, values, allowed)
    mechanism = Efficient()
    memory = mechanism.prepare(keys, values, allowed)
    explicit = mechanism(query, memory, need_weights=True)
    for ours, theirs in [
        (explicit.weights, weights),
        (explicit.context, context),
        (mechanism(query, memory).context, context),
    ]:
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_implied_weights_are_a_distribution_over_the_keys():
    query, keys, values, allowed = numbers()
    mechanism = Efficient()
    weights = mechanism(query, mechanism.prepare(keys, values, allowed), need_weights=True).weights
    assert torch.all(weights >= 0)
    assert torch.all(weights[0, :, :, 4:] == 0)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]), atol=1e-12, rtol=0)


def test_padding_is_as_if_it_were_not_there():
    query, keys, values, allowed = numbers()
    mechanism = Efficient()
    padded = mechanism(query, mechanism.prepare(keys, values, allowed)).context
    cut = mechanism(query[:1], mechanism.prepare(keys[:1, :, :4], values[:1, :, :4], None)).context
    torch.testing.assert_close(padded[:1], cut, atol=1e-12, rtol=0)


@pytest.mark.parametrize("need_weights", [False, True])
def test_gradients_are_those_of_finite_differences(need_weights):
    query, keys, values, _ = numbers(2, 3)
    allowed = torch.tensor([[True, False, True], [False, False, False]])

    def context(query, keys, values):
        mechanism = Efficient()
        return mechanism(query, mechanism.prepare(keys, values, allowed), need_weights=need_weights).context

    leaves = [tensor[:, :1].clone().requires_grad_() for tensor in (query, keys, values)]
    assert torch.autograd.gradcheck(context, leaves)


def largest(length, **options):
    random = torch.Generator().manual_seed(0)
    states = torch.randn(1, 2, length, 4, generator=random).requires_grad_()
    mechanism = Efficient()
    with Largest() as recorded:
        memory = mechanism.prepare(states, states, torch.ones(1, length, dtype=torch.bool))
        mechanism(states, memory, **options).context.sum().backward()
    return recorded.numbers


def test_no_tensor_grows_faster_than_the_sentence():
    assert largest(1024) <= 2 * largest(512)
    assert largest(512) < 512 * 512
    assert largest(512, need_weights=True) == 2 * 512 * 512  # what it would be; the record would show it


def test_steps_and_causality_are_refused_with_a_way_out():
    _, keys, values, _ = numbers()
    mechanism = Efficient()
    with pytest.raises(UnsupportedError, match=r'7 more.*"linear" or "scaled-dot"'):
        mechanism.extend(mechanism.prepare(keys, values, None), keys, values)
    with pytest.raises(UnsupportedError, match="causal"):
        Efficient(causal=True)


def test_dropout_falls_on_weights_and_on_nothing_else():
    query, keys, values, allowed = numbers()
    mechanism = Efficient(dropout=nn.Dropout(0.5)).train()
    memory = mechanism.prepare(keys, values, allowed)
    _, context = plain(query, keys, values, allowed)
    torch.testing.assert_close(mechanism(query, memory).context, context, atol=1e-12, rtol=0)
    torch.manual_seed(0)
    assert not torch.allclose(mechanism(query, memory, need_weights=True).context, context)
