"""Memories of the source while several hypotheses of a sentence are followed: one row a sentence, shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from jumok.attention import Beams, Memory, group_rows

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["share_sources"]

# Memories of finished sentences are dropped once they are a quarter: dropping copies those that stay.
SHARE_STILL_ALIVE = 0.75


def share_sources(sources: tuple[Memory, ...], rows: int, order: Tensor) -> tuple[Memory, ...]:
    """The memories that `rows` rows read, after row r became what was row `order[r]`."""
    if not sources:
        return sources
    beams = sources[0].beams
    if beams is None:
        beams = group_rows(torch.arange(rows, device=order.device), rows)
    sentence = beams.sentence[order]
    if torch.equal(sentence, beams.sentence):
        return sources
    alive = torch.unique(sentence)  # sorted
    if len(alive) > SHARE_STILL_ALIVE * beams.sentences:
        return _shared(sources, group_rows(sentence, beams.sentences))
    kept = tuple(source.select(alive) for source in sources)
    return _shared(kept, group_rows(torch.searchsorted(alive, sentence), len(alive)))


def _shared(sources: tuple[Memory, ...], beams: Beams) -> tuple[Memory, ...]:
    return tuple(source.shared(beams) for source in sources)
