"""Dropout whose masks are a pure function of (seed, step, rank, number of masks drawn before).

    y = x · m / (1 - p),   m ~ Bernoulli(1 - p)                  Srivastava et al. 2014

Drawing a mask with torch's `bernoulli_` takes longer than the matrix product before it. On the CPU a mask is
raw bytes of numpy's SFC64 generator compared with a threshold, at least ten times faster; so p is rounded
to a multiple of 1/256, and the scale is that of the rounded p. The backward pass needs only the bytes. Other
devices draw their masks themselves, with torch's generator, which an update seeds with (seed, step, rank).
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor, nn

from jumok.errors import RecipeError
from jumok.models.kernels.device import on_cpu

if TYPE_CHECKING:
    from collections.abc import Iterator


_stream: ContextVar[numpy.random.SFC64 | None] = ContextVar("_stream", default=None)


@contextmanager
def seed_dropout(seed: int, step: int, rank: int = 0) -> Iterator[None]:
    """Within this block, masks on the CPU follow from seed, step, rank and the masks drawn before."""
    entropy = numpy.random.SeedSequence([seed, step, rank] if rank else [seed, step])
    token = _stream.set(numpy.random.SFC64(entropy))
    try:
        yield
    finally:
        _stream.reset(token)


class Dropout(nn.Module):
    """In training, sets a share of the activations to 0 and scales up the others.

    Outside `seed_dropout` the masks come from torch's default generator.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise RecipeError(f"Dropout must be at least 0 and below 1. Received: {share}.")
        self.share = share

    def extra_repr(self) -> str:
        return f"share={self.share}"

    def forward(self, states: Tensor) -> Tensor:
        """(…) -> (…)"""
        if not self.training or self.share == 0.0:
            return states
        mask, scale = draw_mask(states, self.share)
        dropped: Tensor = _Drop.apply(states, mask, scale)  # type: ignore[no-untyped-call]
        return dropped

    def add(self, states: Tensor, output: Tensor) -> Tensor:
        """`states + dropout(output)` in one pass over memory."""
        if not self.training or self.share == 0.0:
            return states + output
        mask, scale = draw_mask(output, self.share)
        added: Tensor = _AddDropped.apply(states, output, mask, scale)  # type: ignore[no-untyped-call]
        return added


def draw_mask(like: Tensor, share: float) -> tuple[Tensor, float]:
    """A mask in the shape of `like`, uint8 0 (dropped) or 1, and the factor of the remaining activations."""
    stream = _stream.get()
    if stream is not None and on_cpu(like):
        return byte_mask(like, share, stream)
    return plain_mask(like, share)


def byte_mask(like: Tensor, share: float, bits: numpy.random.SFC64) -> tuple[Tensor, float]:
    """The mask from random bytes, with `share` rounded to a multiple of 1/256."""
    threshold = min(max(round(share * 256), 1), 255)
    draws = bits.random_raw(-(-like.numel() // 8)).view(numpy.uint8)[: like.numel()]
    mask = numpy.greater_equal(draws, threshold).view(numpy.uint8)
    return torch.from_numpy(mask).view(like.shape), 256 / (256 - threshold)


def plain_mask(like: Tensor, share: float) -> tuple[Tensor, float]:
    """The mask from torch's generator of the device, with the exact `share`."""
    mask = torch.empty_like(like, dtype=torch.uint8).bernoulli_(1 - share)
    return mask, 1 / (1 - share)


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, states: Tensor, mask: Tensor, scale: float) -> Tensor:
        context.save_for_backward(mask)
        context.scale = scale
        return states * mask.to(states.dtype).mul_(scale)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = context.saved_tensors
        return gradient * mask.to(gradient.dtype).mul_(context.scale), None, None


class _AddDropped(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, states: Tensor, output: Tensor, mask: Tensor, scale: float) -> Tensor:
        context.save_for_backward(mask)
        context.scale = scale
        return torch.addcmul(states, output, mask.to(output.dtype), value=scale)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (mask,) = context.saved_tensors
        return gradient, gradient * mask.to(gradient.dtype).mul_(context.scale), None, None
