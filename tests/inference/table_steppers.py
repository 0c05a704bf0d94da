"""Steppers small enough to be searched by brute force."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from jumok.corpus.batches import padded_batch
from jumok.decoding import force
from jumok.values import BEGIN, END, PAD, Batch, Hypothesis, LogProbs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.decoding import SearchPlan, Stepper

FIRST_PIECE = 4


@dataclass
class TableState:
    source: Tensor  # (row, source)
    code: Tensor  # (row,) stands for the whole history
    used: bool = False

    def use(self) -> TableState:
        """A state may be handed to the stepper once."""
        if self.used:
            raise RuntimeError("this state was already consumed")
        self.used = True
        return self


class TableStepper:
    """Log-probabilities looked up in a random table by a hash of the source and of all pieces so far."""

    def __init__(
        self,
        *,
        pieces: int,
        seed: int,
        states: int = 211,
        ids: Sequence[int] | None = None,
        sharpness: float = 2.0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randn(states, pieces, generator=generator) * sharpness
        self.ids = None if ids is None else torch.tensor(ids)
        if self.ids is not None:
            scores = scores[:, self.ids]
        self.table = scores.log_softmax(dim=-1)
        self.looks = torch.rand(states, 64, generator=generator) + 0.05

    def begin(self, source: Batch) -> TableState:
        weights = torch.arange(1, source.source.shape[1] + 1)
        return TableState(source.source, (source.source * weights).sum(dim=1) % len(self.table))

    def step(self, state: TableState, last: Tensor) -> tuple[LogProbs, TableState]:
        state = state.use()
        code = (state.code * 31 + last * 17 + 5) % len(self.table)
        return LogProbs(self.table[code], self.ids), TableState(state.source, code)

    def reorder(self, state: TableState, order: Tensor) -> TableState:
        state = state.use()
        return TableState(state.source[order], state.code[order])


class AttendingTableStepper(TableStepper):
    """The same with a random attention, different in every state."""

    def step_with_attention(self, state: TableState, last: Tensor) -> tuple[LogProbs, TableState, Tensor]:
        log_probs, after = self.step(state, last)
        looks = self.looks[after.code, : after.source.shape[1]].masked_fill(after.source == PAD, 0.0)
        return log_probs, after, looks / looks.sum(dim=1, keepdim=True)


def batch_of(*sources: Sequence[int]) -> Batch:
    return padded_batch([list(source) for source in sources])


def one_of(batch: Batch, row: int) -> Batch:
    """A batch with one of the sentences, without its padding."""
    length = batch.source_lengths[row : row + 1]
    return Batch(batch.source[row : row + 1, : int(length)], length)


def every_translation(pieces: Sequence[int], plan: SearchPlan, limit: int) -> Iterator[tuple[int, ...]]:
    """All sequences of a length that the plan allows; those of `limit` pieces are cut."""
    for length in range(plan.shortest, limit + 1):
        yield from itertools.product(pieces, repeat=length)


def brute_force(
    stepper: Stepper[TableState], sentence: Batch, pieces: Sequence[int], plan: SearchPlan
) -> list[Hypothesis]:
    """Every translation, ranked by log p / |y|^α. Knows no guards: use it with `shortest` 0."""
    limit = int(plan.limits(sentence)[0])
    ranked: list[Hypothesis] = []
    translations = list(every_translation(pieces, plan, limit))
    for cut in (False, True):
        chosen = [ids for ids in translations if (len(ids) == limit) == cut]
        rows = torch.zeros(len(chosen), dtype=torch.int64)
        batch = Batch(sentence.source[rows], sentence.source_lengths[rows])
        sums = force(stepper, batch, chosen, ended=not cut).sum(dim=1).tolist()
        for ids, log_prob in zip(chosen, sums, strict=True):
            steps = len(ids) if cut else len(ids) + 1
            ranked.append(Hypothesis(ids, log_prob / steps**plan.length_penalty, log_prob))
    return sorted(ranked, key=lambda hypothesis: -hypothesis.score)


def was_cut(hypothesis: Hypothesis, limit: int) -> bool:
    return len(hypothesis.ids) == limit


def steps_of(hypothesis: Hypothesis, limit: int) -> int:
    """The steps that made a hypothesis: its pieces, and `</s>` unless it was cut."""
    return min(len(hypothesis.ids) + 1, limit)


def ordinary_pieces(pieces: int) -> list[int]:
    """What may stand inside a translation: all but `<pad>`, `<s>` and `</s>`."""
    return [piece for piece in range(pieces) if piece not in (PAD, BEGIN, END)]
