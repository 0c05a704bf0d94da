"""The values that packages exchange: pairs, batches, hypotheses, attention maps.

All are small and frozen. Nothing here imports torch at run time, so the command line can use them and still
start fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import torch
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

# The special tokens <pad> <unk> <s> </s> are the first four ids of every vocabulary.
PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3

Link = tuple[int, int]
"""A link (i, j) between source word i and target word j, both counted from 0."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which source words each target word translates. Sure links are also possible links."""

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "possible", self.possible | self.sure)

    def __str__(self) -> str:
        """Return the Pharaoh format: `0-0 1-2`, and `3?1` for a link that is only possible."""
        links = sorted(self.possible)
        return " ".join(f"{i}-{j}" if (i, j) in self.sure else f"{i}?{j}" for i, j in links)


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation, with the gold word alignment if there is one."""

    source: str
    target: str
    alignment: Alignment | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences as token ids, padded with `PAD` to the longest.

    A source row is `x₁ … xₙ </s>`; a target row is `<s> y₁ … yₘ </s>`. Lengths count these special tokens.
    The target is None if only the source is known, as in decoding.
    """

    source: Tensor  # (batch, source) int64
    source_lengths: Tensor  # (batch,) int64
    target: Tensor | None = None  # (batch, target) int64
    target_lengths: Tensor | None = None  # (batch,) int64

    def __len__(self) -> int:
        return int(self.source.shape[0])

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch with all tensors on `device`; this batch itself if they are there already."""
        tensors = (self.source, self.source_lengths, self.target, self.target_lengths)
        moved = [None if tensor is None else tensor.to(device) for tensor in tensors]
        if all(new is old for new, old in zip(moved, tensors, strict=True)):
            return self
        return Batch(*moved)  # type: ignore[arg-type]  # only the targets can be None


@dataclass(frozen=True, slots=True)
class LogProbs:
    """Log-probabilities of the next token, and which token each column is.

    `ids` is None if column c is token c; with a shortlist it holds the token id of each column.
    """

    values: Tensor  # (row, column) float
    ids: Tensor | None = None  # (column,) int64


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished candidate of a search: token ids without `<s>` and `</s>`, and its normalised score.

    `log_prob` is NaN if the engine does not report it.
    """

    ids: tuple[int, ...]
    score: float
    log_prob: float


@dataclass(frozen=True, slots=True)
class ReadOut:
    """How word alignments are read from a model's cross-attention; chosen on the validation set.

    The maps of `heads`, (layer index, head index) pairs, are averaged. With `shift` 1 the row of a target
    token is the step that consumes it instead of the step that produces it.
    """

    heads: tuple[tuple[int, int], ...]
    shift: int = 0


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """The weights of one attention site for one sentence: (layer, head, query, key), with their labels.

    `site` is "encoder", "decoder" or "cross". Queries are rows. Arrays are numpy float32, so drawing
    them needs no torch. Rows sum to 1 unless the mechanism says otherwise.
    """

    site: str
    weights: NDArray[np.float32]  # (layer, head, query, key)
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
