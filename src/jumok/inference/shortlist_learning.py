"""Learn a shortlist from a model's own alignments: what stands beside what in the pairs it was trained on.

Every target piece is counted beside the source pieces that its attention rests on, by their weights. Of each
source piece the heaviest partners are kept, and itself where both languages share their pieces: names and
numbers are copied.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy

from jumok.decoding.readout import chosen_map, default_read_out
from jumok.decoding.shortlist import Shortlist
from jumok.errors import DataError
from jumok.values import END

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy import float64, int64
    from numpy.typing import NDArray

    from jumok.decoding.translator import Translator
    from jumok.values import Pair

__all__ = ["learn_shortlist"]

MOST_BESIDE = 32
MOST_ALWAYS = 300
LEAST_WEIGHT = 0.05
"""Attention below this is no partner: nearly every piece has a little of it from everywhere."""
_AT_ONCE = 2048


def learn_shortlist(translator: Translator, pairs: Iterable[Pair]) -> Shortlist:
    """The shortlist of these pairs, each read once by the translator's model."""
    vocabularies = translator.vocabularies
    target_pieces = vocabularies.target.size
    often = numpy.zeros(target_pieces, dtype=numpy.int64)
    links = _Links()
    for source, target, weights in _read(translator, pairs):
        often += numpy.bincount(target, minlength=target_pieces)
        rows, columns = numpy.nonzero(weights >= LEAST_WEIGHT)
        links.add(source[columns] * target_pieces + target[rows], weights[rows, columns])
    often[: END + 1] = 0
    if not often.any():
        raise DataError(
            "There is no pair to learn a shortlist from. Give the pairs that the model was trained on."
        )
    frequent = numpy.argsort(-often, kind="stable")[:MOST_ALWAYS]
    beside = _heaviest(*links.sums(), target_pieces)
    if vocabularies.shared:
        beside = {piece: sorted({piece, *beside.get(piece, ())}) for piece in range(END + 1, target_pieces)}
    return Shortlist(sorted(frequent[often[frequent] > 0].tolist()), beside)


def _read(
    translator: Translator, pairs: Iterable[Pair]
) -> Iterator[tuple[NDArray[int64], NDArray[int64], NDArray[float64]]]:
    """Of each pair the source pieces, the target pieces and the weights between them, (target, source)."""
    source_side, target_side = translator.vocabularies.source, translator.vocabularies.target
    rest = iter(pairs)
    while block := list(islice(rest, _AT_ONCE)):
        sources = source_side.encode_batch([pair.source for pair in block])
        targets = target_side.encode_batch([pair.target for pair in block])
        short = [i for i in range(len(block)) if _is_short(translator, sources[i], targets[i])]
        for i, attended in zip(short, translator.attended([block[i] for i in short]), strict=True):
            read_out = translator.read_out or default_read_out(*attended.weights.shape[:2])
            weights = chosen_map(attended, read_out)[:, :-1]  # </s>, the last key, is no partner
            yield numpy.array(sources[i]), numpy.array(targets[i]), weights.astype(numpy.float64)


def _is_short(translator: Translator, source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether training would have taken the pair, too."""
    return 0 < len(source) < translator.longest_source and 0 < len(target) < translator.longest_source


class _Links:
    """Sums of weights by link, a link being one number. Memory grows with the links that differ."""

    def __init__(self) -> None:
        self._links: list[NDArray[int64]] = []
        self._weights: list[NDArray[float64]] = []
        self._unmerged = 0

    def add(self, links: NDArray[int64], weights: NDArray[float64]) -> None:
        self._links.append(links)
        self._weights.append(weights)
        self._unmerged += len(links)
        if self._unmerged > 2**22:
            self.sums()

    def sums(self) -> tuple[NDArray[int64], NDArray[float64]]:
        """Every link in ascending order, and the sum of its weights."""
        links, which = numpy.unique(numpy.concatenate(self._links), return_inverse=True)
        weights = numpy.concatenate(self._weights)
        sums = numpy.bincount(which, weights=weights, minlength=len(links)).astype(numpy.float64)
        self._links, self._weights, self._unmerged = [links], [sums], 0
        return links, sums


def _heaviest(links: NDArray[int64], sums: NDArray[float64], target_pieces: int) -> dict[int, list[int]]:
    """The heaviest partners of every source piece. Marks have none, and are nobody's."""
    sources, targets = links // target_pieces, links % target_pieces
    order = numpy.lexsort((targets, -sums, sources))
    order = order[(sources[order] > END) & (targets[order] > END)]
    found, starts = numpy.unique(sources[order], return_index=True)
    partners = numpy.split(targets[order], starts)[1:]  # nothing stands before the first
    return {
        int(piece): sorted(those[:MOST_BESIDE].tolist()) for piece, those in zip(found, partners, strict=True)
    }
