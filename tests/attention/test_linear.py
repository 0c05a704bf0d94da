"""Linear attention against its formula in plain loops, chunk by chunk and step by step, and its cost."""

from __future__ import annotations

import pytest
import torch
from contract_checks import CHECKS, WIDTH, Case, Subject
from torch import nn
from torch.nn.functional import elu
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from jumok.attention import HeadShape, MultiHead, padding
from jumok.attention import linear as linear_module
from jumok.attention.linear import LinearAttention

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
    mechanism = LinearAttention(shape, causal=causal, dropout=dropout)
    return MultiHead(width=WIDTH, heads=heads, mechanism=mechanism)


def numbers(queries, keys, *, seed=0):
    """Queries, keys and values of three sentences and two heads; the keys of one are all padding."""
    random = torch.Generator().manual_seed(seed)
    sizes = [(3, 2, queries, 4), (3, 2, keys, 4), (3, 2, keys, 5)]
    drawn = [torch.randn(size, generator=random, dtype=torch.float64) for size in sizes]
    allowed = padding(torch.tensor([keys, keys - keys // 3, 0]), keys)
    allowed[0, 0] = keys == 1  # padding at the start, too: causal queries then see nothing at first
    return *drawn, allowed


def plain(query, keys, values, allowed, *, causal, first=0):
    """Weights and context, one pair of query and key at a time."""
    batch, head, queries, _ = query.shape
    weights = query.new_zeros(batch, head, queries, keys.shape[2])
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, weights.shape)).tolist():
        if allowed[b, j] and (not causal or j <= first + i):
            weights[b, h, i, j] = (elu(query[b, h, i]) + 1) @ (elu(keys[b, h, j]) + 1)
    for row in weights.flatten(0, 2):
        if row.sum() > 0:
            row /= row.sum().item()
    return weights, torch.einsum("bhij,bhjv->bhiv", weights, values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"seed{case.seed}")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_linear_attention_keeps_the_contract(check, case, dtype):
    check(Subject(make, dtype), case)


@pytest.mark.parametrize(
    ("queries", "keys", "first", "causal"),
    [
        (4, 6, 0, False),
        (6, 6, 0, True),  # a whole sentence, of whole chunks
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
def test_both_paths_are_the_formula(monkeypatch, queries, keys, first, causal):
    monkeypatch.setattr(linear_module, "CHUNK", 3)
    query, keys, values, allowed = numbers(queries, keys)
    weights, context = plain(query, keys, values, allowed, causal=causal, first=first)
    mechanism = LinearAttention(causal=causal)
    memory = mechanism.prepare(keys, values, allowed)
    explicit = mechanism(query, memory, first=first, need_weights=True)
    for ours, theirs in [
        (explicit.weights, weights),
        (explicit.context, context),
        (mechanism(query, memory, first=first).context, context),
    ]:
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_several_chunks_of_full_size_are_the_formula():
    query, keys, values, allowed = numbers(150, 150)
    mechanism = LinearAttention(causal=True)
    memory = mechanism.prepare(keys, values, allowed)
    explicit = mechanism(query, memory, need_weights=True)
    torch.testing.assert_close(mechanism(query, memory).context, explicit.context, atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_gradients_are_those_of_finite_differences(monkeypatch, causal, need_weights):
    """In the first sentence a query sees nothing where causal; in the third none does."""
    monkeypatch.setattr(linear_module, "CHUNK", 2)
    query, keys, values, allowed = numbers(3, 3)
    mechanism = LinearAttention(causal=causal)

    def context(query, keys, values):
        return mechanism(query, mechanism.prepare(keys, values, allowed), need_weights=need_weights).context

    leaves = [tensor[:, :1].clone().requires_grad_() for tensor in (query, keys, values)]
    assert torch.autograd.gradcheck(context, leaves)
    for gradient in torch.autograd.grad(context(*leaves).square().sum(), leaves):
        assert torch.all(gradient[2] == 0)


def test_steps_continue_a_padded_memory_and_follow_their_rows():
    """Prepare four keys, exchange the sentences, then extend by three: as the whole in that order."""
    query, keys, values, allowed = numbers(7, 7)
    allowed[:, 4:] = True  # what is added is never padding
    rows = torch.tensor([2, 0, 0])
    mechanism = LinearAttention(causal=True)
    memory = mechanism.prepare(keys[:, :, :4], values[:, :, :4], allowed[:, :4]).select(rows)
    _, whole = plain(query[rows], keys[rows], values[rows], allowed[rows], causal=True)
    for place in range(4, 7):
        there = slice(place, place + 1)
        memory = mechanism.extend(memory, keys[rows][:, :, there], values[rows][:, :, there])
        step = mechanism(query[rows][:, :, there], memory, first=place)
        torch.testing.assert_close(step.context, whole[:, :, there], atol=1e-12, rtol=0)


@pytest.mark.parametrize("need_weights", [False, True])
def test_one_key_gives_its_value_however_small_the_features(need_weights):
    """A constant in the divisor, or elu + 1 rounded to 0, would show here."""
    query, keys = torch.full((1, 1, 1, 4), -20.0), torch.full((1, 1, 1, 4), -20.0)
    values = torch.tensor([[[[3.0, -5.0]]]])
    mechanism = LinearAttention()
    attended = mechanism(query, mechanism.prepare(keys, values, None), need_weights=need_weights)
    torch.testing.assert_close(attended.context, values)


def test_no_query_has_no_context():
    _, keys, values, _ = numbers(1, 5)
    mechanism = LinearAttention(causal=True)
    context = mechanism(keys[:, :, :0], mechanism.prepare(keys, values, None)).context
    assert context.shape == (3, 2, 0, 5)


def largest(length, *, causal, **options):
    states = torch.randn(1, 2, length, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    mechanism = LinearAttention(causal=causal)
    with Largest() as recorded:
        memory = mechanism.prepare(states, states, torch.ones(1, length, dtype=torch.bool))
        mechanism(states, memory, **options).context.sum().backward()
    return recorded.numbers


@pytest.mark.parametrize("causal", [False, True])
def test_no_tensor_grows_faster_than_the_sentence(causal):
    assert largest(1024, causal=causal) <= 2 * largest(512, causal=causal)
    assert largest(512, causal=causal) < 512 * 512
    assert largest(512, causal=causal, need_weights=True) == 2 * 512 * 512  # the record would show it


def largest_of_a_step(length):
    states = torch.randn(1, 2, length + 2, 4, generator=torch.Generator().manual_seed(0))
    mechanism = LinearAttention(causal=True)
    memory = mechanism.prepare(states[:, :, :length], states[:, :, :length], None)
    # The first step makes room for as many keys again, which the steps after it share.
    memory = mechanism.extend(memory, states[:, :, -2:-1], states[:, :, -2:-1])
    last = states[:, :, -1:]
    with Largest() as recorded:
        memory = mechanism.extend(memory, last, last)
        mechanism(last, memory, first=length + 1)
    return recorded.numbers


def test_a_step_costs_the_same_however_much_was_read():
    assert largest_of_a_step(1000) == largest_of_a_step(10) == 2 * 4 * 5  # the sums


def test_dropout_falls_on_weights_and_on_nothing_else():
    query, keys, values, allowed = numbers(4, 6)
    mechanism = LinearAttention(dropout=nn.Dropout(0.5)).train()
    memory = mechanism.prepare(keys, values, allowed)
    _, context = plain(query, keys, values, allowed, causal=False)
    torch.testing.assert_close(mechanism(query, memory).context, context, atol=1e-12, rtol=0)
    torch.manual_seed(0)
    assert not torch.allclose(mechanism(query, memory, need_weights=True).context, context)
