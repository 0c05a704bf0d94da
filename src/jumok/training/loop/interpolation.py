"""Points between the weights of a start model and those of its fine-tuned successor.

    w(α) = (1 - α) w_start + α w_tuned                            Wortsman et al. 2022, eq. 1

Fine-tuned weights are better on new text and worse on old text. Points between the two models often have most
of the gain and little of the harm, because both models lie in one basin of the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

ALPHAS = tuple(tenths / 10 for tenths in range(1, 11))
"""The values of α that are tried."""
MAX_LOSS_RISE = 0.005
"""How much the loss of the pairs to keep may rise, in nats per token: half a percent of their perplexity."""
MIN_SHARE_OF_GAIN = 0.75
"""Share of the best gain on the new pairs that suffices if the pairs to keep have translations of the start
model instead of references."""


@dataclass(frozen=True, slots=True)
class InterpolatedPoint:
    """The losses of w(α) on the new pairs and on the pairs to keep, in nats per token.

    The point is chosen by losses, because they are smooth in α. Scores of a few hundred translations are not
    smooth: by chance, they differ more between neighbouring values of α than between good and bad values.
    """

    alpha: float
    new_loss: float
    kept_loss: float


def interpolate_weights(
    start: Mapping[str, Tensor], tuned: Mapping[str, Tensor], alpha: float
) -> dict[str, Tensor]:
    """Return w(α), computed in float64; for α = 1, the tuned weights bit for bit."""
    if alpha == 1:
        return dict(tuned)
    return {
        name: torch.lerp(start[name].cpu().double(), tensor.cpu().double(), alpha).to(tensor.dtype)
        for name, tensor in tuned.items()
    }


def choose_point(
    start: InterpolatedPoint, points: Sequence[InterpolatedPoint], *, keeps_translations: bool
) -> InterpolatedPoint:
    """Return the best point.

    The pairs to keep have either references or translations of the start model, which nobody has checked.

    - References: only points whose loss on the pairs to keep rises by at most `MAX_LOSS_RISE` are considered.
      The best of these points on the new pairs is chosen. If there is no such point, the point with the least
      sum of both losses is chosen.
    - Translations (`keeps_translations`): only points that have at least `MIN_SHARE_OF_GAIN` of the best gain
      on the new pairs are considered; if all points are worse than the start model on the new pairs, all are
      considered. The best of these points on the pairs to keep is chosen.
    """
    if keeps_translations:
        gain = start.new_loss - min(point.new_loss for point in points)
        good = [point for point in points if point.new_loss <= start.new_loss - MIN_SHARE_OF_GAIN * gain]
        return min(good or points, key=lambda point: point.kept_loss)
    harmless = [point for point in points if point.kept_loss <= start.kept_loss + MAX_LOSS_RISE]
    if harmless:
        return min(harmless, key=lambda point: (point.new_loss, point.kept_loss))
    return min(points, key=lambda point: point.new_loss + point.kept_loss)
