"""The values that packages exchange: pairs, batches, hypotheses, attention maps.

All classes are frozen dataclasses. This module does not import torch at run time, so the command line can use
the classes and still start fast.
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
class Region:
    """The box in a picture that a word of its caption names.

    The edges of the box are shares of the picture's width and height.
    """

    word: int  # index of the word, counted from 0
    left: float
    top: float
    right: float
    bottom: float
    letters: int | None = None
    """The number of letters at the start of the word that form the name. In Korean, a particle may follow the
    name: for 사과를 (apple and a particle), the number is 2. None means that the whole word is the name."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is the source of a pair: the sha256 of its file, and gold regions if there are any."""

    digest: str
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation, with the gold word alignment if there is one.

    If the source is a picture, `source` is the path of its file, and the target its caption or its class.
    """

    source: str
    target: str
    alignment: Alignment | None = None
    picture: Picture | None = None

    @property
    def source_identity(self) -> str:
        """A string that identifies this source: its text, or the sha256 of its picture."""
        return self.source if self.picture is None else self.picture.digest


@dataclass(frozen=True, slots=True)
class PatchGrid:
    """How a picture is cut into patches: `rows` × `columns` patches of equal size."""

    rows: int
    columns: int
    values_per_patch: int  # height × width × channels of a patch

    def __len__(self) -> int:
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences as token ids, padded with `PAD` to the longest.

    A source row is `x₁ … xₙ </s>`; a target row is `<s> y₁ … yₘ </s>`. Lengths count these special tokens.
    The target is None if only the source is known, as in decoding. A token of a picture is a patch: it is a
    row of pixel values instead of one id. A picture has no `</s>`. A batch is made on the CPU. A batch on
    another device has a copy of its source lengths on the CPU, because copying the lengths back from the
    device would wait until the device has finished its work.
    """

    source: Tensor  # (batch, source) int64; of pictures (batch, patch, value) uint8
    source_lengths: Tensor  # (batch,) int64
    target: Tensor | None = None  # (batch, target) int64
    target_lengths: Tensor | None = None  # (batch,) int64
    source_lengths_copy: Tensor | None = None  # (batch,) int64, on the CPU; None if the batch was not moved

    def __len__(self) -> int:
        return int(self.source.shape[0])

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch with all tensors on `device`, or this batch itself if it is there already."""
        tensors = (self.source, self.source_lengths, self.target, self.target_lengths)
        moved = [None if tensor is None else _move(tensor, device) for tensor in tensors]
        if all(new is old for new, old in zip(moved, tensors, strict=True)):
            return self
        source, source_lengths, target, target_lengths = moved
        if source is None or source_lengths is None:
            raise ValueError("a batch has a source")  # never raised: it tells the type checker so
        return Batch(source, source_lengths, target, target_lengths, self.cpu_source_lengths)

    @property
    def cpu_source_lengths(self) -> Tensor:
        """The source lengths on the CPU, (batch,)."""
        return self.source_lengths.cpu() if self.source_lengths_copy is None else self.source_lengths_copy


def _move(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Return the tensor on a device. It is copied to CUDA from pinned memory, so the CPU does not wait."""
    if tensor.device.type == "cpu" and str(device).startswith("cuda"):
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


@dataclass(frozen=True, slots=True)
class LogProbs:
    """Log-probabilities of the next token, and the token id of each column.

    `ids` is None if column c belongs to token c. With a shortlist, `ids` has the token id of each column.
    """

    values: Tensor  # (row, column) float
    ids: Tensor | None = None  # (column,) int64


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished hypothesis of a search: its token ids without `<s>` and `</s>`.

    A search ranks finished hypotheses by `score`, which includes the length and coverage penalties.
    `log_prob` is the sum of the model's log-probabilities, or NaN if the engine does not report it.
    """

    ids: tuple[int, ...]
    score: float
    log_prob: float


@dataclass(frozen=True, slots=True)
class ReadOut:
    """How word alignments are read from a model's cross-attention; chosen on the validation set.

    The maps of `heads`, which are (layer index, head index) pairs, are averaged. If `shift` is 0, a target
    token has the weights of the decoding step that produces the token. If `shift` is 1, a target token has
    the weights of the decoding step that consumes the token, which is the next step. Each target word is
    linked to the source word that it attends to most. If `min_source_weight` is given, each source word is
    also linked to the target word that attends to it most, provided that the weight between the two words is
    larger than `min_source_weight`.
    """

    heads: tuple[tuple[int, int], ...]
    shift: int = 0
    min_source_weight: float | None = None


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """The weights of one attention site for one sentence: (layer, head, query, key), with their labels.

    `site` is "encoder", "decoder" or "cross". Queries are rows. The weights are numpy float32, so drawing
    them needs no torch. With most mechanisms each row sums to 1. With local attention rows may sum to less;
    in a decoder-only model, the "cross" and "decoder" rows of a query sum to 1 together. `facts` are notes
    for display.
    """

    site: str
    weights: NDArray[np.float32]  # (layer, head, query, key)
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
