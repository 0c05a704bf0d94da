"""Let several rows of queries, such as the hypotheses of one sentence, read the same row of a memory.

All hypotheses of a sentence attend to the same keys and values. To avoid one copy of the keys and values per
hypothesis, `group` turns the hypotheses into additional queries of their sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Beams:
    """Which row of a memory each row of queries reads."""

    sentence: Tensor  # (row,) int64: the row of the memory that each row of queries reads
    num_sentences: int  # rows of the memory
    num_slots: int  # largest number of query rows per sentence
    # (row,) int64: sentence · num_slots + index of the row among the rows of its sentence. None if the slots
    # are 0, 1, 2 …
    slot: Tensor | None

    def group(self, query: Tensor) -> Tensor:
        """(row, head, query, width) -> (sentence, head, slot × query, width); unused slots are 0."""
        _, head, queries, width = query.shape
        if self.slot is not None:
            empty = query.new_zeros(self.num_sentences * self.num_slots, head, queries, width)
            query = empty.index_copy(0, self.slot, query)
        by_slot = query.view(self.num_sentences, self.num_slots, head, queries, width)
        return by_slot.transpose(1, 2).reshape(self.num_sentences, head, self.num_slots * queries, width)

    def ungroup(self, grouped: Tensor, queries: int) -> Tensor:
        """(sentence, head, slot × query, width) -> (row, head, query, width)."""
        _, head, _, width = grouped.shape
        by_slot = grouped.view(self.num_sentences, head, self.num_slots, queries, width).transpose(1, 2)
        rows = by_slot.reshape(self.num_sentences * self.num_slots, head, queries, width)
        return rows if self.slot is None else rows.index_select(0, self.slot)


def group_rows(sentence: Tensor, num_sentences: int) -> Beams:
    """Return the `Beams` of query rows in which row r reads memory row `sentence[r]`.

    `sentence` may be in any order and may repeat rows.
    """
    counts = torch.bincount(sentence, minlength=num_sentences)
    num_slots = int(counts.max()) if len(sentence) else 0
    by_sentence = torch.argsort(sentence, stable=True)
    starts = counts.cumsum(0) - counts
    row = torch.arange(len(sentence), device=sentence.device)
    index_in_sentence = torch.empty_like(row)
    index_in_sentence[by_sentence] = row - starts[sentence[by_sentence]]
    slot = sentence * num_slots + index_in_sentence
    regular = len(sentence) == num_sentences * num_slots and torch.equal(slot, row)
    return Beams(sentence, num_sentences, num_slots, slot=None if regular else slot)
