"""A model at work on one sentence: what an explanation asks when more is wanted than it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from jumok.corpus.batches import padded_batch
from jumok.explain.changes import silence_each
from jumok.explain.passes import next_log_probs, site_weights
from jumok.explain.trace import trace_cell
from jumok.values import END

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from jumok.attention import Edit
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

    def head_effects(
        self, target: Sequence[int], shapes: Mapping[str, tuple[int, ...]], *, ended: bool = True
    ) -> dict[str, NDArray[np.float32]]:
        """Site → how the log-probability of the target changes when each head is silenced, (layer, head)."""
        heads = [
            (site, layer, head)
            for site, shape in shapes.items()
            for layer in range(shape[0])
            for head in range(shape[1])
        ]
        plain = self.log_prob(target, ended=ended)
        changes: list[float] = []
        for group in _groups([target] * len(heads)):
            silenced = heads[len(changes) : len(changes) + len(group)]
            edit = silence_each(silenced, self.model, len(self.source) + 1, self.edit)
            changes.extend(after - plain for after in self._log_probs(group, edit, ended=ended))
        effects: dict[str, NDArray[np.float32]] = {}
        for site, shape in shapes.items():
            count = shape[0] * shape[1]
            effects[site] = np.array(changes[:count], dtype=np.float32).reshape(shape[:2])
            changes = changes[count:]
        return effects

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
