"""Alignment error rate, precision and recall of word alignments.

The gold alignment has sure links S and possible links P ⊇ S; the links to score are A (Och & Ney 2003, §4.1):

    precision = |A ∩ P| / |A|        recall = |A ∩ S| / |S|

    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

Counts are summed over the corpus before the division.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jumok.types import Alignment


@dataclass(frozen=True, slots=True)
class AlignmentScores:
    """Error and agreement of links with gold, from 0 to 1, and how many links and sentences were scored.

    `f` is the harmonic mean of precision and recall.
    """

    error: float
    precision: float
    recall: float
    f: float
    links: int
    sentences: int


def score_alignments(links: Sequence[Alignment], gold: Sequence[Alignment]) -> AlignmentScores:
    """Score the sure links of `links` against gold by the formulas at the top of this module."""
    if len(links) != len(gold):
        raise DataError(
            "There must be one alignment per gold alignment. "
            f"Received: {len(links):,} and {len(gold):,} gold. A sentence without links is an empty line."
        )
    pairs = [(alignment.sure, reference) for alignment, reference in zip(links, gold, strict=True)]
    num_links = sum(len(predicted) for predicted, _ in pairs)
    num_sure = sum(len(reference.sure) for _, reference in pairs)
    in_sure = sum(len(predicted & reference.sure) for predicted, reference in pairs)
    in_possible = sum(len(predicted & reference.possible) for predicted, reference in pairs)
    precision = _ratio(in_possible, num_links)
    recall = _ratio(in_sure, num_sure)
    return AlignmentScores(
        error=1 - _ratio(in_sure + in_possible, num_links + num_sure),
        precision=precision,
        recall=recall,
        f=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        links=num_links,
        sentences=len(pairs),
    )


def _ratio(numerator: int, denominator: int) -> float:
    """Return the ratio, and 1 for 0 / 0: an empty alignment of empty gold has no error."""
    return numerator / denominator if denominator else 1.0
