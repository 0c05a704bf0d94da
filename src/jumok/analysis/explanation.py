"""An explanation: the data about one translation.

`explain` returns a `LiveExplanation`, which also has the model and can compute more data. Files store only
the fields of `Explanation`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.analysis.changes import Change, Pin
from jumok.analysis.steps import Cell, CellSteps
from jumok.analysis.tokenized_sentence import TokenizedSentence, word_map
from jumok.attention.graph import roll_out
from jumok.errors import DataError, UnsupportedError
from jumok.pictures.patches import join_patches
from jumok.plots.picture_maps import png_data_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from jumok.analysis.heads import HeadStatistics
    from jumok.analysis.measures import Measures
    from jumok.analysis.search_tree import SearchTree
    from jumok.text.picture_tokenizer import PictureTokenizer
    from jumok.types import Alignment, AttentionMap


@dataclass(frozen=True, slots=True)
class NextToken:
    """A candidate for the next token, and its probability."""

    id: int
    token: str
    probability: float


@dataclass(frozen=True, slots=True)
class WordAlignment:
    """Word links, and how they were read from cross-attention."""

    name: str
    heads: tuple[tuple[int, int], ...]  # (layer, head) of the maps that are averaged
    shift: int  # as in `ReadOut`
    method: str  # "argmax", "argmax in both directions", or the name of the symmetrisation
    links: Alignment


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """The change in the translation's log-probability when several heads of a site are silenced together.

    `effect` is not the sum of the effects of single heads, because redundant heads have an effect only if all
    of them are silenced.
    """

    site: str
    heads: tuple[tuple[int, int], ...]
    effect: float


@dataclass(frozen=True, slots=True)
class BeforeChange:
    """The translation without the changes, and its log-probability without and with the changes."""

    target: TokenizedSentence
    log_prob: float
    log_prob_changed: float
    log_probs: tuple[float, ...] = ()  # per token and `</s>`, without the changes
    log_probs_changed: tuple[float, ...] = ()  # with the changes; files of older versions lack both


@dataclass(frozen=True, slots=True)
class PatchedPicture:
    """A picture as the model sees it, and the grid of its patches. The patches are tokens, row by row."""

    rows: int
    columns: int
    image: str  # a PNG in a data: URL

    @classmethod
    def from_patches(cls, patches: NDArray[np.uint8], tokenizer: PictureTokenizer) -> PatchedPicture:
        grid = tokenizer.grid
        pixels = join_patches(patches, grid, channels=tokenizer.channels)
        return cls(grid.rows, grid.columns, png_data_url(pixels))


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """One sentence, its translation, and what the model attends to at each step of the translation.

    All indices count from 0. `log_probs` and `candidates` have one entry per target token and one for `</s>`,
    even if the translation was cut before `</s>` (`ended`). If the source is a picture, the tokens and words
    of `source` are the labels of its patches ("row,column"). A classifier has a class token before the
    patches. Its target is the name of the class, produced in one step, without `</s>`.
    """

    source: TokenizedSentence
    target: TokenizedSentence
    attention: Mapping[str, AttentionMap]  # site → (layer, head, query, key)
    log_probs: NDArray[np.float32]  # (step,) of the tokens of `target`, and of `</s>`
    candidates: tuple[tuple[NextToken, ...], ...]  # per step, most probable first
    statistics: Mapping[str, HeadStatistics]
    group_effects: tuple[GroupEffect, ...] = ()  # of whole sites, of layers, of the read-out's heads
    alignments: tuple[WordAlignment, ...] = ()  # the model's own read-out first
    # None if the translation was given or written by another engine than torch, if the sentence is empty, and
    # for a class.
    search: SearchTree | None = None
    score: float | None = None  # by which the search ranked the translation; None without a search
    ended: bool = True  # False if there is no `</s>`: cut at the maximum length, or a class
    # The number of initial tokens that the search did not choose, because they were given as a prefix or come
    # before the first step that a change affects.
    forced: int = 0
    changes: tuple[Change, ...] = ()
    before: BeforeChange | None = None
    cells: tuple[CellSteps, ...] = ()  # the cells whose steps are stored
    measured: Measures | None = None  # value norms, gradients and erasure
    # 0 for the input, n for the nth layer → step → its most probable tokens (`layer_predictions.py`)
    layers: tuple[tuple[tuple[NextToken, ...], ...], ...] = ()
    picture: PatchedPicture | None = None  # the source, if it is not a sentence
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.target.text

    @property
    def log_prob(self) -> float:
        """The log-probability of the whole translation, including forced tokens, and `</s>` if `ended`."""
        return float(self.log_probs[: len(self.target.ids) + self.ended].sum())

    def words(self, site: str) -> AttentionMap:
        """Return a site's map between words."""
        return word_map(self.map_of(site), self.source, self.target, picture=self.picture is not None)

    def roll_out(self, site: str) -> NDArray[np.float64]:
        """Return the attention roll-out through all layers down to the input, (query, key).

        In a decoder-only model, "encoder", "cross" and "decoder" are parts of one roll-out over source and
        target: a target row sums to 1 over "cross" and "decoder" together. In other models, self-attention
        ("encoder" and "decoder") has a roll-out, whose rows sum to 1, and "cross" has none.
        """
        weights = self.map_of(site).weights  # refuses an unknown site
        if self.facts.get("family") != "decoder-only":
            if site == "cross":
                known = " or ".join(f'"{name}"' for name in self.attention if name != "cross")
                raise UnsupportedError(
                    'A roll-out follows self-attention through the layers. Received: site "cross", which has '
                    "a roll-out only in a decoder-only model. "
                    f"{f'Use {known}.' if known else 'This model has no self-attention.'}"
                )
            return roll_out(list(weights))
        encoder, decoder, cross = (self.map_of(name).weights for name in ("encoder", "decoder", "cross"))
        zeros = np.zeros((*encoder.shape[:3], decoder.shape[3]))
        joint = roll_out(list(np.block([[encoder, zeros], [cross, decoder]])))
        source_length = encoder.shape[3]
        queries = slice(0, source_length) if site == "encoder" else slice(source_length, None)
        keys = slice(source_length, None) if site == "decoder" else slice(0, source_length)
        return joint[queries, keys]

    def steps(self, site: str, layer: int, head: int, query: int, key: int) -> CellSteps:
        """Return the stored computation of one weight and of the numbers that depend on it (`trace.py`).

        The steps go from the embeddings to the log-probability of the produced token. For a weight of the
        encoder, the steps end with the output of its layer.
        """
        stored = self.stored_steps(Cell(site, layer, head, query, key))
        if stored is None and self.facts.get("family") == "encoder-only":
            raise UnsupportedError("Steps are computed only for translators. Received: a class of a picture.")
        if stored is None:
            raise UnsupportedError(
                "This explanation comes from a file, which does not hold the steps of this cell. It holds the"
                f" steps of: {', '.join(str(steps.cell) for steps in self.cells) or 'no cell'}. Load the "
                "model and call `jumok.explain` to compute the steps of other cells."
            )
        return stored

    def stored_steps(self, cell: Cell) -> CellSteps | None:
        """Return the stored steps of a cell, or None. A cell outside the map is refused."""
        shape = self.map_of(cell.site).weights.shape
        indices = (cell.layer, cell.head, cell.query, cell.key)
        if not all(0 <= index < count for index, count in zip(indices, shape, strict=True)):
            raise DataError(
                f'The attention "{cell.site}" has the shape {shape} (layer, head, query, key), counted from '
                f"0. Received: {indices}."
            )
        return next((steps for steps in self.cells if steps.cell == cell), None)

    def pin_words(
        self, target: int, source: int, *, layer: int | None = None, head: int | None = None
    ) -> Pin:
        """Return a change that lets a target word attend to one source word only, in all heads by default."""
        queries, keys = self.target.tokens_of(target), self.source.tokens_of(source)
        if not queries or not keys:
            raise DataError(
                f"A pin needs a target word and a source word. Received: target word {target} of "
                f"{len(self.target.words)} and source word {source} of {len(self.source.words)}, "
                "counted from 0."
            )
        return Pin("cross", layer, head, queries=queries, keys=keys)

    def map_of(self, site: str) -> AttentionMap:
        """Return a site's map between tokens, or refuse a site that the model does not have."""
        if site not in self.attention:
            known = ", ".join(self.attention) or "none"
            raise DataError(f'This model has no attention "{site}". It has: {known}.')
        return self.attention[site]
