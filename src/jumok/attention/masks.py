"""Who may attend to whom: bool tensors named `allowed`, True where a query may attend to a key.

Every mask broadcasts to (batch, head, query, key), so that masks compose with `&` and by nothing else. What
is not allowed gets a weight of exactly 0; a query that is allowed nothing gets weights, context, gradient 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["all_allowed", "look_ahead", "masked_softmax", "padding"]


def padding(lengths: Tensor, size: int) -> Tensor:
    """The keys that are not padding, (batch, size): the first `lengths[b]` of row b."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def look_ahead(queries: int, keys: int, *, first: int, device: torch.device | None = None) -> Tensor:
    """Key j is allowed to query i when j ≤ first + i, (queries, keys); `first` is the place of query 0.

    Vaswani et al. 2017, section 3.2.3. With `first = keys - queries` the last query sees every key, which is
    what one step of cached decoding needs; torch's own `is_causal` aligns to the start and would not do.
    """
    places = torch.arange(first, first + queries, device=device)
    return torch.arange(keys, device=device) <= places[:, None]


def all_allowed(*masks: Tensor | None) -> Tensor | None:
    """What every one of the masks allows; None stands for a mask that allows everything."""
    combined: Tensor | None = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else combined & mask
    return combined


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """The softmax over the allowed keys: 0 elsewhere, and all 0 in a row that is allowed nothing."""
    if allowed is None:
        return torch.softmax(scores, dim=-1)
    # A finite filling keeps the softmax of an empty row, and its gradient, free of NaN.
    weights = torch.softmax(scores.masked_fill(~allowed, torch.finfo(scores.dtype).min), dim=-1)
    return weights.masked_fill(~allowed, 0.0)
