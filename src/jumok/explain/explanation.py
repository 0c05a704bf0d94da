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

__all__ = ["Before", "Explanation", "NextPiece", "WordAlignment"]


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
        shapes = {site: attention.weights.shape for site, attention in self.attention.items()}
        live = self._live("the effect of silencing heads")
        return live.head_effects(self.target.ids, shapes, ended=self.ended)

    def with_effects(self) -> Explanation:
        """The same with the effect of silencing each head in its statistics."""
        effects = self.head_effects()
        measured = {site: replace(one, effect=effects[site]) for site, one in self.statistics.items()}
        return replace(self, statistics=measured)

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
