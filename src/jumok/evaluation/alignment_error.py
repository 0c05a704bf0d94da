"""Word alignments against gold: error rate, precision, recall.

Gold holds sure links S and possible links P ⊇ S; the links to be judged are A (Och & Ney 2003, §4.1):

    precision = |A ∩ P| / |A|        recall = |A ∩ S| / |S|

    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

Counts are summed over the corpus before they are divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jumok.corpus.alignments import parse_alignment
from jumok.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from jumok.values import Alignment

__all__ = ["AlignmentScores", "read_alignments", "score_alignments"]


@dataclass(frozen=True, slots=True)
class AlignmentScores:
    """How well links agree with gold, as shares from 0 to 1. `f` is the harmonic mean of the middle two."""

    error: float
    precision: float
    recall: float
    f: float
    links: int
    sentences: int


def score_alignments(links: Sequence[Alignment], gold: Sequence[Alignment]) -> AlignmentScores:
    """Judge the sure links of `links` against gold; the formulae stand at the top of this module."""
    if len(links) != len(gold):
        raise DataError(
            f"There must be one alignment for each gold one. Received: {len(links):,} and {len(gold):,}. "
            "A sentence without links is an empty line."
        )
    pairs = [(found.sure, right) for found, right in zip(links, gold, strict=True)]
    proposed = sum(len(found) for found, _ in pairs)
    sure = sum(len(right.sure) for _, right in pairs)
    among_sure = sum(len(found & right.sure) for found, right in pairs)
    among_possible = sum(len(found & right.possible) for found, right in pairs)
    precision = _share(among_possible, proposed)
    recall = _share(among_sure, sure)
    return AlignmentScores(
        error=1 - _share(among_sure + among_possible, proposed + sure),
        precision=precision,
        recall=recall,
        f=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        links=proposed,
        sentences=len(pairs),
    )


def read_alignments(path: Path, *, one_based: bool = False) -> list[Alignment]:
    """The alignments of a file, one a line; an empty line is a sentence without links."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The alignments at {path} cannot be read: {error}.") from None
    return list(_parse_lines(path, text.removesuffix("\n").split("\n") if text else [], one_based))


def _parse_lines(path: Path, lines: Iterable[str], one_based: bool) -> Iterator[Alignment]:
    for number, line in enumerate(lines, start=1):
        try:
            yield parse_alignment(line, one_based=one_based)
        except DataError as error:
            raise DataError(f"{path}, line {number}: {error}") from None


def _share(part: int, whole: int) -> float:
    """A share of nothing is 1: who is asked for no link and draws none has made no error."""
    return part / whole if whole else 1.0
