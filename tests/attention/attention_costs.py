"""What mechanisms of linear cost are tested with: numbers with padding, and the largest tensor of a call."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from jumok.attention import padding


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


def largest(mechanism, length, **options):
    """Of self-attention over one sentence of so many places, forward and backward."""
    states = torch.randn(1, 2, length, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    with Largest() as recorded:
        memory = mechanism.prepare(states, states, torch.ones(1, length, dtype=torch.bool))
        mechanism(states, memory, **options).context.sum().backward()
    return recorded.numbers


def largest_of_a_step(mechanism, length):
    """Of one step of decoding after so many places."""
    states = torch.randn(1, 2, length + 2, 4, generator=torch.Generator().manual_seed(0))
    memory = mechanism.prepare(states[:, :, :length], states[:, :, :length], None)
    # The first step makes room for as many keys again, which the steps after it share.
    memory = mechanism.extend(memory, states[:, :, -2:-1], states[:, :, -2:-1])
    last = states[:, :, -1:]
    with Largest() as recorded:
        memory = mechanism.extend(memory, last, last)
        mechanism(last, memory, first=length + 1)
    return recorded.numbers


def numbers(queries, keys, *, seed=0):
    """Queries, keys and values of three sentences and two heads; the keys of one are all padding."""
    random = torch.Generator().manual_seed(seed)
    sizes = [(3, 2, queries, 4), (3, 2, keys, 4), (3, 2, keys, 5)]
    drawn = [torch.randn(size, generator=random, dtype=torch.float64) for size in sizes]
    allowed = padding(torch.tensor([keys, keys - keys // 3, 0]), keys)
    allowed[0, 0] = keys == 1  # padding at the start, too: causal queries then see nothing at first
    return *drawn, allowed


def check_gradients(mechanism, numbers, **options):
    """Those of finite differences; 0 in the third sentence, of which no key can be seen."""
    query, keys, values, allowed = numbers

    def context(query, keys, values):
        return mechanism(query, mechanism.prepare(keys, values, allowed), **options).context

    leaves = [tensor[:, :1].clone().requires_grad_() for tensor in (query, keys, values)]
    assert torch.autograd.gradcheck(context, leaves)
    for gradient in torch.autograd.grad(context(*leaves).square().sum(), leaves):
        assert torch.all(gradient[2] == 0)
