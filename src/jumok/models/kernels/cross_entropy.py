"""Label-smoothed cross-entropy of the next token, computed in chunks of tokens to save memory.

    loss = -(1 - ε) log p(y) - ε/V Σᵥ log p(v)                   Szegedy et al. 2016, section 7
         = log Σᵥ exp zᵥ - (1 - ε) z_y - ε/V Σᵥ zᵥ,    z = W h + b

    ∂loss/∂z = p - (1 - ε) 1_y - ε/V

A batch of 4,096 target tokens with a vocabulary of 10,000 has 160 MB of scores z, and torch's own loss reads
or writes them about ten times. This module processes the tokens in chunks. On the CPU, the scores of a chunk
fit into the cache. The forward pass computes the scores of a chunk, turns them into exp z in place, uses them
for the gradients of h, W and b, and discards them. This covers the term p of ∂loss/∂z. The term (1 - ε) 1_y
needs one row of W per token, and the term ε/V is the same for every token.

With autocast, the products over a chunk have the type of autocast. Everything else has the type of the
weights.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy

from jumok.models.kernels.device import on_cpu, product_dtype
from jumok.types import PAD

if TYPE_CHECKING:
    from jumok.models.model import OutputLayer

CHUNK_SCORES = 2_000_000
"""Scores per chunk on the CPU: 8 MB in single precision."""
DEVICE_CHUNK_SCORES = 100_000_000
"""Scores per chunk on other devices: 400 MB, because an accelerator needs large products."""


@dataclass(frozen=True, slots=True)
class LossSum:
    """Sums over the target tokens of a batch. The mean is the sum divided by `tokens`."""

    total: Tensor  # () differentiable: the smoothed loss
    nll: Tensor  # () detached: the negative log-likelihood without smoothing, for perplexity
    tokens: int  # how many
    correct: Tensor  # () detached: for how many tokens the label has the largest score


def sequence_loss(states: Tensor, labels: Tensor, output: OutputLayer, *, smoothing: float) -> LossSum:
    """Return the loss of states (batch, target, width) whose next tokens are `labels` (batch, target).

    The label PAD is ignored. `total` can be differentiated, but its gradients cannot. Pass the labels on the
    CPU: the positions of PAD are computed there, without waiting for the device of the states. The labels are
    then moved to that device.

    The kernel runs on every device. Its plain twin, `plain_sequence_loss`, is only for tests.
    """
    return fused_sequence_loss(states, labels, output, smoothing=smoothing)


def fused_sequence_loss(states: Tensor, labels: Tensor, output: OutputLayer, *, smoothing: float) -> LossSum:
    """Compute the loss chunk by chunk. The forward pass also computes the gradients."""
    not_padding = (labels != PAD).flatten().nonzero().squeeze(1)  # (token,)
    labels = labels.flatten().index_select(0, not_padding).to(states.device)  # (token,)
    states = states.flatten(0, 1).index_select(0, not_padding.to(states.device))  # (token, width)
    dtype, states = product_dtype(states), states.to(output.weight.dtype)
    with torch.autocast(states.device.type, enabled=False) if dtype != states.dtype else nullcontext():
        sums = _FusedLoss.apply(states, labels, output.weight, output.bias, smoothing, dtype)  # type: ignore[no-untyped-call]
    total, nll, correct = sums
    return LossSum(total, nll, tokens=len(not_padding), correct=correct)


def plain_sequence_loss(states: Tensor, labels: Tensor, output: OutputLayer, *, smoothing: float) -> LossSum:
    """Compute the same sums with torch's cross-entropy. All scores are in memory at once.

    If several scores are the largest, `correct` may be lower here.
    """
    labels = labels.to(states.device)
    not_padding = labels != PAD
    scores, labels = output(states[not_padding]), labels[not_padding]  # (token, vocabulary), (token,)
    total = cross_entropy(scores, labels, label_smoothing=smoothing, reduction="sum")
    with torch.no_grad():
        nll = cross_entropy(scores, labels, reduction="sum")
        correct = (scores.argmax(dim=-1) == labels).sum()
    return LossSum(total, nll, tokens=len(labels), correct=correct)


@dataclass(frozen=True, slots=True)
class _Gradients:
    """The gradients of `total` with respect to states, weight and bias. None: this gradient is not needed."""

    states: Tensor | None
    weight: Tensor | None
    bias: Tensor | None


class _FusedLoss(torch.autograd.Function):
    """Scores, loss and gradients in one pass over chunks of tokens."""

    @staticmethod
    def forward(
        context: Any,
        states: Tensor,
        labels: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        smoothing: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        needs = context.needs_input_grad
        gradients = _Gradients(
            torch.empty_like(states) if needs[0] else None,
            torch.zeros_like(weight) if needs[2] else None,
            torch.zeros_like(bias) if needs[3] and bias is not None else None,
        )
        log_sum, label_score, best = _process_chunks(states, labels, weight, bias, gradients, dtype)
        if any(needs):
            _subtract_labels(states, labels, weight, smoothing, gradients)
        mean = _mean_score(states, weight, bias)
        total = (log_sum - (1 - smoothing) * label_score - smoothing * mean).sum()
        nll, correct = (log_sum - label_score).sum(), (label_score >= best).sum()
        context.gradients = gradients
        context.mark_non_differentiable(nll, correct)
        return total, nll, correct

    @staticmethod
    @once_differentiable
    def backward(context: Any, scale: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        gradients: _Gradients = context.gradients
        states, weight, bias = (
            None if gradient is None else gradient * scale
            for gradient in (gradients.states, gradients.weight, gradients.bias)
        )
        return states, None, weight, bias, None, None


def _process_chunks(
    states: Tensor,
    labels: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gradients: _Gradients,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log Σ exp z, the z of the label and the largest z of each token.

    Write the term p into the gradients. `dtype` is the type of the products.
    """
    cast_weight = weight.to(dtype)
    log_sum, label_score, best = (states.new_empty(len(states)) for _ in range(3))  # (token,) each
    size = max(1, (CHUNK_SCORES if on_cpu(states) else DEVICE_CHUNK_SCORES) // len(weight))
    buffer = states.new_empty(min(size, len(states)), len(weight))  # (chunk, vocabulary)
    for start in range(0, len(states), size):
        chunk = slice(start, start + size)
        scores = _multiply(states[chunk], cast_weight.t(), buffer[: len(states[chunk])])
        if bias is not None:
            scores += bias
        label_score[chunk] = scores.gather(1, labels[chunk, None]).squeeze(1)
        best[chunk] = scores.amax(dim=1)
        exponentials = scores.sub_(best[chunk, None]).exp_()
        sums = exponentials.sum(dim=1)
        log_sum[chunk] = sums.log() + best[chunk]
        # p = exponentials / sums. Instead of the exponentials, the products or the states are divided by the
        # sums, because they have fewer columns.
        if gradients.states is not None:
            _multiply(exponentials, cast_weight, gradients.states[chunk]).div_(sums[:, None])
        if gradients.weight is not None:
            scaled = states[chunk] / sums[:, None]
            if dtype == weight.dtype:
                gradients.weight.addmm_(exponentials.t(), scaled)
            else:
                gradients.weight.add_(torch.mm(exponentials.t().to(dtype), scaled.to(dtype)))
        if gradients.bias is not None:
            gradients.bias.addmv_(exponentials.t(), 1 / sums)
    return log_sum, label_score, best


def _multiply(left: Tensor, right: Tensor, out: Tensor) -> Tensor:
    """Multiply in the type of `right`, and write the product to `out`."""
    if right.dtype == out.dtype:
        return torch.mm(left, right, out=out)
    return out.copy_(torch.mm(left.to(right.dtype), right))


def _subtract_labels(
    states: Tensor, labels: Tensor, weight: Tensor, smoothing: float, gradients: _Gradients
) -> None:
    """Add the terms -(1 - ε) 1_y - ε/V to the gradients."""
    uniform = smoothing / len(weight)
    if gradients.states is not None:
        gradients.states.sub_(weight.index_select(0, labels), alpha=1 - smoothing).sub_(
            uniform * weight.sum(dim=0)
        )
    if gradients.weight is not None:
        gradients.weight.index_add_(0, labels, states, alpha=smoothing - 1).sub_(uniform * states.sum(dim=0))
    if gradients.bias is not None:
        ones = states.new_ones(len(states))
        gradients.bias.index_add_(0, labels, ones, alpha=smoothing - 1).sub_(uniform * len(states))


def _mean_score(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the mean score over the vocabulary, (token,): the product with the mean row of `weight`."""
    mean = states @ weight.mean(dim=0)
    return mean if bias is None else mean + bias.mean()
