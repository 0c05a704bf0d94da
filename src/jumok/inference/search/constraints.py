"""What may not come next: marks, an early end, an n-gram said before. And what must: a forced prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import torch

from jumok.errors import DataError
from jumok.values import BEGIN, END, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from jumok.decoding.plan import SearchPlan
    from jumok.values import LogProbs

__all__ = ["Prefixes", "columns_of", "guard", "pieces_of"]

NEVER = float("-inf")
MOST_LOST = 0.5


def pieces_of(log_probs: LogProbs, columns: Tensor) -> Tensor:
    """The piece ids that columns stand for, in the columns' shape."""
    return columns if log_probs.ids is None else log_probs.ids[columns]


def columns_of(log_probs: LogProbs, pieces: Tensor) -> Tensor:
    """The columns of pieces, in the pieces' shape; -1 for a piece that the shortlist leaves out."""
    ids = log_probs.ids
    if ids is None:
        return pieces
    largest = int(torch.cat([ids, pieces.flatten()]).max())
    table = ids.new_full((largest + 1,), -1)
    table[ids] = torch.arange(len(ids), device=ids.device)
    return table[pieces]


def guard(log_probs: LogProbs, history: Tensor, plan: SearchPlan) -> Tensor:
    """The log-probabilities (row, column) renormalised over what the plan still allows.

    `<pad>` and `<s>` never stand inside a translation: they are hidden in the log-probabilities given, too.
    `history` (row, step) holds the pieces so far. Rows in which nothing is forbidden stay as they are. Like
    CTranslate2, which masks before its softmax. Where nothing at all is left, the translation ends.
    """
    hidden = _hide_marks(log_probs)
    rows, pieces = _repeated(history, plan.no_repeat)
    if history.shape[1] < plan.shortest:
        every = torch.arange(len(history), device=history.device)
        rows = torch.cat([rows, every])
        pieces = torch.cat([pieces, torch.full_like(every, END)])
    if not len(rows):
        return log_probs.values
    columns = columns_of(log_probs, pieces)
    width = log_probs.values.shape[1]
    forbidden = torch.unique((rows * width + columns)[columns >= 0])  # each once: what it held is summed
    rows, columns = forbidden // width, forbidden % width
    touched = torch.zeros(len(history), dtype=torch.bool, device=rows.device).index_fill(0, rows, True)
    lost = hidden.index_add(0, rows, log_probs.values[rows, columns].exp()).masked_fill(~touched, 0.0)
    # One pass gives the rest its share. Where little is left, 1 - lost has too few digits: a new softmax.
    little = ~(lost <= MOST_LOST)
    values = log_probs.values - torch.log1p(-lost).masked_fill(little, 0.0)[:, None]
    values[rows, columns] = NEVER
    anew = little.nonzero().squeeze(1)
    if len(anew):
        values[anew] = _renormalised(values[anew], log_probs)
    return values


def _hide_marks(log_probs: LogProbs) -> Tensor:
    """Hide `<pad>` and `<s>`, in place; the probability that they held, (row,)."""
    marks = torch.tensor([PAD, BEGIN], device=log_probs.values.device)
    columns = columns_of(log_probs, marks)
    columns = columns[columns >= 0]
    held = log_probs.values[:, columns].exp().sum(dim=1)
    log_probs.values[:, columns] = NEVER
    return held


def _renormalised(values: Tensor, log_probs: LogProbs) -> Tensor:
    stuck = values.amax(dim=-1) == NEVER
    if stuck.any():
        end = columns_of(log_probs, torch.tensor([END], device=values.device))
        values[stuck.nonzero(), end] = 0.0
    return values.log_softmax(dim=-1)


def _repeated(history: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Rows and pieces, (n,) each, where the piece would complete an n-gram that the row already holds."""
    if size == 0 or history.shape[1] < size:
        nothing = history.new_empty(0)
        return nothing, nothing
    windows = history.unfold(1, size, 1)  # (row, start, size)
    opening = history[:, history.shape[1] - size + 1 :]  # (row, size - 1), the n-gram now being said
    same = (windows[:, :, :-1] == opening[:, None]).all(dim=-1)  # (row, start)
    rows, starts = same.nonzero(as_tuple=True)
    return rows, windows[rows, starts, -1]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """How each translation must begin. `pieces` is padded with PAD."""

    pieces: Tensor  # (batch, prefix) int64
    lengths: Tensor  # (batch,) int64

    @classmethod
    def of(cls, prefixes: Sequence[Sequence[int]] | None, *, sentences: int, device: torch.device) -> Self:
        given = (
            [list(prefix) for prefix in prefixes] if prefixes is not None else [[] for _ in range(sentences)]
        )
        _check_prefixes(given, sentences)
        lengths = torch.tensor([len(prefix) for prefix in given], dtype=torch.int64, device=device)
        longest = max((len(prefix) for prefix in given), default=0)
        padded = [prefix + [PAD] * (longest - len(prefix)) for prefix in given]
        pieces = torch.tensor(padded, dtype=torch.int64, device=device).view(sentences, longest)
        return cls(pieces, lengths)

    def forces(self, step: int) -> bool:
        """Whether any prefix reaches as far as this step."""
        return step < self.pieces.shape[1]

    def at(self, step: int, sentences: Tensor) -> tuple[Tensor, Tensor]:
        """The forced piece of each sentence, and whether there is one."""
        return self.pieces[sentences, step], step < self.lengths[sentences]

    def just_ended(self, step: int, sentences: Tensor) -> Tensor:
        """Whether this is the first free step after a prefix: (sentence,) bool."""
        lengths = self.lengths[sentences]
        return (lengths == step) & (lengths > 0)


def _check_prefixes(prefixes: list[list[int]], sentences: int) -> None:
    if len(prefixes) != sentences:
        raise DataError(
            f"There must be one prefix for each sentence. Received: {len(prefixes)} prefixes for {sentences} "
            "sentences. Give an empty prefix where a translation may begin freely."
        )
    for prefix in prefixes:
        if {PAD, BEGIN, END}.intersection(prefix):
            raise DataError(
                f"A prefix holds pieces, not marks. Received: {prefix}. Leave out <pad> ({PAD}), "
                f"<s> ({BEGIN}) and </s> ({END}): search adds them."
            )
