"""Dropout whose masks are a pure function of (seed, step, order of the calls).

    y = x · m / (1 - p),   m ~ Bernoulli(1 - p)                  Srivastava et al. 2014

Drawing a mask with torch's `bernoulli_` costs more than the matrix product before it. Here a mask is raw
bytes of numpy's SFC64 generator compared with a threshold, ten times faster or more; so p is a multiple of
1/256, and the scale is that of the p which is really used. The bytes are all that the backward pass keeps.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor, nn

from jumok.errors import RecipeError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Dropout", "seed_dropout"]

_stream: ContextVar[numpy.random.SFC64 | None] = ContextVar("_stream", default=None)


@contextmanager
def seed_dropout(seed: int, step: int, rank: int = 0) -> Iterator[None]:
    """Within this block a mask follows from the seed, step and rank, and from the number of masks before."""
    entropy = [seed, step, rank] if rank else [seed, step]
    token = _stream.set(numpy.random.SFC64(numpy.random.SeedSequence(entropy)))
    try:
        yield
    finally:
        _stream.reset(token)


class Dropout(nn.Module):
    """Sets a share of the activations to 0 while training and scales the others up.

    Outside `seed_dropout` the masks come from torch's own generator.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise RecipeError(f"Dropout is a share from 0 to below 1. Received: {share}.")
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

    def add(self, states: Tensor, change: Tensor) -> Tensor:
        """`states + dropout(change)` in one pass over them."""
        if not self.training or self.share == 0.0:
            return states + change
        mask, scale = draw_mask(change, self.share)
        added: Tensor = _AddDropped.apply(states, change, mask, scale)  # type: ignore[no-untyped-call]
        return added


def draw_mask(like: Tensor, share: float) -> tuple[Tensor, float]:
    """Which activations stay, as uint8 0 and 1 in the shape of `like`, and the scale of those that do."""
    stream = _stream.get()
    if stream is None:
        return plain_mask(like, share)
    threshold = min(max(round(share * 256), 1), 255)
    draws = stream.random_raw(-(-like.numel() // 8)).view(numpy.uint8)[: like.numel()]
    kept = numpy.greater_equal(draws, threshold).view(numpy.uint8)
    return torch.from_numpy(kept).view(like.shape).to(like.device), 256 / (256 - threshold)


def plain_mask(like: Tensor, share: float) -> tuple[Tensor, float]:
    """The same from torch's generator, exact in p."""
    return torch.empty_like(like, dtype=torch.uint8).bernoulli_(1 - share), 1 / (1 - share)


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
    def forward(context: Any, states: Tensor, change: Tensor, mask: Tensor, scale: float) -> Tensor:
        context.save_for_backward(mask)
        context.scale = scale
        return torch.addcmul(states, change, mask.to(change.dtype), value=scale)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (mask,) = context.saved_tensors
        return gradient, gradient * mask.to(gradient.dtype).mul_(context.scale), None, None
