"""An explanation: all that can be seen of one translation, and the way to ask the model for more."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.attention.graph import roll_out
from jumok.errors import DataError, UnsupportedError
from jumok.explain.changes import Change, Pin
from jumok.explain.sides import Side, label_maps, word_map
from jumok.explain.steps import Cell, CellSteps
from jumok.look import framed_page, frozen_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from jumok.explain.heads import HeadStatistics
    from jumok.explain.live import LiveModel
    from jumok.explain.search_tree import SearchTree
    from jumok.values import Alignment, AttentionMap

__all__ = ["Before", "Explanation", "GroupEffect", "NextPiece", "WordAlignment"]


@dataclass(frozen=True, slots=True)
class NextPiece:
    """A piece that could have come next, and how likely the model found it."""

    id: int
    piece: str
    probability: float


@dataclass(frozen=True, slots=True)
class WordAlignment:
    """Word links, and how they were read from cross-attention: which heads, which row, which way."""

    name: str
    heads: tuple[tuple[int, int], ...]
    shift: int
    method: str  # "argmax", or the symmetrisation
    links: Alignment


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """How the log-probability of the translation changes when several heads of a site are silenced together.

    It is no sum of their own effects: heads that do the same work are missed only when all of them are gone.
    """

    site: str
    heads: tuple[tuple[int, int], ...]
    effect: float


@dataclass(frozen=True, slots=True)
class Shown:
    """HTML that a notebook shows."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


