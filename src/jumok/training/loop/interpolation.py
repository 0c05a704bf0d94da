"""Points between the weights of a start model and those of its fine-tuned successor.

    w(α) = (1 - α) w_start + α w_tuned                            Wortsman et al. 2022, eq. 1

Fine-tuned weights are better on new text and worse on old text. Between both there often are weights that
have most of the gain and little of the loss, because the two lie in one basin of the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

SHARES = (1.0, 0.8, 0.6, 0.4, 0.2)
"""The values of α that are tried."""
MAX_LOSS = 0.5
"""How much worse the score of the pairs to keep may get, in points, if another α can prevent it."""
MIN_SHARE_OF_GAIN = 0.75
"""Of the gain on the new pairs, if the pairs to keep are translations of the start model itself."""


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """The scores of w(α) on the new pairs and on the pairs to keep; higher is better."""

    share: float
    new: float
    kept: float


def interpolate_weights(
    start: Mapping[str, Tensor], tuned: Mapping[str, Tensor], share: float
) -> dict[str, Tensor]:
    """Return w(share), computed in float64; at 1 the tuned weights to the bit."""
    if share == 1:
        return dict(tuned)
    return {
        name: torch.lerp(start[name].cpu().double(), tensor.cpu().double(), share).to(tensor.dtype)
        for name, tensor in tuned.items()
    }


def choose_point(
    start: MeasuredPoint, points: Sequence[MeasuredPoint], *, keeps_translations: bool
) -> MeasuredPoint:
    """Return the best point.

    With references to keep: the best on the new pairs of those that lose at most `MAX_LOSS` on the pairs to
    keep; if all lose more, the one with the best sum of both scores. With translations of the start model,
    which nobody has checked: the closest to them that has most of the best gain on the new pairs.
    """
    if keeps_translations:
        needed = start.new + MIN_SHARE_OF_GAIN * (max(point.new for point in points) - start.new)
        good = [point for point in points if point.new >= needed]
        return max(good or points, key=lambda point: point.kept)
    harmless = [point for point in points if point.kept >= start.kept - MAX_LOSS]
    if harmless:
        return max(harmless, key=lambda point: (point.new, point.kept))
    return max(points, key=lambda point: point.new + point.kept)
