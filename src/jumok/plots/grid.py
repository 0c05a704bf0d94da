"""An attention map reduced to one matrix, which a drawing shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.types import AttentionMap


@dataclass(frozen=True)
class Grid:
    """One row per query (target word), one column per key (source word).

    There may be no row: a model that has hardly learnt anything may write an empty translation.
    """

    weights: NDArray[np.float64]  # (query, key)
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    layer_and_head: str
    """The layer and the head that were selected or averaged, as text; "" if the map has one of each."""
    min_scale: float = 1.0
    """The scale ends at this weight at least, so that drawings beside each other can have one scale."""

    @cached_property
    def max_weight(self) -> float:
        """The upper end of the scale, drawn brightest: `min_scale`, or the largest weight if it is larger."""
        finite = self.weights[np.isfinite(self.weights)]
        return max(self.min_scale, float(finite.max(initial=1.0)))


def map_weights(attention: AttentionMap) -> NDArray[Any]:
    """Return the weights as (layer, head, query, key). Raise if they do not fit the words."""
    weights = np.asarray(attention.weights)
    if weights.ndim == 2:
        weights = weights[None, None]
    counts = (len(attention.queries), len(attention.keys))
    if weights.ndim != 4 or weights.shape[2:] != counts:
        raise DataError(
            "The weights of the attention map do not fit its words. "
            f"Received: shape {weights.shape} for {counts[0]} target and {counts[1]} source words; "
            f"expected (layer, head, {counts[0]}, {counts[1]})."
        )
    if 0 in weights.shape[:2]:
        raise DataError(f"The attention map has no layer or no head. Received: shape {weights.shape}.")
    return weights


def flat_grid(attention: AttentionMap, *, layer: int | None = None, head: int | None = None) -> Grid:
    """Return the weights of one layer and head of a map, counted from 0.

    If `layer` is None, the weights are averaged over all layers; if `head` is None, over all heads.
    """
    weights = map_weights(attention).astype(np.float64)
    weights, layer_name = _choose(weights, layer, "layer")
    weights, head_name = _choose(weights, head, "head")
    layer_and_head = ", ".join(name for name in (layer_name, head_name) if name)
    return Grid(weights, attention.queries, attention.keys, layer_and_head)


def _choose(weights: NDArray[np.float64], index: int | None, axis: str) -> tuple[NDArray[np.float64], str]:
    """Return one entry of the first axis, or the mean over this axis, and a text that names the choice.

    The text is "" if the axis has one entry.
    """
    count = weights.shape[0]
    if index is None:
        return weights.mean(axis=0), "" if count == 1 else f"mean of {count} {axis}s"
    if not 0 <= index < count:
        raise DataError(f"The attention map has no {axis} {index}. It has {count}, counted from 0.")
    return weights[index], "" if count == 1 else f"{axis} {index}"