@dataclass(frozen=True, slots=True)
class Before:
    """The translation without the change, its log-probability then, and the one it has under the change."""

    target: Side
    log_prob: float
    log_prob_changed: float


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One sentence, its translation, and what the model attended to while it wrote it.

    It comes from `Translator.explain`, with the model behind it (`live`), or from a file, without. Places
    count from 0; those of `log_probs` and `candidates` are the steps of the target, `</s>` being the last.
    """

    source: Side
    target: Side
    attention: Mapping[str, AttentionMap]  # site → (layer, head, query, key)
    log_probs: NDArray[np.float32]  # (step,) of the pieces that were written
    candidates: tuple[tuple[NextPiece, ...], ...]  # of every step, likeliest first
    statistics: Mapping[str, HeadStatistics]
    group_effects: tuple[GroupEffect, ...] = ()  # of whole sites, of layers, of the read-out's heads
    alignments: tuple[WordAlignment, ...] = ()  # the model's own read-out first
    search: SearchTree | None = None  # None where the translation was given
    score: float | None = None  # what the search ranked the translation by
    ended: bool = True  # False where the translation was cut at its longest length
    forced: int = 0  # how many pieces the search was told to begin with
    changes: tuple[Change, ...] = ()
    before: Before | None = None
    cells: tuple[CellSteps, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    live: LiveModel | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        return self.target.text

    @property
    def log_prob(self) -> float:
        """Of the whole translation; forced pieces count too."""
        return float(self.log_probs[: len(self.target.ids) + self.ended].sum())

    def words(self, site: str) -> AttentionMap:
        """A site's map between words."""
        return word_map(self._map(site), self.source, self.target)

    def roll_out(self, site: str) -> NDArray[np.float64]:
        """Attention followed through all layers down to the input, (query, key); rows sum to 1.

        "encoder" and "decoder" have one. A decoder alone has one for "cross" too: there all three are parts
        of one roll-out over source and target, and a target's row is that of "cross" and "decoder" together.
        """
        if self.facts.get("family") != "decoder-only":
            return roll_out(list(self._map(site).weights))
        encoder, decoder, cross = (self._map(part).weights for part in ("encoder", "decoder", "cross"))
        nothing = np.zeros((*encoder.shape[:3], decoder.shape[3]))
        whole = roll_out(list(np.block([[encoder, nothing], [cross, decoder]])))
        columns = encoder.shape[3]
        queries = slice(0, columns) if site == "encoder" else slice(columns, None)
        return whole[queries, slice(columns, None) if site == "decoder" else slice(0, columns)]

    def steps(self, site: str, layer: int, head: int, query: int, key: int) -> CellSteps:
        """How one number of a map comes to be, from embedding to output, with the model's own numbers."""
        cell = Cell(site, layer, head, query, key)
        shape = self._map(site).weights.shape
        places = (layer, head, query, key)
        if not all(0 <= place < count for place, count in zip(places, shape, strict=True)):
            raise DataError(
                f'The attention "{site}" has the shape {shape} (layer, head, query, key), counted from 0. '
                f"Received: {places}."
            )
        for known in self.cells:
            if known.cell == cell:
                return known
        return self._live("the steps of this cell").steps(self.target.ids, cell)

    def beam_attention(self, step: int, index: int) -> dict[str, AttentionMap]:
        """The maps of the hypothesis that ends with a candidate of the search: one pass over its pieces."""
        if self.search is None:
            raise UnsupportedError(
                "There was no search: the translation was given. Explain without `target`."
            )
        ids = self.search.ids(step, index)
        path = self.search.path(step, index)
        pieces = [self.search.candidate(*place).piece for place in path][: len(ids)]
        [weights] = self._live("the attention of a beam").weights([ids])
        return label_maps(weights, self.source.pieces, pieces)

    def head_effects(self) -> dict[str, NDArray[np.float32]]:
        """Site → the change in log-probability when each head is silenced, (layer, head)."""
        return self.effects()[0]

    def effects(self) -> tuple[dict[str, NDArray[np.float32]], tuple[GroupEffect, ...]]:
        """What `head_effects` gives, and the effects of heads that are shown together, in one batch."""
        alone = [(site, (head,)) for site in self.attention for head in self._heads(site)]
        together = self._shown_together()
        live = self._live("the effect of silencing heads")
        found = live.silencing_effects(self.target.ids, [*alone, *together], ended=self.ended)
        changes = iter(found)
        tables = {
            site: np.array([next(changes) for _ in self._heads(site)], dtype=np.float32)
            for site in self.attention
        }
        shapes = {site: attention.weights.shape[:2] for site, attention in self.attention.items()}
        return (
            {site: table.reshape(shapes[site]) for site, table in tables.items()},
            tuple(GroupEffect(*group, change) for group, change in zip(together, changes, strict=True)),
        )

    def with_effects(self) -> Explanation:
        """The same with the effect of silencing each head, and of heads that are shown together."""
        effects, groups = self.effects()
        measured = {site: replace(one, effect=effects[site]) for site, one in self.statistics.items()}
        return replace(self, statistics=measured, group_effects=groups)

    def with_steps(self, cells: Sequence[Cell] | None = None) -> Explanation:
        """The same with the steps of these cells kept, for files; one cell a site unless told."""
        chosen = [self._telling_cell(site) for site in self.attention] if cells is None else cells
        kept = (self.steps(cell.site, cell.layer, cell.head, cell.query, cell.key) for cell in chosen)
        return replace(self, cells=tuple(kept))

    def for_page(self) -> Explanation:
        """The same with effects and steps, since a page that is stored can ask for neither.

        Those that were chosen before stay. What comes from a file is left as it is.
        """
        if self.live is None:
            return self
        measured = all(one.effect is not None for one in self.statistics.values())
        told = self if measured else self.with_effects()
        return told if told.cells else told.with_steps()

    def pin_words(
        self, target: int, source: int, *, layer: int | None = None, head: int | None = None
    ) -> Pin:
        """The change that lets a target word look at a source word only, in all cross heads unless told."""
        queries, keys = self.target.pieces_of(target), self.source.pieces_of(source)
        if not queries or not keys:
            raise DataError(
                f"A word is pinned to a word. Received: target word {target} of {len(self.target.words)} and "
                f"source word {source} of {len(self.source.words)}, counted from 0."
            )
        return Pin("cross", layer, head, queries=queries, keys=keys)

    def to_json(self) -> str:
        """The explanation as JSON, weights as 8-bit numbers: docs/explanation-format.md."""
        from jumok.explain.document import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """What `to_json` wrote. Weights come back to within 1/255."""
        from jumok.explain.document import from_json

        return from_json(text)

    def save(self, path: str | Path) -> None:
        """Write it as the file name says: `.html` to look at, `.json`, or `.npz` with exact weights."""
        from jumok.explain.files import save

        save(self, path)

    def show(self, *, height: int = 760) -> Shown:
        """The page of this explanation in a notebook's cell."""
        return Shown(framed_page(frozen_page([self.for_page().to_json()]), height=height))

    def _map(self, site: str) -> AttentionMap:
        if site not in self.attention:
            known = ", ".join(self.attention) or "none"
            raise DataError(f'This model has no attention "{site}". It has: {known}.')
        return self.attention[site]

    def _heads(self, site: str) -> list[tuple[int, int]]:
        """All (layer, head) of a site."""
        layers, heads = self._map(site).weights.shape[:2]
        return [(layer, head) for layer in range(layers) for head in range(heads)]

    def _shown_together(self) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
        """The groups of more than one head that a map may be made of: a site, a layer, the read-out's."""
        found: dict[tuple[str, tuple[tuple[int, int], ...]], None] = {}
        for site in self.attention:
            every = self._heads(site)
            found[site, tuple(every)] = None
            for layer in range(self._map(site).weights.shape[0]):
                found[site, tuple(one for one in every if one[0] == layer)] = None
        for alignment in self.alignments[:1]:
            found["cross", tuple(sorted(alignment.heads))] = None
        return [group for group in found if len(group[1]) > 1]

    def _live(self, what: str) -> LiveModel:
        if self.live is None:
            raise UnsupportedError(
                f"This explanation comes from a file, where {what} cannot be computed. Load the model and "
                "call its `explain` again."
            )
        return self.live

    def _telling_cell(self, site: str) -> Cell:
        """The largest weight of the head that alignments are read from, or of the first; marks left out."""
        read = self.alignments[0].heads[0] if self.alignments and site == "cross" else (0, 0)
        weights = self._map(site).weights[read].copy()  # (query, key)
        queries, keys = weights.shape
        weights[queries - 1 :] -= 1 if queries > 1 else 0
        weights[:, 0 if site == "decoder" else keys - 1] -= 1
        query, key = np.unravel_index(int(weights.argmax()), weights.shape)
        return Cell(site, *read, int(query), int(key))
