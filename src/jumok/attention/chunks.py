"""Long sequences, some places at a time.

What a layer computes of a few places is still in the cache next to the core when its next operation reads it;
of a whole long sequence it would have to be fetched again, and twice the places would take more than twice as
long. The chunks do not wait for one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["chunks_of", "map_chunks"]

# Of 8 heads of width 64 that is 1 MB. Shorter ones would spend their time on calls.
PLACES = 512


def chunks_of(rows: Tensor) -> tuple[Tensor, ...]:
    """(batch, head, place, width) -> views of at most `PLACES` places; of a short sequence, itself."""
    return (rows,) if rows.shape[2] <= PLACES else torch.split(rows, PLACES, dim=2)


def map_chunks(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """`function(rows)`, if it makes a row of each row: (batch, head, place, width)."""
    done = [function(chunk) for chunk in chunks_of(rows)]
    return done[0] if len(done) == 1 else torch.cat(done, dim=2)
