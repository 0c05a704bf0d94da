"""Dropout whose masks follow from the seed, the step, the rank, and the masks drawn before in the step.

    y = x · m / (1 - p),   m ~ Bernoulli(1 - p)                  Srivastava et al. 2014

Drawing a mask with torch's `bernoulli_` takes longer than the matrix product before it. On the CPU, bytes of
numpy's SFC64 generator are compared with a threshold instead, which is at least ten times faster. Therefore p
is rounded to a multiple of 1/256, also in the scale 1 / (1 - p). For the backward pass only the mask is
saved, one byte per activation. On other devices, masks are drawn with torch's generator of the device.
`seed_step` of `training/loop/update.py` seeds this generator with (seed, step, rank).
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


_generator: ContextVar[numpy.random.SFC64 | None] = ContextVar("_generator", default=None)


@contextmanager
def seed_dropout(seed: int, step: int, rank: int = 0) -> Iterator[None]:
    """Seed the masks on the CPU for this block.

    A mask depends only on seed, step, rank, its shape, and the shapes of the masks before it in the block. If
    updates are divided into shares, `rank` is the index of the share.
    """
    entropy = numpy.random.SeedSequence([seed, step, rank] if rank else [seed, step])
    token = _generator.set(numpy.random.SFC64(entropy))
    try:
        yield
    finally:
        _generator.reset(token)


class Dropout(nn.Module):
    """In training, sets each activation to 0 with this probability and scales up the others.

    On other devices than the CPU, and outside `seed_dropout`, the masks come from torch's default generator.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise RecipeError(f"Dropout must be at least 0 and below 1. Received: {probability}.")
        self.probability = probability

    def extra_repr(self) -> str:
        return f"probability={self.probability}"

    def forward(self, states: Tensor) -> Tensor:
        """(…) -> (…)"""
        if not self.training or self.probability == 0.0:
            return states
        mask, scale = draw_mask(states, self.probability)
        dropped: Tensor = _Drop.apply(states, mask, scale)  # type: ignore[no-untyped-call]
        return dropped

    def add(self, states: Tensor, output: Tensor) -> Tensor:
        """Return `states + dropout(output)`, computed in one pass over memory."""
        if not self.training or self.probability == 0.0:
            return states + output
        mask, scale = draw_mask(output, self.probability)
        added: Tensor = _AddDropped.apply(states, output, mask, scale)  # type: ignore[no-untyped-call]
        return added


def draw_mask(like: Tensor, probability: float) -> tuple[Tensor, float]:
    """Return a uint8 mask (0: drop, 1: keep) in the shape of `like`, and the scale of kept activations."""
    generator = _generator.get()
    if generator is not None and on_cpu(like):
        return byte_mask(like, probability, generator)
    return plain_mask(like, probability)


def byte_mask(like: Tensor, probability: float, generator: numpy.random.SFC64) -> tuple[Tensor, float]:
    """Draw the mask from random bytes, with `probability` rounded to 1/256, 2/256, … or 255/256."""
    threshold = min(max(round(probability * 256), 1), 255)
    draws = generator.random_raw(-(-like.numel() // 8)).view(numpy.uint8)[: like.numel()]
    mask = numpy.greater_equal(draws, threshold).view(numpy.uint8)
    return torch.from_numpy(mask).view(like.shape), 256 / (256 - threshold)


def plain_mask(like: Tensor, probability: float) -> tuple[Tensor, float]:
    """Draw the mask with torch's generator of the device, with the exact `probability`."""
    mask = torch.empty_like(like, dtype=torch.uint8).bernoulli_(1 - probability)
    return mask, 1 / (1 - probability)


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
