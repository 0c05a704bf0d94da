"""Statistics of each attention head on one sentence: a map alone says little about what a head does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.types import AttentionMap

__all__ = ["HeadStatistics", "head_statistics"]


@dataclass(frozen=True, slots=True)
class HeadStatistics:
    """One number per layer and head of a site, (layer, head); means over its queries."""

    entropy: NDArray[np.float32]
    """−Σ α ln α, in nats: 0 if a head attends to one key only, ln n if it attends to all n equally."""
    distance: NDArray[np.float32]
    """Σ α |query position − key position|, in tokens."""
    on_special: NDArray[np.float32]
    """The weight on the special token: `</s>` for "encoder" and "cross", `<s>` for "decoder"."""
    error: NDArray[np.float32] | None = None
    """The alignment error of each head's argmax; only for "cross", if a gold alignment was given."""
    effect: NDArray[np.float32] | None = None
    """The change in the translation's log-probability when the head is silenced, if it was measured."""


def head_statistics(attention: AttentionMap) -> HeadStatistics:
    """Return the statistics of one map (layer, head, query, key), without `error` and `effect`."""
    weights = attention.weights.astype(np.float64)
    queries, keys = weights.shape[2:]
    logs = np.log(np.where(weights > 0, weights, 1.0))
    distance = np.abs(np.arange(queries)[:, None] - np.arange(keys))
    special = 0 if attention.site == "decoder" else keys - 1
    return HeadStatistics(
        entropy=np.abs((weights * logs).sum(axis=-1).mean(axis=-1)).astype(np.float32),
        distance=(weights * distance).sum(axis=-1).mean(axis=-1).astype(np.float32),
        on_special=weights[..., special].mean(axis=-1).astype(np.float32),
    )
