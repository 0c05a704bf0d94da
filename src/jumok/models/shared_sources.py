"""Encoded sources in a search: one memory row per sentence, shared by all hypotheses of that sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from jumok.attention import Beams, Memory, group_rows

if TYPE_CHECKING:
    from torch import Tensor

# If at most this share of the memory rows is still in use, the rows of finished sentences are dropped. They
# are not dropped after every finished sentence, because dropping rows copies all other rows.
MIN_SHARE_IN_USE = 0.75


def share_sources(sources: tuple[Memory, ...], rows: int, order: Tensor) -> tuple[Memory, ...]:
    """Return the memories after a reordering of hypotheses: new row r is the old row `order[r]`.

    `sources` has one memory per layer, or none. `rows` is the number of hypotheses before the reordering.
    """
    if not sources:
        return sources
    beams = sources[0].beams
    if beams is None:
        beams = group_rows(torch.arange(rows, device=order.device), rows)
    sentence = beams.sentence[order]
    if torch.equal(sentence, beams.sentence):
        return sources
    in_use = torch.unique(sentence)  # sorted
    if len(in_use) > MIN_SHARE_IN_USE * beams.num_sentences:
        return _with_beams(sources, group_rows(sentence, beams.num_sentences))
    selected = tuple(source.select(in_use) for source in sources)
    return _with_beams(selected, group_rows(torch.searchsorted(in_use, sentence), len(in_use)))


def _with_beams(sources: tuple[Memory, ...], beams: Beams) -> tuple[Memory, ...]:
    return tuple(source.with_beams(beams) for source in sources)
