"""Steppers with so few tokens that a test can score all translations and compare them with a search."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from jumok.data.batching import padded_batch
from jumok.types import BEGIN, END, PAD, Batch, Hypothesis, LogProbs
from support.forced import forced_log_probs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jumok.inference.search.plan import SearchPlan
    from jumok.inference.search.stepper import Stepper


@dataclass
class TableState:
    source: Tensor  # (hypothesis, source)
    table_row: Tensor  # (hypothesis,): a hash of the source and of all tokens so far, which selects a row
    was_used: bool = False

    def use(self) -> TableState:
        """Return this state. A second call raises an error, because a stepper may get a state only once."""
        if self.was_used:
            raise RuntimeError("this state was already used")
        self.was_used = True
        return self


class TableStepper:
    """A stepper whose log-probabilities are rows of a random table.

    A hash of the source and of all tokens so far selects the row. If there are `ids`, the table has columns
    for these tokens only, as in a search with a shortlist.
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        seed: int,
        num_rows: int = 211,
        ids: Sequence[int] | None = None,
        sharpness: float = 2.0,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randn(num_rows, vocab_size, generator=generator) * sharpness
        self.ids = None if ids is None else torch.tensor(ids)
        if self.ids is not None:
            scores = scores[:, self.ids]
        self.table = scores.log_softmax(dim=-1)
        self.attention = torch.rand(num_rows, 64, generator=generator) + 0.05  # for up to 64 source tokens

    def begin(self, source: Batch) -> TableState:
        weights = torch.arange(1, source.source.shape[1] + 1)
        return TableState(source.source, (source.source * weights).sum(dim=1) % len(self.table))

    def step(self, state: TableState, last_tokens: Tensor) -> tuple[LogProbs, TableState]:
        state = state.use()
        table_row = (state.table_row * 31 + last_tokens * 17 + 5) % len(self.table)
        return LogProbs(self.table[table_row], self.ids), TableState(state.source, table_row)

    def reorder(self, state: TableState, order: Tensor) -> TableState:
        state = state.use()
        return TableState(state.source[order], state.table_row[order])


class AttendingTableStepper(TableStepper):
    """A table stepper with random attention, different in every state."""

    def step_with_attention(
        self, state: TableState, last_tokens: Tensor
    ) -> tuple[LogProbs, TableState, Tensor]:
        log_probs, new = self.step(state, last_tokens)
        weights = self.attention[new.table_row, : new.source.shape[1]].masked_fill(new.source == PAD, 0.0)
        return log_probs, new, weights / weights.sum(dim=1, keepdim=True)


def batch_of(*sources: Sequence[int]) -> Batch:
    return padded_batch([list(source) for source in sources])


def single_sentence(batch: Batch, row: int) -> Batch:
    """Return a batch with only this sentence, without padding."""
    length = batch.source_lengths[row : row + 1]
    return Batch(batch.source[row : row + 1, : int(length)], length)


def all_translations(tokens: Sequence[int], plan: SearchPlan, max_length: int) -> Iterator[tuple[int, ...]]:
    """Yield all sequences of tokens, without `</s>`, whose length the plan allows."""
    for length in range(plan.min_length, max_length + 1):
        yield from itertools.product(tokens, repeat=length)


def brute_force(
    stepper: Stepper[TableState], sentence: Batch, tokens: Sequence[int], plan: SearchPlan
) -> list[Hypothesis]:
    """Return every translation, ranked by log p / |y|^α.

    A translation of the maximum length is scored without `</s>`, because a search would cut it there.
    `</s>` is never masked here. A search with `min_length` > 0 masks it, so its scores differ.
    """
    max_length = int(plan.max_lengths(sentence)[0])
    ranked: list[Hypothesis] = []
    translations = list(all_translations(tokens, plan, max_length))
    for cut in (False, True):
        group = [ids for ids in translations if (len(ids) == max_length) == cut]
        rows = torch.zeros(len(group), dtype=torch.int64)
        batch = Batch(sentence.source[rows], sentence.source_lengths[rows])
        sums = forced_log_probs(stepper, batch, group, score_end=not cut).sum(dim=1).tolist()
        for ids, log_prob in zip(group, sums, strict=True):
            steps = len(ids) if cut else len(ids) + 1
            ranked.append(Hypothesis(ids, log_prob / steps**plan.length_penalty, log_prob))
    return sorted(ranked, key=lambda hypothesis: -hypothesis.score)


def was_cut(hypothesis: Hypothesis, max_length: int) -> bool:
    """Return whether the hypothesis has the maximum length, at which a search cuts it."""
    return len(hypothesis.ids) == max_length


def steps_of(hypothesis: Hypothesis, max_length: int) -> int:
    """Return the number of tokens of a hypothesis, including `</s>` unless the hypothesis was cut."""
    return min(len(hypothesis.ids) + 1, max_length)


def ordinary_tokens(vocab_size: int) -> list[int]:
    """Return the tokens that a translation may contain: all but `<pad>`, `<s>` and `</s>`."""
    return [token for token in range(vocab_size) if token not in (PAD, BEGIN, END)]
