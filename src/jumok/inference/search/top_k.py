"""The k largest values of each row, for rows that are much longer than k.

A row is cut into chunks. The k largest values are in the k chunks with the largest maxima, or in the last
columns, which do not fill a chunk. So one pass finds the maximum of each chunk, and only k chunks and the
last columns are searched again. `torch.topk` would copy and partly sort the whole row, i.e. a vocabulary.
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
    end_of_chunks = chunks * _CHUNK
    maxima = values[:, :end_of_chunks].reshape(rows, chunks, _CHUNK).amax(dim=-1)  # (row, chunk)
    best_chunks = maxima.topk(k, sorted=False).indices  # (row, k)
    offsets = torch.arange(_CHUNK, device=values.device)
    columns_in_chunks = (best_chunks[:, :, None] * _CHUNK + offsets).flatten(1)  # (row, k × _CHUNK)
    last_columns = torch.arange(end_of_chunks, columns, device=values.device).expand(rows, -1)
    searched_columns = torch.cat([columns_in_chunks, last_columns], dim=1)
    best, indices = values.gather(1, searched_columns).topk(k)
    return best, searched_columns.gather(1, indices)
