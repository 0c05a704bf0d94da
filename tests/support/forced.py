"""Forced decoding: the log-probability of given translations, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch

from jumok.errors import DataError
from jumok.inference.search.constraints import NEG_INF, columns_of
from jumok.types import BEGIN, END, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.inference.search.stepper import Stepper
    from jumok.types import Batch

State = TypeVar("State")


def forced_log_probs(
    stepper: Stepper[State], batch: Batch, targets: Sequence[Sequence[int]], *, score_end: bool = True
) -> Tensor:
    """Return the log-probability of every target token and of `</s>`: (batch, longest target + 1).

        log p(y | x) = Σₜ log p(yₜ | y₁ … yₜ₋₁, x)

    The sum over a row, `forced_log_probs(…).sum(1)`, is the `log_prob` of a hypothesis. Positions after
    `</s>` are 0. If `score_end` is False, the position of `</s>` is 0 as well, as in a hypothesis that was
    cut at its maximum length.
    """
    if len(targets) != len(batch):
        raise DataError(
            f"Every sentence needs one target. Received: {len(targets)} targets for {len(batch)} sentences."
        )
    device = batch.source.device
    tokens, scored = _pad_targets(targets, score_end=score_end)  # (batch, step)
    tokens, scored = tokens.to(device), scored.to(device)
    state = stepper.begin(batch)
    last_tokens = torch.full((len(batch),), BEGIN, device=device)
    log_probs: list[Tensor] = []
    for step in range(tokens.shape[1]):
        next_log_probs, state = stepper.step(state, last_tokens)
        target_tokens = tokens[:, step]
        columns = columns_of(next_log_probs.ids, target_tokens)
        values = next_log_probs.values.gather(1, columns.clamp(min=0)[:, None]).squeeze(1)
        log_probs.append(values.masked_fill(columns < 0, NEG_INF))
        last_tokens = target_tokens
    return torch.stack(log_probs, dim=1).masked_fill(~scored, 0.0)


def _pad_targets(targets: Sequence[Sequence[int]], *, score_end: bool) -> tuple[Tensor, Tensor]:
    """Return the padded targets with `</s>` and a mask of the scored positions, both (batch, step)."""
    steps = max(len(target) for target in targets) + 1
    rows = [[*target, END, *[PAD] * (steps - len(target) - 1)] for target in targets]
    lengths = torch.tensor([len(target) + score_end for target in targets])
    return torch.tensor(rows), torch.arange(steps) < lengths[:, None]
