"""Looking into a model on its way: gathering the weights of attention, and rewriting them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from jumok.attention import WeightEdit, edit_at

if TYPE_CHECKING:
    from jumok.attention import Attended, Edit
    from jumok.values import Batch

__all__ = ["Probe", "rows_of"]


def rows_of(batch: Batch) -> Tensor:
    """The sentences of a batch as rows, one each, (batch,)."""
    return torch.arange(len(batch), device=batch.source.device)


@dataclass(frozen=True, slots=True)
class Probe:
    """What one pass through a model is to gather and to rewrite."""

    rows: Tensor  # (row,) int64: the sentence of the batch that each row belongs to
    edit: Edit | None = None
    gathers: bool = False
    gathered: dict[str, list[Tensor]] = field(default_factory=dict)  # site -> weights of each layer

    def edit_at(self, site: str, layer: int) -> WeightEdit | None:
        """The edit as the attention at that site and layer sees it."""
        return None if self.edit is None else edit_at(self.edit, site=site, layer=layer, rows=self.rows)

    def note(self, site: str, attended: Attended) -> Tensor:
        """Keep the weights of the next layer at that site where they are wanted; hand on the context."""
        if attended.weights is not None:
            self.gathered.setdefault(site, []).append(attended.weights)
        return attended.context

    def weights(self) -> dict[str, Tensor]:
        """Site -> what was gathered, (batch, layer, head, query, key)."""
        return {site: torch.stack(layers, dim=1) for site, layers in self.gathered.items()}
