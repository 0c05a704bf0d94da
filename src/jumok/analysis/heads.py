"""Statistics of each attention head on one sentence, which help to interpret the map of the head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.analysis.explanation import PatchedPicture
    from jumok.types import AttentionMap


@dataclass(frozen=True, slots=True)
class HeadStatistics:
    """Arrays (layer, head) for one site. The first three are means over the queries of a head."""

    entropy: NDArray[np.float32]
    """−Σ α ln α, in nats: 0 if a head attends to a single key, ln n if it attends equally to all n keys."""
    distance: NDArray[np.float32] | None
    """Σ α |query position − key position|, in tokens. In the encoder of a picture, the positions are rows and
    columns of the grid, and |…| is the Euclidean distance (Dosovitskiy et al. 2021, figure 7). None
    from words to patches."""
    on_special: NDArray[np.float32] | None
    """The weight on the special token: `</s>` for "encoder" and "cross", `<s>` for "decoder". If the keys are
    patches, the weight on the class token, or None without a class token."""
    error: NDArray[np.float32] | None = None
    """The alignment error of each head's argmax; only for "cross", if a gold alignment was given."""
    effect: NDArray[np.float32] | None = None
    """The change in the translation's log-probability when the head is silenced; None if not measured."""
    token_effect: NDArray[np.float32] | None = None
    """The same change at each target step, (layer, head, step). The sum over the steps is `effect`."""


def head_statistics(attention: AttentionMap, picture: PatchedPicture | None = None) -> HeadStatistics:
    """Return the statistics of one map (layer, head, query, key), without `error` and effects.

    `picture` is the source, if the source is not a sentence.
    """
    weights = attention.weights.astype(np.float64)
    queries, keys = weights.shape[2:]
    logs = np.log(np.where(weights > 0, weights, 1.0))
    # The sum is at most 0. `abs` is used instead of a minus sign, which would turn 0.0 into -0.0.
    entropy = np.abs((weights * logs).sum(axis=-1).mean(axis=-1)).astype(np.float32)
    if picture is None or attention.site == "decoder":
        distances = np.abs(np.arange(queries)[:, None] - np.arange(keys))
        on_special = _mean(weights[..., 0 if attention.site == "decoder" else keys - 1])
        return HeadStatistics(entropy, _mean_distance(weights, distances), on_special)
    first_patch = keys - picture.rows * picture.columns  # 1 with a class token, else 0
    on_class = _mean(weights[..., 0]) if first_patch else None
    if attention.site == "cross":
        return HeadStatistics(entropy, None, on_class)
    # Row and column of each patch, (patch, 2).
    positions = np.stack(np.divmod(np.arange(keys - first_patch), picture.columns), axis=1)
    distances = np.linalg.norm(positions[:, None] - positions, axis=-1)
    between_patches = weights[..., first_patch:, first_patch:]
    return HeadStatistics(entropy, _mean_distance(between_patches, distances), on_class)


def _mean_distance(weights: NDArray[np.float64], distances: NDArray[Any]) -> NDArray[np.float32]:
    return _mean((weights * distances).sum(axis=-1))


def _mean(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the mean over queries, (layer, head)."""
    return np.asarray(values.mean(axis=-1), dtype=np.float32)
