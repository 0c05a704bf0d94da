"""What each head of a sentence's maps is like, in numbers: attention alone explains little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jumok.values import AttentionMap

__all__ = ["HeadStatistics", "head_statistics"]


@dataclass(frozen=True, slots=True)
class HeadStatistics:
    """One number for each layer and head of a site, (layer, head); means over its queries."""

    entropy: NDArray[np.float32]
    """−Σ α ln α, in nats: 0 where a head looks at one key only, ln n where it looks at all n alike."""
    distance: NDArray[np.float32]
    """Σ α |query's place − key's place|, in pieces."""
    on_mark: NDArray[np.float32]
    """The weight on the mark: `</s>` for "encoder" and "cross", `<s>` for "decoder"."""
    error: NDArray[np.float32] | None = None
    """The alignment error of each head's argmax; for "cross", where a gold alignment was given."""
    effect: NDArray[np.float32] | None = None
    """How the log-probability of the translation changes when the head is silenced, where it was measured."""


def head_statistics(
    attention: AttentionMap,
    *,
    error: NDArray[np.float32] | None = None,
    effect: NDArray[np.float32] | None = None,
) -> HeadStatistics:
    """The statistics of one map (layer, head, query, key)."""
    weights = attention.weights.astype(np.float64)
    queries, keys = weights.shape[2:]
    logs = np.log(np.where(weights > 0, weights, 1.0))
    far = np.abs(np.arange(queries)[:, None] - np.arange(keys))
    mark = 0 if attention.site == "decoder" else keys - 1
    return HeadStatistics(
        entropy=np.abs((weights * logs).sum(axis=-1).mean(axis=-1)).astype(np.float32),
        distance=(weights * far).sum(axis=-1).mean(axis=-1).astype(np.float32),
        on_mark=weights[..., mark].mean(axis=-1).astype(np.float32),
        error=error,
        effect=effect,
    )
