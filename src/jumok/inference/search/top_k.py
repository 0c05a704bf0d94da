"""The k largest values of each row, for rows that are much longer than k.

    the k largest values are in the k chunks with the largest maxima

So one pass finds the maximum of each chunk, and only k chunks are searched again. `torch.topk` would copy and
partly sort the whole vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

_CHUNK = 32


def top_k(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest values of each row, largest first, and their columns: (row, k) each.

    If a row has fewer than k columns, all its values are returned.
    """
    rows, columns = values.shape
    chunks = columns // _CHUNK
    if chunks < 4 * k:  # for such short rows, chunks save no time
        best, best_columns = values.topk(min(k, columns))
        return best, best_columns
    covered = chunks * _CHUNK
    maxima = values[:, :covered].reshape(rows, chunks, _CHUNK).amax(dim=-1)  # (row, chunk)
    best_chunks = maxima.topk(k, sorted=False).indices  # (row, k)
    offsets = torch.arange(_CHUNK, device=values.device)
    candidates = (best_chunks[:, :, None] * _CHUNK + offsets).flatten(1)  # (row, k × _CHUNK)
    remainder = torch.arange(covered, columns, device=values.device).expand(rows, -1)
    candidates = torch.cat([candidates, remainder], dim=1)
    best, indices = values.gather(1, candidates).topk(k)
    return best, candidates.gather(1, indices)
