"""Label-smoothed cross-entropy of the next piece, without ever holding all the scores at once.

    loss = -(1 - ε) log p(y) - ε/V Σᵥ log p(v)                   Szegedy et al. 2016, section 7
         = log Σᵥ exp zᵥ - (1 - ε) z_y - ε/V Σᵥ zᵥ,    z = W h + b

    ∂loss/∂z = p - (1 - ε) 1_y - ε/V

A batch of 4,096 target pieces against 10,000 has 160 MB of scores z, and torch's own loss goes over them
about ten times. Here the tokens come in chunks whose scores stay in the processor's cache: they are formed,
turned into exp z in place, used for both gradients and forgotten, in one pass that is the forward pass. What
remains of ∂loss/∂z after p touches one row of W for each token, or a sum that is the same for every token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy

from jumok.values import PAD

if TYPE_CHECKING:
    from jumok.models import OutputLayer

__all__ = ["LossSum", "plain_sequence_loss", "sequence_loss"]

SCORES_IN_A_CHUNK = 2_000_000
"""Scores that are held at once: 8 MB in single precision."""


@dataclass(frozen=True, slots=True)
class LossSum:
    """Sums over the target pieces of a batch; divide by `tokens` where a mean is wanted."""

    total: Tensor  # () differentiable: the smoothed loss
    nll: Tensor  # () detached: the loss without smoothing, what perplexity is made of
    tokens: int
    correct: Tensor  # () detached: pieces of which the best guess was right


def sequence_loss(states: Tensor, labels: Tensor, output: OutputLayer, *, smoothing: float) -> LossSum:
    """The loss of states (batch, target, width) whose next pieces are `labels` (batch, target).

    Where a label is PAD there is nothing to predict. `total` is differentiable once.
    """
    real = (labels != PAD).flatten().nonzero().squeeze(1)  # (token,)
    states = states.flatten(0, 1).index_select(0, real)  # (token, width)
    labels = labels.flatten().index_select(0, real)  # (token,)
    sums = _FusedLoss.apply(states, labels, output.weight, output.bias, smoothing)  # type: ignore[no-untyped-call]
    total, nll, correct = sums
    return LossSum(total, nll, tokens=len(real), correct=correct)


def plain_sequence_loss(states: Tensor, labels: Tensor, output: OutputLayer, *, smoothing: float) -> LossSum:
    """The same sums by torch's own cross-entropy, with every score in memory."""
    real = labels != PAD
    scores, wanted = output(states[real]), labels[real]  # (token, piece), (token,)
    total = cross_entropy(scores, wanted, label_smoothing=smoothing, reduction="sum")
    with torch.no_grad():
        nll = cross_entropy(scores, wanted, reduction="sum")
        correct = (scores.argmax(dim=-1) == wanted).sum()
    return LossSum(total, nll, tokens=len(wanted), correct=correct)


@dataclass(frozen=True, slots=True)
class _Gradients:
    """∂total of the states, the weight and the bias; None for what needs none."""

    states: Tensor | None
    weight: Tensor | None
    bias: Tensor | None


class _FusedLoss(torch.autograd.Function):
    """Scores, loss and gradients in one pass over chunks of tokens."""

    @staticmethod
    def forward(
        context: Any, states: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        needs = context.needs_input_grad
        gradients = _Gradients(
            torch.empty_like(states) if needs[0] else None,
            torch.zeros_like(weight) if needs[2] else None,
            torch.zeros_like(bias) if needs[3] and bias is not None else None,
        )
        log_sum, right, best = _go_over(states, labels, weight, bias, gradients)
        if any(needs):
            _subtract_labels(states, labels, weight, smoothing, gradients)
        mean = _mean_score(states, weight, bias)
        total = (log_sum - (1 - smoothing) * right - smoothing * mean).sum()
        nll, correct = (log_sum - right).sum(), (right >= best).sum()
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
        return states, None, weight, bias, None


def _go_over(
    states: Tensor, labels: Tensor, weight: Tensor, bias: Tensor | None, gradients: _Gradients
) -> tuple[Tensor, Tensor, Tensor]:
    """For each token: log Σ exp z, the label's z and the largest z. Adds p's part to the gradients."""
    log_sum, right, best = (states.new_empty(len(states)) for _ in range(3))  # (token,) each
    size = max(1, SCORES_IN_A_CHUNK // len(weight))
    room = states.new_empty(min(size, len(states)), len(weight))  # (chunk, piece)
    for start in range(0, len(states), size):
        part = slice(start, start + size)
        scores = torch.mm(states[part], weight.t(), out=room[: len(states[part])])
        if bias is not None:
            scores += bias
        right[part] = scores.gather(1, labels[part, None]).squeeze(1)
        best[part] = scores.amax(dim=1)
        exponentials = scores.sub_(best[part, None]).exp_()
        sums = exponentials.sum(dim=1)
        log_sum[part] = sums.log() + best[part]
        # p = exponentials / sums: dividing the narrow factors instead spares a pass over the chunk.
        if gradients.states is not None:
            torch.mm(exponentials, weight, out=gradients.states[part]).div_(sums[:, None])
        if gradients.weight is not None:
            gradients.weight.addmm_(exponentials.t(), states[part] / sums[:, None])
        if gradients.bias is not None:
            gradients.bias.addmv_(exponentials.t(), 1 / sums)
    return log_sum, right, best


def _subtract_labels(
    states: Tensor, labels: Tensor, weight: Tensor, smoothing: float, gradients: _Gradients
) -> None:
    """Adds the part of -(1 - ε) 1_y - ε/V to the gradients."""
    even = smoothing / len(weight)
    if gradients.states is not None:
        gradients.states.sub_(weight.index_select(0, labels), alpha=1 - smoothing).sub_(
            even * weight.sum(dim=0)
        )
    if gradients.weight is not None:
        gradients.weight.index_add_(0, labels, states, alpha=smoothing - 1).sub_(even * states.sum(dim=0))
    if gradients.bias is not None:
        ones = states.new_ones(len(states))
        gradients.bias.index_add_(0, labels, ones, alpha=smoothing - 1).sub_(even * len(states))


def _mean_score(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(token,): the mean of a token's scores is the score of the mean of the pieces."""
    mean = states @ weight.mean(dim=0)
    return mean if bias is None else mean + bias.mean()
