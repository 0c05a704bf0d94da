"""Cleaning: the pairs that training keeps, and for what reason it skips the others.

    skipped = Counter()
    for pair in clean_pairs(corpora, limits, skipped=skipped): ...

Read = kept + skipped, always. `check_up` runs the same rules and counts them in full.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from jumok.corpus.alignments import links_outside
from jumok.corpus.faults import BlockCharacters, Fault, Findings, Inspector, Limits
from jumok.corpus.seen import SeenHashes
from jumok.corpus.split import sentence_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from jumok.corpus.corpora import Corpus
    from jumok.corpus.read import NumberedPair
    from jumok.values import Pair

__all__ = ["Cleaner", "InspectedBlock", "clean_pairs", "leak_keys"]

_BLOCK = 8192  # pairs inspected at a time
_SKIPPING = [fault for fault in Fault if fault.skips]


@dataclass(frozen=True)
class InspectedBlock:
    """A few thousand pairs with everything that was found."""

    pairs: list[NumberedPair]
    characters: BlockCharacters
    findings: Findings
    reasons: dict[Fault, NDArray[np.bool_]]  # of the pairs skipped: for what, each under one fault
    kept: NDArray[np.bool_]

    def kept_pairs(self) -> Iterator[Pair]:
        return (pair for (_, pair), kept in zip(self.pairs, self.kept, strict=True) if kept)


class Cleaner:
    """Sorts pairs into kept and skipped. One cleaner sees all corpora, to find duplicates across them.

    `against` are validation and test sets, whose sentences must not be trained on. `thorough` also looks for
    what only the check-up reports: sources that come again with another target, links to words that are not
    there.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        against: Sequence[Corpus] = (),
        thorough: bool = False,
    ) -> None:
        self.limits = limits or Limits()
        self.skipped: Counter[Fault] = Counter()
        self._leaks = {hash(key) for corpus in against for key in leak_keys(corpus)}
        self._thorough = thorough
        self._seen_pairs = SeenHashes()
        self._seen_sources = SeenHashes() if thorough else None

    def clean(self, corpus: Corpus) -> Iterator[Pair]:
        """The pairs of a corpus that training keeps, in their order. `skipped` counts the others."""
        for block in self.blocks(corpus):
            if block.kept.all():
                yield from (pair for _, pair in block.pairs)
            else:
                yield from block.kept_pairs()

    def blocks(self, corpus: Corpus, noticed: Counter[str] | None = None) -> Iterator[InspectedBlock]:
        inspector = Inspector(corpus.source_language, corpus.target_language, self.limits, plain=corpus.plain)
        numbered = corpus.numbered_pairs(noticed)
        while pairs := list(islice(numbered, _BLOCK)):
            yield self._inspect(pairs, inspector)

    def _inspect(self, pairs: list[NumberedPair], inspector: Inspector) -> InspectedBlock:
        sources = [pair.source for _, pair in pairs]
        targets = [pair.target for _, pair in pairs]
        findings, characters = inspector.inspect(sources, targets)
        findings.update(self._repetitions(sources, targets, plain=inspector.plain))
        if self._thorough and (outside := [bool(links_outside(pair)) for _, pair in pairs]) and any(outside):
            findings[Fault.LINKS] = np.array(outside)
        reasons, kept = self._judge(findings, len(pairs))
        for fault, where in reasons.items():
            self.skipped[fault] += int(where.sum())
        return InspectedBlock(pairs, characters, findings, reasons, kept)

    def _repetitions(self, sources: list[str], targets: list[str], *, plain: bool) -> Findings:
        """Faults that show only beside other pairs."""
        found: Findings = {}
        # Python's own hash: 64 bits, fast, and kept inside the string. It differs between processes, but
        # which pairs are duplicates does not.
        hashes = np.fromiter(map(hash, zip(sources, targets, strict=True)), np.int64, count=len(sources))
        new = self._seen_pairs.add(hashes)
        found[Fault.DUPLICATE] = ~new
        if self._seen_sources is not None and not plain:
            source_hashes = np.fromiter(map(hash, sources), np.int64, count=len(sources))
            found[Fault.OTHER_TARGET] = new & ~self._seen_sources.add(source_hashes)
        if self._leaks:
            told_by = targets if plain else sources
            leaked = (hash(sentence_key(sentence)) in self._leaks for sentence in told_by)
            found[Fault.LEAKED] = np.fromiter(leaked, bool, count=len(sources))
        return {fault: where for fault, where in found.items() if where.any()}

    def _judge(
        self, findings: Findings, count: int
    ) -> tuple[dict[Fault, NDArray[np.bool_]], NDArray[np.bool_]]:
        """Skip each pair for its first fault that skips."""
        kept = np.ones(count, dtype=bool)
        reasons: dict[Fault, NDArray[np.bool_]] = {}
        for fault in _SKIPPING:
            if fault in findings and fault not in self.limits.keep:
                reasons[fault] = kept & findings[fault]
                kept &= ~findings[fault]
        return reasons, kept


def leak_keys(corpus: Corpus) -> Iterator[str]:
    """What the pairs of a validation or test set are recognised by: their sources, or all of a plain text."""
    return (sentence_key(pair.target if corpus.plain else pair.source) for pair in corpus.pairs())


def clean_pairs(
    corpora: Sequence[Corpus],
    limits: Limits | None = None,
    *,
    against: Sequence[Corpus] = (),
    skipped: Counter[Fault] | None = None,
) -> Iterator[Pair]:
    """The pairs of all corpora that training keeps. Those skipped are counted in `skipped`, by reason."""
    cleaner = Cleaner(limits, against=against)
    if skipped is not None:
        cleaner.skipped = skipped
    for corpus in corpora:
        yield from cleaner.clean(corpus)
