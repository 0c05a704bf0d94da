"""Compute long sequences in chunks of positions.

The result for one chunk is still in the core's cache when the next operation reads it; the result for a whole
long sequence would have to be read from memory, so twice the positions would take more than twice as long.
Chunks do not depend on one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

# 1 MB for one sentence, 8 heads of width 64 and float32. With shorter chunks the overhead of calls would
# dominate.
CHUNK_POSITIONS = 512


def split_chunks(rows: Tensor) -> tuple[Tensor, ...]:
    """(batch, head, position, width) -> views of at most `CHUNK_POSITIONS` positions."""
    return (rows,) if rows.shape[2] <= CHUNK_POSITIONS else torch.split(rows, CHUNK_POSITIONS, dim=2)


def map_chunks(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Return `function(rows)`, computed in chunks, for rows (batch, head, position, width).

    `function` must map each position independently of the other positions.
    """
    results = [function(chunk) for chunk in split_chunks(rows)]
    return results[0] if len(results) == 1 else torch.cat(results, dim=2)
