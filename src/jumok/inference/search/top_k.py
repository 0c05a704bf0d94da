"""The k largest values of each row, for rows that are much longer than k.

    the k largest values lie in the k stretches with the largest maxima

so one pass finds the maximum of each stretch, and only k stretches are looked at again, where `topk` would
copy and partly sort the whole vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["top"]

_STRETCH = 32


def top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest values of each row, largest first, and their columns: (row, count) each.

    Rows with fewer columns than that give all of them.
    """
    rows, columns = values.shape
    stretches = columns // _STRETCH
    if stretches < 4 * count:
        best, at = values.topk(min(count, columns))
        return best, at
    covered = stretches * _STRETCH
    maxima = values[:, :covered].reshape(rows, stretches, _STRETCH).amax(dim=-1)  # (row, stretch)
    chosen = maxima.topk(count, sorted=False).indices  # (row, count)
    within = torch.arange(_STRETCH, device=values.device)
    candidates = (chosen[:, :, None] * _STRETCH + within).flatten(1)  # (row, count × 32)
    rest = torch.arange(covered, columns, device=values.device).expand(rows, -1)
    candidates = torch.cat([candidates, rest], dim=1)
    best, at = values.gather(1, candidates).topk(count)
    return best, candidates.gather(1, at)
