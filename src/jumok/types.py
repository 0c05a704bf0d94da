"""The values that cross from one room to the next.

Each is small, frozen and named after a noun of the field. Nothing here imports torch when it runs, so that
the command line can name these values without paying for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

__all__ = [
    "BEGIN",
    "END",
    "PAD",
    "UNKNOWN",
    "Alignment",
    "AttentionMap",
    "Batch",
    "Hypothesis",
    "LogProbs",
    "Pair",
    "ReadOut",
]

# The first four ids of every vocabulary.
PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3

Link = tuple[int, int]
"""A link (i, j) between source word i and target word j, counted from 0."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which source words stand behind which target words. Sure links are possible links too."""

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "possible", self.possible | self.sure)

    def __str__(self) -> str:
        """Pharaoh form: `0-0 1-2`, and `3?1` for a link that is only possible."""
        links = sorted(self.possible)
        return " ".join(f"{i}-{j}" if (i, j) in self.sure else f"{i}?{j}" for i, j in links)


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation, with the gold word alignment where somebody drew one."""

    source: str
    target: str
    alignment: Alignment | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences as piece ids, padded with `PAD` to the longest.

    A source row is `x₁ … xₙ </s>`; a target row is `<s> y₁ … yₘ </s>`. Lengths count those marks. Where only
    the source is known (decoding), the target is None.
    """

    source: Tensor  # (batch, source) int64
    source_lengths: Tensor  # (batch,) int64
    target: Tensor | None = None  # (batch, target) int64
    target_lengths: Tensor | None = None  # (batch,) int64

    def __len__(self) -> int:
        return int(self.source.shape[0])


@dataclass(frozen=True, slots=True)
class LogProbs:
    """What a step says of the next piece: log-probabilities, and which piece each column stands for.

    `ids` is None when column c stands for piece c; a shortlist gives the ids of its columns.
    """

    values: Tensor  # (row, column) float
    ids: Tensor | None = None  # (column,) int64


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One finished translation of a search: piece ids without `<s>` and `</s>`, and its normalised score.

    `log_prob` is NaN where an engine does not tell it.
    """

    ids: tuple[int, ...]
    score: float
    log_prob: float


@dataclass(frozen=True, slots=True)
class ReadOut:
    """How word alignments are read from a model's cross-attention; chosen on the validation set.

    The maps of `heads`, each a layer and a head of it, both counted from 0, are averaged. With `shift` 1 the
    row of a target piece is the step that consumes it rather than the one that produces it.
    """

    heads: tuple[tuple[int, int], ...]
    shift: int = 0


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """The weights of one attention site for one sentence: (layer, head, query, key), with their labels.

    `site` is "encoder", "decoder" or "cross". Queries are rows. Arrays are plain numpy float32, so that
    whoever draws them needs no torch. Rows sum to 1 unless the mechanism says otherwise.
    """

    site: str
    weights: NDArray[np.float32]  # (layer, head, query, key)
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    facts: Mapping[str, str] = field(default_factory=dict)

    def plot(self, ax: Any | None = None, *, layer: int | None = None, head: int | None = None) -> Any:
        """Draw it on matplotlib's axes, which are returned; without `ax` on the current ones.

        One layer and head are drawn, or their mean where none is named. Hangul is lettered in a font that has
        it, where one is installed.
        """
        from jumok.figures import draw_grid

        chosen = self.weights
        for axis, place in enumerate((layer, head)):
            count = self.weights.shape[axis]
            if place is not None and not 0 <= place < count:
                name = ("layer", "head")[axis]
                raise DataError(f"The attention map has no {name} {place}. It has {count}, counted from 0.")
            chosen = chosen.mean(axis=0) if place is None else chosen[place]
        return draw_grid(chosen, self.queries, self.keys, ax)
