"""Which queries may attend to which keys: bool tensors named `allowed`, True where attention is allowed.

A mask named `allowed` broadcasts to (batch, head, query, key), so these masks are combined with `&` only.
Masks of padding are (batch, key) instead: the result of `padding_mask`, which attention takes as
`allowed_keys`, and `KeyValues.allowed`. A key that is not allowed has a weight of exactly 0; a query that has
no allowed key has weights, context and gradient 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jumok.errors import UnsupportedError


def padding_mask(lengths: Tensor, size: int) -> Tensor:
    """True at the keys that are not padding, (batch, size): the first `lengths[b]` keys of row b."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def causal_mask(queries: int, keys: int, *, query_offset: int, device: torch.device | None = None) -> Tensor:
    """Query i may attend to key j if j ≤ query_offset + i, (queries, keys).

    Vaswani et al. 2017, section 3.2.3. `query_offset` is the absolute position of query 0. With
    `query_offset = keys - queries` the last query attends to every key, as one step of cached decoding needs;
    torch's own `is_causal` always has an offset of 0.
    """
    positions = torch.arange(query_offset, query_offset + queries, device=device)
    return torch.arange(keys, device=device) <= positions[:, None]


def window_mask(
    queries: int, keys: int, *, reach: int, query_offset: int = 0, device: torch.device | None = None
) -> Tensor:
    """Query i may attend to key j if |j - (query_offset + i)| ≤ reach, (queries, keys).

    Restricted self-attention: Vaswani et al. 2017, section 4. A mask saves no time: see `Restricted`.
    """
    positions = torch.arange(query_offset, query_offset + queries, device=device)
    return (torch.arange(keys, device=device) - positions[:, None]).abs() <= reach


def require_bool(mask: Tensor) -> None:
    """Refuse a mask of numbers: some libraries read such a mask as weights, and some as a bias."""
    if mask.dtype != torch.bool:
        raise UnsupportedError(
            "A mask must be bool: True where a query may attend to a key. "
            f"Received: {mask.dtype}. Numbers to add to the scores go in `bias`."
        )


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """The AND of the masks; None is a mask that allows everything."""
    combined: Tensor | None = None
    for mask in masks:
        if mask is not None:
            require_bool(mask)
            combined = mask if combined is None else combined & mask
    return combined


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """The softmax over the allowed keys: 0 elsewhere, and all 0 in a row that allows no key."""
    if allowed is None:
        return torch.softmax(scores, dim=-1)
    # A finite fill value keeps the softmax of an empty row, and its gradient, free of NaN.
    weights = torch.softmax(scores.masked_fill(~allowed, torch.finfo(scores.dtype).min), dim=-1)
    return weights.masked_fill(~allowed, 0.0)


def mask_and_renormalise(weights: Tensor, allowed: Tensor) -> Tensor:
    """Set weights that are not allowed to 0 after the softmax, and divide each row by its sum.

    This equals masking by -∞ before the softmax. Let A be the allowed keys of a row, eᵢ its scores and
    Z = Σⱼ exp(eⱼ) over all keys. For i in A

        (exp(eᵢ) / Z) / Σ_{j∈A} (exp(eⱼ) / Z) = exp(eᵢ) / Σ_{j∈A} exp(eⱼ),

    because Z cancels. The right side is the softmax over A alone. For i not in A, both methods give 0. The
    function accepts any numbers ≥ 0 that are proportional to weights, e.g. the values of a kernel.

    In floating point there is one difference. If the weight of a masked key is so large that the weights of
    all allowed keys round to 0, or almost to 0, then the row cannot be divided by its sum, and the result is
    a row of 0. `masked_softmax` has no such limit.
    """
    masked = weights.masked_fill(~allowed, 0.0)
    total = masked.sum(dim=-1, keepdim=True)
    # Below the smallest normal number, 1 / total would overflow and the gradient would be infinite or NaN.
    empty = total < torch.finfo(total.dtype).tiny
    return masked.masked_fill(empty, 0.0) / total.masked_fill(empty, 1.0)
