"""Learn a shortlist from a model's own alignments of the pairs that it was trained on.

The attention weights between source and target tokens are summed over all pairs. Each source token gets the
target tokens with the largest sums. If both languages share one vocabulary, each source token also allows
itself as a target token, because translations copy names and numbers.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy

from jumok.errors import DataError
from jumok.inference.alignment.readout import default_read_out, read_out_map
from jumok.inference.shortlist import Shortlist
from jumok.types import END

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy import float64, int64
    from numpy.typing import NDArray

    from jumok.inference.translator import Translator
    from jumok.types import Pair

MAX_PER_SOURCE_TOKEN = 32
"""The maximum number of target tokens that a source token gets by its attention."""
MAX_ALWAYS = 300
"""The maximum number of tokens that are always allowed: the most frequent target tokens."""
MIN_WEIGHT = 0.05
"""Smaller attention weights are not links: nearly every token gets a little attention from all others."""
_BLOCK_PAIRS = 2048
_MAX_UNMERGED_LINKS = 2**22


def learn_shortlist(translator: Translator, pairs: Iterable[Pair]) -> Shortlist:
    """Return a shortlist learnt from these pairs. The translator's model reads each usable pair once."""
    tokenizers = translator.tokenizers
    target_vocab_size = tokenizers.target.vocab_size
    counts = numpy.zeros(target_vocab_size, dtype=numpy.int64)
    links = _LinkSums()
    for source, target, weights in _attended_tokens(translator, pairs):
        counts += numpy.bincount(target, minlength=target_vocab_size)
        rows, columns = numpy.nonzero(weights >= MIN_WEIGHT)
        links.add(source[columns] * target_vocab_size + target[rows], weights[rows, columns])
    counts[: END + 1] = 0
    if not counts.any():
        raise DataError(
            "There is no pair to learn a shortlist from. Give the pairs that the model was trained on."
        )
    most_frequent = numpy.argsort(-counts, kind="stable")[:MAX_ALWAYS]
    by_source = _strongest_targets(*links.sums(), target_vocab_size)
    if tokenizers.shared:
        by_source = {
            token: sorted({token, *by_source.get(token, ())}) for token in range(END + 1, target_vocab_size)
        }
    return Shortlist(sorted(most_frequent[counts[most_frequent] > 0].tolist()), by_source)


def _attended_tokens(
    translator: Translator, pairs: Iterable[Pair]
) -> Iterator[tuple[NDArray[int64], NDArray[int64], NDArray[float64]]]:
    """Yield the source tokens, the target tokens and the weights (target, source) of each usable pair."""
    tokenizers = translator.tokenizers
    remaining = iter(pairs)
    while block := list(islice(remaining, _BLOCK_PAIRS)):
        sources = translator.source_ids([pair.source for pair in block])
        targets = tokenizers.target.encode_batch([pair.target for pair in block])
        usable = [i for i in range(len(block)) if _is_usable(translator, sources[i], targets[i])]
        for i, attended in zip(usable, translator.attended_pairs([block[i] for i in usable]), strict=True):
            read_out = translator.read_out or default_read_out(*attended.weights.shape[:2])
            weights = read_out_map(attended, read_out)[:, :-1]  # without </s>, the last key
            yield numpy.array(sources[i]), numpy.array(targets[i]), weights.astype(numpy.float64)


def _is_usable(translator: Translator, source: Sequence[int], target: Sequence[int]) -> bool:
    """Whether source and target each have tokens, and fewer than the model's maximum for a source."""
    max_tokens = translator.max_source_tokens
    return 0 < len(source) < max_tokens and 0 < len(target) < max_tokens


class _LinkSums:
    """The sum of the weights of each link. Memory grows with the number of distinct links.

    A link is one integer: source token · target vocabulary size + target token.
    """

    def __init__(self) -> None:
        self._links: list[NDArray[int64]] = []
        self._weights: list[NDArray[float64]] = []
        self._unmerged = 0

    def add(self, links: NDArray[int64], weights: NDArray[float64]) -> None:
        self._links.append(links)
        self._weights.append(weights)
        self._unmerged += len(links)
        if self._unmerged > _MAX_UNMERGED_LINKS:
            self.sums()

    def sums(self) -> tuple[NDArray[int64], NDArray[float64]]:
        """Return the links in ascending order and the sum of the weights of each.

        This also merges what was added, which frees memory. Something must have been added.
        """
        links, inverse = numpy.unique(numpy.concatenate(self._links), return_inverse=True)
        weights = numpy.concatenate(self._weights)
        sums = numpy.bincount(inverse, weights=weights, minlength=len(links)).astype(numpy.float64)
        self._links, self._weights, self._unmerged = [links], [sums], 0
        return links, sums


def _strongest_targets(
    links: NDArray[int64], sums: NDArray[float64], target_vocab_size: int
) -> dict[int, list[int]]:
    """Return the target tokens with the largest sums for every source token in `links`.

    Source tokens and target tokens that are special tokens are left out.
    """
    sources, targets = links // target_vocab_size, links % target_vocab_size
    order = numpy.lexsort((targets, -sums, sources))
    order = order[(sources[order] > END) & (targets[order] > END)]
    source_tokens, starts = numpy.unique(sources[order], return_index=True)
    groups = numpy.split(targets[order], starts)[1:]  # the first group is empty
    return {
        int(token): sorted(group[:MAX_PER_SOURCE_TOKEN].tolist())
        for token, group in zip(source_tokens, groups, strict=True)
    }
