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

SHARES = tuple(tenths / 10 for tenths in range(1, 11))
"""The values of α that are tried."""
MAX_LOSS_RISE = 0.005
"""How much the loss of the pairs to keep may rise, in nats per token: half a percent of their perplexity."""
MIN_SHARE_OF_GAIN = 0.75
"""Of the gain on the new pairs, if the pairs to keep are translations of the start model itself."""


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """The losses of w(α) on the new pairs and on the pairs to keep, in nats per token.

    Losses, since they are smooth in α. Scores of some hundred translations are not: between neighbouring
    values of α they change by more than what they should decide on.
    """

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

    With references to keep: the best on the new pairs of those whose loss on the pairs to keep rises by at
    most `MAX_LOSS_RISE`; if all rise more, the one with the least sum of both losses. With translations of
    the start model, which nobody has checked: the closest to them that has most of the best gain on the new
    pairs.
    """
    if keeps_translations:
        most = start.new - MIN_SHARE_OF_GAIN * (start.new - min(point.new for point in points))
        good = [point for point in points if point.new <= most]
        return min(good or points, key=lambda point: point.kept)
    harmless = [point for point in points if point.kept <= start.kept + MAX_LOSS_RISE]
    if harmless:
        return min(harmless, key=lambda point: (point.new, point.kept))
    return min(points, key=lambda point: point.new + point.kept)
