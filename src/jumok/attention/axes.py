"""Attention over several axes at once: the rows and columns of a picture, or days and hours.

The attended axes are flattened into one sequence. All other axes are batch axes. Keras has the argument
`attention_axes` for the same purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from jumok.attention.contract import Attended, Attention, WeightEdit
from jumok.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class _Flattened:
    """States whose attended axes are flattened, and the original sizes of the axes."""

    states: Tensor  # (flat batch, length, width)
    batch: tuple[int, ...]  # sizes of the batch axes; their product is the flat batch
    lengths: tuple[int, ...]  # sizes of the attended axes, in the order of `axes`; their product is `length`


def attend_over_axes(
    attention: Attention,
    states: Tensor,
    axes: tuple[int, ...],
    *,
    source: Tensor | None = None,
    allowed: Tensor | None = None,
    allowed_keys: Tensor | None = None,
    edit: WeightEdit | None = None,
    need_weights: bool = False,
) -> Attended:
    """Attention from states (…, width) over `axes` to the same axes of `source` (None: of the states).

    All axes except the attended axes and the width are batch axes; axis 0 must be one of them. The states and
    the source must have the same sizes on the batch axes. Weights are (batch …, head, query …, key …) with
    the attended axes in the order of `axes`, as in Keras. `allowed` (bool) broadcasts to this shape,
    `allowed_keys` to (batch …, key …); `edit` gets weights of the same shape and returns them. The context
    has the shape of the states, with the output shape of the attention in place of the width.
    """
    queries = _flatten(states, axes)
    keys = queries if source is None else _flatten(_checked_source(source, states, axes), axes)
    weights_shape = (*queries.batch, attention.heads, *queries.lengths, *keys.lengths)
    flat_shape = (len(queries.states), attention.heads, queries.states.shape[1], keys.states.shape[1])
    keys_shape = (*keys.batch, *keys.lengths)
    memory = attention.prepare(
        keys.states,
        keys.states,
        None if allowed_keys is None else _broadcast(allowed_keys, keys_shape).reshape(keys.states.shape[:2]),
    )
    attended: Attended = attention(
        queries.states,
        memory,
        allowed=None if allowed is None else _broadcast(allowed, weights_shape).reshape(flat_shape),
        edit=None
        if edit is None
        else lambda weights, offset: edit(weights.reshape(weights_shape), offset).reshape(flat_shape),
        need_weights=need_weights,
    )
    output_shape = attended.context.shape[2:]
    context = attended.context.reshape(*queries.batch, *queries.lengths, *output_shape)
    order = _order(states, axes)
    inverse = [order.index(axis) for axis in range(len(order))]
    context = context.permute(*inverse, *range(len(order), context.dim()))
    weights = None if attended.weights is None else attended.weights.reshape(weights_shape)
    return Attended(context, weights)


def _order(states: Tensor, axes: tuple[int, ...]) -> list[int]:
    """The axes of the states without the width: first the batch axes, then the attended axes."""
    return [*(axis for axis in range(states.dim() - 1) if axis not in axes), *axes]


def _flatten(states: Tensor, axes: tuple[int, ...]) -> _Flattened:
    inner = range(1, states.dim() - 1)
    if not axes or len(set(axes)) != len(axes) or any(axis not in inner for axis in axes):
        raise UnsupportedError(
            "At least one axis is needed, and all must be distinct and between the batch (0) and the width "
            f"({states.dim() - 1}). "
            f"Received: {axes} for states of shape {tuple(states.shape)}."
        )
    moved = states.permute(*_order(states, axes), -1)  # (batch …, axis …, width)
    sizes = tuple(moved.shape[:-1])
    batch, lengths = sizes[: -len(axes)], sizes[-len(axes) :]
    flat = moved.reshape(torch.Size(batch).numel(), torch.Size(lengths).numel(), states.shape[-1])
    return _Flattened(flat, batch, lengths)


def _checked_source(source: Tensor, states: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return the source. Raise an error if its batch axes have other sizes than those of the states."""
    same_axes = source.dim() == states.dim()
    if not same_axes or any(
        source.shape[axis] != states.shape[axis] for axis in range(states.dim() - 1) if axis not in axes
    ):
        raise UnsupportedError(
            "States and source must have the same number of axes, and the same sizes on all axes except the "
            f"attended axes and the width. Received: states of shape {tuple(states.shape)}, a source of "
            f"shape {tuple(source.shape)} and the axes {axes}."
        )
    return source


def _broadcast(mask: Tensor, shape: Sequence[int]) -> Tensor:
    try:
        return mask.broadcast_to(tuple(shape))
    except RuntimeError:
        raise UnsupportedError(
            f"The mask must broadcast to {tuple(shape)}: batch axes, heads, attended axes of the queries, "
            f"then of the keys (a mask of keys: batch axes, then keys). Received: {tuple(mask.shape)}."
        ) from None
