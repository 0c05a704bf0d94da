"""Checks of mechanisms: the size of their largest tensor, their gradients, and random inputs for them."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from jumok.attention import padding_mask


class LargestTensor(TorchDispatchMode):
    """Records the number of elements of the largest tensor that operations read or write.

    Operations that only make a view of a tensor are left out.
    """

    def __init__(self):
        super().__init__()
        self.num_elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            tensors = [leaf for leaf in tree_leaves((args, result)) if isinstance(leaf, torch.Tensor)]
            self.num_elements = max([self.num_elements, *(tensor.numel() for tensor in tensors)])
        return result


def largest_tensor_size(mechanism, length, **options):
    """Return the number of elements of the largest tensor of self-attention over one sentence.

    The forward pass and the backward pass are measured.
    """
    states = torch.randn(1, 2, length, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    with LargestTensor() as largest:
        memory = mechanism.prepare(states, states, torch.ones(1, length, dtype=torch.bool))
        mechanism(states, memory, **options).context.sum().backward()
    return largest.num_elements


def largest_step_tensor_size(mechanism, length):
    """Return the number of elements of the largest tensor of a decoding step after `length` + 1 positions."""
    states = torch.randn(1, 2, length + 2, 4, generator=torch.Generator().manual_seed(0))
    memory = mechanism.prepare(states[:, :, :length], states[:, :, :length], None)
    # This step doubles the capacity of the memory, so the measured step below does not.
    memory = mechanism.extend(memory, states[:, :, -2:-1], states[:, :, -2:-1])
    last = states[:, :, -1:]
    with LargestTensor() as largest:
        memory = mechanism.extend(memory, last, last)
        mechanism(last, memory, query_offset=length + 1)
    return largest.num_elements


def random_inputs(queries, keys, *, seed=0):
    """Return random queries, keys and values of three sentences and two heads, and which keys are allowed.

    All keys of the third sentence are padding.
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = [(3, 2, queries, 4), (3, 2, keys, 4), (3, 2, keys, 5)]
    tensors = [torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes]
    allowed = padding_mask(torch.tensor([keys, keys - keys // 3, 0]), keys)
    # The first sentence is padded at the start unless it has one key, so its first causal query has no key.
    allowed[0, 0] = keys == 1
    return *tensors, allowed


def check_gradients(mechanism, inputs, **options):
    """Assert that gradients equal finite differences, and are 0 in the third sentence of `random_inputs`."""
    query, keys, values, allowed = inputs

    def context(query, keys, values):
        return mechanism(query, mechanism.prepare(keys, values, allowed), **options).context

    leaves = [tensor[:, :1].clone().requires_grad_() for tensor in (query, keys, values)]
    assert torch.autograd.gradcheck(context, leaves)
    for gradient in torch.autograd.grad(context(*leaves).square().sum(), leaves):
        assert torch.all(gradient[2] == 0)
