"""A model at work on one sentence: what an explanation asks when more is wanted than it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from jumok.corpus.batches import padded_batch
from jumok.explain.changes import silence_each
from jumok.explain.passes import next_log_probs, site_weights
from jumok.explain.trace import trace_cell
from jumok.values import END

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from jumok.attention import Edit
    from jumok.explain.changes import HeadGroup
    from jumok.explain.steps import Cell, CellSteps
    from jumok.models import TranslationModel

__all__ = ["LiveModel"]

MOST_TOKENS = 4096
"""Target pieces of one batch, padding counted."""


@dataclass(frozen=True)
class LiveModel:
    """A model, the pieces of a source without `</s>`, and the edit under which it is watched."""

    model: TranslationModel
    source: tuple[int, ...]
    edit: Edit | None = None

    def weights(self, targets: Sequence[Sequence[int]]) -> Iterator[dict[str, NDArray[Any]]]:
        """Site → weights (layer, head, query, key) while the model reads each of these targets."""
        for group in _groups(targets):
            yield from site_weights(self.model, [self.source] * len(group), group, edit=self.edit)

    def log_probs(self, target: Sequence[int]) -> Tensor:
        """Of every piece at every step, (step, piece)."""
        return next_log_probs(self.model, self.source, target, edit=self.edit)

    def log_prob(self, target: Sequence[int], *, ended: bool = True) -> float:
        """Of the whole target; its `</s>` counts where it `ended`."""
        return self._log_probs([target], self.edit, ended=ended)[0]

    def steps(self, target: Sequence[int], cell: Cell) -> CellSteps:
        """How the weight of a cell comes to be."""
        return trace_cell(self.model, self.source, target, cell, edit=self.edit)

    def silencing_effects(
        self, target: Sequence[int], groups: Sequence[HeadGroup], *, ended: bool = True
    ) -> list[float]:
        """How the log-probability of the target changes when all heads of a group are silenced, for each."""
        plain = self.log_prob(target, ended=ended)
        changes: list[float] = []
        for rows in _groups([target] * len(groups)):
            silenced = groups[len(changes) : len(changes) + len(rows)]
            edit = silence_each(silenced, self.model, len(self.source) + 1, self.edit)
            changes.extend(after - plain for after in self._log_probs(rows, edit, ended=ended))
        return changes

    @torch.inference_mode()
    def _log_probs(self, targets: Sequence[Sequence[int]], edit: Edit | None, *, ended: bool) -> list[float]:
        """Of each whole target; of several rows, one at a time goes through the output layer."""
        states = self.model(padded_batch([self.source] * len(targets), targets), edit=edit)
        found = []
        for row, target in zip(states, targets, strict=True):
            pieces = torch.tensor([*target, END] if ended else list(target), dtype=torch.int64)
            log_probs = self.model.output.log_probs(row[: len(pieces)])
            found.append(float(log_probs.gather(1, pieces[:, None]).sum()))
        return found


def _groups(targets: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
    """The targets in their order, as many at a time as fit into a batch."""
    longest = max((len(target) + 1 for target in targets), default=1)
    size = max(1, MOST_TOKENS // longest)
    for start in range(0, len(targets), size):
        yield targets[start : start + size]
