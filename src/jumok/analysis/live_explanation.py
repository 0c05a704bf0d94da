"""An explanation with its model, which can compute steps of cells, maps of hypotheses, and effects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from jumok.analysis.explanation import Explanation, GroupEffect
from jumok.analysis.layer_predictions import layer_predictions
from jumok.analysis.measures import measure
from jumok.analysis.steps import Cell, CellSteps
from jumok.errors import UnsupportedError
from jumok.inference.attention_maps import label_maps
from jumok.models.decoder_only import DecoderOnly
from jumok.models.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jumok.analysis.bound_model import BoundModel
    from jumok.analysis.measures import Measures
    from jumok.text.protocol import AnyTokenizer
    from jumok.types import AttentionMap

    Heads = tuple[tuple[int, int], ...]
    """(layer, head) of some heads of one site."""

MAX_DISTANCE_FROM_HALF = 0.2
"""An example cell has a weight at most this far from 0.5, if any ordinary cell of the site has such a weight.
Neither the query nor the key of an ordinary cell is a special token."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveExplanation(Explanation):
    """An explanation with its model, so that more can be computed."""

    bound_model: BoundModel = field(kw_only=True, repr=False)
    target_tokenizer: AnyTokenizer = field(kw_only=True, repr=False)

    @property
    def has_layer_predictions(self) -> bool:
        """Whether each layer's state can be read as a prediction."""
        return isinstance(self.bound_model.model, Transformer | DecoderOnly)

    def steps(self, site: str, layer: int, head: int, query: int, key: int) -> CellSteps:
        """Return the same as `Explanation.steps`, but compute steps that are not stored."""
        cell = Cell(site, layer, head, query, key)
        return self.stored_steps(cell) or self.bound_model.steps(self.target.ids, cell)

    def beam_attention(self, step: int, index: int) -> dict[str, AttentionMap]:
        """Return the maps of the hypothesis that ends with this candidate of the search, from one pass."""
        if self.search is None:
            raise UnsupportedError(
                "This explanation has no recorded search. To record the search of torch, explain without "
                "`target` and with `options=ExplanationOptions(beam=…)`."
            )
        ids = self.search.ids(step, index)
        path = self.search.path(step, index)
        tokens = [self.search.candidate(*node).token for node in path][: len(ids)]
        [weights] = self.bound_model.weights([ids])
        return label_maps(weights, self.source.tokens, tokens, picture=self.picture is not None)

    def effects(self) -> tuple[dict[str, NDArray[np.float32]], tuple[GroupEffect, ...]]:
        """Return the changes in log-probability when heads are silenced, computed in batches.

        The first value has, per site, the change at every target step when one head is silenced, (layer,
        head, step). Its sum over the steps is the change for the whole translation. The second value has the
        change for the whole translation when a group of heads is silenced. There is one entry for each group
        of several heads that the page averages.
        """
        single_heads = [(site, (head,)) for site in self.attention for head in self._heads(site)]
        groups = self._head_groups()
        effects = self.bound_model.silencing_effects(
            self.target.ids, [*single_heads, *groups], ended=self.ended
        )
        tables, first = {}, 0
        for site, attention in self.attention.items():
            layers, heads = attention.weights.shape[:2]
            rows = effects[first : first + layers * heads]
            tables[site] = rows.reshape(layers, heads, -1).astype(np.float32)
            first += layers * heads
        totals = effects[first:].sum(axis=1).tolist()
        return tables, tuple(GroupEffect(*group, total) for group, total in zip(groups, totals, strict=True))

    def with_effects(self) -> LiveExplanation:
        """Return a copy with the effects of silencing in `statistics` and `group_effects`."""
        effects, groups = self.effects()
        statistics = {
            site: replace(table, effect=effects[site].sum(axis=2), token_effect=effects[site])
            for site, table in self.statistics.items()
        }
        return replace(self, statistics=statistics, group_effects=groups)

    def measures(self) -> Measures:
        """Return how much each word matters: value norms, gradients and erasure."""
        # Deleting a word would shift the indices of changed cells.
        changes_cells = any(change.named_indices()[0] for change in self.changes)
        return measure(self.bound_model, self.source, self.target.ids, erases=not changes_cells)

    def with_measures(self) -> LiveExplanation:
        """Return a copy with `measured`, the result of `measures`."""
        return replace(self, measured=self.measures())

    def with_layer_predictions(self) -> LiveExplanation:
        """Return a copy with `layers`: the predictions of each layer (the logit lens)."""
        return replace(
            self, layers=layer_predictions(self.bound_model, self.target.ids, self.target_tokenizer)
        )

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
        """Return the groups of heads that the page averages: of a site, of a layer, of the read-out.

        Groups of a single head are left out.
        """
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
        """Return a cell whose weight is near 0.5, where every step from scores to weights can be seen.

        For "cross", the cell is in the first head of the read-out; for other sites, in head 0 of layer 0. If
        this head has no ordinary cell within `MAX_DISTANCE_FROM_HALF`, the cell may be in any head. A cell of
        special tokens is returned only if the site has no other cells.
        """
        head = self.alignments[0].heads[0] if self.alignments and site == "cross" else (0, 0)
        distance = np.abs(self.map_of(site).weights - 0.5)  # (layer, head, query, key)
        queries, keys = distance.shape[2:]
        # The cell with the smallest distance is chosen. Cells of special tokens and of unwanted heads get a
        # penalty that is larger than any distance.
        # The last query is `</s>`, except among patches.
        if (site != "encoder" or self.picture is None) and queries > 1:
            distance[:, :, queries - 1] += 1
        # The first key of "decoder" is `<s>`. The last key of other sites is `</s>`, except among patches.
        if site == "decoder" or self.picture is None:
            distance[..., 0 if site == "decoder" else keys - 1] += 1
        if distance[head].min() <= MAX_DISTANCE_FROM_HALF:
            other_heads = np.ones(distance.shape[:2], dtype=bool)
            other_heads[head] = False
            distance[other_heads] += 2
        indices = np.unravel_index(int(distance.argmin()), distance.shape)
        return Cell(site, *map(int, indices))


def complete_explanation(explanation: Explanation) -> Explanation:
    """Return a copy with effects, measures, steps and layer predictions, which a stored page cannot compute.

    Existing values are kept. A picture gets no measures, a recurrent model no layer predictions. An
    explanation without its model, from a file or of a class, is returned unchanged.
    """
    if not isinstance(explanation, LiveExplanation):
        return explanation
    has_effects = all(table.effect is not None for table in explanation.statistics.values())
    complete = explanation if has_effects else explanation.with_effects()
    if complete.picture is None and complete.measured is None:
        complete = complete.with_measures()
    complete = complete if complete.cells else complete.with_steps()
    if complete.layers or not complete.has_layer_predictions:
        return complete
    # A stored page shows layer predictions only beside its stored cells. Other predictions need much space.
    shown_steps = {steps.cell.query for steps in complete.cells if steps.cell.site != "encoder"}
    all_layers = complete.with_layer_predictions().layers
    layers = (tuple(step if i in shown_steps else () for i, step in enumerate(layer)) for layer in all_layers)
    return replace(complete, layers=tuple(layers))
