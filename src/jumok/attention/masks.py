"""Who may attend to whom: bool tensors named `allowed`, True where a query may attend to a key.

Every mask broadcasts to (batch, head, query, key), so that masks compose with `&` and by nothing else. What
is not allowed gets a weight of exactly 0; a query that is allowed nothing gets weights, context, gradient 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jumok.errors import UnsupportedError

__all__ = ["all_allowed", "look_ahead", "masked_softmax", "padding", "renormalised", "require_bool", "window"]


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


def window(
    queries: int, keys: int, *, reach: int, first: int = 0, device: torch.device | None = None
) -> Tensor:
    """Key j is allowed to query i when |j - (first + i)| ≤ reach, (queries, keys).

    Restricted self-attention: Vaswani et al. 2017, section 4. As a mask it costs what full attention costs.
    """
    places = torch.arange(first, first + queries, device=device)
    return (torch.arange(keys, device=device) - places[:, None]).abs() <= reach


def require_bool(mask: Tensor) -> None:
    """Refuse numbers in the place of a mask: some would read them as weights, and some as a bias."""
    if mask.dtype != torch.bool:
        raise UnsupportedError(
            "A mask is bool, True where a query may attend to a key. "
            f"Received: {mask.dtype}. What is to be added to the scores goes in `bias`."
        )


def all_allowed(*masks: Tensor | None) -> Tensor | None:
    """What every one of the masks allows; None stands for a mask that allows everything."""
    combined: Tensor | None = None
    for mask in masks:
        if mask is not None:
            require_bool(mask)
            combined = mask if combined is None else combined & mask
    return combined


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """The softmax over the allowed keys: 0 elsewhere, and all 0 in a row that is allowed nothing."""
    if allowed is None:
        return torch.softmax(scores, dim=-1)
    # A finite filling keeps the softmax of an empty row, and its gradient, free of NaN.
    weights = torch.softmax(scores.masked_fill(~allowed, torch.finfo(scores.dtype).min), dim=-1)
    return weights.masked_fill(~allowed, 0.0)


def renormalised(weights: Tensor, allowed: Tensor) -> Tensor:
    """Weights after a softmax with what is not allowed set to 0 and each row divided by its sum.

    It equals masking by -∞ before the softmax. Let A be the allowed keys of a row, eᵢ its scores and
    Z = Σⱼ exp(eⱼ) over all keys. For i in A

        (exp(eᵢ) / Z) / Σ_{j∈A} (exp(eⱼ) / Z) = exp(eᵢ) / Σ_{j∈A} exp(eⱼ),

    since Z cancels: the softmax over A alone, to which exp(-∞) = 0 leads as well. Elsewhere both are 0. Any
    numbers ≥ 0 that are proportional to weights will do, so kernels are turned into weights here too.

    In floating point one thing differs: where a key that is not allowed outweighs the allowed ones so much
    that these became 0 in the softmax, or almost, nothing is left to divide, and the row is 0 like one
    that is allowed nothing. `masked_softmax` has no such limit.
    """
    kept = weights.masked_fill(~allowed, 0.0)
    total = kept.sum(dim=-1, keepdim=True)
    # Below the smallest normal number, 1 / total would overflow and the gradient be infinite or NaN.
    nothing = total < torch.finfo(total.dtype).tiny
    return kept.masked_fill(nothing, 0.0) / total.masked_fill(nothing, 1.0)
