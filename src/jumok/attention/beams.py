"""Several rows of queries that read one row of a memory: the hypotheses of one sentence.

The keys and values of a source sentence are the same for all of its hypotheses. Instead of copying them, the
hypotheses of a sentence stand side by side as queries of that sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Beams", "group_rows"]


@dataclass(frozen=True, slots=True)
class Beams:
    """Which row of a memory each row of queries reads."""

    sentence: Tensor  # (row,) int64: the memory's row
    sentences: int  # rows of the memory
    slots: int  # most rows of queries that any sentence has
    slot: Tensor | None  # (row,) int64: place among sentences × slots; None where row r stands in place r

    def gather(self, query: Tensor) -> Tensor:
        """(row, head, query, width) -> (sentence, head, slot × query, width); unused slots hold 0."""
        _, head, queries, width = query.shape
        if self.slot is not None:
            every = query.new_zeros(self.sentences * self.slots, head, queries, width)
            query = every.index_copy(0, self.slot, query)
        apart = query.view(self.sentences, self.slots, head, queries, width)
        return apart.transpose(1, 2).reshape(self.sentences, head, self.slots * queries, width)

    def spread(self, gathered: Tensor, queries: int) -> Tensor:
        """(sentence, head, slot × query, width) -> (row, head, query, width)."""
        _, head, _, width = gathered.shape
        apart = gathered.view(self.sentences, head, self.slots, queries, width).transpose(1, 2)
        rows = apart.reshape(self.sentences * self.slots, head, queries, width)
        return rows if self.slot is None else rows.index_select(0, self.slot)


def group_rows(sentence: Tensor, sentences: int) -> Beams:
    """The beams of rows that read the memory's rows `sentence` (row,); any order, any number a sentence."""
    counts = torch.bincount(sentence, minlength=sentences)
    slots = int(counts.max()) if len(sentence) else 0
    by_sentence = torch.argsort(sentence, stable=True)
    starts = counts.cumsum(0) - counts
    place = torch.arange(len(sentence), device=sentence.device)
    rank = torch.empty_like(place)
    rank[by_sentence] = place - starts[sentence[by_sentence]]
    slot = sentence * slots + rank
    regular = len(sentence) == sentences * slots and torch.equal(slot, place)
    return Beams(sentence=sentence, sentences=sentences, slots=slots, slot=None if regular else slot)
