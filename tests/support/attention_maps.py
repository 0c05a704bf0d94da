"""Build attention maps from lists of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jumok.plots.grid import map_weights
from jumok.types import AttentionMap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike


def alignment_map(
    weights: ArrayLike,
    *,
    source: Sequence[str],
    target: Sequence[str],
    facts: Mapping[str, str] | None = None,
) -> AttentionMap:
    """Build a map in which `weights[j][i]` is the weight from target word j to source word i."""
    matrix = np.asarray(weights, dtype=np.float32)
    attention = AttentionMap("cross", matrix[None, None], tuple(target), tuple(source), dict(facts or {}))
    map_weights(attention)  # refuses weights that do not fit the words
    return attention
