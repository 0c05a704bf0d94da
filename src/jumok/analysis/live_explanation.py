"""An explanation together with its model: steps of any cell, maps of any hypothesis, effects of silencing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from jumok.analysis.explanation import Explanation, GroupEffect
from jumok.analysis.steps import Cell, CellSteps
from jumok.errors import UnsupportedError
from jumok.inference.attention_maps import label_maps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jumok.analysis.bound_model import BoundModel
    from jumok.types import AttentionMap

    Heads = tuple[tuple[int, int], ...]

__all__ = ["LiveExplanation", "complete_explanation"]


@dataclass(frozen=True, slots=True, eq=False)
class LiveExplanation(Explanation):
    """An explanation with its model, which can compute more."""

    bound_model: BoundModel = field(kw_only=True, repr=False)

    def steps(self, site: str, layer: int, head: int, query: int, key: int) -> CellSteps:
        """Return the computation of one weight, from the embedding to the layer's output."""
        cell = Cell(site, layer, head, query, key)
        return self.stored_steps(cell) or self.bound_model.steps(self.target.ids, cell)

    def beam_attention(self, step: int, index: int) -> dict[str, AttentionMap]:
        """Return the maps of the hypothesis that ends with this candidate of the search, from one pass."""
        if self.search is None:
            raise UnsupportedError(
                "There was no search: the translation was given. Explain without `target`."
            )
        ids = self.search.ids(step, index)
        path = self.search.path(step, index)
        tokens = [self.search.candidate(*node).token for node in path][: len(ids)]
        [weights] = self.bound_model.weights([ids])
        return label_maps(weights, self.source.tokens, tokens, picture=self.picture is not None)

    def effects(self) -> tuple[dict[str, NDArray[np.float32]], tuple[GroupEffect, ...]]:
        """Return the changes in log-probability when heads are silenced, computed in batches.

        First, per site, each head alone, (layer, head); then the groups of heads that the page averages.
        """
        single = [(site, (head,)) for site in self.attention for head in self._heads(site)]
        groups = self._head_groups()
        effects = iter(
            self.bound_model.silencing_effects(self.target.ids, [*single, *groups], ended=self.ended)
        )
        tables = {
            site: np.array([next(effects) for _ in self._heads(site)], dtype=np.float32)
            for site in self.attention
        }
        shapes = {site: attention.weights.shape[:2] for site, attention in self.attention.items()}
        return (
            {site: table.reshape(shapes[site]) for site, table in tables.items()},
            tuple(GroupEffect(*group, effect) for group, effect in zip(groups, effects, strict=True)),
        )

    def with_effects(self) -> LiveExplanation:
        """Return a copy with the effects of silencing in `statistics` and `group_effects`."""
        effects, groups = self.effects()
        statistics = {site: replace(table, effect=effects[site]) for site, table in self.statistics.items()}
        return replace(self, statistics=statistics, group_effects=groups)

    def with_steps(self, cells: Sequence[Cell] | None = None) -> LiveExplanation:
        """Return a copy that stores the steps of these cells, by default of one cell per site."""
        selected = [self._example_cell(site) for site in self.attention] if cells is None else cells
        stored = (self.steps(cell.site, cell.layer, cell.head, cell.query, cell.key) for cell in selected)
        return replace(self, cells=tuple(stored))

    def _heads(self, site: str) -> list[tuple[int, int]]:
        """Return all (layer, head) of a site."""
        layers, heads = self.map_of(site).weights.shape[:2]
        return [(layer, head) for layer in range(layers) for head in range(heads)]

    def _head_groups(self) -> list[tuple[str, Heads]]:
        """Return the groups of heads that the page averages: of a site, of a layer, of the read-out."""
        groups: dict[tuple[str, Heads], None] = {}
        for site in self.attention:
            heads = self._heads(site)
            groups[site, tuple(heads)] = None
            for layer in range(self.map_of(site).weights.shape[0]):
                groups[site, tuple(head for head in heads if head[0] == layer)] = None
        for alignment in self.alignments[:1]:
            groups["cross", tuple(sorted(alignment.heads))] = None
        return [group for group in groups if len(group[1]) > 1]

    def _example_cell(self, site: str) -> Cell:
        """Return the cell with the largest weight that is not of a special token.

        It is in the first head of the read-out for "cross", in layer 0 and head 0 for the other sites.
        """
        head = self.alignments[0].heads[0] if self.alignments and site == "cross" else (0, 0)
        weights = self.map_of(site).weights[head].copy()  # (query, key)
        queries, keys = weights.shape
        # Cells of special tokens get weights of at most 0, so that argmax finds another one.
        if site != "encoder" or self.picture is None:  # a patch is no special token
            weights[queries - 1 :] -= 1 if queries > 1 else 0
        if site == "decoder" or self.picture is None:
            weights[:, 0 if site == "decoder" else keys - 1] -= 1
        query, key = np.unravel_index(int(weights.argmax()), weights.shape)
        return Cell(site, *head, int(query), int(key))


def complete_explanation(explanation: Explanation) -> Explanation:
    """Return a copy with effects and steps, which a stored page cannot compute.

    Those that it has already stay the same. An explanation from a file is returned unchanged.
    """
    if not isinstance(explanation, LiveExplanation):
        return explanation
    measured = all(table.effect is not None for table in explanation.statistics.values())
    complete = explanation if measured else explanation.with_effects()
    return complete if complete.cells else complete.with_steps()
