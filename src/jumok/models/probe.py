"""A probe of one pass through a model: it can collect the attention weights, and change them by an edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from jumok.attention import WeightEdit, bind_edit

if TYPE_CHECKING:
    from jumok.attention import Attended, Edit
    from jumok.types import Batch


def batch_rows(batch: Batch) -> Tensor:
    """Return `Probe.rows` for a batch with one row per sentence, (batch,): 0, 1, 2 …"""
    return torch.arange(len(batch), device=batch.source.device)


@dataclass(frozen=True, slots=True)
class Probe:
    """Collects the attention weights of one pass if `collect_weights`, and changes them by `edit`."""

    rows: Tensor  # (row,) int64: the sentence of the batch that each row belongs to
    edit: Edit | None = None
    collect_weights: bool = False
    collected: dict[str, list[Tensor]] = field(default_factory=dict)  # site -> weights of each layer

    def edit_at(self, site: str, layer: int) -> WeightEdit | None:
        """Return the edit for the attention of this site and layer, or None if there is no edit."""
        return bind_edit(self.edit, site=site, layer=layer, rows=self.rows)

    def collect(self, site: str, attended: Attended) -> None:
        """Append the weights of a layer to the list of the site, if `attended` has weights.

        Call this for the layers in order.
        """
        if attended.weights is not None:
            self.collected.setdefault(site, []).append(attended.weights)

    def weights(self) -> dict[str, Tensor]:
        """Return site -> the collected weights, (batch, layer, head, query, key)."""
        return {site: torch.stack(layers, dim=1) for site, layers in self.collected.items()}
